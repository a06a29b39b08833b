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
#include "emit/control.h"
#include "emit/parameters.h"
#include "emit/scope.h"
#include "executor/kernel_choice.h"

namespace ttc::emit {

// What a function takes: a value of the graph, or a weight that is not below its module.
using Argument = std::variant<const ir::Value*, const Parameter*>;

struct Function {
  std::string name, class_name, body;    // the body without docstring
  std::string summary;                   // of what is no module
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

class BlockWriter;

// What all functions of a program share.
class Functions {
 public:
  Functions(const ir::Model& model, const ttrt::ArchProfile& arch, ir::SymBinding sizes);

  // A function for the block, or the one that another block of the same text has.
  Callee write(const Block& block);
  // The same for a graph inside a node: it takes the graph's inputs, then what the graph reads besides. `path`: the
  // module around it.
  Callee write(const ir::Graph& region, const std::string& name, const std::string& summary, const std::string& path);
  // Whether a value is a tensor of the device: what device nodes give, and what control flow hands on of it.
  bool on_device(const ir::Value* value) const { return device_.contains(value); }
  // The weight that an input of a graph inside a node stands for; the value itself where it stands for none.
  const ir::Value* weight_behind(const ir::Value* value) const;
  // Whether a value that a node of control flow gives is on the device one way and on the host another.
  bool is_mixed(const ir::Node* node) const { return mixed_.contains(node); }

  const ir::Model& model;
  const ttrt::ArchProfile& arch;
  const ir::SymBinding sizes;               // a value for every symbol
  std::set<std::string> symbols_of_inputs;  // those that forward() reads from its arguments
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
  std::set<const ir::Value*> positive;         // constants without a negative element
  std::vector<std::unique_ptr<Function>> all;  // callees before callers

 private:
  Callee written(BlockWriter& writer, Function made, const std::string& stem, const std::string& path);
  void find_device_values(const ir::Graph& graph);
  void bind_inputs(const Control& control, const ir::Graph& graph);

  std::map<std::string, Function*> by_text_;
  std::set<std::string> names_;
  std::set<const ir::Value*> device_;
  std::set<const ir::Node*> mixed_;
  std::map<const ir::Value*, const ir::Value*> weight_behind_;  // inputs of graphs inside nodes
};

// The body of one block's function.
class BlockWriter {
 public:
  BlockWriter(Functions& program, const Block& block);
  // Writes all items; results are what others read, and graph outputs.
  void write();
  // Of a graph inside a node: takes its inputs, in order, and gives its outputs.
  void write_region(const ir::Graph& region);
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
  std::vector<std::string> returned;  // expressions of them
  std::set<std::string> symbols;
  bool weights = false, device = false;

 private:
  void write_item(const Item& item);
  void write_node(const ir::Node& node);
  void write_device(const ir::Node& node, const ttrt::OpRecord& record);
  void write_host(const ir::Node& node);
  void write_upload(const ir::Node& node, const ttrt::OpRecord& record);
  void write_call(const Block& block);
  // `given`: what inputs of a graph inside a node stand for.
  ttrt::Python call_of(const Callee& callee, const std::string& path,
                       const std::map<const ir::Value*, std::string>& given = {});
  void write_control(const ir::Node& node);
  void write_choice(const ir::Node& node, const Control& control);
  void write_until(const ir::Node& node, const Control& control);
  void write_loop(const ir::Node& node, const Control& control);
  void write_rows(const ir::Node& node, const Control& control);
  std::vector<std::string> carry(const ir::Node& node, const Control& control);
  std::vector<std::string> texts_of(const std::vector<ir::Arg>& args);
  std::string on_host(const ir::Arg& arg, const std::string& text) const;
  void share(const std::string& target, std::size_t result, const Callee& callee, const ttrt::Python& call);
  void refuse(const ir::Node& node, Reason reason);
  std::string parameter(const Parameter& one, std::string_view role);
  void take_arguments();
  void take_argument(const ir::Value* value, const std::string& role);
  bool takes_size(const std::string& symbol);
  std::string size_text(const ir::SymExpr& size);
  std::vector<std::string> sizes_text(const ir::Value* value);
  std::string stem(const ir::Node& node) const;
  std::vector<std::string> bind_results(const ir::Node& node, bool device);
  ttrt::PythonCall::Scope scope_for(const ir::Node& node, const ttrt::BoundCall& bound);
  void weights_for(ttrt::PythonCall::Scope& to, const ir::Node& node, const ttrt::BoundCall& bound,
                   const std::vector<const ir::Value*>& tensors);
  bool computed_before(const ttrt::PythonCall& call, ttrt::PythonStatement& one,
                       std::map<std::string, std::string>& known_as);
  std::string channels_last(const ir::Value* value);
  bool stays_channels_last(const ir::Node& node) const;
  // A tensor operand of a call: its variable, or a weight as the record has it or in another form.
  std::string operand_text(const ir::Node& node, const ir::Value* value, std::size_t index,
                           const ttrt::BoundCall& bound, const ttrt::WeightForm* form = nullptr);

  Functions& program_;
  const Block& block_;
  std::map<const ir::Value*, std::string> names_;
  std::map<const ir::Value*, std::string> last_;  // of values that are there with channels last
  std::map<const Parameter*, std::string> given_;
  std::map<std::string, std::string> computed_;  // intermediates by their calls
  std::set<const ir::Value*> inside_;            // defined in the block
  std::set<std::string> taken_sizes_;            // symbols that are variables of the function already
  const ir::Node* at_ = nullptr;
  std::string no_spelling_;  // of a size of the node at hand: why
};

// The schema's name of the argument in which a node reads a value; "" for operators without a schema.
std::string role_of(const ir::Node& node, const ir::Value* value);

// Channels, dim 1, behind all others or back there.
ttrt::Python with_channels(const std::string& variable, int rank, bool to_last);

// What TT-NN takes from the host: `ttnn.from_torch(x, dtype=..., ...)` of a torch value.
ttrt::Python upload(const std::string& value, DType dtype, ttrt::DataType format, bool rows);
// A device tensor as the host has it.
ttrt::Python download(const std::string& value);
std::string converted(const std::string& torch_value, ttrt::DataType from, DType to);

}  // namespace ttc::emit
