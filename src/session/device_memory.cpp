// Lives are intervals of steps, both ends included: an op's operands are there until its results are.
#include "session/device_memory.h"

#include <algorithm>

#include "device/buffer.h"
#include "executor/memory_plan.h"

namespace ttc {
namespace {

void find_peak(MemoryUse& use) {
  const auto most = std::max_element(use.over_time.begin(), use.over_time.end());
  use.peak = *most, use.peak_at = static_cast<std::size_t>(most - use.over_time.begin());
}

}  // namespace

// A buffer takes the same place in every bank.
std::int64_t DramUse::reserved(const ttrt::TensorSpec& spec) const {
  return ttrt::round_up(ttrt::bytes_per_bank(arch_, spec), arch_.dram_alignment) * arch_.dram_banks;
}

void DramUse::add(Life life) {
  index_.emplace(life.value, lives_.size());
  lives_.push_back(std::move(life));
}

const DramUse::Life* DramUse::life_of(const ir::Value* value) const {
  if (const auto other = same_.find(value); other != same_.end()) value = other->second;
  const auto found = index_.find(value);
  return found == index_.end() ? nullptr : &lives_[found->second];
}

void DramUse::keep(const ir::Value* value, const ttrt::TensorSpec& spec) {
  if (holds(value)) return;
  kept_ += spec.nbytes();
  add({.value = value, .bytes = reserved(spec), .begin = 0, .end = 0, .kept = true, .reads = {}});
}

void DramUse::make(const ir::Value* value, const ttrt::TensorSpec& spec, std::size_t step) {
  add({.value = value, .bytes = reserved(spec), .begin = step, .end = step, .kept = false, .reads = {}});
}

void DramUse::read(const ir::Value* value, std::size_t step) {
  auto* const life = const_cast<Life*>(life_of(value));
  if (life == nullptr) return;
  life->end = std::max(life->end, step);
  if (life->kept && (life->reads.empty() || life->reads.back() != step)) life->reads.push_back(step);
}

// One region for all values, laid out as the executor does it (executor/placement.h).
std::int64_t DramUse::region_bytes(std::size_t steps) const {
  std::vector<ttrt::PlannedValue> values;
  for (const Life& life : lives_)
    if (!life.apart() && life.begin < steps)
      values.push_back({.bytes = life.bytes / arch_.dram_banks,
                        .begin = static_cast<int>(life.begin),
                        .end = static_cast<int>(std::min(life.end, steps - 1))});
  return ttrt::plan_memory(values, std::max<std::int64_t>(64, arch_.dram_alignment)) * arch_.dram_banks;
}

void DramUse::outlast(const ir::Value* value) {
  read_at_end(value);
  if (const Life* life = life_of(value)) const_cast<Life*>(life)->begin = 0;
}

void DramUse::becomes_buffer(const ir::Value* value) {
  read_at_end(value);
  if (const Life* life = life_of(value)) ++const_cast<Life*>(life)->buffers;
}

MemoryUse DramUse::over_time(std::size_t steps) const {
  MemoryUse out{.bytes = arch_.dram_banks * arch_.dram_bank_bytes, .over_time = {}, .held = {}};
  if (steps == 0) return out;
  std::vector<std::int64_t> change(steps + 1, 0), own(steps, 0);
  std::int64_t kept = 0;
  for (const Life& life : lives_) {
    if (life.kept) {
      kept += life.bytes;
      for (const std::size_t step : life.reads)
        if (step < steps) own[step] += life.bytes;
    } else if (life.apart()) {
      kept += life.bytes;
      for (std::size_t step = life.begin; step < steps; ++step) own[step] += life.bytes;
    } else if (life.begin < steps) {
      change[life.begin] += life.bytes, change[std::min(life.end, steps - 1) + 1] -= life.bytes;
    }
  }
  std::int64_t values = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    values += change[i];
    out.over_time.push_back(kept + values);
    out.streamed = std::max(out.streamed, own[i] + values);
  }
  find_peak(out);
  const std::int64_t lain_out = kept + region_bytes(steps), gaps = lain_out - out.peak;
  out.peak = lain_out;
  if (gaps > 0) out.held.push_back({"between values of other sizes", "gaps", gaps});
  for (const Life& life : lives_)
    if (life.apart() || (life.begin <= out.peak_at && out.peak_at <= life.end))
      out.held.push_back({life.value->name, life.kept ? "weight" : "value", life.bytes});
  std::stable_sort(out.held.begin(), out.held.end(), [](const Held& a, const Held& b) { return a.bytes > b.bytes; });
  return out;
}

MemoryUse circular_buffers_over_time(const ttrt::ArchProfile& arch, std::vector<std::int64_t> of_steps) {
  MemoryUse out{.bytes = arch.l1_bytes - arch.l1_reserved, .over_time = std::move(of_steps), .held = {}};
  if (!out.over_time.empty()) find_peak(out);
  return out;
}

}  // namespace ttc
