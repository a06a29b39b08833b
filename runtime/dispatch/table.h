// The dense table of one operator: device x dtype x layout x autograd x quantization -> kernel, one array lookup.
//
// Every slot is filled when a kernel is registered or removed, never when it is read. A registration names any of the
// five axes; the kernel that relaxes least serves a slot, where relaxing a later step costs more than all earlier ones
// together:
//
//   exact < autograd dropped < any quantization < any layout < any dtype < any device;  all open: the catch-all
//
// Among equals the last registered wins, and gives the slot back when it is removed. A slot that nothing fills belongs
// to the last resort (LibTorch's dispatcher, last_resort.h) where that serves the operator, else calling it is an error
// that names operator, key and what is registered.
//
// Reading takes no lock: a slot is one atomic pointer to an entry that lives as long as the table.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/kernel.h"

namespace ttrt::dispatch {

enum class TableDevice : std::uint8_t { cpu, cuda, rocm, xpu, hpu, tpu, mps, tt };
enum class TableLayout : std::uint8_t { strided, sparse_coo, sparse_csr, tile };
inline constexpr std::size_t table_devices = 8, table_layouts = 4;
inline constexpr std::size_t table_slots = table_devices * ttc::dtype_count * table_layouts * 2 * 2;

std::string_view to_string(TableDevice device);
std::string_view to_string(TableLayout layout);
std::optional<TableDevice> table_device_from_string(std::string_view name);
// "dense" is strided.
std::optional<TableLayout> table_layout_from_string(std::string_view name);

struct TableKey {
  TableDevice device = TableDevice::cpu;
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

// What a registration covers; nullopt: any.
struct TablePattern {
  std::optional<TableDevice> device = {};
  std::optional<DType> dtype = {};
  std::optional<TableLayout> layout = {};
  std::optional<bool> autograd = {};
  std::optional<bool> quantized = {};

  std::string text() const;  // "(cuda, float32, any layout, ...)"
};

// The step of the fallback order that filled a slot: the costliest axis that was relaxed.
enum class FillStep : std::uint8_t {
  exact,
  autograd_dropped,
  any_quantization,
  any_layout,
  any_dtype,
  any_device,
  catch_all,
  last_resort,
  missing
};
std::string_view to_string(FillStep step);

class DispatchTable {
 public:
  explicit DispatchTable(std::string op);
  ~DispatchTable();
  DispatchTable(const DispatchTable&) = delete;
  DispatchTable& operator=(const DispatchTable&) = delete;

  const std::string& op() const { return op_; }
  // Takes effect at once for every slot it serves. Throws ValueError for a kernel without an id.
  void add(const TablePattern& pattern, KernelSpec kernel);
  // The youngest registration of that kernel; false where there is none. What it covered goes back to the others.
  bool remove(Symbol kernel_id);

  // Throws DispatchError naming the operator, the key and what is registered.
  const KernelSpec& at(const TableKey& key) const { return slot(key)->kernel; }
  const KernelSpec* find(const TableKey& key) const;  // nullptr for a missing one
  void call(const TableKey& key, CallArgs& args) const {
    const Entry* const entry = slot(key);
    entry->function(entry->state, args);
  }

  struct Origin {
    FillStep step = FillStep::missing;
    const KernelSpec* kernel = nullptr;
    TablePattern pattern = {};
  };
  Origin origin(const TableKey& key) const;          // which step filled the slot, and from which registration
  std::array<std::size_t, 9> slots_by_step() const;  // how many slots each step filled, indexed by FillStep
  struct Registration {
    TablePattern pattern;
    const KernelSpec* kernel;
  };
  std::vector<Registration> registrations() const;  // in the order of registration
  // {op, key, kernel, step, pattern, registered[]}; with `torch` where the last resort is asked.
  Json explain(const TableKey& key) const;

 private:
  struct Entry {
    TablePattern pattern;
    KernelSpec kernel;
    KernelImpl::Function function = nullptr;
    void* state = nullptr;
    bool live = true;
  };
  const Entry* slot(const TableKey& key) const {
    const Entry* const entry = slots_[key.index()].load(std::memory_order_acquire);
    if (!entry) [[unlikely]]
      missing(key);
    return entry;
  }
  [[noreturn]] void missing(const TableKey& key) const;
  void fill_locked();
  FillStep step_locked(const TableKey& key, const Entry* entry) const;

  const std::string op_;
  mutable std::mutex mutex_;   // of entries_, and of those who fill slots
  std::deque<Entry> entries_;  // removed ones too
  const Entry* last_resort_ = nullptr;
  std::array<std::atomic<const Entry*>, table_slots> slots_{};
};

// The table of an operator, made empty where there is none yet.
DispatchTable& dispatch_table(std::string_view op);
std::vector<std::string> dispatch_table_ops();  // sorted

}  // namespace ttrt::dispatch
