// A circuit breaker of its own around any call: limited probes while HALF_OPEN, several successes to close, listeners.
//
// Thread-safe. can_execute of a closed breaker is one load; everything else takes the breaker's lock. Listeners run
// after the change, outside the lock; what they throw is dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/circuits.h"

namespace ttrt::dispatch {

struct BreakerOptions {
  std::int64_t failure_threshold = 5;
  std::int64_t success_threshold = 2;
  double cooldown_seconds = 30;
  std::int64_t half_open_max_calls = 3;
  std::optional<double> reset_timeout_seconds = {};  // failures further apart than this do not add up

  // Throws ValueError naming the field.
  void validate() const;
};

struct BreakerStats {
  std::int64_t total_calls = 0, total_successes = 0, total_failures = 0, total_rejections = 0;
  std::int64_t consecutive_failures = 0;
  std::int64_t consecutive_successes = 0;  // since the last failure, whatever the state
  std::int64_t state_changes = 0;
  double failure_rate() const {
    return total_calls ? static_cast<double>(total_failures) / static_cast<double>(total_calls) : 0;
  }
};

class CircuitBreaker {
 public:
  using Listener = std::function<void(CircuitState from, CircuitState to)>;

  explicit CircuitBreaker(std::string name, BreakerOptions options = {}, const Clock& clock = system_clock());

  // Moves an OPEN breaker whose cooldown is over to HALF_OPEN; while HALF_OPEN, whether a probe is free.
  bool can_execute() { return state() == CircuitState::CLOSED || can_execute_slow(); }
  void record_success();
  void record_failure();
  // Runs f and records how it ended; its exceptions pass unchanged. Throws CircuitOpenError without running it, with
  // the whole cooldown as retry_after.
  template <typename F>
  decltype(auto) call(F&& f) {
    Probe probe(*this);
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
        f();
        record_success();
      } else {
        decltype(auto) result = f();
        record_success();
        return result;
      }
    } catch (...) {
      record_failure();
      throw;
    }
  }

  void force_open();
  void force_close();
  void reset();  // CLOSED with zero statistics; listeners are not told
  void add_listener(Listener listener);

  const std::string& name() const { return name_; }
  const BreakerOptions& options() const { return options_; }
  CircuitState state() const { return state_.load(std::memory_order_relaxed); }
  BreakerStats stats() const;
  std::int64_t probes_in_flight() const;
  double cooldown_remaining() const;  // seconds; 0 unless OPEN
  // {name, state, stats{...}, cooldown_remaining}
  Json to_json() const;

 private:
  // One call in flight: admission, and the release of a probe.
  class Probe {
   public:
    explicit Probe(CircuitBreaker& breaker);
    ~Probe();
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

   private:
    CircuitBreaker& breaker_;
    std::int64_t episode_ = -1;  // the HALF_OPEN this probe counts in; -1: none
  };
  using Change = std::optional<std::pair<CircuitState, CircuitState>>;

  bool can_execute_slow();
  Change admit_locked(bool& admitted);
  Change change_locked(CircuitState to);
  void notify(const Change& change) const;

  const std::string name_;
  const BreakerOptions options_;
  const Clock& clock_;
  std::atomic<CircuitState> state_{CircuitState::CLOSED};
  mutable std::mutex mutex_;
  BreakerStats stats_;
  std::int64_t open_until_ns_ = 0, last_failure_ns_ = 0, probes_ = 0, episode_ = 0;
  std::vector<Listener> listeners_;
};

// Breakers by name.
class BreakerRegistry {
 public:
  explicit BreakerRegistry(const Clock& clock = system_clock()) : clock_(clock) {}
  // `options` count only where the breaker is made.
  CircuitBreaker& get_or_create(const std::string& name, const BreakerOptions& options = {});
  CircuitBreaker* find(const std::string& name) const;
  bool can_execute(const std::string& name);           // true for an unknown one
  void record_success(const std::string& name);        // nothing for an unknown one
  void record_failure(const std::string& name);        // makes an unknown one
  Json get_all_stats() const;                          // name -> to_json()
  std::vector<std::string> get_open_circuits() const;  // sorted
  void reset_all();

 private:
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<CircuitBreaker>> breakers_;
};
BreakerRegistry& global_breakers();

}  // namespace ttrt::dispatch
