// The life cycle of modules, what their calls do in each run mode, and the registry of their classes.
#include "api/module.h"

#include <algorithm>
#include <cctype>
#include <mutex>

#include "api/compiled_module.h"
#include "api/convert.h"
#include "device/metrics.h"
#include "modules/module.h"
#include "session/run_modes.h"
#include "support/error.h"

namespace ttrt {
namespace {

// As TT-Symbiote writes them: "DPL_NO_ERROR_PROP".
const std::vector<std::string>& mode_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (std::string name : ttc::run_modes()) {
      if (name == "device") continue;  // the command line's word for NORMAL_WITH_FALLBACK
      for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      out.push_back(std::move(name));
    }
    return out;
  }();
  return names;
}

// "": the environment holds none.
std::string mode_of_environment() {
  return guarded([] { return ttc::run_mode_of_environment(mode_names()); });
}

struct Modes {
  std::mutex mutex;
  std::string mode = "NORMAL_WITH_FALLBACK";
};
Modes& modes() {
  static auto* const instance = new Modes;
  return *instance;
}

struct OwnClass {
  ModuleClass klass;
  ModuleFactory make;
};
struct Classes {
  std::mutex mutex;
  std::map<std::string, OwnClass> by_name;
};
Classes& own_classes() {
  static auto* const instance = new Classes;
  return *instance;
}

std::vector<Tensor> on_host(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> out;
  for (const Tensor& one : tensors) out.push_back(one.to(tt_lib::device::GetHost()));
  return out;
}

double lowest_pcc(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  double lowest = 1;
  for (std::size_t i = 0; i < actual.size() && i < expected.size(); ++i) {
    const Metrics metrics = compare(TensorAccess::host(actual[i]), TensorAccess::host(expected[i]));
    lowest = std::min(lowest, metrics.pcc);
  }
  return lowest;
}

}  // namespace

struct Module::State {
  mutable std::recursive_mutex mutex;  // a module may call itself through a child
  std::int64_t calls = 0, on_device = 0;
  std::map<std::string, std::int64_t> reasons;
  std::optional<double> pcc;
};

Module::Module(TorchModule torch_layer) : torch_layer_(std::move(torch_layer)), state_(std::make_unique<State>()) {}
Module::~Module() = default;

Module& Module::add_child(const std::string& name, std::shared_ptr<Module> child) {
  if (child == nullptr || name.empty() || !children_.emplace(name, child).second)
    throw Error(Error::Kind::usage, "a module's children are modules of different names, '" + name + "' is not");
  return *child;
}

// ---- the life cycle -------------------------------------------------------------------------------------------------

void Module::to_device(const std::shared_ptr<tt_lib::device::Device>& device) {
  const std::lock_guard lock(state_->mutex);
  if (moved_ && device != device_) deallocate_weights();
  device_ = device;
  for (const auto& [name, child] : children_) child->to_device(device);
}

void Module::preprocess_weights() {
  const std::lock_guard lock(state_->mutex);
  if (prepared_) return;
  for (const auto& [name, child] : children_) child->preprocess_weights();
  preprocess_weights_impl();
  prepared_ = true;
}

void Module::move_weights_to_device() {
  const std::lock_guard lock(state_->mutex);
  if (moved_) return;
  if (device_ == nullptr) to_device(tt_lib::device::GetDefaultDevice());
  preprocess_weights();
  for (const auto& [name, child] : children_) child->move_weights_to_device();
  move_weights_to_device_impl();
  moved_ = true;
}

void Module::move_weights_to_host() {
  const std::lock_guard lock(state_->mutex);
  if (!moved_) return;
  for (const auto& [name, child] : children_) child->move_weights_to_host();
  move_weights_to_host_impl();
  moved_ = false;
}

void Module::deallocate_weights() {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [name, child] : children_) child->deallocate_weights();
  if (moved_) deallocate_weights_impl();
  moved_ = false;
}

// ---- calls ----------------------------------------------------------------------------------------------------------

std::vector<Tensor> Module::on_device(const std::vector<Tensor>& inputs) {
  fell_back_ = false;
  try {
    move_weights_to_device();
    std::vector<Tensor> out = forward(inputs);
    state_->on_device += fell_back_ ? 0 : 1;
    return out;
  } catch (const Error& error) {
    const bool falls = fallback_ && !ttc::fails_on_fallback(run_mode()) &&
                       (error.kind() == Error::Kind::unsupported || error.kind() == Error::Kind::failed);
    if (!falls) throw;
    ++state_->reasons[error.what()];
    return torch_layer_.forward(on_host(inputs));
  }
}

