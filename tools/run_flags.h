// The flags that run, compare and bench share: what to feed a model and how to execute it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "executor/executor.h"
#include "executor/kernel_choice.h"
#include "session/cases.h"
#include "session/checks.h"
#include "session/reproducer.h"

namespace ttc {

void add_input_flags(FlagSet& app, InputOptions& flags);
void add_threshold_flags(FlagSet& app, Thresholds& thresholds);

// Flags that say which kernels serve device ops.
struct DispatchFlags {
  std::string dispatcher = "default", mode, config;
  std::vector<std::string> static_kernels;  // OP=KERNEL
  std::vector<std::string> settings;        // NAME=VALUE
  bool any() const {
    return dispatcher != "default" || !mode.empty() || !config.empty() || !static_kernels.empty() || !settings.empty();
  }
};
void add_dispatch_flags(FlagSet& app, DispatchFlags& flags);
// Without a mode: config where a configuration is given, else static. What dispatch reports is a note or a warning.
// Throws Error (usage).
ttrt::KernelChoiceOptions kernel_choice(const Globals& globals, const DispatchFlags& flags);

// Flags that say how to execute.
struct ExecFlags {
  std::string mode = "device", numerics = "fast";
  std::string arch;  // "": what the model was rewritten for, else n150
  std::string stream_weights = "auto";
  DispatchFlags dispatch;
  std::string reproducer = {};  // of run and compare: where a node that fails is written with what it was given
};
void add_arch_flag(FlagSet& app, std::string& arch, const std::string& otherwise);
void add_exec_flags(FlagSet& app, ExecFlags& flags);  // all but mode
// For this model; flags that mean nothing in the mode, an arch that is not the model's own, and kernels for ops that it
// has not are warnings.
ttrt::ExecutorOptions executor_options(const Globals& globals, const ExecFlags& flags, const ir::Model& model);
// That all of the flags of add_exec_flags that were given have no effect.
void warn_of_idle_exec_flags(const Globals& globals, const std::string& why);
void add_reproducer_flag(FlagSet& app, ExecFlags& flags);
// Writes a model of the node alone, with what it is given in its step; `pcc`: what it has to reach.
void write_node_reproducer(const Globals& globals, const ExecFlags& flags, const NodeOfStep& node,
                           const std::shared_ptr<const ir::Model>& model, const std::vector<Case>& cases,
                           const ttrt::ExecutorOptions& options, double pcc = 0.99);
void nothing_failed(const Globals& globals, const ExecFlags& flags);
// What to call the model with, what was chosen as notes, and flags without effect as warnings.
std::vector<Case> cases_for(const Globals& globals, const ir::Model& model, const InputOptions& inputs);
// "n300, one of its 2 chips"
std::string arch_text(const ttrt::ArchProfile& profile);

// The model for these flags: a plain one is compiled in memory for device mode, which a note says. Missing shapes of
// TorchScript models are found from the inputs.
std::shared_ptr<const ir::Model> load_for(const Globals& globals, const std::string& path, const InputOptions& inputs,
                                          const ExecFlags& exec);

}  // namespace ttc
