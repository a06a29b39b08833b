// Replay of recorded single-op results: read a case, run the op here, compare value by value.
//
// A case is one .safetensors file whose metadata `case` names the op, its inputs, outputs and parameters (the README of
// the recorded data gives the format). Inputs hold exactly what the device's formats represent, so packing them loses
// nothing. One file per op family registers the ops it knows with TTRT_REGISTER_REPLAY; every other function that an op
// record serves under its own names runs through the record (replay_library.cpp). An op, a parameter or an array type
// nobody knows makes a case unsupported, with the reason, never passed; a file that is broken is a failed case.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "device/arch.h"
#include "device/types.h"
#include "replay/values.h"
#include "support/json_util.h"
#include "support/reason.h"

namespace ttrt::replay {

struct Tensor {
  std::string name;
  Shape shape;
  DataType dtype = DataType::bfloat16;
  Layout layout = Layout::tile;
  Values values;  // row-major; exact for every format (integers up to 2^24)
};

struct Case {
  std::string id, op, note;
  Arch arch = Arch::wormhole;
  std::vector<Tensor> inputs, expected;
  ttc::Json params = ttc::Json::object();
  std::optional<ComputeConfig> config;  // nullopt: the op's own default
  ttc::Refusal unreadable;              // why the tensors are not here
  bool recorded = true;                 // `expected` is what the op library gave

  const Tensor* find(std::string_view input) const;  // nullptr where there is none
  const Tensor& input(std::string_view name) const;  // throws ttc::Error where there is none
  // A refusal that names the first parameter outside of `known`.
  ttc::Refusal unknown_params(std::initializer_list<std::string_view> known) const;
  ttc::Refusal empty_operands() const;                           // refuses tensors without elements
  std::optional<DataType> format_param(const char* name) const;  // nullopt where absent; throws for an unknown format
};

using Outputs = std::vector<std::vector<float>>;  // row-major, parallel to Case::expected
using Outcome = std::variant<Outputs, ttc::Reason>;
using Runner = Outcome (*)(const Case& c, Numerics numerics);

// `inputs`: the names that the runner reads, in the order of the function's arguments, separated by blanks; a sequence
// names the inputs of its calls by them. Aborts on an op registered twice.
void register_runner(std::string_view op, Runner run, std::string_view inputs = "x");
Runner find_runner(std::string_view op);  // nullptr where nobody knows the op
// The name of a call's input `index`, "inputN" where the runner has none.
std::string input_name(std::string_view op, std::size_t index);
Outcome run_library(const Case& c, Numerics numerics);  // by the record that serves the function

// Says that a case of the op does not determine `element` of its first output: what was recorded there came from what
// ran before. `why`: for the result.
using Undetermined = bool (*)(const Case& c, std::size_t element);
void register_undetermined(std::string_view op, Undetermined element, std::string_view why);

// undetermined: bit-exact in all that the case determines.
enum class Status : std::uint8_t { bit_exact, within_tolerance, failed, unsupported, undetermined };
std::string_view to_string(Status status);

struct CaseResult {
  std::string id, op, reason;  // reason: why it is neither exact nor near, "" otherwise
  Status status = Status::failed;
  bool bit_exact = false;
  std::int64_t elements = 0, mismatches = 0;
  std::int64_t undetermined = 0;  // elements that differ where the case does not determine them; no mismatches
  double max_ulp = 0;  // distance in units of the output format's last place (infinite where one is not finite)
  double pcc = 0;      // over elements finite on both sides; constants: 1 when equal, else 0
  double max_abs = 0;  // the largest difference of those elements
  double sum_ulp = 0;  // over the elements finite on both sides
  double wall_ms = 0;
};

// The results of one op's cases together.
struct OpSummary {
  std::string op;
  std::int64_t cases = 0, bit_exact = 0, unsupported = 0, elements = 0, mismatches = 0;
  double max_ulp = 0, mean_ulp = 0, min_pcc = 1;
};

struct Options {
  Numerics numerics = Numerics::exact;
  std::optional<Numerics> against =
      std::nullopt;         // what these numerics give on a case's inputs, instead of its results
  double max_ulp = 1;       // exact numerics: tolerance of a case that is not bit-exact
  double min_pcc = 0.9995;  // fast numerics: tolerance
  std::string filter;       // only ids that contain it
};

Case read_case(const std::string& path);
CaseResult run_case(const Case& c, const Options& options);
// Every .safetensors file of a directory (or the one file named), by name; a file that cannot be read is a failed case.
// Throws ttc::Error for a bad path.
std::vector<CaseResult> replay_directory(const std::string& path, const Options& options);
// By op name. Cases that failed before they gave outputs count as cases only.
std::vector<OpSummary> summarise(const std::vector<CaseResult>& results);
// {"cases": [...], "ops": [...], "totals": {...}}
ttc::Json report(const std::vector<CaseResult>& results);

}  // namespace ttrt::replay

// Behind op and runner: the inputs' names.
#define TTRT_REGISTER_REPLAY(name, ...)                                            \
  namespace {                                                                      \
  const bool replay_##name = (::ttrt::replay::register_runner(__VA_ARGS__), true); \
  }
