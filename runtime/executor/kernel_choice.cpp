// The modes of dispatch for the executor: one breaker over all of them, what served counted by node and kernel.
#include "executor/kernel_choice.h"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "dispatch/config_dispatcher.h"
#include "dispatch/dynamic.h"
#include "dispatch/static_dispatcher.h"

namespace ttrt {

using dispatch::KernelSpec;

namespace {

// Under the policy of the host alone.
const dispatch::Policy host_only{.allows = {{.kernel = "*.host"}}};

bool is_device_kernel(const KernelSpec& kernel) {
  const dispatch::DeviceKernel* const device = dispatch::device_kernel(kernel);
  return device != nullptr && !device->host;
}

void run_as(dispatch::StepCall& call, const KernelSpec& kernel) {
  const dispatch::DeviceKernel* const device = dispatch::device_kernel(kernel);
  TTC_CHECK(device != nullptr, "a program's op is served by a kernel of the device or the host");
  call.run_as(kernel, *device);
}

}  // namespace

bool StepKernel::on_device() const { return served_ != nullptr && is_device_kernel(*served_); }

// ---- setting up ----------------------------------------------------------------------------------------------------

KernelChooser::KernelChooser(KernelChoiceOptions options) : options_(std::move(options)) {
  dispatch::register_device_kernels();
  if (const char* wins = std::getenv(dispatch::dispatcher_variable); wins != nullptr && *wins != '\0')
    options_.dispatcher = wins;
  options_.dispatcher = options_.dispatcher.empty() ? dispatch::active_dispatcher_name()
                                                    : dispatch::resolve_dispatcher(options_.dispatcher);
  auto named = dispatch::find_dispatcher(options_.dispatcher);
  if (auto policy = named->policy())
    policy_ = std::move(*policy);
  else
    custom_ = std::move(named);
  dispatch::DispatchOptions config = options_.dispatch;
  const bool needs_file =
      config.mode == dispatch::DispatchMode::CONFIG || config.mode == dispatch::DispatchMode::HOT_RELOAD;
  if (needs_file && config.config_path.empty())
    throw ttc::usage_error("this dispatch mode needs a configuration file", "--dispatch-config FILE names it");
  if (!config.config_path.empty()) static_cast<void>(dispatch::read_config_file(config.config_path));
  take_static_map();
  config.static_kernel_map = options_.dispatch.static_kernel_map;
  circuits_ = std::make_shared<dispatch::CircuitManager>(
      config.failure_threshold, config.recovery_timeout_seconds, dispatch::system_clock(),
      [this](const dispatch::Circuit& circuit, dispatch::CircuitState, dispatch::CircuitState to,
             const std::string& why) { circuit_changed(circuit, to, why); });
  const bool by_file = config.mode == dispatch::DispatchMode::AUTO && !config.config_path.empty();
  if (config.mode == dispatch::DispatchMode::STATIC)
    config.mode = dispatch::DispatchMode::DYNAMIC;  // what is not in the static map
  orchestrator_ = std::make_unique<dispatch::Orchestrator>(
      dispatch::DispatchConfig(config), dispatch::global_kernels(),
      by_file ? dispatch::DispatchMode::CONFIG : dispatch::DispatchMode::DYNAMIC,
      [this](dispatch::DispatchMode mode, const dispatch::DispatchConfig& c) { return make(mode, c); });
}

KernelChooser::~KernelChooser() { orchestrator_->shutdown(); }

// STATIC and AUTO take the file's static map too; what was given by hand wins. A kernel must serve the operation it is
// given for.
void KernelChooser::take_static_map() {
  const dispatch::DispatchMode mode = options_.dispatch.mode;
  const std::string& file = options_.dispatch.config_path;
  dispatch::StaticMap& map = options_.dispatch.static_kernel_map;
  if (!file.empty() && mode == dispatch::DispatchMode::DYNAMIC)
    report("dispatch mode dynamic reads no rules: " + file + " has no effect");
  if (!file.empty() && (mode == dispatch::DispatchMode::STATIC || mode == dispatch::DispatchMode::AUTO)) {
    const auto loaded = dispatch::load_rules(dispatch::read_document(file), dispatch::DocumentKind::hot_reload,
                                             dispatch::global_kernels(), true, file, dispatch::Phase::CONFIGURATION);
    const dispatch::ConfigDocument& document = loaded.rules->document();
    for (const auto& [operation, kernel] : document.static_map()) map.emplace(operation, kernel);
    if (mode == dispatch::DispatchMode::STATIC && document.named_kernels().size() > document.static_kernels.size())
      report(file + ": dispatch mode static reads its static_kernel_map and nothing else");
  }
  dispatch::ConfigDocument given;
  for (const auto& [operation, kernel] : map)
    given.static_kernels.push_back({.operation = operation, .kernel = kernel, .path = "static kernel of " + operation});
  const dispatch::KernelIssues issues = dispatch::kernel_issues(given, dispatch::global_kernels());
  for (const auto* list : {&issues.missing, &issues.misplaced})
    if (!list->empty())
      throw ttc::usage_error(dispatch::issues_text(*list), "ttc explain OP lists the kernels of an op");
}

std::shared_ptr<dispatch::Dispatcher> KernelChooser::make(dispatch::DispatchMode mode,
                                                          const dispatch::DispatchConfig& config) {
  dispatch::KernelRegistry& kernels = dispatch::global_kernels();
  dispatch::ModeOptions options{.circuits = circuits_, .report = [this](const std::string& text) { report(text); }};
  switch (mode) {
    case dispatch::DispatchMode::CONFIG:
    case dispatch::DispatchMode::HOT_RELOAD: {
      const auto select = [this](dispatch::Symbol operation, const dispatch::SelectionContext& context) {
        return dynamic().choose(operation, context);
      };
      auto rules =
          std::make_shared<dispatch::ConfigDispatcher>(mode, config, kernels, std::move(options), true, select);
      if (mode == dispatch::DispatchMode::CONFIG) return rules;
      rules->on_reload([this, path = options_.dispatch.config_path](const dispatch::ConfigVersion& v) {
        report(path + ": version " + std::to_string(v.version) + " is active", "note");
      });
      rules->watch();
      return rules;
    }
    case dispatch::DispatchMode::DYNAMIC: {
      auto dispatcher = std::make_shared<dispatch::DynamicDispatcher>(config, kernels, std::move(options));
      dispatcher->set_policy(policy_);
      return dispatcher;
    }
    case dispatch::DispatchMode::STATIC:
    case dispatch::DispatchMode::AUTO:
      break;
  }
  return dispatch::StaticDispatcher::from_config(config, kernels, std::move(options));
}

dispatch::DynamicDispatcher& KernelChooser::dynamic() {
  return static_cast<dispatch::DynamicDispatcher&>(orchestrator_->dispatcher(dispatch::DispatchMode::DYNAMIC));
}

dispatch::ConfigDispatcher* KernelChooser::rules() {
  const dispatch::DispatchMode mode = options_.dispatch.mode;
  if (mode != dispatch::DispatchMode::CONFIG && mode != dispatch::DispatchMode::HOT_RELOAD) return nullptr;
  return dynamic_cast<dispatch::ConfigDispatcher*>(&orchestrator_->dispatcher(mode));
}

void KernelChooser::report(const std::string& text, std::string_view severity) const {
  options_.report ? options_.report(text, severity) : dispatch::report_to({}, text, severity);
}

// Of the debug dispatcher: where the session's reports go, if they go anywhere, else into the log of dispatchers.
void KernelChooser::debug(const std::string& line) const {
  options_.report ? options_.report(line, "debug") : dispatch::log_dispatch("debug: " + line);
}

void KernelChooser::circuit_changed(const dispatch::Circuit& circuit, dispatch::CircuitState to,
                                    const std::string& why) const {
  const std::string kernel = circuit.kernel().str();
  if (to == dispatch::CircuitState::CLOSED) report(kernel + " works again", "note");
  if (to != dispatch::CircuitState::OPEN) return;
  std::string seconds = std::to_string(circuit.retry_after().value_or(0));
  seconds.erase(seconds.find('.') + 2);
  report(kernel + " is taken out after " + std::to_string(circuit.failures()) +
         " failures in a row and tried again in " + seconds + " s: " + why);
}

// ---- choosing ------------------------------------------------------------------------------------------------------

const KernelSpec* KernelChooser::static_kernel(dispatch::Symbol operation, const dispatch::SelectionContext& context) {
  if (options_.dispatch.static_kernel_map.empty()) return nullptr;
  return orchestrator_->dispatcher(dispatch::DispatchMode::STATIC).choose(operation, context);
}

StepKernel KernelChooser::bind(const dispatch::SelectionContext& context, const std::string& node) {
  StepKernel step(node);
  if (options_.dispatcher == "debug") {
    const dispatch::Json selection = explain(context)["selection"];
    for (const dispatch::Json& candidate : selection["candidates"]) {
      std::string line =
          node + ": " + candidate["kernel"].get<std::string>() + ": " + candidate["result"].get<std::string>();
      for (const dispatch::Json& reason : candidate["reasons"]) line += "; " + reason.get<std::string>();
      debug(line);
    }
  }
  if (options_.dispatch.mode != dispatch::DispatchMode::STATIC || custom_) return step;
  step.bound_ = static_kernel(context.operation, context);
  if (step.bound_ == nullptr) step.bound_ = &dynamic().get_kernel_for_operation(context.operation, context);
  if (options_.dispatch.circuit_breaker_enabled) step.circuit_ = &circuits_->circuit(step.bound_->id);
  return step;
}

void KernelChooser::count(StepKernel& step, const KernelSpec& kernel) {
  const bool other = step.served_ != &kernel;
  if (other) {
    const std::lock_guard lock(mutex_);
    step.calls_ = &served_[{step.node_, &kernel}];
    step.served_ = &kernel;
  }
  if ((other || options_.dispatch.mode != dispatch::DispatchMode::STATIC) && options_.dispatcher == "debug")
    debug(step.node_ + ": served by " + kernel.id.str());
  step.calls_->fetch_add(1, std::memory_order_relaxed);
}

void KernelChooser::served_by_host(StepKernel& step, std::string_view op) {
  if (const KernelSpec* host = dispatch::global_kernels().find(dispatch::Symbol::find(std::string(op) + ".host")))
    count(step, *host);
}

// ---- running -------------------------------------------------------------------------------------------------------

// False where the bound kernel is out or failed.
bool KernelChooser::run_bound(StepKernel& step, dispatch::StepCall& call) {
  if (step.circuit_ != nullptr && !step.circuit_->is_allowed()) return false;
  try {
    run_as(call, *step.bound_);
    if (step.circuit_ != nullptr) step.circuit_->record_success();
    return true;
  } catch (const dispatch::DispatchError& error) {
    if (step.circuit_ != nullptr && error.phase() != dispatch::Phase::SELECTION)
      step.circuit_->record_failure(error.text());
  } catch (const std::exception& error) {
    if (step.circuit_ != nullptr) step.circuit_->record_failure(error.what());
  }
  return false;
}

void KernelChooser::run(StepKernel& step, const dispatch::SelectionContext& context, dispatch::StepCall& call) {
  if (custom_) return run_custom(step, context, call);
  dispatch::CallArgs args;
  args.payload = &call;
  if (step.bound_ != nullptr) {
    if (run_bound(step, call)) return count(step, *step.bound_);
    args.failed = step.bound_;
  }
  count(step, *orchestrator_->dispatch(context.operation, args, &context).kernel);
}

SettledOp KernelChooser::settled(const StepKernel& step) const {
  if (custom_ || step.bound_ == nullptr || step.served_ != step.bound_) return {};
  SettledOp out;
  out.circuit = step.circuit_;
  out.calls = step.calls_;
  return out;
}

// The step as a dispatcher of one's own may hand it on.
class KernelChooser::Program final : public dispatch::ProgramCall {
 public:
  Program(KernelChooser& chooser, const dispatch::SelectionContext& context, dispatch::StepCall& call)
      : chooser_(chooser), context_(context), call_(call) {}

