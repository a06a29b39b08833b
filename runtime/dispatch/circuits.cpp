// Transitions by compare-and-swap on the word; nobody waits.
#include "dispatch/circuits.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace ttrt::dispatch {

std::string_view to_string(CircuitState state) {
  constexpr std::array<std::string_view, 3> names{"CLOSED", "OPEN", "HALF_OPEN"};
  return names[static_cast<std::size_t>(state)];
}

bool Circuit::allowed_slow() {
  std::uint64_t word = word_.load(std::memory_order_relaxed);
  while (static_cast<CircuitState>(word >> 62) == CircuitState::OPEN) {
    if (manager_->now_us() < static_cast<std::int64_t>(word & max_until)) return false;
    const std::uint64_t next = pack(CircuitState::HALF_OPEN, (word >> until_bits) & max_failures, 0);
    if (word_.compare_exchange_weak(word, next, std::memory_order_relaxed)) break;
  }
  return true;
}

void Circuit::record_failure() {
  const auto threshold =
      static_cast<std::uint64_t>(std::min<std::int64_t>(manager_->failure_threshold(), max_failures));
  std::uint64_t word = word_.load(std::memory_order_relaxed), next = 0;
  do {
    const auto state = static_cast<CircuitState>(word >> 62);
    const std::uint64_t failures = std::min(((word >> until_bits) & max_failures) + 1, max_failures);
    if (state == CircuitState::CLOSED && failures < threshold) {
      next = pack(CircuitState::CLOSED, failures, 0);
    } else {
      const double until = static_cast<double>(manager_->now_us()) + manager_->cooldown_seconds() * 1e6;
      next = pack(CircuitState::OPEN, failures,
                  static_cast<std::uint64_t>(std::min(until, static_cast<double>(max_until))));
    }
  } while (!word_.compare_exchange_weak(word, next, std::memory_order_relaxed));
}

std::optional<double> Circuit::retry_after() const {
  const std::uint64_t word = word_.load(std::memory_order_relaxed);
  if (static_cast<CircuitState>(word >> 62) != CircuitState::OPEN) return std::nullopt;
  return std::max(0.0, static_cast<double>(static_cast<std::int64_t>(word & max_until) - manager_->now_us()) / 1e6);
}

CircuitManager::CircuitManager(std::int64_t failure_threshold, double cooldown_seconds, const Clock& clock)
    : clock_(clock), start_ns_(clock.now_ns()), map_(std::make_unique<Map>()) {
  configure(failure_threshold, cooldown_seconds);
}

void CircuitManager::configure(std::int64_t failure_threshold, double cooldown_seconds) {
  threshold_.store(std::max<std::int64_t>(1, failure_threshold), std::memory_order_relaxed);
  cooldown_.store(cooldown_seconds > 0 ? cooldown_seconds : 0, std::memory_order_relaxed);
}

Circuit& CircuitManager::circuit(Symbol kernel) {
  {
    const EpochGuard guard;
    const Map& map = *map_.load(guard);
    if (const auto found = map.find(kernel); found != map.end()) return *found->second;
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = map_.current()->find(kernel); found != map_.current()->end()) return *found->second;
  Circuit& circuit = circuits_.emplace_back();
  circuit.manager_ = this;
  circuit.kernel_ = kernel;
  auto next = std::make_unique<Map>(*map_.current());
  next->emplace(kernel, &circuit);
  map_.publish(std::move(next));
  return circuit;
}

void CircuitManager::reset_all() {
  const std::lock_guard lock(mutex_);
  for (Circuit& circuit : circuits_) circuit.reset();
}

Json CircuitManager::stats() const {
  std::array<std::int64_t, 3> by_state{};
  const std::lock_guard lock(mutex_);
  for (const Circuit& circuit : circuits_) ++by_state[static_cast<std::size_t>(circuit.state())];
  return {{"total_circuits", circuits_.size()},
          {"open", by_state[1]},
          {"half_open", by_state[2]},
          {"closed", by_state[0]},
          {"failure_threshold", failure_threshold()},
          {"cooldown_seconds", cooldown_seconds()}};
}

}  // namespace ttrt::dispatch
