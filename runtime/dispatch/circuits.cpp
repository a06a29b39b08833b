// Transitions of circuits, by compare-and-swap on the word; nobody waits.
#include "dispatch/circuits.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace ttrt::dispatch {

std::string_view to_string(CircuitState state) {
  constexpr std::array<std::string_view, 3> names{"CLOSED", "OPEN", "HALF_OPEN"};
  return names[static_cast<std::size_t>(state)];
}

void Circuit::changed(CircuitState from, CircuitState to, const std::string& why) {
  if (from == to) return;
  state_changes_.fetch_add(1, std::memory_order_relaxed);
  if (manager_.listener_) try {
      manager_.listener_(*this, from, to, why);
    } catch (...) {  // a listener's trouble is its own
    }
}

bool Circuit::allowed_slow() {
  std::uint64_t word = word_.load(std::memory_order_relaxed);
  while (static_cast<CircuitState>(word >> 62) == CircuitState::OPEN) {
    if (manager_.now_us() < static_cast<std::int64_t>(word & max_until)) {
      rejections_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    const std::uint64_t next = pack(CircuitState::HALF_OPEN, (word >> until_bits) & max_failures, 0);
    if (!word_.compare_exchange_weak(word, next, std::memory_order_relaxed)) continue;
    changed(CircuitState::OPEN, CircuitState::HALF_OPEN, {});
    break;
  }
  return true;
}

void Circuit::closed_by_success() {
  changed(static_cast<CircuitState>(word_.exchange(0, std::memory_order_relaxed) >> 62), CircuitState::CLOSED, {});
}

void Circuit::record_failure(const std::string& why) {
  total_failures_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(manager_.mutex_);
    last_failure_ = why;
  }
  const auto threshold = static_cast<std::uint64_t>(std::min<std::int64_t>(manager_.failure_threshold(), max_failures));
  std::uint64_t word = word_.load(std::memory_order_relaxed), next = 0;
  do {
    const std::uint64_t failures = std::min(((word >> until_bits) & max_failures) + 1, max_failures);
    if (static_cast<CircuitState>(word >> 62) == CircuitState::CLOSED && failures < threshold) {
      next = pack(CircuitState::CLOSED, failures, 0);
    } else {
      const double until = static_cast<double>(manager_.now_us()) + manager_.cooldown_seconds() * 1e6;
      next = pack(CircuitState::OPEN, failures,
                  static_cast<std::uint64_t>(std::min(until, static_cast<double>(max_until))));
    }
  } while (!word_.compare_exchange_weak(word, next, std::memory_order_relaxed));
  changed(static_cast<CircuitState>(word >> 62), static_cast<CircuitState>(next >> 62), why);
}

void Circuit::reset() {
  word_ = 0;
  total_failures_ = rejections_ = state_changes_ = 0;
}

std::optional<double> Circuit::retry_after() const {
  const std::uint64_t word = word_.load(std::memory_order_relaxed);
  if (static_cast<CircuitState>(word >> 62) != CircuitState::OPEN) return std::nullopt;
  return std::max(0.0, static_cast<double>(static_cast<std::int64_t>(word & max_until) - manager_.now_us()) / 1e6);
}

Json Circuit::to_json() const {
  std::string last;
  {
    const std::lock_guard lock(manager_.mutex_);
    last = last_failure_;
  }
  return {{"state", to_string(state())},
          {"consecutive_failures", failures()},
          {"total_failures", total_failures_.load()},
          {"total_rejections", rejections_.load()},
          {"state_changes", state_changes_.load()},
          {"cooldown_remaining", retry_after().value_or(0)},
          {"last_failure", last}};
}

CircuitManager::CircuitManager(std::int64_t failure_threshold, double cooldown_seconds, const Clock& clock,
                               Listener listener)
    : clock_(clock), start_ns_(clock.now_ns()), listener_(std::move(listener)) {
  configure(failure_threshold, cooldown_seconds);
}

void CircuitManager::configure(std::int64_t failure_threshold, double cooldown_seconds) {
  threshold_.store(std::max<std::int64_t>(1, failure_threshold), std::memory_order_relaxed);
  cooldown_.store(cooldown_seconds > 0 ? cooldown_seconds : 0, std::memory_order_relaxed);
}

Circuit& CircuitManager::circuit(Symbol kernel) {
  const std::lock_guard lock(mutex_);
  Circuit*& known = by_kernel_[kernel];
  if (!known) known = &circuits_.emplace_back(*this, kernel);
  return *known;
}

void CircuitManager::reset_all() {
  const std::lock_guard lock(mutex_);
  for (Circuit& circuit : circuits_) circuit.reset();
}

Json CircuitManager::stats() const {
  std::vector<const Circuit*> all;
  {
    const std::lock_guard lock(mutex_);
    for (const Circuit& circuit : circuits_) all.push_back(&circuit);
  }
  std::array<std::int64_t, 3> by_state{};
  Json kernels = Json::object();
  for (const Circuit* circuit : all) {
    ++by_state[static_cast<std::size_t>(circuit->state())];
    Json one = circuit->to_json();
    if (one["total_failures"] != 0) kernels[circuit->kernel().str()] = std::move(one);
  }
  return {{"total_circuits", all.size()},
          {"open", by_state[1]},
          {"half_open", by_state[2]},
          {"closed", by_state[0]},
          {"failure_threshold", failure_threshold()},
          {"cooldown_seconds", cooldown_seconds()},
          {"kernels", kernels}};
}

}  // namespace ttrt::dispatch
