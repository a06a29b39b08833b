// What lies in a device's memories while a model runs, by liveness: what the allocator would reserve, all banks alike.
// One estimate serves `ttc compile`, `ttc profile` and the reports.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "device/arch.h"
#include "device/tensor.h"
#include "ir/graph.h"

namespace ttc {

struct Held {
  std::string name, kind;  // "weight", "value", "gaps", "circular buffers"
  std::int64_t bytes = 0;
};

struct MemoryUse {
  std::int64_t bytes = 0, peak = 0;     // there are; at most taken
  std::int64_t streamed = 0;            // DRAM: at most taken where weights are there only while an op reads them
  std::size_t peak_at = 0;              // the step
  std::vector<std::int64_t> over_time;  // by step; without the gaps that values of other sizes leave between them
  std::vector<Held> held;               // at the peak, largest first
  bool fits() const { return peak <= bytes; }
};

// DRAM: steps are told in their order, each what it reads and makes.
class DramUse {
 public:
  explicit DramUse(const ttrt::ArchProfile& arch) : arch_(arch) {}

  // There from the first call on: weights, what is computed of nothing but these, buffers that the model writes.
  void keep(const ir::Value* value, const ttrt::TensorSpec& spec);
  void make(const ir::Value* value, const ttrt::TensorSpec& spec, std::size_t step);
  void read(const ir::Value* value, std::size_t step);  // nothing for values that are not in DRAM
  void read_at_end(const ir::Value* value) { read(value, std::numeric_limits<std::size_t>::max()); }
  void outlast(const ir::Value* value);  // it is there from call to call
  // A buffer's next value: it has memory of its own while all weights are there, to change places with the buffer.
  void becomes_buffer(const ir::Value* value);
  bool holds(const ir::Value* value) const { return life_of(value) != nullptr; }
  // `value` is what `same` is: a region's result and its node's.
  void name(const ir::Value* value, const ir::Value* same) { same_.emplace(value, same); }

  std::int64_t kept_bytes() const { return kept_; }  // as the tensors' own bytes
  MemoryUse over_time(std::size_t steps) const;

 private:
  struct Life {
    const ir::Value* value;
    std::int64_t bytes;
    std::size_t begin, end;
    bool kept;
    std::vector<std::size_t> reads;                      // of what is kept: the steps
    int buffers = 0;                                     // that it becomes
    bool apart() const { return kept || buffers == 1; }  // from the region that values share
  };
  const Life* life_of(const ir::Value* value) const;
  void add(Life life);
  std::int64_t reserved(const ttrt::TensorSpec& spec) const;
  std::int64_t region_bytes(std::size_t steps) const;

  const ttrt::ArchProfile& arch_;
  std::vector<Life> lives_;
  std::map<const ir::Value*, std::size_t> index_;
  std::map<const ir::Value*, const ir::Value*> same_;
  std::int64_t kept_ = 0;
};

// L1 of a core: the bytes of each step's circular buffers, which are gone after it. Nothing is said to be held.
MemoryUse circular_buffers_over_time(const ttrt::ArchProfile& arch, std::vector<std::int64_t> of_steps);

}  // namespace ttc
