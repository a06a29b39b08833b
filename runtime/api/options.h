// Options as text: a JSON object whose members are the flags of the command line, "weight_dtype" for --weight-dtype.
// What the C interface and other languages hand over; unknown members and wrong values throw Error (usage).
#pragma once

#include <string>
#include <vector>

#include "ttrt.h"

namespace ttrt {

// {"arch": "n150", "replace": {"torch.nn.Linear": "TTNNLinear"} or a list of those, or either as a text, "exclude":
// ["GLOB"], "weight_dtype": {"GLOB": "bfloat8_b"} or ["GLOB=bfloat8_b", ...] where the order matters, "fidelity" and
// "fp32_acc" likewise, "activation_dtype": "float32", "require_full": true, "shape": {"x": [1, 8]} or {"x": "i64:1x8"},
// "passes": [], ...}: CompileOptions says what they mean.
TTRT_API CompileOptions compile_options(const std::string& json);
// {"mode": "device", "normal" or "cpu", "numerics": "fast" or "exact", "arch": "n150", "dispatcher": "default",
// "dispatch_mode": "static", "dispatch_config": "rules.yaml", "static_kernels": {"tt.linear": "tt.linear.1d"},
// "profile": false, "trace": false, "stream_weights": true}: SessionOptions says what they mean.
TTRT_API SessionOptions session_options(const std::string& json);
// {"io": "x.safetensors", "input": ["x=zeros"], "shape": {}, "numerics": "exact", "against": "cpu", "by": "module",
// "mode": "sel", "pcc": 0.99, ...}: CompareOptions says what they mean.
TTRT_API ttc::api::CompareOptions compare_options(const std::string& json);
// {"io": "x.safetensors", "io_prefix", "io_steps", "input", "shape", "seed", "save_io"}: ExtractOptions.
TTRT_API ttc::api::ExtractOptions extract_options(const std::string& json);
// {"min_pcc": 0.999, "min_snr_db", "max_top1_drop"}: SearchGoal.
TTRT_API ttc::api::SearchGoal search_goal(const std::string& json);

// The members there are, sorted.
TTRT_API std::vector<std::string> compile_option_names();
TTRT_API std::vector<std::string> session_option_names();
TTRT_API std::vector<std::string> compare_option_names();

}  // namespace ttrt
