// Model files compiled, run and compared, one row each.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "session/compile_settings.h"
#include "session/notes.h"

namespace ttc {

struct SupportRow {
  std::string file;                   // its name in the folder
  std::size_t nodes = 0, device = 0;  // compute nodes
  double flops = 0, device_flops = 0;
  std::map<std::string, std::map<std::string, std::size_t>> refusals;  // reason -> op -> nodes
  std::size_t runs = 0;                                                // calls of the model whose outputs were compared
  double pcc = 1;                                                      // the lowest of all outputs and runs
  double max_rel = 0;              // the largest of all outputs and runs (device/metrics.h)
  // The same two of LibTorch in bfloat16; none: not asked for, or it does not run.
  std::optional<double> baseline, baseline_max_rel;
  std::string status;              // ok, inaccurate, refused (by the reader) or failed
  std::string detail;              // why it is not ok
};

// The paths of the model files of a folder, sorted. Throws Error (usage) where the folder is none or holds no model.
std::vector<std::string> model_files(const std::string& folder);

// Compiles a model file with `settings` and runs it on the emulated device. Inputs and expected outputs are taken from
// the NAME.io.safetensors beside it whose NAME is the longest that begins the file's name: its own inputs, every other
// prefix (alt.) that fits the model, and its steps. Without such a file the inputs are random and the model's own
// operators on the CPU give what to expect. A row is ok where every output reaches `pcc`, or with `baseline` comes near
// enough to LibTorch's own in bfloat16 (checks.h). Errors of the model are the row's; a file that ends the process is
// the caller's matter.
SupportRow support_row(const std::string& file, const CompileSettings& settings, double pcc, bool baseline,
                       const Notes& notes = {});

}  // namespace ttc
