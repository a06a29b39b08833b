// How a call of a record is written in TT-NN's Python. A record's `emit` writes one call through a PythonCall:
//
//   ttc::Refusal emit(PythonCall& to) {
//     to.result(Python("ttnn.softmax").arg(to.operand("x")).key("dim", to.literal("dim")).key(...));
//     return std::nullopt;
//   }
//
// A refusal says why TT-NN cannot express the call. Whoever writes a program (emit/program.h) gives names to operands
// and results, frees what is no longer needed, and breaks long lines.
#pragma once

#include <functional>
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

struct PythonStatement {
  std::vector<std::string> targets;
  Python call;
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
    // An operand as the library's gathers want it, where the program can hold it so; else "".
    std::function<std::string(std::string_view)> row_major;
    bool fixed_sizes = true;  // no size of the call is free
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
  std::pair<std::string, std::string> let_two(std::string_view first, std::string_view second, const Python& value);
  void result(const Python& value);             // the only result, or all of them
  void result_is(const std::string& variable);  // of several results, in order: an intermediate that stays

  // Keyword values.
  std::string memory_config(int result = 0) const;  // "ttnn.DRAM_MEMORY_CONFIG"
  std::string compute_kernel_config() const;        // a constant of the program: HIFI2_L1_ACC
  std::string device() const { return scope_.device(); }
  // A function of the program ("causal_mask"); the writer has its text (emit/helpers.h).
  void needs(const std::string& helper) const { scope_.helper(helper); }
  void warn(const std::string& text) const { scope_.warning(text); }
  // Operands of gathers: uint32 indices and a table of bfloat16, both in rows.
  std::string row_major_ids(std::string_view name);
  std::string row_major_weight(std::string_view name);

  std::vector<PythonStatement> statements;
  std::vector<std::string> named_results;  // where results are intermediates

 private:
  Scope scope_;
  bool done_ = false;
};

// `ttnn.name(operands in schema order, literals by name, memory_config=...)`; `name`: the record's own.
ttc::Refusal emit_plain(PythonCall& to);

}  // namespace ttrt
