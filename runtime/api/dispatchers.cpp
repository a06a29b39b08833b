// Named dispatchers of the public interface: adapters in both directions between the public Dispatcher and the
// runtime's, and plug-in libraries.
#include "api/convert.h"
#include "api/devices.h"
#include "api/dispatch.h"
#include "dispatch/dispatchers.h"
#include "ops/plugin.h"
#include "torch/cpu_op.h"
#include "torch_library/torch_last_resort.h"

namespace ttrt {
namespace {

// What single operators need of LibTorch: its schemas, and the types of results.
void install() {
  install_torch_schemas();
  install_torch_last_resort();
}

struct InnerCall {
  explicit InnerCall(const OperatorCall& call)
      : name(call.name), program(static_cast<dispatch::ProgramCall*>(call.step)) {
    for (const Value& arg : call.args) args.push_back(to_rt_value(arg));
    for (const auto& [key, value] : call.keywords) keywords.emplace_back(key, to_rt_value(value));
  }
  dispatch::OperatorCall call() const { return {{.name = name, .args = args, .kwargs = keywords}, program}; }

  std::string name;
  std::vector<RtValue> args;
  std::vector<Keyword> keywords;
  dispatch::ProgramCall* program = nullptr;
};

OperatorCall public_call(const dispatch::OperatorCall& call) {
  OperatorCall out{.name = std::string(call.name), .args = {}, .keywords = {}, .step = call.program};
  for (const RtValue& arg : call.args) out.args.push_back(from_rt_value(arg));
  for (const auto& [key, value] : call.kwargs) out.keywords.emplace(key, from_rt_value(value));
  return out;
}

// A dispatcher of the user's, for the runtime.
class Registered final : public dispatch::TtnnDispatcher {
 public:
  explicit Registered(std::shared_ptr<const Dispatcher> dispatcher) : dispatcher_(std::move(dispatcher)) {}
  std::string summary() const override { return dispatcher_->summary(); }
  ttc::Refusal refusal_of(const dispatch::OperatorCall& call) const override {
    if (dispatcher_->can_dispatch_to_ttnn(public_call(call))) return std::nullopt;
    return ttc::Reason{ttc::ReasonCode::Unsupported, "its can_dispatch_to_ttnn says no"};
  }
  RtValue dispatch(const dispatch::OperatorCall& call) const override {
    return to_rt_value(dispatcher_->dispatch_to_ttnn(public_call(call)));
  }
  const std::shared_ptr<const Dispatcher>& dispatcher() const { return dispatcher_; }

 private:
  std::shared_ptr<const Dispatcher> dispatcher_;
};

// One of the runtime's, for the user.
class Found final : public Dispatcher {
 public:
  explicit Found(std::shared_ptr<const dispatch::TtnnDispatcher> dispatcher) : dispatcher_(std::move(dispatcher)) {}
  std::string summary() const override { return dispatcher_->summary(); }
  bool can_dispatch_to_ttnn(const OperatorCall& call) const override {
    return guarded([&] { return !dispatcher_->refusal_of(InnerCall(call).call()).has_value(); });
  }
  Value dispatch_to_ttnn(const OperatorCall& call) const override {
    return guarded([&] { return from_rt_value(dispatcher_->dispatch(InnerCall(call).call())); });
  }

 private:
  std::shared_ptr<const dispatch::TtnnDispatcher> dispatcher_;
};

}  // namespace

Dispatcher::~Dispatcher() = default;

void register_dispatcher(const std::string& name, std::shared_ptr<const Dispatcher> dispatcher) {
  guarded([&] {
    if (dispatcher == nullptr) throw Error(Error::Kind::usage, "dispatcher '" + name + "' is no object");
    dispatch::register_dispatcher(name, std::make_shared<Registered>(std::move(dispatcher)));
  });
}

std::string load_dispatcher(const std::string& path, const std::string& name) {
  return guarded([&] { return dispatch::load_dispatcher_plugin(path, name); });
}

std::shared_ptr<const Dispatcher> find_dispatcher(const std::string& name) {
  return guarded([&]() -> std::shared_ptr<const Dispatcher> {
    install();
    auto found = dispatch::find_dispatcher(name);
    if (const auto own = std::dynamic_pointer_cast<const Registered>(found)) return own->dispatcher();
    return std::make_shared<Found>(std::move(found));
  });
}

bool set_dispatcher(const std::string& name) {
  return guarded([&] { return dispatch::set_dispatcher(name); });
}

std::string active_dispatcher() {
  return guarded([] { return dispatch::active_dispatcher_name(); });
}

std::vector<std::string> list_available_dispatchers() {
  return guarded([] { return dispatch::list_available_dispatchers(); });
}

std::vector<DispatcherInfo> dispatchers() {
  return guarded([] {
    std::vector<DispatcherInfo> out;
    for (const dispatch::DispatcherInfo& info : dispatch::dispatcher_infos())
      out.push_back({.name = info.name, .summary = info.summary, .origin = info.origin, .active = info.active});
    return out;
  });
}

bool can_dispatch_to_ttnn(std::string_view func_name, const Arguments& args, const Keywords& kwargs) {
  return guarded([&] {
    install();
    const InnerCall inner({.name = std::string(func_name), .args = args, .keywords = kwargs});
    return dispatch::can_dispatch_to_ttnn(inner.name, inner.args, inner.keywords);
  });
}

Value dispatch_to_ttnn(std::string_view func_name, const Arguments& args, const Keywords& kwargs) {
  return guarded([&] {
    install();
    const InnerCall inner({.name = std::string(func_name), .args = args, .keywords = kwargs});
    return from_rt_value(dispatch::dispatch_to_ttnn(inner.name, inner.args, inner.keywords));
  });
}

void load_plugin(const std::string& path) {
  install();
  if (const std::string why = open_plugin(path); !why.empty()) throw Error(Error::Kind::bad_file, why);
}

}  // namespace ttrt
