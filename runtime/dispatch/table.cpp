// Filling: every slot takes the live registration that matches it with the smallest cost, the later one among equals.
#include "dispatch/table.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "dispatch/last_resort.h"
#include "dispatch/names.h"

namespace ttrt::dispatch {
namespace {

constexpr std::array<std::string_view, table_devices> device_names{"cpu", "cuda", "rocm", "xpu",
                                                                   "hpu", "tpu",  "mps",  "tt"};
constexpr std::array<std::string_view, table_layouts> layout_names{"strided", "sparse_coo", "sparse_csr", "tile"};
constexpr std::array<std::string_view, 9> step_names{"exact",      "autograd dropped", "any quantization",
                                                     "any layout", "any dtype",        "any device",
                                                     "catch-all",  "last resort",      "missing"};

// One bit per relaxed axis, costlier axes higher; -1 where the pattern does not cover the key. A pattern without
// gradients serves a key with them, as the forward kernel under a wrapper; never the other way round.
int cost(const TablePattern& p, const TableKey& k) {
  int bits = 0;
  if (!p.device)
    bits |= 16;
  else if (*p.device != k.device)
    return -1;
  if (!p.dtype)
    bits |= 8;
  else if (*p.dtype != k.dtype)
    return -1;
  if (!p.layout)
    bits |= 4;
  else if (*p.layout != k.layout)
    return -1;
  if (!p.quantized)
    bits |= 2;
  else if (*p.quantized != k.quantized)
    return -1;
  if (!p.autograd || (k.autograd && !*p.autograd))
    bits |= 1;
  else if (*p.autograd != k.autograd)
    return -1;
  return bits;
}

FillStep step_of(int cost) {
  if (cost == 31) return FillStep::catch_all;
  FillStep step = FillStep::exact;
  for (int bit = 0; bit < 5; ++bit)
    if (cost >> bit & 1) step = static_cast<FillStep>(bit + 1);
  return step;
}

template <typename F>
void for_each_key(const F& f) {
  for (std::size_t device = 0; device < table_devices; ++device)
    for (std::size_t dtype = 0; dtype < static_cast<std::size_t>(ttc::dtype_count); ++dtype)
      for (std::size_t layout = 0; layout < table_layouts; ++layout)
        for (std::size_t flags = 0; flags < 4; ++flags)
          f(TableKey{static_cast<TableDevice>(device), static_cast<DType>(dtype), static_cast<TableLayout>(layout),
                     (flags & 2) != 0, (flags & 1) != 0});
}

}  // namespace

std::string_view to_string(TableDevice device) { return device_names[static_cast<std::size_t>(device)]; }
std::string_view to_string(TableLayout layout) { return layout_names[static_cast<std::size_t>(layout)]; }
std::string_view to_string(FillStep step) { return step_names[static_cast<std::size_t>(step)]; }
std::optional<TableDevice> table_device_from_string(std::string_view name) {
  return from_name<TableDevice>(device_names, name);
}
std::optional<TableLayout> table_layout_from_string(std::string_view name) {
  return name == "dense" ? TableLayout::strided : from_name<TableLayout>(layout_names, name);
}

std::string TableKey::text() const {
  std::string out = "(" + std::string(to_string(device)) + ", " + std::string(ttc::torch_name(dtype)) + ", " +
                    std::string(to_string(layout));
  if (autograd) out += ", autograd";
  if (quantized) out += ", quantized";
  return out + ")";
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

DispatchTable::~DispatchTable() = default;

void DispatchTable::add(const TablePattern& pattern, KernelSpec kernel) {
  if (kernel.id.empty()) throw ValueError("a kernel of the table of '" + op_ + "' needs an id");
  if (!kernel.impl) {
    const std::string id = kernel.id.str();
    kernel.impl = [op = op_, id](CallArgs& /*args*/) {
      throw KernelExecutionError("kernel '" + id + "' has no implementation", op, id);
    };
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.emplace_back(Entry{.pattern = pattern, .kernel = std::move(kernel)});
  entry.function = entry.kernel.impl.function();
  entry.state = entry.kernel.impl.state();
  fill_locked();
}

bool DispatchTable::remove(Symbol kernel_id) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(),
                                  [&](const Entry& e) { return e.live && e.kernel.id == kernel_id; });
  if (found == entries_.rend() || &*found == last_resort_) return false;
  found->live = false;
  fill_locked();
  return true;
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
      Entry& entry = entries_.emplace_back(Entry{.pattern = {}, .kernel = std::move(spec)});
      entry.function = entry.kernel.impl.function();
      entry.state = entry.kernel.impl.state();
      last_resort_ = &entry;
    }
  for_each_key([&](const TableKey& key) {
    const Entry* best = nullptr;
    int best_cost = 32;
    for (const Entry& entry : entries_) {
      if (!entry.live || &entry == last_resort_) continue;
      const int c = cost(entry.pattern, key);
      if (c >= 0 && c <= best_cost) best = &entry, best_cost = c;
    }
    slots_[key.index()].store(best ? best : last_resort_, std::memory_order_release);
  });
}

