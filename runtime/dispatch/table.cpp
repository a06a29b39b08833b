// Filling: the live registrations that cover a slot, by what they relax, the later one first among equals.
#include "dispatch/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dispatch/last_resort.h"

namespace ttrt::dispatch {
namespace {

constexpr std::array<std::string_view, table_layouts> layout_names{"strided", "sparse_coo", "sparse_csr", "tile"};
constexpr std::array<std::string_view, 9> step_names{"exact",      "autograd dropped", "any quantization",
                                                     "any layout", "any dtype",        "any device",
                                                     "catch-all",  "last resort",      "missing"};

// One bit per relaxed axis, costlier axes higher; -1 where the pattern does not cover the key. A pattern without
// gradients serves a key with them, as the forward kernel under a wrapper; never the other way round.
int cost(const TablePattern& p, const TableKey& k) {
  int bits = 0;
  const auto axis = [&](const auto& wanted, const auto& is, int bit) {
    if (!wanted) bits |= bit;
    return !wanted || *wanted == is;
  };
  if (!axis(p.device, k.device, 16) || !axis(p.dtype, k.dtype, 8) || !axis(p.layout, k.layout, 4) ||
      !axis(p.quantized, k.quantized, 2))
    return -1;
  if (!p.autograd || (k.autograd && !*p.autograd)) return bits | 1;
  return *p.autograd == k.autograd ? bits : -1;
}

FillStep step_of_cost(int cost) {
  if (cost == 31) return FillStep::catch_all;
  FillStep step = FillStep::exact;
  for (int bit = 0; bit < 5; ++bit)
    if (cost >> bit & 1) step = static_cast<FillStep>(bit + 1);
  return step;
}

// What a slot calls where its first kernel has no implementation; the state is its record.
void not_callable(void* state, CallArgs& args) {
  const auto& kernel = *static_cast<const KernelSpec*>(state);
  execute(kernel, kernel.operation, args);
}

template <typename F>
void for_each_key(const F& f) {
  for (std::size_t device = 0; device < platform_count; ++device)
    for (std::size_t dtype = 0; dtype < static_cast<std::size_t>(ttc::dtype_count); ++dtype)
      for (std::size_t layout = 0; layout < table_layouts; ++layout)
        for (std::size_t flags = 0; flags < 4; ++flags)
          f(TableKey{static_cast<Platform>(device), static_cast<DType>(dtype), static_cast<TableLayout>(layout),
                     (flags & 2) != 0, (flags & 1) != 0});
}

}  // namespace

std::string_view to_string(TableLayout layout) { return layout_names[static_cast<std::size_t>(layout)]; }
std::string_view to_string(FillStep step) { return step_names[static_cast<std::size_t>(step)]; }

std::string TableKey::text() const {
  std::string out = "(" + std::string(to_string(device)) + ", " + std::string(ttc::torch_name(dtype)) + ", " +
                    std::string(to_string(layout));
  if (autograd) out += ", autograd";
  if (quantized) out += ", quantized";
  return out + ")";
}

TableKey key_of(const SelectionContext& context) {
  return {.device = context.device.platform,
          .dtype = context.dtype,
          .layout = context.format_a == no_dtype ? TableLayout::strided : TableLayout::tile,
          .autograd = false,
          .quantized = context.quantized != 0};
}

std::string TablePattern::text() const {
  std::string out = "(" + (device ? std::string(to_string(*device)) : "any device") + ", " +
                    (dtype ? std::string(ttc::torch_name(*dtype)) : "any dtype") + ", " +
                    (layout ? std::string(to_string(*layout)) : "any layout");
  out += autograd ? (*autograd ? ", autograd" : "") : ", any autograd";
  out += quantized ? (*quantized ? ", quantized" : "") : ", any quantization";
  return out + ")";
}

DispatchTable::DispatchTable(std::string op) : op_(std::move(op)) {
  const std::lock_guard lock(mutex_);
  fill_locked();
}

const DispatchTable::Entry& DispatchTable::add_own(const TablePattern& pattern, KernelSpec kernel, int age) {
  own_.push_back(std::move(kernel));
  return entries_.emplace_back(Entry{.pattern = pattern, .kernel = &own_.back(), .age = age});
}

void DispatchTable::add(const TablePattern& pattern, KernelSpec kernel) {
  if (kernel.id.empty()) throw ttc::usage_error("a kernel of the table of '" + op_ + "' needs an id");
  const std::lock_guard lock(mutex_);
  add_own(pattern, std::move(kernel), static_cast<int>(entries_.size()) + 1);
  live_.push_back(&entries_.back());
  fill_locked();
}

void DispatchTable::rank(std::span<const std::pair<TablePattern, const KernelSpec*>> kernels) {
  const std::lock_guard lock(mutex_);
  for (const auto& [pattern, kernel] : kernels)
    live_.push_back(&entries_.emplace_back(Entry{.pattern = pattern, .kernel = kernel}));
  fill_locked();
}

bool DispatchTable::remove(Symbol kernel_id) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(live_.rbegin(), live_.rend(), [&](const Entry* e) { return e->kernel->id == kernel_id; });
  if (found == live_.rend()) return false;
  live_.erase(std::next(found).base());
  fill_locked();
  return true;
}

