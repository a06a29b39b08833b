// Where the values of a plan lie in the device's memory, and which weights stay there: one region for the values of the
// main block, which share it as their lifetimes allow, beside weights that all stay. Where that is more than there is,
// weights are streamed: some stay, the others are moved into the region before the instruction that reads them.
#pragma once

#include <functional>
#include <vector>

#include "executor/memory_plan.h"
#include "executor/packed_weights.h"
#include "executor/program.h"
#include "executor/run_report.h"

namespace ttrt {

class Profiler;
struct Plan;

// A weight on its way into the region.
struct Arrival {
  PackedWeights::Entry* weight = nullptr;
  DeviceTensor place;
};

class MemoryPlacement {
 public:
  // Reads off a recording run's steps what the values of main and its weights take. `elsewhere` tells results that lie
  // outside of the region.
  void record(const Plan& plan, const Program& program, const PackedWeights& weights, const ArchProfile& profile,
              const std::function<bool(const Instruction&)>& elsewhere);
  // Takes the memory, in `plan`'s frame. With `streamed`, of which nothing may be on the device yet: the weights that
  // stay are brought there too, and `spare` bytes of each bank are left to others. False where it does not fit.
  bool take(Plan& plan, Device& device, const Program& program, PackedWeights* streamed = nullptr,
            std::int64_t spare = 0);
  // Gives all of it back.
  void give_up(Plan& plan);

  bool recorded() const { return recorded_; }
  bool taken() const { return taken_; }
  // What is moved in before an instruction, by its index; empty where all weights stay.
  const std::vector<std::vector<Arrival>>& arrivals() const { return arrivals_; }
  // In each run.
  const WeightMoves& moves() const { return moves_; }
  // Those of one run.
  void note_moves(Profiler& profiler, const Program& program, const ArchProfile& profile) const;

 private:
  struct Weight {
    PackedWeights::Entry* entry;
    std::vector<int> uses;
  };
  void record_together(const Plan& plan, const Program& program,
                       const std::function<bool(const Instruction&)>& elsewhere);
  std::vector<PlannedValue> inside(bool apart, bool places) const;  // of the region
  std::vector<PlannedValue> few_rows_below(std::vector<PlannedValue> values, std::int64_t alignment) const;
  // Lays the values out; gives the region's bytes.
  std::int64_t lay_out(std::int64_t alignment);
  void zero_padding(Plan& plan, std::int64_t banks) const;
  bool stream(Plan& plan, Device& device, const Program& program, PackedWeights& weights, std::int64_t spare);
  void count_moves(const ArchProfile& profile);

  bool recorded_ = false, taken_ = false;
  std::vector<PlannedValue> values_;  // id: the slot; bytes and offsets in each bank
  std::vector<TensorSpec> specs_;     // parallel to values_
  // Parallel to values_: what a buffer becomes, which has memory of its own to change places with the buffer's.
  std::vector<char> become_buffers_;
  std::vector<Weight> weights_;  // in the order of their first use
  // Instructions that may run together, where what they read and make has a place of its own meanwhile.
  struct Meanwhile {
    int first, last;  // instruction numbers
    bool places;
    std::vector<std::size_t> values;  // of values_
  };
  std::vector<Meanwhile> together_;
  std::vector<std::vector<Arrival>> arrivals_;
  WeightMoves moves_;
};

}  // namespace ttrt