const KernelSpec* DispatchTable::find(const TableKey& key) const {
  const Entry* const entry = slots_[key.index()].load(std::memory_order_acquire);
  return entry ? &entry->kernel : nullptr;
}

FillStep DispatchTable::step_locked(const TableKey& key, const Entry* entry) const {
  if (!entry) return FillStep::missing;
  return entry == last_resort_ ? FillStep::last_resort : step_of(cost(entry->pattern, key));
}

DispatchTable::Origin DispatchTable::origin(const TableKey& key) const {
  const std::lock_guard lock(mutex_);
  const Entry* const entry = slots_[key.index()].load(std::memory_order_relaxed);
  if (!entry) return {};
  return {step_locked(key, entry), &entry->kernel, entry->pattern};
}

std::array<std::size_t, 9> DispatchTable::slots_by_step() const {
  const std::lock_guard lock(mutex_);
  std::array<std::size_t, 9> out{};
  for_each_key([&](const TableKey& key) {
    ++out[static_cast<std::size_t>(step_locked(key, slots_[key.index()].load(std::memory_order_relaxed)))];
  });
  return out;
}

std::vector<DispatchTable::Registration> DispatchTable::registrations() const {
  const std::lock_guard lock(mutex_);
  std::vector<Registration> out;
  for (const Entry& entry : entries_)
    if (entry.live && &entry != last_resort_) out.push_back({entry.pattern, &entry.kernel});
  return out;
}

void DispatchTable::missing(const TableKey& key) const {
  std::string registered;
  for (const Registration& r : registrations())
    registered += (registered.empty() ? "" : ", ") + r.pattern.text() + " -> " + r.kernel->id.str();
  throw DispatchError("operator '" + op_ + "' has no kernel for " + key.text() +
                          "; registered: " + (registered.empty() ? "nothing" : registered),
                      op_, {}, Phase::SELECTION);
}

Json DispatchTable::explain(const TableKey& key) const {
  const Origin from = origin(key);
  Json registered = Json::array();
  for (const Registration& r : registrations())
    registered.push_back({{"pattern", r.pattern.text()}, {"kernel", r.kernel->id.text()}});
  Json out = {{"op", op_},
              {"key", key.text()},
              {"kernel", from.kernel ? Json(from.kernel->id.text()) : Json()},
              {"step", to_string(from.step)},
              {"pattern", from.kernel && from.step != FillStep::last_resort ? Json(from.pattern.text()) : Json()},
              {"registered", registered}};
  if (Json torch = last_resort_keys(op_, key); !torch.is_null()) out["torch"] = std::move(torch);
  return out;
}

namespace {

struct Tables {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<DispatchTable>, std::less<>> by_op;
};

Tables& tables() {
  static Tables* const instance = new Tables;
  return *instance;
}

}  // namespace

DispatchTable& dispatch_table(std::string_view op) {
  Tables& all = tables();
  const std::lock_guard lock(all.mutex);
  auto found = all.by_op.find(op);
  if (found == all.by_op.end())
    found = all.by_op.emplace(std::string(op), std::make_unique<DispatchTable>(std::string(op))).first;
  return *found->second;
}

std::vector<std::string> dispatch_table_ops() {
  Tables& all = tables();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string> out;
  for (const auto& [op, table] : all.by_op) out.push_back(op);
  return out;
}

}  // namespace ttrt::dispatch
