// Calls of a model: their inputs, from recorded files, recipes or random numbers, and the outputs to expect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/metrics.h"
#include "ir/model.h"
#include "ops/value.h"
#include "session/notes.h"
#include "shapes/shape_prop.h"

namespace ttc {

struct SafeTensors;

// What to feed a model. Members have the names of the command line's flags.
struct InputOptions {
  std::string io = {}, io_prefix = {};  // a safetensors file, and which of its calls
  bool io_steps = false;
  std::vector<std::string> inputs = {};  // NAME=@x.npy | rand:SEED | zeros | ones | arange | 16000
  std::vector<std::string> shapes = {};  // NAME=8x128 or NAME=i64:8x128
  std::vector<std::string> carry = {};  // outN=NAME: with io_steps, input NAME of a step is output N of the step before
  std::uint64_t seed = 0;
};

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
  std::vector<std::optional<ttrt::Metrics>> baseline;     // by expected output: LibTorch's own in bfloat16, where known
  std::vector<std::string> notes;                         // what was chosen for inputs that nobody gave
  std::vector<Carried> carried;                           // by input; empty where none is
  std::vector<std::string> guessed = {};                  // "x=2x2": inputs whose free dims nobody gave
};

// One case, or with io_steps one per step; where nothing is asked, the first call that the file carries along (kept.h),
// and made inputs where it carries none. Throws ttc::Error (usage) for names, shapes and dtypes that do not fit.
// `first_only`: the first one, for the sizes of its inputs. What of the options has no effect is a warning.
std::vector<Case> load_cases(const ir::Model& model, const InputOptions& options, bool first_only = false,
                             const Notes& notes = {});

// The same for a file that is in memory; options.io is not read.
std::vector<Case> recorded_cases(const ir::Model& model, const SafeTensors& file, const InputOptions& options);

// How to call a model with what a file records: as it is, with each prefix, in steps.
std::vector<InputOptions> ways_to_call(const SafeTensors& file);

// Whether the fixed sizes of the model's inputs are those of the case.
bool fits(const ir::Model& model, const Case& one);

// "NAME=VALUE"; `flag` is the option that has it. Throws ttc::Error (usage).
std::pair<std::string, std::string> split_assignment(const std::string& text, const std::string& flag);
// "8x128", or "i64:8x128" with a dtype. Throws ttc::Error (usage), naming `flag`.
InputShape parse_shape(const std::string& text, const std::string& flag);

}  // namespace ttc
