// Functions of a program, one for each block of nodes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "emit/blocks.h"
#include "emit/parameters.h"
#include "emit/scope.h"
#include "executor/kernel_choice.h"

namespace ttc::emit {

// What a function takes: a value of the graph, or a weight that is not below its module.
using Argument = std::variant<const ir::Value*, const Parameter*>;

struct Function {
  std::string name, class_name, body;    // the body without docstring
  std::vector<std::string> parameters;   // names, keywords behind a "*"
  std::set<std::string> symbols;         // sizes that it is given
  bool weights = false, device = false;  // it is given `parameters`, `device`
  std::vector<std::string> paths;        // of the modules that it is
  // Results that may lie in the buffer of a parameter: which of each.
  std::map<std::size_t, std::size_t> shared;
};

// A function and what one block gives it and takes from it, in the function's order.
struct Callee {
  const Function* function = nullptr;
  std::vector<Argument> arguments;
  std::vector<const ir::Value*> results;
};

// What all functions of a program share.
class Functions {
 public:
  Functions(const ir::Model& model, const ttrt::ArchProfile& arch, ir::SymBinding sizes);

  // A function for the block, or the one that another block of the same text has.
  Callee write(const Block& block);

  const ir::Model& model;
  const ttrt::ArchProfile& arch;
  const ir::SymBinding sizes;  // a value for every symbol
  ttrt::KernelChooser chooser;
  Parameters parameters;
  std::map<std::string, std::string> constants;  // name: definition
  std::set<std::string> helpers;
  std::vector<Refused> refused;
  std::set<std::string> warnings;
  std::size_t device_calls = 0, host_calls = 0;
  // Constants that are on the device before the first call: by the transfer's result.
  std::map<const ir::Value*, const Parameter*> uploaded;
  std::set<std::string> function_names;        // that variables don't take
  std::set<const ir::Value*> row_ids;          // indices that are uint32 in rows
  std::vector<std::unique_ptr<Function>> all;  // callees before callers

 private:
  std::map<std::string, Function*> by_text_;
  std::set<std::string> names_;
};

// The body of one block's function.
class BlockWriter {
 public:
  BlockWriter(Functions& program, const Block& block);
  // Writes all items; results are what others read, and graph outputs.
  void write();
  // For what stands around the items: a variable, or an expression of a value.
  std::string text_of(const ir::Value* value);
  std::string text_of(const ir::Arg& arg);
  void name(const ir::Value* value, const std::string& variable) { names_[value] = variable; }

  const std::string& argument_name(const Argument& argument) const;
  // Results that may lie in an argument's buffer: which of each.
  std::map<std::size_t, std::size_t> shared() const;

  Scope scope;
  std::vector<Argument> arguments;
  std::vector<const ir::Value*> results;
  std::set<std::string> symbols;
  bool weights = false, device = false;

 private:
  void write_item(const Item& item);
  void write_node(const ir::Node& node);
  void write_device(const ir::Node& node, const ttrt::OpRecord& record);
  void write_host(const ir::Node& node);
  void write_upload(const ir::Node& node, const ttrt::OpRecord& record);
  void write_call(const Block& block);
  void refuse(const ir::Node& node, Reason reason);
  std::string parameter(const Parameter& one, std::string_view role);
  void take_arguments();
  std::string size_text(const ir::SymExpr& size);
  std::vector<std::string> sizes_text(const ir::Value* value);
  std::string stem(const ir::Node& node) const;
  std::vector<std::string> bind_results(const ir::Node& node, bool device);
  ttrt::PythonCall::Scope scope_for(const ir::Node& node, const ttrt::BoundCall& bound);
  std::string operand_text(const ir::Node& node, const ir::Value* value, std::size_t index,
                           const ttrt::BoundCall& bound, Parameter::Form form);

  Functions& program_;
  const Block& block_;
  std::map<const ir::Value*, std::string> names_;
  std::map<const Parameter*, std::string> given_;
  std::set<const ir::Value*> inside_;  // defined in the block
  const ir::Node* at_ = nullptr;
  std::string no_spelling_;  // of a size of the node at hand: why
};

// The schema's name of the argument in which a node reads a value; "" for operators without a schema.
std::string role_of(const ir::Node& node, const ir::Value* value);

// What TT-NN takes from the host: `ttnn.from_torch(x, dtype=..., ...)` of a torch value.
ttrt::Python upload(const std::string& value, DType dtype, ttrt::DataType format, bool rows);
// A device tensor as the host has it.
ttrt::Python download(const std::string& value);
std::string converted(const std::string& torch_value, ttrt::DataType from, DType to);

}  // namespace ttc::emit
