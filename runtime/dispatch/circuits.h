// The circuit breaker: one circuit per kernel.
//
//   CLOSED --threshold consecutive failures--> OPEN until now + cooldown --first is_allowed after that--> HALF_OPEN
//   HALF_OPEN --success--> CLOSED, --failure--> OPEN with a new cooldown; probes are not limited
//   a success closes and zeroes the count in any state; a failure while OPEN restarts the cooldown
// A kernel without failures costs a call one load before and one after. Circuits live as long as their manager.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "dispatch/clock.h"
#include "dispatch/types.h"

namespace ttrt::dispatch {

enum class CircuitState : std::uint8_t { CLOSED, OPEN, HALF_OPEN };
std::string_view to_string(CircuitState state);

class CircuitManager;

class Circuit {
 public:
  Circuit(CircuitManager& manager, Symbol kernel) : manager_(manager), kernel_(kernel) {}

  // Moves an OPEN circuit whose cooldown is over to HALF_OPEN.
  bool is_allowed() { return healthy_.load(std::memory_order_relaxed) || allowed_slow(); }
  void record_success() {
    if (!healthy_.load(std::memory_order_relaxed)) close();
  }
  void record_failure(const std::string& why = {});
  void reset();  // CLOSED with zero statistics; nobody is told

  Symbol kernel() const { return kernel_; }
  CircuitState state() const;
  std::int64_t failures() const;  // consecutive ones
  // Seconds until the next probe; nullopt unless OPEN.
  std::optional<double> retry_after() const;
  // {state, consecutive_failures, total_failures, total_rejections, state_changes, cooldown_remaining, last_failure}
  Json to_json() const;

 private:
  bool allowed_slow();
  void close();
  void enter(CircuitState state, std::unique_lock<std::mutex> lock, const std::string& why);
  double remaining() const;  // seconds of the cooldown; 0 unless OPEN

  std::atomic<bool> healthy_{true};  // CLOSED without failures
  CircuitManager& manager_;
  const Symbol kernel_;
  // Under the manager's lock:
  CircuitState state_ = CircuitState::CLOSED;
  std::int64_t failures_ = 0, until_ns_ = 0;
  std::int64_t total_failures_ = 0, rejections_ = 0, state_changes_ = 0;
  std::string last_failure_;
};

class CircuitManager {
 public:
  // Told of every change, outside all locks; what it throws is dropped. `why` is the failure that opened a circuit.
  using Listener = std::function<void(const Circuit&, CircuitState from, CircuitState to, const std::string& why)>;

  // Thresholds below 1 and cooldowns below 0 count as 1 and 0.
  explicit CircuitManager(std::int64_t failure_threshold = 5, double cooldown_seconds = 30,
                          const Clock& clock = system_clock(), Listener listener = {});
  // For circuits already there too.
  void configure(std::int64_t failure_threshold, double cooldown_seconds);

  Circuit& circuit(Symbol kernel);  // made CLOSED where it is not known yet
  // {total_circuits, open, half_open, closed, failure_threshold, cooldown_seconds, kernels{id: Circuit::to_json()}},
  // the last of those that ever failed.
  Json stats() const;

 private:
  friend class Circuit;

  const Clock& clock_;
  const Listener listener_;
  mutable std::mutex mutex_;  // of what follows and of the circuits
  std::int64_t threshold_ = 1;
  double cooldown_ = 0;
  std::deque<Circuit> circuits_;
  std::unordered_map<Symbol, Circuit*> by_kernel_;
};

}  // namespace ttrt::dispatch
