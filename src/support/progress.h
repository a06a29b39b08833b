// How far long work is, for whoever shows it. The work says what it does and counts; nobody is called back, so saying
// it costs an addition.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace ttc {

// A phase of the work, from its construction to its end. Phases may begin within others, from any thread.
class Phase {
 public:
  enum class Unit : std::uint8_t { items, bytes };
  // "compiling"; `total`: how many units there are to do, 0 where nobody knows.
  explicit Phase(std::string name, std::uint64_t total = 0, Unit unit = Unit::items);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

  // What it is at now: "raise-linear", a file, a node.
  void at(std::string what);
  void advance(std::uint64_t done = 1) { done_.fetch_add(done, std::memory_order_relaxed); }

 private:
  friend std::optional<struct PhaseState> current_phase(double seconds);
  std::string name_, what_;
  std::atomic<std::uint64_t> done_ = 0;
  std::uint64_t total_ = 0;
  Unit unit_ = Unit::items;
  double start_ = 0;
};

struct PhaseState {
  std::string name, what;
  std::uint64_t done = 0, total = 0;
  Phase::Unit unit = Phase::Unit::items;
  double seconds = 0;  // since it began
};
// What to show of the phases that have lasted for `seconds`: the outermost that knows how long it will take, as the
// time left is that of all within it, else the innermost; none where none has lasted.
std::optional<PhaseState> current_phase(double seconds = 0);

}  // namespace ttc
