// How a call of a record is written in TT-NN's Python. A record's `emit` writes one call through a PythonCall:
//
//   ttc::Refusal emit(PythonCall& to) {
//     to.result(Python("ttnn.softmax").arg(to.operand("x")).key("dim", to.literal("dim")).key(...));
//     return std::nullopt;
//   }
//
// A refusal says why TT-NN cannot express the call. Whoever writes a program (emit/program.h) gives names to operands
// and results, frees what is no longer needed, and breaks long lines. A record whose function TT-NN has not says so
// beside itself with TTRT_NOT_EMITTED.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/matmul_program.h"
#include "ops/op.h"

namespace ttrt {

// A call in Python: "ttnn.add(a, b, memory_config=...)".
class Python {
 public:
  explicit Python(std::string function) : function_(std::move(function)) {}
  Python& arg(std::string value);
  Python& key(std::string_view name, const std::string& value);  // "" leaves it out
  const std::string& function() const { return function_; }
  const std::vector<std::string>& args() const { return args_; }
  std::string str() const;  // on one line

 private:
  std::string function_;
  std::vector<std::string> args_;
};

std::string python_bool(bool value);
std::string python_number(double value);         // 0.125, 1e-12, float("-inf")
std::string python_text(std::string_view text);  // "gelu", quoted
std::string python_dtype(DataType format);       // "ttnn.bfloat8_b"
std::string python_list(const std::vector<std::string>& items);
std::string python_product(const std::vector<std::string>& sizes);  // "n * 49" of n, 7, 7; of no sizes "1"

struct PythonStatement {
  std::vector<std::string> targets;
  Python call;
};

// A constant as a function of the library takes it, where that is not how the record has it.
struct WeightForm {
  Shape shape = {};  // of the same volume
  DataType dtype = DataType::bfloat16;
  Layout layout = Layout::tile;
  bool on_host = false;  // a tensor of TT-NN in host memory
};

class PythonCall {
 public:
  // What the writer of the program knows.
  struct Scope {
    std::function<std::string(std::size_t)> tensor;                        // of OpCall::tensors
    std::function<std::string(std::string_view)> literal;                  // of the schema, "" for None
    std::function<std::vector<std::string>(int)> sizes;                    // of a result
    std::function<std::vector<std::string>(std::size_t)> tensor_sizes;     // of OpCall::tensors
    std::function<std::string(std::string_view)> fresh;                    // a new variable's name from a stem
    std::function<void(const std::string&, const std::string&)> constant;  // a definition for the whole program
    std::function<void(const std::string&)> helper;                        // a function that the program needs
    std::function<std::string()> device;                                   // where the operands are
    std::function<void(const std::string&)> warning;                       // what the card may refuse
    // An index operand that is uint32 in rows already; else "".
    std::function<std::string(std::string_view)> row_ids;
    std::function<std::string(std::string_view, const WeightForm&)> weight;  // "" where it is no constant
    std::function<bool(std::string_view)> keeps;                             // PythonCall::keeps()
    std::function<bool(std::size_t)> counts_from_start;                      // PythonCall::counts_from_start()
    std::function<std::string(std::size_t)> channels_last;                   // PythonCall::channels_last()
    bool fixed_sizes = true;                                                 // no size of the call is free
  };
  PythonCall(const OpCall& call, std::vector<TensorSpec> results, const ArchProfile& arch, Scope scope)
      : call(call), results(std::move(results)), arch(arch), scope_(std::move(scope)) {}

  const OpCall& call;  // at the sizes of the model's example
  const std::vector<TensorSpec> results;
  const ArchProfile& arch;
  std::optional<MatmulProgram> program;  // of a matrix product, that the time model and exact numerics assume