// The list of these entries with their costs, made where there is none like it yet.
const DispatchTable::Slot* DispatchTable::slot_of(std::vector<std::pair<int, const Entry*>>& covering) {
  std::stable_sort(covering.begin(), covering.end(), [](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    if (a.second->age != b.second->age) return a.second->age > b.second->age;
    return a.second->kernel->priority > b.second->kernel->priority;
  });
  std::vector<const Entry*> order;
  for (const auto& [cost, entry] : covering) order.push_back(entry);
  if (order.empty() && last_resort_) order.push_back(last_resort_);
  if (order.empty()) return nullptr;
  const auto [found, fresh] = lists_.try_emplace(order);
  Slot& slot = found->second;
  if (!fresh) return &slot;
  slot.first = order.front();
  for (const Entry* entry : order) slot.kernels.push_back(entry->kernel);
  const KernelSpec& kernel = *order.front()->kernel;
  slot.function = kernel.impl ? kernel.impl.function() : not_callable;
  slot.state = kernel.impl ? kernel.impl.state() : const_cast<KernelSpec*>(&kernel);
  return &slot;
}

void DispatchTable::fill_locked() {
  if (!last_resort_)
    if (KernelImpl impl = last_resort_kernel(op_)) {
      KernelSpec spec{.id = "torch:" + op_,
                      .operation = op_,
                      .source = "torch",
                      .summary = "LibTorch's dispatcher",
                      .impl = std::move(impl)};
      spec.platform = Platform::cpu;
      last_resort_ = &add_own({}, std::move(spec), 0);
    }
  std::vector<std::pair<int, const Entry*>> covering, before;
  const Slot* slot = slot_of(before);  // neighbours mostly have the same list
  for_each_key([&](const TableKey& key) {
    covering.clear();
    for (const Entry* entry : live_)
      if (const int c = cost(entry->pattern, key); c >= 0) covering.emplace_back(c, entry);
    if (covering != before) {
      before = covering;
      slot = slot_of(covering);
    }
    slots_[key.index()].store(slot, std::memory_order_release);
  });
}

FillStep DispatchTable::step_of(const TableKey& key, const Slot* slot) const {
  if (!slot) return FillStep::missing;
  return slot->first == last_resort_ ? FillStep::last_resort : step_of_cost(cost(slot->first->pattern, key));
}

DispatchTable::Origin DispatchTable::origin(const TableKey& key) const {
  const std::lock_guard lock(mutex_);
  const Slot* const slot = slots_[key.index()].load(std::memory_order_relaxed);
  if (!slot) return {};
  return {step_of(key, slot), slot->kernels.front(), slot->first->pattern};
}

void DispatchTable::missing(const TableKey& key) const {
  std::string registered;
  {
    const std::lock_guard lock(mutex_);
    for (const Entry* e : live_)
      registered += (registered.empty() ? "" : ", ") + e->pattern.text() + " -> " + e->kernel->id.str();
  }
  throw DispatchError(Phase::SELECTION,
                      "operator '" + op_ + "' has no kernel for " + key.text() +
                          "; registered: " + (registered.empty() ? "nothing" : registered),
                      {.operation = op_});
}

Json DispatchTable::explain(const TableKey& key) const {
  const Origin from = origin(key);
  Json registered = Json::array(), list = Json::array();
  for (const KernelSpec* kernel : kernels(key)) list.push_back(kernel->id.text());
  {
    const std::lock_guard lock(mutex_);
    for (const Entry* e : live_)
      registered.push_back({{"pattern", e->pattern.text()}, {"kernel", e->kernel->id.text()}});
  }
  Json out = {{"op", op_},
              {"key", key.text()},
              {"kernel", from.kernel ? Json(from.kernel->id.text()) : Json()},
              {"step", to_string(from.step)},
              {"pattern", from.kernel && from.step != FillStep::last_resort ? Json(from.pattern.text()) : Json()},
              {"kernels", list},
              {"registered", registered}};
  if (Json torch = last_resort_keys(op_, key); !torch.is_null()) out["torch"] = std::move(torch);
  return out;
}

}  // namespace ttrt::dispatch
