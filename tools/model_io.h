// What run, compare and bench share: loading a model, its inputs and expected outputs, and the flags for them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "executor/executor.h"
#include "shapes/shape_prop.h"
#include "ir/model.h"
#include "executor/metrics.h"

namespace ttc {

// Flags that say what to feed a model.
struct InputFlags {
  std::string io, io_prefix;
  bool io_steps = false;
  std::vector<std::string> inputs;  // NAME=@x.npy | rand:SEED | zeros | ones | arange | 16000
  std::vector<std::string> shapes;  // NAME=8x128 or NAME=i64:8x128
  std::vector<std::string> carry;   // outN=NAME: with io_steps, input NAME of a step is output N of the step before
  std::uint64_t seed = 0;
};
// "8x128", or "i64:8x128" with a dtype. Throws Error (usage), naming `flag`.
InputShape parse_shape(const std::string& text, const std::string& flag);
void add_input_flags(FlagSet& app, InputFlags& flags);

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

// Where an input of a step comes from where the step before made it.
struct Carried {
  int output = -1;       // this user output of the step before
  bool written = false;  // the same input, which the step before wrote in place
  bool any() const { return output >= 0 || written; }
};

// One call of the model: its inputs and, where the file has them, the outputs to expect.
struct Case {
  std::string name;  // "", "alt", "step0", ...
  std::vector<ttrt::RtValue> inputs;
  std::vector<std::optional<ttrt::HostTensor>> expected;  // empty: nothing to check
  std::vector<std::string> notes;                         // what was chosen for inputs that nobody gave
  std::vector<Carried> carried;                           // by input; empty where none is
};
// One case, or with --io-steps one per step. Throws Error (usage) for names, shapes and dtypes that do not fit.
// `first_only`: the first one, for the sizes of its inputs.
std::vector<Case> load_cases(const ir::Model& model, const InputFlags& flags, bool first_only = false);
// A tensor on the host: as it is, or fetched from the device; nullopt for everything else.
std::optional<ttrt::HostTensor> host_tensor_of(const ttrt::RtValue& value);

// Reads .pt2 or TorchScript by content. Throws Error (bad_file); also for operators that exist nowhere, where it is to
// run.
std::unique_ptr<ir::Model> load(const std::string& path, bool to_run = true);
bool is_rewritten(const ir::Model& model);
// The model for these flags: a plain one is compiled in memory for device mode, which a note says. Missing shapes of
// TorchScript models are found from the inputs.
std::shared_ptr<const ir::Model> load_for(const Globals& globals, const std::string& path, const InputFlags& inputs,
                                          const ExecFlags& exec);

struct Thresholds {
  std::optional<double> pcc, atol, rtol;
};
void add_threshold_flags(FlagSet& app, Thresholds& thresholds);

struct Check {
  std::string output;
  ttrt::Metrics metrics;
  bool allclose = false, pass = false;
  std::string problem;  // why there are no metrics: another shape
};
// Lists among the outputs give way to their items, as an --io file counts them.
std::vector<ttrt::RtValue> flat_outputs(const std::vector<ttrt::RtValue>& outputs);
// Outputs against what the case expects. Without flags: all close within 1e-4 where the model's own operators ran in
// LibTorch, PCC >= 0.99 where device formats had a part (`approximate`: device mode, and weights packed for the
// device).
std::vector<Check> check_outputs(const Case& expected, const std::vector<ttrt::RtValue>& outputs,
                                 const Thresholds& thresholds, bool approximate);

// "f32[2, 10]", "7", "True"
std::string value_text(const ttrt::RtValue& value);
std::int64_t peak_rss();
// "1.2 MiB"
std::string bytes_text(double bytes);

}  // namespace ttc