  std::string operand(std::string_view name) const;  // its variable; "" for None
  std::vector<std::string> operands(std::string_view name) const;
  std::string literal(std::string_view name) const { return scope_.literal(name); }
  // "[x.shape[0], 64]": of a result, of an operand.
  std::vector<std::string> sizes(int result = 0) const { return scope_.sizes(result); }
  std::vector<std::string> sizes(std::string_view operand) const {
    return scope_.tensor_sizes(static_cast<std::size_t>(call.tensor_index(operand)));
  }
  std::vector<std::string> sizes_of(std::size_t tensor) const { return scope_.tensor_sizes(tensor); }
  bool fixed_sizes() const { return scope_.fixed_sizes; }

  // An intermediate result, freed after the call.
  std::string let(std::string_view stem, const Python& value);
  // The same of the first of several results; the others go to these targets.
  std::string let_first(std::string_view stem, const std::string& others, const Python& value);
  // All of several results.
  std::vector<std::string> let_all(const std::vector<std::string_view>& stems, const Python& value);
  void result(const Python& value);             // the only result, or all of them
  void result_is(const std::string& variable);  // of several results, in order: an intermediate that stays

  // Keyword values.
  std::string memory_config(int result = 0) const;  // "ttnn.DRAM_MEMORY_CONFIG"
  std::string compute_kernel_config() const;        // a constant of the program: HIFI2_L1_ACC
  std::string device() const { return scope_.device(); }
  // A function of the program ("causal_mask"); the writer has its text (emit/helpers.h).
  void needs(const std::string& helper) const { scope_.helper(helper); }
  void warn(const std::string& text) const { scope_.warning(text); }
  // A constant operand in another form than the record has it, which is made once; "" for None and for what is no
  // constant.
  std::string weight(std::string_view name, const WeightForm& form) const;
  // Whether what a function makes of a constant's host tensor may take its place: it is this call's alone, whose sizes
  // are fixed, and a member of `parameters`.
  bool keeps(std::string_view name) const { return scope_.keeps(name); }
  // Whether an operand of OpCall::tensors is known to have no negative elements.
  bool counts_from_start(std::size_t tensor) const { return scope_.counts_from_start(tensor); }
  // An operand [N, C, ...] as [N, ..., C].
  std::string channels_last(std::string_view name) const {
    return scope_.channels_last(static_cast<std::size_t>(call.tensor_index(name)));
  }
  // The only result [N, C, ...], as [N, ..., C]: who wants channels first has them put there.
  void channels_last_result(const Python& value) {
    result(value);
    result_is_channels_last = true;
  }

  // Operands of gathers: uint32 indices and a table of bfloat16, both in rows.
  std::string row_major_ids(std::string_view name);
  std::string row_major_weight(std::string_view name);

  std::vector<PythonStatement> statements;
  std::vector<std::string> named_results;  // where results are intermediates
  bool result_is_channels_last = false;

 private:
  Scope scope_;
  bool done_ = false;
};

// `ttnn.name(operands in schema order, literals by name, memory_config=...)`; `name`: the record's own.
ttc::Refusal emit_plain(PythonCall& to);

// Stretches of a tensor along a dim, one behind the other: each "(first, behind the last)", or "*..." for several.
Python python_parts(PythonCall& to, const std::string& x, const std::vector<std::string>& stretches, std::size_t dim);

// A tensor of these sizes with other positions along a dim, in slices one behind the other; nullopt where these were
// too many to be read.
std::optional<Python> python_taken(PythonCall& to, const std::string& x, const std::vector<std::string>& sizes,
                                   std::size_t dim, const std::vector<std::int64_t>& positions);

// Why no call of a record has a spelling; "" where one may have, or where nobody says.
std::string_view not_emitted(std::string_view record);
// Records by name, separated by blanks.
void register_not_emitted(std::string_view records, std::string_view reason);

}  // namespace ttrt

#define TTRT_NOT_EMITTED(id, records, reason)                                          \
  namespace {                                                                          \
  const bool not_emitted_##id = (::ttrt::register_not_emitted(records, reason), true); \
  }
