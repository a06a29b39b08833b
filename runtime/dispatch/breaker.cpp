// State changes of the stand-alone breaker, under its lock; listeners are told outside it.
#include "dispatch/breaker.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ttrt::dispatch {

void BreakerOptions::validate() const {
  const auto positive = [](const char* field, bool ok) {
    if (!ok) throw ValueError(std::string(field) + " must be positive");
  };
  positive("failure_threshold", failure_threshold >= 1);
  positive("success_threshold", success_threshold >= 1);
  positive("half_open_max_calls", half_open_max_calls >= 1);
  positive("cooldown_seconds", cooldown_seconds > 0);
  positive("reset_timeout_seconds", !reset_timeout_seconds || *reset_timeout_seconds > 0);
}

CircuitBreaker::CircuitBreaker(std::string name, BreakerOptions options, const Clock& clock)
    : name_(std::move(name)), options_(options), clock_(clock) {
  options_.validate();
}

CircuitBreaker::Change CircuitBreaker::change_locked(CircuitState to) {
  const CircuitState from = state();
  if (to == CircuitState::OPEN)
    open_until_ns_ = clock_.now_ns() + static_cast<std::int64_t>(std::min(options_.cooldown_seconds, 1e9) * 1e9);
  if (to == CircuitState::CLOSED) stats_.consecutive_failures = 0;
  probes_ = 0, ++episode_;
  if (from == to) return std::nullopt;
  state_.store(to, std::memory_order_relaxed);
  ++stats_.state_changes;
  return std::pair(from, to);
}

void CircuitBreaker::notify(const Change& change) const {
  if (!change) return;
  std::vector<Listener> listeners;
  {
    const std::lock_guard lock(mutex_);
    listeners = listeners_;
  }
  for (const Listener& listener : listeners) {
    try {
      listener(change->first, change->second);
    } catch (...) {  // a listener's trouble is not the caller's
    }
  }
}

CircuitBreaker::Change CircuitBreaker::admit_locked(bool& admitted) {
  Change change;
  if (state() == CircuitState::OPEN && clock_.now_ns() >= open_until_ns_)
    change = change_locked(CircuitState::HALF_OPEN);
  admitted =
      state() == CircuitState::CLOSED || (state() == CircuitState::HALF_OPEN && probes_ < options_.half_open_max_calls);
  return change;
}

bool CircuitBreaker::can_execute_slow() {
  bool admitted = false;
  Change change;
  {
    const std::lock_guard lock(mutex_);
    change = admit_locked(admitted);
  }
  notify(change);
  return admitted;
}

CircuitBreaker::Probe::Probe(CircuitBreaker& breaker) : breaker_(breaker) {
  bool admitted = false;
  Change change;
  {
    const std::lock_guard lock(breaker.mutex_);
    change = breaker.admit_locked(admitted);
    if (!admitted) ++breaker.stats_.total_rejections;
    if (admitted && breaker.state() == CircuitState::HALF_OPEN) episode_ = breaker.episode_, ++breaker.probes_;
  }
  breaker.notify(change);
  if (!admitted) throw CircuitOpenError({}, breaker.name_, breaker.options_.cooldown_seconds);
}

CircuitBreaker::Probe::~Probe() {
  if (episode_ < 0) return;
  const std::lock_guard lock(breaker_.mutex_);
  if (episode_ == breaker_.episode_) --breaker_.probes_;
}

void CircuitBreaker::record_success() {
  Change change;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.total_calls, ++stats_.total_successes, ++stats_.consecutive_successes;
    stats_.consecutive_failures = 0;
    if (state() == CircuitState::HALF_OPEN && stats_.consecutive_successes >= options_.success_threshold)
      change = change_locked(CircuitState::CLOSED);
  }
  notify(change);
}

