// Transitions of circuits, under their manager's lock; listeners are told after it.
#include "dispatch/circuits.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace ttrt::dispatch {

std::string_view to_string(CircuitState state) {
  constexpr std::array<std::string_view, 3> names{"CLOSED", "OPEN", "HALF_OPEN"};
  return names[static_cast<std::size_t>(state)];
}

void Circuit::enter(CircuitState state, std::unique_lock<std::mutex> lock, const std::string& why) {
  const CircuitState before = std::exchange(state_, state);
  healthy_.store(state == CircuitState::CLOSED && failures_ == 0, std::memory_order_relaxed);
  if (before == state) return;
  ++state_changes_;
  lock.unlock();
  if (manager_.listener_) try {
      manager_.listener_(*this, before, state, why);
    } catch (...) {  // a listener's trouble is its own
    }
}

double Circuit::remaining() const {
  if (state_ != CircuitState::OPEN) return 0;
  return std::max(0.0, static_cast<double>(until_ns_ - manager_.clock_.now_ns()) / 1e9);
}

bool Circuit::allowed_slow() {
  std::unique_lock lock(manager_.mutex_);
  if (state_ != CircuitState::OPEN) return true;
  if (remaining() > 0) {
    ++rejections_;
    return false;
  }
  enter(CircuitState::HALF_OPEN, std::move(lock), {});
  return true;
}

void Circuit::close() {
  std::unique_lock lock(manager_.mutex_);
  failures_ = 0;
  enter(CircuitState::CLOSED, std::move(lock), {});
}

void Circuit::record_failure(const std::string& why) {
  std::unique_lock lock(manager_.mutex_);
  ++total_failures_;
  ++failures_;
  last_failure_ = why;
  if (state_ == CircuitState::CLOSED && failures_ < manager_.threshold_)
    return enter(CircuitState::CLOSED, std::move(lock), why);
  constexpr double longest = 9e18;  // nanoseconds
  until_ns_ = static_cast<std::int64_t>(
      std::min(static_cast<double>(manager_.clock_.now_ns()) + manager_.cooldown_ * 1e9, longest));
  enter(CircuitState::OPEN, std::move(lock), why);
}

void Circuit::reset() {
  const std::lock_guard lock(manager_.mutex_);
  state_ = CircuitState::CLOSED;
  failures_ = total_failures_ = rejections_ = state_changes_ = 0;
  last_failure_.clear();
  healthy_ = true;
}

CircuitState Circuit::state() const {
  const std::lock_guard lock(manager_.mutex_);
  return state_;
}

std::int64_t Circuit::failures() const {
  const std::lock_guard lock(manager_.mutex_);
  return failures_;
}

std::optional<double> Circuit::retry_after() const {
  const std::lock_guard lock(manager_.mutex_);
  return state_ == CircuitState::OPEN ? std::optional(remaining()) : std::nullopt;
}

Json Circuit::to_json() const {
  const std::lock_guard lock(manager_.mutex_);
  return {{"state", to_string(state_)},      {"consecutive_failures", failures_}, {"total_failures", total_failures_},
          {"total_rejections", rejections_}, {"state_changes", state_changes_},   {"cooldown_remaining", remaining()},
          {"last_failure", last_failure_}};
}

CircuitManager::CircuitManager(std::int64_t failure_threshold, double cooldown_seconds, const Clock& clock,
                               Listener listener)
    : clock_(clock), listener_(std::move(listener)) {
  configure(failure_threshold, cooldown_seconds);
}

void CircuitManager::configure(std::int64_t failure_threshold, double cooldown_seconds) {
  const std::lock_guard lock(mutex_);
  threshold_ = std::max<std::int64_t>(1, failure_threshold);
  cooldown_ = cooldown_seconds > 0 ? cooldown_seconds : 0;
}

Circuit& CircuitManager::circuit(Symbol kernel) {
  const std::lock_guard lock(mutex_);
  Circuit*& known = by_kernel_[kernel];
  if (!known) known = &circuits_.emplace_back(*this, kernel);
  return *known;
}

Json CircuitManager::stats() const {
  Json out{{"total_circuits", 0}, {"open", 0}, {"half_open", 0}, {"closed", 0}}, kernels = Json::object();
  std::vector<const Circuit*> all;
  {
    const std::lock_guard lock(mutex_);
    for (const Circuit& circuit : circuits_) all.push_back(&circuit);
    out["failure_threshold"] = threshold_;
    out["cooldown_seconds"] = cooldown_;
  }
  out["total_circuits"] = all.size();
  for (const Circuit* circuit : all) {
    Json one = circuit->to_json();
    const char* const count = one["state"] == "OPEN" ? "open" : one["state"] == "CLOSED" ? "closed" : "half_open";
    out[count] = out[count].get<int>() + 1;
    if (one["total_failures"] != 0) kernels[circuit->kernel().str()] = std::move(one);
  }
  out["kernels"] = std::move(kernels);
  return out;
}

}  // namespace ttrt::dispatch