  ttc::Refusal refusal_by(const dispatch::Policy& policy) override {
    const KernelSpec* const kernel = chooser_.dynamic().choose_by(policy, context_);
    if (kernel != nullptr && is_device_kernel(*kernel)) return std::nullopt;
    return ttc::Reason{ttc::ReasonCode::Unsupported, "no kernel of the device serves " + context_.operation.str()};
  }
  void run_by(const dispatch::Policy& policy) override {
    const KernelSpec* const kernel = chooser_.dynamic().choose_by(policy, context_);
    if (kernel == nullptr) throw chooser_.dynamic().nothing_serves(context_.operation, &context_);
    run_as(call_, *kernel);
    ran_ = kernel;
  }
  const KernelSpec* ran() const { return ran_; }

 private:
  KernelChooser& chooser_;
  const dispatch::SelectionContext& context_;
  dispatch::StepCall& call_;
  const KernelSpec* ran_ = nullptr;
};

const KernelSpec& KernelChooser::custom_kernel(dispatch::Symbol operation) {
  const std::lock_guard lock(mutex_);
  KernelSpec& kernel = custom_kernels_[operation];
  if (kernel.id.empty()) {
    kernel.id = operation.str() + "." + options_.dispatcher;
    kernel.operation = operation;
    kernel.source = options_.dispatcher;
  }
  return kernel;
}

void KernelChooser::run_custom(StepKernel& step, const dispatch::SelectionContext& context, dispatch::StepCall& call) {
  const KernelSpec& own = custom_kernel(context.operation);
  dispatch::Circuit* const circuit = options_.dispatch.circuit_breaker_enabled ? &circuits_->circuit(own.id) : nullptr;
  Program program(*this, context, call);
  const auto as_operator = [&](const std::vector<RtValue>& args) {
    return dispatch::OperatorCall{{.name = context.operation.text(), .args = args, .kwargs = {}}, &program};
  };
  if ((circuit == nullptr || circuit->is_allowed()) && !custom_->refusal_of(as_operator(call.arguments(false)))) try {
      const std::vector<RtValue> args = call.arguments(true);
      RtValue result = custom_->dispatch(as_operator(args));
      if (program.ran() == nullptr) {
        const auto* list = result.get_if<RtValue::List>();
        call.take_results(list != nullptr ? *list : RtValue::List{std::move(result)});
      }
      if (circuit != nullptr) circuit->record_success();
      return count(step, program.ran() != nullptr ? *program.ran() : own);
    } catch (const std::exception& error) {
      if (circuit != nullptr) circuit->record_failure(error.what());
      call.failed(own, error.what());
    }
  program.run_by(host_only);
  count(step, *program.ran());
}

// ---- saying --------------------------------------------------------------------------------------------------------

std::vector<ServedCalls> KernelChooser::served() const {
  const std::lock_guard lock(mutex_);
  std::vector<ServedCalls> out;
  for (const auto& [by, calls] : served_)
    out.push_back({.node = by.first,
                   .kernel = by.second->id.str(),
                   .on_device = is_device_kernel(*by.second),
                   .calls = calls.load()});
  return out;
}

dispatch::Json KernelChooser::telemetry() const {
  dispatch::Json out{{"dispatcher", options_.dispatcher}, {"mode", to_string(options_.dispatch.mode)}};
  if (!options_.dispatch.config_path.empty()) out["config"] = options_.dispatch.config_path;
  std::map<std::string, std::int64_t> kernels;
  dispatch::Json nodes = dispatch::Json::array();
  for (const ServedCalls& one : served()) {
    kernels[one.kernel] += one.calls;
    nodes.push_back({{"node", one.node}, {"kernel", one.kernel}, {"on_device", one.on_device}, {"calls", one.calls}});
  }
  out["kernels"] = kernels;
  out["nodes"] = nodes;
  out["circuit_breaker"] = circuits_->stats();
  out["orchestrator"] = orchestrator_->telemetry();
  return out;
}

dispatch::Json KernelChooser::explain(const dispatch::SelectionContext& context) {
  dispatch::Json out{{"dispatcher", options_.dispatcher}, {"mode", to_string(options_.dispatch.mode)}};
  const dispatch::DispatchMode mode = orchestrator_->resolve(context.operation, options_.dispatch.mode);
  if (mode == dispatch::DispatchMode::STATIC)
    if (const KernelSpec* kernel = static_kernel(context.operation, context)) out["static"] = kernel->id.text();
  out["selection"] = dynamic().explain_selection(context.operation, context);
  if (mode == dispatch::DispatchMode::CONFIG || mode == dispatch::DispatchMode::HOT_RELOAD)
    out["config"] = orchestrator_->dispatcher(mode).explain_selection(context.operation, context);
  return out;
}

}  // namespace ttrt