void CircuitBreaker::record_failure() {
  Change change;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = clock_.now_ns();
    if (options_.reset_timeout_seconds &&
        static_cast<double>(now - last_failure_ns_) > *options_.reset_timeout_seconds * 1e9)
      stats_.consecutive_failures = 0;
    last_failure_ns_ = now;
    ++stats_.total_calls, ++stats_.total_failures, ++stats_.consecutive_failures;
    stats_.consecutive_successes = 0;
    if (state() == CircuitState::HALF_OPEN ||
        (state() == CircuitState::CLOSED && stats_.consecutive_failures >= options_.failure_threshold))
      change = change_locked(CircuitState::OPEN);
  }
  notify(change);
}

void CircuitBreaker::force_open() {
  Change change;
  {
    const std::lock_guard lock(mutex_);
    change = change_locked(CircuitState::OPEN);
  }
  notify(change);
}

void CircuitBreaker::force_close() {
  Change change;
  {
    const std::lock_guard lock(mutex_);
    change = change_locked(CircuitState::CLOSED);
  }
  notify(change);
}

void CircuitBreaker::reset() {
  const std::lock_guard lock(mutex_);
  state_.store(CircuitState::CLOSED, std::memory_order_relaxed);
  stats_ = {};
  open_until_ns_ = last_failure_ns_ = probes_ = 0;
  ++episode_;
}

void CircuitBreaker::add_listener(Listener listener) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(std::move(listener));
}

BreakerStats CircuitBreaker::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::int64_t CircuitBreaker::probes_in_flight() const {
  const std::lock_guard lock(mutex_);
  return probes_;
}

double CircuitBreaker::cooldown_remaining() const {
  const std::lock_guard lock(mutex_);
  if (state() != CircuitState::OPEN) return 0;
  return std::max(0.0, static_cast<double>(open_until_ns_ - clock_.now_ns()) / 1e9);
}

Json CircuitBreaker::to_json() const {
  const BreakerStats s = stats();
  return {{"name", name_},
          {"state", to_string(state())},
          {"stats",
           {{"total_calls", s.total_calls},
            {"total_successes", s.total_successes},
            {"total_failures", s.total_failures},
            {"total_rejections", s.total_rejections},
            {"consecutive_failures", s.consecutive_failures},
            {"consecutive_successes", s.consecutive_successes},
            {"failure_rate", s.failure_rate()},
            {"state_changes", s.state_changes}}},
          {"cooldown_remaining", cooldown_remaining()}};
}

// ---- the registry -------------------------------------------------------------------------------------------------

CircuitBreaker& BreakerRegistry::get_or_create(const std::string& name, const BreakerOptions& options) {
  const std::lock_guard lock(mutex_);
  auto& breaker = breakers_[name];
  if (!breaker) {
    try {
      breaker = std::make_unique<CircuitBreaker>(name, options, clock_);
    } catch (...) {
      breakers_.erase(name);
      throw;
    }
  }
  return *breaker;
}

CircuitBreaker* BreakerRegistry::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = breakers_.find(name);
  return found == breakers_.end() ? nullptr : found->second.get();
}

bool BreakerRegistry::can_execute(const std::string& name) {
  CircuitBreaker* const breaker = find(name);
  return !breaker || breaker->can_execute();
}

void BreakerRegistry::record_success(const std::string& name) {
  if (CircuitBreaker* const breaker = find(name)) breaker->record_success();
}

void BreakerRegistry::record_failure(const std::string& name) { get_or_create(name).record_failure(); }

Json BreakerRegistry::get_all_stats() const {
  const std::lock_guard lock(mutex_);
  Json out = Json::object();
  for (const auto& [name, breaker] : breakers_) out[name] = breaker->to_json();
  return out;
}

std::vector<std::string> BreakerRegistry::get_open_circuits() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, breaker] : breakers_)
    if (breaker->state() == CircuitState::OPEN) out.push_back(name);
  return out;
}

void BreakerRegistry::reset_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, breaker] : breakers_) breaker->reset();
}

BreakerRegistry& global_breakers() {
  static BreakerRegistry* const registry = new BreakerRegistry;
  return *registry;
}

}  // namespace ttrt::dispatch