std::vector<Tensor> Module::operator()(const std::vector<Tensor>& inputs) {
  return guarded([&] {
    const std::lock_guard lock(state_->mutex);
    const std::string mode = run_mode();
    ++state_->calls;
    if (mode == "CPU") return torch_layer_.forward(on_host(inputs));
    if (mode != "SEL" && !mode.starts_with("DPL")) return on_device(inputs);
    const std::vector<Tensor> expected = torch_layer_.forward(on_host(inputs));
    std::vector<Tensor> actual = on_device(inputs);
    const double pcc = lowest_pcc(on_host(actual), expected);
    state_->pcc = std::min(state_->pcc.value_or(pcc), pcc);
    return mode == "DPL_NO_ERROR_PROP" ? expected : actual;
  });
}

void Module::note_fallback(const std::string& reason) {
  if (!fallback_ || ttc::fails_on_fallback(run_mode())) throw Error(Error::Kind::unsupported, reason);
  fell_back_ = true;
  ++state_->reasons[reason];
}

void Module::set_fallback(bool on) {
  const std::lock_guard lock(state_->mutex);
  fallback_ = on;
  for (const auto& [name, child] : children_) child->set_fallback(on);
}

void Module::collect(const std::string& name, ModuleReport& out) const {
  const std::lock_guard lock(state_->mutex);
  out.calls += state_->calls;
  out.on_device += state_->on_device;
  for (const auto& [reason, count] : state_->reasons)
    out.fallbacks.push_back({.module = name, .klass = torch_layer_.class_name(), .reason = reason, .count = count});
  if (state_->pcc) out.pcc[name] = *state_->pcc;
  for (const auto& [child_name, child] : children_)
    child->collect(name.empty() ? child_name : name + "." + child_name, out);
}

ModuleReport Module::report() const {
  ModuleReport out;
  collect("", out);
  return out;
}

// ---- classes --------------------------------------------------------------------------------------------------------

void register_module_class(const ModuleClass& klass, ModuleFactory from_torch) {
  Classes& own = own_classes();
  const std::lock_guard lock(own.mutex);
  if (klass.name.empty() || find_module(klass.name) != nullptr || own.by_name.contains(klass.name))
    throw Error(Error::Kind::usage, "there is a TT module '" + klass.name + "' already, or that is no name");
  own.by_name[klass.name] = {klass, std::move(from_torch)};
}

std::vector<ModuleClass> module_classes() {
  std::vector<ModuleClass> out;
  for (const ModuleRecord* record : all_modules())
    out.push_back({.name = std::string(record->name),
                   .classes = {record->classes.begin(), record->classes.end()},
                   .summary = std::string(record->summary)});
  Classes& own = own_classes();
  const std::lock_guard lock(own.mutex);
  for (const auto& [name, one] : own.by_name) out.push_back(one.klass);
  std::ranges::sort(out, {}, &ModuleClass::name);
  return out;
}

namespace {

// Of one's own; none where the name, or without one the class, is not theirs.
ModuleFactory own_factory(const std::string& name, const std::string& klass) {
  Classes& own = own_classes();
  const std::lock_guard lock(own.mutex);
  for (const auto& [known, one] : own.by_name)
    if (name.empty() ? std::ranges::any_of(one.klass.classes, [&](const auto& c) { return names_class(c, klass); })
                     : known == name)
      return one.make;
  return {};
}

}  // namespace

std::shared_ptr<Module> from_torch(const TorchModule& source, const std::string& name, const ModuleOptions& options) {
  return guarded([&]() -> std::shared_ptr<Module> {
    if (const ModuleFactory make = own_factory(name, source.class_name())) return make(source, options);
    const std::vector<const ModuleRecord*> records = all_modules();
    const auto found = std::ranges::find_if(records, [&](const ModuleRecord* record) {
      return name.empty()
                 ? record->activation.empty() && !record->folds_batch_norm && stands_for(*record, source.class_name())
                 : record->name == name;
    });
    if (found != records.end()) return compiled_module(source, **found, options);
    std::vector<std::string> known;
    for (const ModuleClass& one : module_classes()) known.push_back(one.name);
    const std::string close = ttc::nearest(name, known.data(), known.size());
    throw Error(
        Error::Kind::usage,
        name.empty() ? "no TT module stands for " + source.class_name() : "there is no TT module '" + name + "'",
        close.empty() ? "module_classes() lists them" : "did you mean '" + close + "'?");
  });
}

// ---- run modes ------------------------------------------------------------------------------------------------------

bool set_run_mode(const std::string& mode) {
  const std::string wanted = guarded([&] { return ttc::known_run_mode(mode, mode_names(), "set_run_mode"); });
  const std::string environment = mode_of_environment();
  Modes& m = modes();
  const std::lock_guard lock(m.mutex);
  m.mode = wanted;
  return environment.empty() || environment == wanted;
}

std::string run_mode() {
  if (std::string environment = mode_of_environment(); !environment.empty()) return environment;
  Modes& m = modes();
  const std::lock_guard lock(m.mutex);
  return m.mode;
}

}  // namespace ttrt
