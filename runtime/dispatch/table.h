// The dense table of one operator: device x dtype x layout x autograd x quantization -> its kernels in the order in
// which they are tried, by one array lookup.
//
// A registration names any of the five axes. Those that cover a key stand in the order of what they relax, where
// relaxing a later axis costs more than all earlier ones together:
//
//   exact < autograd dropped < any quantization < any layout < any dtype < any device;  all open: the catch-all
//
// Among equals the last registered comes first; behind them the operator's own kernels (`rank`), by priority and the
// first registered first. Where nothing covers a key it belongs to the last resort (LibTorch's dispatcher,
// last_resort.h), if that serves the operator; else calling it is an error that names operator, key and what is
// registered.
//
// Slots are filled when a kernel is registered or removed, never when they are read. Reading takes no lock: a slot is
// one atomic pointer to a list that lives as long as the table.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dispatch/kernel.h"

namespace ttrt::dispatch {

enum class TableLayout : std::uint8_t { strided, sparse_coo, sparse_csr, tile };
inline constexpr std::size_t table_layouts = 4;
inline constexpr std::size_t table_slots = platform_count * ttc::dtype_count * table_layouts * 2 * 2;

std::string_view to_string(TableLayout layout);

struct TableKey {
  Platform device = Platform::cpu;
  DType dtype = DType::f32;
  TableLayout layout = TableLayout::strided;
  bool autograd = false;
  bool quantized = false;

  std::string text() const;  // "(cuda, float32, strided, autograd)"
  constexpr std::size_t index() const {
    return (((static_cast<std::size_t>(device) * ttc::dtype_count + static_cast<std::size_t>(dtype)) * table_layouts +
             static_cast<std::size_t>(layout)) *
                2 +
            (autograd ? 1U : 0U)) *
               2 +
           (quantized ? 1U : 0U);
  }
};
// The slot of a call: tiles where its operands have a device format, quantized where one has a block format.
TableKey key_of(const SelectionContext& context);

// What a registration covers; nullopt: any.
struct TablePattern {
  std::optional<Platform> device = {};
  std::optional<DType> dtype = {};
  std::optional<TableLayout> layout = {};
  std::optional<bool> autograd = {};
  std::optional<bool> quantized = {};

  std::string text() const;  // "(cuda, float32, any layout, ...)"
};

// The step of the fallback order that a slot's first kernel comes from: the costliest axis that was relaxed.
// clang-format off
enum class FillStep : std::uint8_t {
  exact, autograd_dropped, any_quantization, any_layout, any_dtype, any_device, catch_all, last_resort, missing
};
// clang-format on
std::string_view to_string(FillStep step);

using Kernels = std::span<const KernelSpec* const>;

class DispatchTable {
 public:
  explicit DispatchTable(std::string op);
  DispatchTable(const DispatchTable&) = delete;
  DispatchTable& operator=(const DispatchTable&) = delete;

  const std::string& op() const { return op_; }
  // Takes effect at once for every slot it serves. Throws ttc::Error (usage) for a kernel without an id.
  void add(const TablePattern& pattern, KernelSpec kernel);
  // One of the operator's own kernels, which outlives the table (kernel_registry.h).
  void rank(std::span<const std::pair<TablePattern, const KernelSpec*>> kernels);
  // The youngest registration of that kernel; false where there is none. What it covered goes back to the others.
  bool remove(Symbol kernel_id);

  // In the order in which they are tried; empty for a missing key. Valid as long as the table.
  Kernels kernels(const TableKey& key) const {
    const Slot* const slot = slots_[key.index()].load(std::memory_order_acquire);
    return slot ? Kernels(slot->kernels) : Kernels();
  }
  // The first one. Throws DispatchError naming the operator, the key and what is registered.
  const KernelSpec& at(const TableKey& key) const { return *slot(key)->kernels.front(); }
  void call(const TableKey& key, CallArgs& args) const {
    const Slot* const first = slot(key);
    first->function(first->state, args);
  }
  struct Origin {
    FillStep step = FillStep::missing;
    const KernelSpec* kernel = nullptr;
    TablePattern pattern = {};
  };
  Origin origin(const TableKey& key) const;  // which step gave the first kernel, and from which registration
  // {op, key, kernel, step, pattern, kernels[], registered[]}; with `torch` where the last resort is asked.
  Json explain(const TableKey& key) const;

 private:
  struct Entry {
    TablePattern pattern;
    const KernelSpec* kernel = nullptr;
    int age = 0;  // the youngest has the greatest; 0: ranked by priority
  };
  struct Slot {
    KernelImpl::Function function = nullptr;  // the first kernel's
    void* state = nullptr;
    std::vector<const KernelSpec*> kernels;
    const Entry* first = nullptr;
  };
  const Slot* slot(const TableKey& key) const {
    const Slot* const slot = slots_[key.index()].load(std::memory_order_acquire);
    if (!slot) [[unlikely]]
      missing(key);
    return slot;
  }
  [[noreturn]] void missing(const TableKey& key) const;
  const Entry& add_own(const TablePattern& pattern, KernelSpec kernel, int age);
  const Slot* slot_of(std::vector<std::pair<int, const Entry*>>& covering);
  void fill_locked();
  FillStep step_of(const TableKey& key, const Slot* slot) const;

  const std::string op_;
  mutable std::mutex mutex_;        // of what follows, and of those who fill slots
  std::deque<Entry> entries_;       // removed ones too
  std::vector<const Entry*> live_;  // without the last resort
  std::deque<KernelSpec> own_;
  const Entry* last_resort_ = nullptr;
  std::map<std::vector<const Entry*>, Slot> lists_;  // every list there ever was
  std::array<std::atomic<const Slot*>, table_slots> slots_{};
};

}  // namespace ttrt::dispatch
