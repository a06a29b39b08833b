// Which kernel serves each device op of a run: a named dispatcher and a mode, over the tables of the ops
// (dispatch/device_kernels.h).
//
// STATIC (the default) chooses once, when a step is bound to its shapes, from the static map where it has the op, else
// by selection; running it then costs one look at its circuit. The other modes choose at every call, so a new
// configuration takes effect between two runs. In every mode a kernel that fails is served for by the next of its op's
// table, in the end by the host, and one that keeps failing is taken out by the breaker, reported, and tried again
// later. A dispatcher that is not built in serves the ops itself.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "dispatch/device_kernels.h"
#include "dispatch/dispatchers.h"
#include "dispatch/orchestrator.h"
#include "executor/settled.h"

namespace ttrt::dispatch {
class ConfigDispatcher;
class DynamicDispatcher;
}  // namespace ttrt::dispatch

namespace ttrt {

struct KernelChoiceOptions {
  // default, optimized (fused and sharded variants first), debug (says what was checked), cpu (everything in LibTorch),
  // tensor_ops (composite ops in LibTorch), a registered one, or a plug-in's path (dispatch/dispatchers.h).
  // "": the active one. TT_SYMBIOTE_DISPATCHER in the environment wins.
  std::string dispatcher = {};
  // The mode, the configuration file (needed for CONFIG and HOT_RELOAD; STATIC and AUTO read its static_kernel_map),
  // the static map, caches, thresholds, fallbacks, telemetry.
  dispatch::DispatchOptions dispatch{.mode = dispatch::DispatchMode::STATIC, .watch_interval_seconds = 0.1};
  // Told about refusals, kernels that are taken out ("warning"), new rules ("note"), and what the debug dispatcher saw
  // ("debug"); must be thread-safe. None: standard error.
  std::function<void(const std::string& text, std::string_view severity)> report = {};
};

// One step of a program, bound to its shapes: what serves it.
class StepKernel {
 public:
  explicit StepKernel(std::string node = {}) : node_(std::move(node)) {}  // bound to nothing
  const std::string& node() const { return node_; }
  const dispatch::KernelSpec* bound() const { return bound_; }    // nullptr where it is chosen at each call
  const dispatch::KernelSpec* served() const { return served_; }  // by which it was served last; nullptr before
  bool on_device() const;                                         // whether that is a kernel of the device

 private:
  friend class KernelChooser;
  std::string node_;
  const dispatch::KernelSpec *bound_ = nullptr, *served_ = nullptr;
  dispatch::Circuit* circuit_ = nullptr;
  std::atomic<std::int64_t>* calls_ = nullptr;  // of the one that served last
};

// How often a kernel served a node, over all runs.
struct ServedCalls {
  std::string node, kernel;
  bool on_device = false;
  std::int64_t calls = 0;
};

class KernelChooser {
 public:
  // Throws ttc::Error for an unknown dispatcher and for a configuration or a static map that is wrong or missing.
  explicit KernelChooser(KernelChoiceOptions options = {});
  ~KernelChooser();

  const KernelChoiceOptions& options() const { return options_; }
  // For the calls of a step as long as it has these shapes.
  StepKernel bind(const dispatch::SelectionContext& context, const std::string& node);
  // Runs the call; throws what is left when nothing can serve it.
  void run(StepKernel& step, const dispatch::SelectionContext& context, dispatch::StepCall& call);
  // Circuit and counter of the kernel that served the step and always will; neither where that is chosen at each call.
  SettledOp settled(const StepKernel& step) const;
  // The op's own limits refused the call: the host served it without being chosen.
  void served_by_host(StepKernel& step, std::string_view op);

  void report(const std::string& text, std::string_view severity = "warning") const;
  std::vector<ServedCalls> served() const;
  // {dispatcher, mode, config?, kernels{id: calls}, nodes[{node, kernel, on_device, calls}], circuit_breaker{},
  // orchestrator{}}
  dispatch::Json telemetry() const;
  // {dispatcher, mode, static?, selection{table{}, candidates[]}, config{}?}: every check and why, nothing runs.
  dispatch::Json explain(const dispatch::SelectionContext& context);
  // Of CONFIG and HOT_RELOAD: reloading, dry runs, rolling back, callbacks; nullptr in other modes.
  dispatch::ConfigDispatcher* rules();
  dispatch::Orchestrator& orchestrator() { return *orchestrator_; }

 private:
  class Program;
  using Served = std::map<std::pair<std::string, const dispatch::KernelSpec*>, std::atomic<std::int64_t>>;

  void take_static_map();
  std::shared_ptr<dispatch::Dispatcher> make(dispatch::DispatchMode mode, const dispatch::DispatchConfig& config);
  dispatch::DynamicDispatcher& dynamic();
  void circuit_changed(const dispatch::Circuit& circuit, dispatch::CircuitState to, const std::string& why) const;
  const dispatch::KernelSpec* static_kernel(dispatch::Symbol operation, const dispatch::SelectionContext& context);
  bool run_bound(StepKernel& step, dispatch::StepCall& call);
  void run_custom(StepKernel& step, const dispatch::SelectionContext& context, dispatch::StepCall& call);
  const dispatch::KernelSpec& custom_kernel(dispatch::Symbol operation);
  void debug(const std::string& line) const;
  void count(StepKernel& step, const dispatch::KernelSpec& kernel);

  KernelChoiceOptions options_;
  std::shared_ptr<const dispatch::TtnnDispatcher> custom_;  // null: a built-in one, which is a policy
  dispatch::Policy policy_;
  std::shared_ptr<dispatch::CircuitManager> circuits_;
  std::unique_ptr<dispatch::Orchestrator> orchestrator_;
  mutable std::mutex mutex_;  // of what follows
  Served served_;
  std::map<dispatch::Symbol, dispatch::KernelSpec, bool (*)(dispatch::Symbol, dispatch::Symbol)> custom_kernels_{
      [](dispatch::Symbol a, dispatch::Symbol b) { return a.id() < b.id(); }};
};

}  // namespace ttrt
