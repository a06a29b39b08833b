// The circuit breaker: one circuit per kernel, its whole state one atomic word.
//
//   CLOSED --threshold consecutive failures--> OPEN until now + cooldown --first is_allowed after that--> HALF_OPEN
//   HALF_OPEN --success--> CLOSED, --failure--> OPEN with a new cooldown; probes are not limited
//   a success closes and zeroes the count in any state; a failure while OPEN restarts the cooldown
// A check of a closed circuit is one load. Circuits live as long as their manager.
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
  bool is_allowed() { return state() == CircuitState::CLOSED || allowed_slow(); }
  void record_success() {
    if (word_.load(std::memory_order_relaxed) != 0) closed_by_success();
  }
  void record_failure(const std::string& why = {});
  void reset();  // CLOSED with zero statistics; nobody is told

  CircuitState state() const { return static_cast<CircuitState>(word_.load(std::memory_order_relaxed) >> 62); }
  int failures() const {  // consecutive ones
    return static_cast<int>((word_.load(std::memory_order_relaxed) >> until_bits) & max_failures);
  }
  // Seconds until the next probe; nullopt unless OPEN.
  std::optional<double> retry_after() const;
  Symbol kernel() const { return kernel_; }
  // {state, consecutive_failures, total_failures, total_rejections, state_changes, cooldown_remaining, last_failure}
  Json to_json() const;

 private:
  // The word: state (2 bits), consecutive failures (16), end of the cooldown in microseconds of the clock since the
  // manager was made (46, two years).
  static constexpr int until_bits = 46;
  static constexpr std::uint64_t max_failures = 0xffff, max_until = (std::uint64_t{1} << until_bits) - 1;
  static std::uint64_t pack(CircuitState state, std::uint64_t failures, std::uint64_t until) {
    return static_cast<std::uint64_t>(state) << 62 | failures << until_bits | until;
  }
  bool allowed_slow();
  void closed_by_success();
  void changed(CircuitState from, CircuitState to, const std::string& why);

  std::atomic<std::uint64_t> word_{0};
  CircuitManager& manager_;
  const Symbol kernel_;
  std::atomic<std::int64_t> total_failures_{0}, rejections_{0}, state_changes_{0};
  std::string last_failure_;  // under the manager's lock
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
  bool is_allowed(Symbol kernel) { return circuit(kernel).is_allowed(); }
  void record_success(Symbol kernel) { circuit(kernel).record_success(); }
  void record_failure(Symbol kernel) { circuit(kernel).record_failure(); }
  void reset_all();
  // {total_circuits, open, half_open, closed, failure_threshold, cooldown_seconds, kernels{id: Circuit::to_json()}},
  // the last of those that ever failed.
  Json stats() const;
  std::int64_t failure_threshold() const { return threshold_.load(std::memory_order_relaxed); }
  double cooldown_seconds() const { return cooldown_.load(std::memory_order_relaxed); }

 private:
  friend class Circuit;
  std::int64_t now_us() const { return (clock_.now_ns() - start_ns_) / 1000; }

  const Clock& clock_;
  const std::int64_t start_ns_;
  const Listener listener_;
  std::atomic<std::int64_t> threshold_;
  std::atomic<double> cooldown_;
  mutable std::mutex mutex_;
  std::deque<Circuit> circuits_;
  std::unordered_map<Symbol, Circuit*> by_kernel_;
};

}  // namespace ttrt::dispatch
