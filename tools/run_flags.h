// The flags that run, compare and bench share: what to feed a model and how to execute it.
#pragma once

#include <memory>
#include <string>

#include "command.h"
#include "executor/executor.h"
#include "session/cases.h"
#include "session/checks.h"

namespace ttc {

void add_input_flags(FlagSet& app, InputOptions& flags);
void add_threshold_flags(FlagSet& app, Thresholds& thresholds);

// Flags that say how to execute.
struct ExecFlags {
  std::string mode = "device", numerics = "fast", arch = "n150";
  std::string dispatcher = "default", dispatch_mode = "static", dispatch_config = "";
  bool chooses_kernels() const {
    return dispatcher != "default" || dispatch_mode != "static" || !dispatch_config.empty();
  }
};
void add_exec_flags(FlagSet& app, ExecFlags& flags, bool with_mode = true);
ttrt::ExecutorOptions executor_options(const ExecFlags& flags);

// The model for these flags: a plain one is compiled in memory for device mode, which a note says. Missing shapes of
// TorchScript models are found from the inputs.
std::shared_ptr<const ir::Model> load_for(const Globals& globals, const std::string& path, const InputOptions& inputs,
                                          const ExecFlags& exec);

}  // namespace ttc
