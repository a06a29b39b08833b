// How far long work is, for whoever shows it. The work says what it does and counts; nobody is called back, so saying
// it costs an addition.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ttc {

// A phase of the work, from its construction to its end; the one begun last is the one under way. From any thread.
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
  void advance(std::uint64_t done = 1);

 private:
  friend std::optional<struct PhaseState> current_phase();
  std::string name_, what_;
  std::uint64_t done_ = 0, total_ = 0;
  Unit unit_ = Unit::items;
  double start_ = 0;
};

struct PhaseState {
  std::string name, what;
  std::uint64_t done = 0, total = 0;
  Phase::Unit unit = Phase::Unit::items;
  double seconds = 0;  // since it began
};
// The phase under way; none where nothing is.
std::optional<PhaseState> current_phase();

}  // namespace ttc
