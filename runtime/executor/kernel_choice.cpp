// See kernel_choice.h. A named dispatcher is a policy for selection.
#include "executor/kernel_choice.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "dispatch/config_dispatcher.h"
#include "dispatch/dispatchers.h"
#include "dispatch/dynamic.h"
#include "dispatch/hot_reload.h"
#include "dispatch/static_dispatcher.h"

namespace ttrt {
namespace {

using dispatch::DispatchMode;

constexpr double watch_interval_seconds = 0.1;

}  // namespace

KernelChooser::KernelChooser(KernelChoiceOptions options) : options_(std::move(options)) {
  dispatch::register_device_kernels();
  if (const char* wins = std::getenv(dispatch::dispatcher_variable); wins != nullptr && *wins != '\0')
    options_.dispatcher = wins;
  options_.dispatcher = dispatch::resolve_dispatcher(options_.dispatcher);
  const bool needs_file = options_.mode == DispatchMode::CONFIG || options_.mode == DispatchMode::HOT_RELOAD;
  if (needs_file && options_.config_path.empty())
    throw ttc::usage_error("this dispatch mode needs --dispatch-config FILE");
  if (needs_file) static_cast<void>(dispatch::read_config_file(options_.config_path));
  const auto report = [this](const std::string& text) { this->report(text); };
  dispatch::DispatchOptions config;
  config.mode = fixed() ? DispatchMode::DYNAMIC : options_.mode;
  config.config_path = options_.config_path;
  config.watch_interval_seconds = watch_interval_seconds;
  const auto make = [this, report, rules = dispatch::find_dispatcher(options_.dispatcher)->policy()](
                        DispatchMode mode, const dispatch::DispatchConfig& c) -> std::shared_ptr<dispatch::Dispatcher> {
    dispatch::KernelRegistry& kernels = dispatch::global_kernels();
    switch (mode) {
      case DispatchMode::CONFIG:
        return std::make_shared<dispatch::ConfigDispatcher>(
            c, kernels, dispatch::ConfigDispatcherOptions{.strict_kernels = true, .report = report});
      case DispatchMode::HOT_RELOAD: {
        const auto select = [this](dispatch::Symbol operation,
                                   const dispatch::SelectionContext& context) -> const dispatch::KernelSpec* {
          try {
            return &orchestrator_->get_kernel_for_operation(operation, context, DispatchMode::DYNAMIC);
          } catch (const ttc::Error&) {
            return nullptr;
          }
        };
        auto hot = std::make_shared<dispatch::HotReloadDispatcher>(
            c, kernels, dispatch::HotReloadOptions{.selector = select, .strict_kernels = true, .report = report});
        hot->on_reload([this, path = options_.config_path](const dispatch::ConfigVersion& v) {
          this->report(path + ": version " + std::to_string(v.version) + " is active");
        });
        hot->watch();
        return hot;
      }
      case DispatchMode::DYNAMIC: {
        dispatch::DynamicOptions dynamic;
        dynamic.log = report;
        auto dispatcher = std::make_shared<dispatch::DynamicDispatcher>(c, kernels, std::move(dynamic));
        dispatcher->set_policy(dispatch::Policy(rules));
        return dispatcher;
      }
      case DispatchMode::STATIC:
      case DispatchMode::AUTO:
        break;
    }
    return dispatch::StaticDispatcher::from_config(c, kernels);
  };
  orchestrator_ = std::make_unique<dispatch::Orchestrator>(dispatch::DispatchConfig(config), dispatch::global_kernels(),
                                                           DispatchMode::DYNAMIC, make);
}

KernelChooser::~KernelChooser() = default;

void KernelChooser::report(const std::string& text) const { dispatch::report_to(options_.report, text); }

const dispatch::KernelSpec& KernelChooser::bind(const dispatch::SelectionContext& context) {
  if (options_.dispatcher == "debug") {
    const dispatch::Json selection = explain(context)["selection"];
    for (const dispatch::Json& candidate : selection["candidates"]) {
      std::string line = context.operation.str() + ": " + candidate["kernel"].get<std::string>() + ": " +
                         candidate["result"].get<std::string>();
      for (const dispatch::Json& reason : candidate["reasons"]) line += "; " + reason.get<std::string>();
      report(line);
    }
  }
  const dispatch::KernelSpec& kernel =
      orchestrator_->get_kernel_for_operation(context.operation, context, DispatchMode::DYNAMIC);
  count(kernel);
  return kernel;
}

void KernelChooser::count(const dispatch::KernelSpec& kernel) {
  const std::lock_guard lock(mutex_);
  ++served_[&kernel];
}

void KernelChooser::run(const dispatch::SelectionContext& context, dispatch::DeviceCall& call) {
  dispatch::CallArgs args;
  args.payload = &call;
  const dispatch::Result result = orchestrator_->dispatch(context.operation, args, &context);
  count(*result.kernel);
}

dispatch::Json KernelChooser::telemetry() const {
  dispatch::Json out{{"dispatcher", options_.dispatcher}, {"mode", to_string(options_.mode)}};
  if (!options_.config_path.empty()) out["config"] = options_.config_path;
  std::map<std::string, std::int64_t> kernels;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [kernel, calls] : served_) kernels[kernel->id.str()] = calls;
  }
  out["kernels"] = kernels;
  if (!fixed()) out["orchestrator"] = orchestrator_->telemetry();
  return out;
}

dispatch::Json KernelChooser::explain(const dispatch::SelectionContext& context) {
  dispatch::Json out{{"dispatcher", options_.dispatcher}, {"mode", to_string(options_.mode)}};
  try {  // makes the dispatcher where there is none yet
    static_cast<void>(orchestrator_->get_kernel_for_operation(context.operation, context, DispatchMode::DYNAMIC));
  } catch (const ttc::Error&) {  // the explanation says why
  }
  if (const auto dynamic =
          std::dynamic_pointer_cast<dispatch::DynamicDispatcher>(orchestrator_->get_dispatcher(DispatchMode::DYNAMIC)))
    out["selection"] = dynamic->explain(context);
  if (const auto config =
          std::dynamic_pointer_cast<dispatch::ConfigDispatcher>(orchestrator_->get_dispatcher(DispatchMode::CONFIG)))
    out["config"] = config->explain_selection(context.operation, context);
  if (const auto hot = std::dynamic_pointer_cast<dispatch::HotReloadDispatcher>(
          orchestrator_->get_dispatcher(DispatchMode::HOT_RELOAD)))
    out["config"] = hot->explain_selection(context.operation, context);
  return out;
}

}  // namespace ttrt
