// Which kernel serves each device op of a run: a named dispatcher and a mode, over the kernels of
// dispatch/device_kernels.h.
//
// STATIC (the default) chooses once, when a step is bound to its shapes; running it then costs no lookup. The other
// modes choose at every call, so a new configuration takes effect between two runs, and what fails is served by the
// next mode and in the end by the host.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dispatch/device_kernels.h"
#include "dispatch/orchestrator.h"

namespace ttrt {

struct KernelChoiceOptions {
  // default, optimized (fused and sharded variants first), debug (says what was checked), cpu (everything in LibTorch),
  // tensor_ops (composite ops in LibTorch), a registered one, or a plug-in's path (dispatch/dispatchers.h).
  // TT_SYMBIOTE_DISPATCHER in the environment wins.
  std::string dispatcher = "default";
  dispatch::DispatchMode mode = dispatch::DispatchMode::STATIC;
  std::string config_path;                              // for CONFIG and HOT_RELOAD
  std::function<void(const std::string&)> report = {};  // warnings, refusals, the debug log; none: standard error
};

class KernelChooser {
 public:
  // Throws ttc::Error for an unknown dispatcher and for a configuration that is wrong or missing.
  explicit KernelChooser(KernelChoiceOptions options = {});
  ~KernelChooser();

  bool fixed() const { return options_.mode == dispatch::DispatchMode::STATIC; }
  const KernelChoiceOptions& options() const { return options_; }
  // The kernel for good. Throws ttc::Error where none can serve the call.
  const dispatch::KernelSpec& bind(const dispatch::SelectionContext& context);
  // Chooses and runs; throws what is left when every mode has failed.
  void run(const dispatch::SelectionContext& context, dispatch::DeviceCall& call);
  void report(const std::string& text) const;
  // {dispatcher, mode, config?, kernels{id: calls (STATIC: steps bound)}, orchestrator{...}?}
  dispatch::Json telemetry() const;
  // {dispatcher, mode, selection{...}, config{...}?}: every check and why, nothing runs.
  dispatch::Json explain(const dispatch::SelectionContext& context);

 private:
  void count(const dispatch::KernelSpec& kernel);

  KernelChoiceOptions options_;
  std::unique_ptr<dispatch::Orchestrator> orchestrator_;
  mutable std::mutex mutex_;
  std::map<const dispatch::KernelSpec*, std::int64_t> served_;
};

}  // namespace ttrt
