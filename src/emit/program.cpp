// model.py: what it imports, constants and helpers, a function for each module, and forward(), which takes and gives
// torch tensors.
#include "emit/program.h"

#include <algorithm>

#include "device/host_tensor.h"
#include "emit/functions.h"
#include "emit/helpers.h"
#include "emit/python_text.h"
#include "ir/body.h"
#include "pass/call.h"

namespace ttc::emit {
namespace {

using ttrt::Python;

void open_whole_modules(ir::Graph& graph) {
  graph.for_each([&](ir::Node* node) {
    if (!ir::is_whole_module(*node)) return;
    const std::vector<ir::Arg> made = ir::inline_region(*node->regions()[0], {}, node);
    for (std::size_t i = 0; i < node->results().size(); ++i)
      if (ir::Value* value = made.at(i).value()) node->result(i)->replace_all_uses_with(value);
    graph.erase(node);
  });
}

class ProgramWriter {
 public:
  ProgramWriter(ir::Model& model, const ttrt::ArchProfile& arch)
      : model_(model), program_(model, arch, example_sizes(model, {})) {}

  Program run() {
    for (const ir::GraphOutput& output : model_.graph->outputs())
      if (!output.target.empty()) written_.insert(output.target);
    load_constants();
    const auto blocks = blocks_of(*model_.graph, [&](const ir::Node& node) { return stands_outside(node); });
    find_row_ids();
    reserve_names(*blocks);
    BlockWriter root(program_, *blocks);
    begin(root);
    root.write();
    finish(root);
    return package(root);
  }

 private:
  // Transfers of inputs, outputs and constants: forward() has them at its ends, constants are loaded.
  bool stands_outside(const ir::Node& node) const {
    const ttrt::OpRecord* record = ttrt::find_op(node.op());
    if (record == nullptr || !is_transfer(record->role) || node.results().empty()) return false;
    if (record->role == ttrt::Role::to_host)
      return node.result()->users().empty() && program_.on_device(node.operand(0));
    return node.operand(0)->def() == nullptr;
  }
  void load_constants() {
    ir::walk(*model_.graph, [&](const ir::Node* node) {
      if (ttrt::role_of(node->op()) != ttrt::Role::to_device) return;
      const ir::Value* operand = program_.weight_behind(node->operand(0));
      if (!ir::is_weight(operand)) return;
      ttrt::TensorSpec spec;
      for (const ir::SymExpr& size : operand->type.sizes)
        spec.logical.push_back(size.evaluate(program_.sizes).value_or(1));
      spec.dtype = ttrt::exact_format(node->result()->type.dtype).value_or(ttrt::DataType::bfloat16);
      if (is_positive(*operand)) program_.positive.insert(node->result());
      program_.uploaded[node->result()] = &program_.parameters.add({.name = {}, .weight = operand, .spec = spec},
                                                                   home_of(*node->result()), name_of(*node->result()));
    });
  }

  // Integers without a sign: indices that count from the start.
  bool is_positive(const ir::Value& constant) const {
    const ir::Weight* weight = model_.weight_of(&constant);
    if (weight == nullptr || weight->storage->absent() || (weight->dtype != DType::i64 && weight->dtype != DType::i32))
      return false;
    const auto [owner, data] = weight->storage->load();
    const ttrt::HostTensor view{.dtype = weight->dtype,
                                .sizes = weight->sizes,
                                .strides = weight->strides,
                                .owner = std::const_pointer_cast<void>(owner),
                                .data = const_cast<std::byte*>(data + weight->storage_offset * size_of(weight->dtype))};
    const ttrt::HostTensor values = convert(contiguous(view), DType::i64);
    return std::all_of(values.as<std::int64_t>(), values.as<std::int64_t>() + values.numel(),
                       [](std::int64_t value) { return value >= 0; });
  }

  // The module that all readers of a value are in, and the operand that it is there.
  static std::string home_of(const ir::Value& value) {
    std::string out;
    bool first = true;
    for (const ir::Node* user : value.users()) {
      const std::string& path = user->provenance->module_path;
      if (first) out = path;
      first = false;
      while (!out.empty() && path != out && !path.starts_with(out + ".")) {
        const std::size_t dot = out.rfind('.');
        out.resize(dot == std::string::npos ? 0 : dot);
      }
    }
    return out;
  }
  static std::string name_of(const ir::Value& value) {
    for (const ir::Node* user : value.users())
      if (std::string role = role_of(*user, &value); role.size() > 2) return role;
    constexpr std::string_view uploaded = "_dev";
    std::string stem = value.name;
    if (stem.ends_with(uploaded)) stem.resize(stem.size() - uploaded.size());
    const std::size_t end = stem.find_last_not_of("0123456789_");
    stem.resize(end == std::string::npos ? 0 : end + 1);  // a layer's number is in its path
    return stem.empty() ? "constant" : identifier(stem);
  }

  // Inputs that nothing but gathers read: these want rows of uint32.
  void find_row_ids() {
    for (const auto& node : model_.graph->nodes()) {
      const ttrt::OpRecord* record = ttrt::find_op(node->op());
      if (record == nullptr || record->role != ttrt::Role::to_device || node->result()->users().empty()) continue;
      const auto gathers = [&](const ir::Node* user) {
        const ttrt::OpRecord* reader = ttrt::find_op(user->op());
        if (reader == nullptr || reader->packed.empty() || user->schema() == nullptr) return false;
        for (std::size_t i = 0; i < user->args().size(); ++i)
          if (user->operand(i) == node->result() &&
              operand_kind(*reader, user->schema()->args.at(i).name) != ttrt::OperandKind::index)
            return false;
        return true;
      };
      const std::vector<ir::Node*> users = node->result()->users();
      if (std::ranges::all_of(users, gathers)) program_.row_ids.insert(node->result());
    }
  }

  // No variable is called as a function is.
  void reserve_names(const Block& block) {
    for (const char* name : {"if_true", "if_false", "goes_on", "turn", "row", "wrapped"})
      program_.function_names.insert(name);
    for (const std::string_view name : helper_names()) program_.function_names.emplace(name);
    for (const Item& item : block.items)
      if (const auto* inner = std::get_if<std::unique_ptr<Block>>(&item)) {
        program_.function_names.insert(snake_case((*inner)->class_name));
        reserve_names(**inner);
      }
  }

  // ---- forward()

  void begin(BlockWriter& root) {
    std::set<std::string> defined;
    std::size_t place = 0;
    for (const ir::GraphInput& input : model_.graph->inputs()) {
      if (input.kind != ir::InputKind::user) continue;
      const std::string variable = root.scope.fresh(input.value->name);
      if (input.literal) {
        fixed_.push_back(variable + "=" + root.text_of(*input.literal));
        root.name(input.value.get(), variable);
        ++place;
        continue;
      }
      places_.push_back(place++);
      inputs_.push_back(variable);
      root.name(input.value.get(), variable);
      if (!input.value->type.is_tensor()) number_inputs_.insert(inputs_.size() - 1);
      if (input.value->type.is_tensor()) check(root, variable, input.value->type, defined);
      if (input.value->type.sym && input.value->type.sym->is_symbol() &&
          defined.insert(input.value->type.sym->name()).second)
        root.scope.raw(identifier(input.value->type.sym->name()) + " = " + variable);
    }
    program_.symbols_of_inputs = defined;
    for (const auto& [symbol, range] : model_.ranges) check_range(root, symbol, range, defined);
    for (const auto& node : model_.graph->nodes()) {
      const ttrt::OpRecord* record = ttrt::find_op(node->op());
      if (record == nullptr || record->role != ttrt::Role::to_device || program_.uploaded.contains(node->result()))
        continue;
      const ir::Value* operand = node->operand(0);
      if (operand->def() != nullptr) continue;
      upload_input(root, *node, *operand);
    }
  }

  // Fixed sizes are asserted; the first free one of a name is taken, the next compared.
  void check(BlockWriter& root, const std::string& variable, const ir::Type& type, std::set<std::string>& defined) {
    std::vector<std::string> wanted;
    for (int i = 0; i < type.rank(); ++i) {
      const ir::SymExpr& size = type.sizes[static_cast<std::size_t>(i)];
      if (size.is_symbol() && defined.insert(size.name()).second)
        root.scope.raw(identifier(size.name()) + " = " + variable + ".shape[" + std::to_string(i) + "]");
      wanted.push_back(symbolic(size));
    }
    std::string tuple;
    for (const std::string& one : wanted) tuple += one.empty() ? "" : one + ", ";
    if (wanted.size() > 1) tuple.resize(tuple.size() - 2);
    if (wanted.size() == 1) tuple.pop_back();
    if (std::ranges::find(wanted, std::string()) == wanted.end())
      root.scope.raw("assert tuple(" + variable + ".shape) == (" + tuple + "), f\"" + variable + ": {tuple(" +
                     variable + ".shape)}\"");
  }
  void check_range(BlockWriter& root, const std::string& symbol, const ir::SymRange& range,
                   const std::set<std::string>& defined) {
    if (!defined.contains(symbol)) return;
    const std::string name = identifier(symbol);
    std::string test = name;
    constexpr std::int64_t unbounded = std::int64_t{1} << 40;
    if (range.min && *range.min > 0) test = std::to_string(*range.min) + " <= " + test;
    if (range.max && *range.max < unbounded) test += " <= " + std::to_string(*range.max);
    if (test != name) root.scope.raw("assert " + test + ", f\"" + name + " = {" + name + "}\"");
  }

  void upload_input(BlockWriter& root, const ir::Node& node, const ir::Value& operand) {
    const auto format = ttrt::exact_format(node.result()->type.dtype).value_or(ttrt::DataType::bfloat16);
    const std::string variable = root.text_of(&operand);
    const std::string made = root.scope.fresh(variable + "_dev");
    root.name(node.result(), made);
    root.device = true;
    if (is_written(operand)) {
      program_.helpers.insert("on_device");
      root.scope.add(
          {made}, Python("on_device").arg(variable).key("dtype", ttrt::python_dtype(format)).key("device", "device"));
      return;
    }
    root.scope.owns(made);
    root.scope.add({made}, upload(variable, operand.type.dtype, format, program_.row_ids.contains(node.result())));
  }
  bool is_written(const ir::Value& value) const {
    for (const ir::GraphInput& input : model_.graph->inputs())
      if (input.value.get() == &value) return written_.contains(input.target.empty() ? value.name : input.target);
    return false;
  }

  void finish(BlockWriter& root) {
    std::vector<std::string> returned;
    for (const ir::GraphOutput& output : model_.graph->outputs()) {
      const ir::Value* value = output.arg.value();
      if (output.kind == ir::OutputKind::token) continue;
      if (output.kind == ir::OutputKind::user) {
        returned.push_back(host_text(root, output.arg));
      } else if (value != nullptr) {
        write_state(root, output, *value);
      }
    }
    if (!returned.empty()) root.scope.raw(return_statement(returned));
  }
  // On a line of its own each where they are too many for one.
  static std::string return_statement(const std::vector<std::string>& values) {
    std::string line = "return ", lines = "return (\n";
    for (const std::string& value : values) {
      line += (line.size() == 7 ? "" : ", ") + value;
      lines += "    " + value + ",\n";
    }
    return line.size() + 4 <= line_width || values.size() == 1 ? line : lines + ")";
  }
  // The device tensor that an output on the host is a copy of; nullptr where it is none.
  static const ir::Value* source(const ir::Value* value) {
    const ir::Node* node = value != nullptr ? value->def() : nullptr;
    return node != nullptr && ttrt::role_of(node->op()) == ttrt::Role::to_host ? node->operand(0) : nullptr;
  }
  std::string host_text(BlockWriter& root, const ir::Arg& arg) {
    const ir::Value* from = source(arg.value());
    if (from == nullptr || !program_.on_device(from) || !arg.value()->users().empty()) return root.text_of(arg);
    const auto format = ttrt::exact_format(from->type.dtype).value_or(ttrt::DataType::bfloat16);
    return converted(download(root.text_of(from)).str(), format, arg.value()->type.dtype);
  }
  void write_state(BlockWriter& root, const ir::GraphOutput& output, const ir::Value& value) {
    const ir::Value* from = source(&value);
    if (output.kind == ir::OutputKind::user_input_mutation) {
      const ir::Value* input = nullptr;
      for (const ir::GraphInput& one : model_.graph->inputs())
        if (one.value->name == output.target || one.target == output.target) input = one.value.get();
      if (input == nullptr || input == &value) return;
      if (from != nullptr) {
        program_.helpers.insert("write_back");
        root.scope.raw("write_back(" + root.text_of(input) + ", " + root.text_of(from) + ")");
      } else {
        root.scope.raw(root.text_of(input) + ".copy_(" + root.text_of(&value) + ")");
      }
      return;
    }
    const ir::Value* buffer = model_.graph->find_input_by_target(output.target);
    if (buffer == nullptr || buffer == &value) return;
    const bool same_sizes = buffer->type.sizes == value.type.sizes;
    for (const auto& [uploaded, parameter] : program_.uploaded)
      if (parameter->weight == buffer && from != nullptr) {
        const std::string text = parameter_text(*parameter, "");
        root.weights = true;
        if (!same_sizes) root.scope.returns(root.text_of(from));
        root.scope.raw(same_sizes ? "ttnn.copy(" + root.text_of(from) + ", " + text + ")"
                                  : text + " = " + root.text_of(from));
        return;
      }
    // A state that begins empty, as recurrent ones do, has other sizes once it is written: a tensor takes its place.
    const std::string text = root.text_of(buffer), made = host_text(root, ir::Arg(const_cast<ir::Value*>(&value)));
    root.scope.raw(same_sizes ? text + ".copy_(" + made + ")" : text + " = " + made);
  }

  // ---- the file

  // The class, then the paths of the modules that it is: some of them where there are many.
  static std::string docstring(const Function& function) {
    if (!function.summary.empty()) return "    \"\"\"" + function.summary + "\"\"\"\n";
    const std::string text = function.class_name.empty() ? "Nodes of no module" : function.class_name;
    constexpr std::size_t shown = 3;
    std::vector<std::string> paths = function.paths;
    if (paths.size() > shown)
      paths = {paths[0], paths[1], "... " + paths.back() + " (" + std::to_string(paths.size()) + " in all)"};
    std::string names;
    for (const std::string& path : paths) names += (names.empty() ? "" : ", ") + path;
    const std::string one_line = "    \"\"\"" + text + ": " + names + ".\"\"\"\n";
    if (one_line.size() <= line_width) return one_line;
    std::string lines;
    for (const std::string& path : paths) lines += "    " + path + "\n";
    return "    \"\"\"" + text + ":\n" + lines + "    \"\"\"\n";
  }
  static std::string definition(const std::string& name, const std::vector<std::string>& parameters) {
    Python head(name);
    for (const std::string& one : parameters) head.arg(one);
    std::string text = "def " + statement({}, head, 0);
    text.pop_back();
    return text + ":\n";
  }

  Program package(BlockWriter& root) {
    Program out;
    std::string& text = out.text;
    text =
        "\"\"\"" +
        (model_.info.path.empty() ? std::string("A model") : model_.info.path.substr(model_.info.path.rfind('/') + 1)) +
        " as a TT-NN program for " + std::string(program_.arch.name) + ".\"\"\"\n\n";
    for (const char* module : {"functools", "math", "operator"})
      if (program_.helpers.contains(module) ||
          (std::string_view(module) == "functools" && program_.helpers.contains("causal_mask")))
        text += std::string("import ") + module + "\n";
    if (!text.ends_with("\n\n")) text += "\n";
    std::string functions;
    for (const auto& function : program_.all)
      functions += "\n\n" + definition(function->name, function->parameters) + docstring(*function) + function->body;
    std::vector<std::string> parameters = inputs_;
    parameters.emplace_back("*");
    parameters.insert(parameters.end(), fixed_.begin(), fixed_.end());
    parameters.insert(parameters.end(), {"parameters", "device"});
    functions += "\n\n" + definition("forward", parameters) + "    \"\"\"The model: torch tensors in and out.\"\"\"\n" +
                 root.scope.text(4);
    std::string helpers;
    for (const std::string& helper : program_.helpers)
      if (const std::string_view body = helper_text(helper); !body.empty()) helpers += "\n\n" + std::string(body);
    if (identifiers(functions + helpers).contains("torch")) text += "import torch\n";
    text += "import ttnn\n";
    for (const auto& [name, value] : program_.constants) {
      const std::size_t open = value.find('(');
      text += (name == program_.constants.begin()->first ? "\n" : "");
      std::string one = name + " = " + value + "\n";
      if (one.size() > line_width + 1) {
        one = name + " = " + value.substr(0, open + 1) + "\n    " + value.substr(open + 1, value.size() - open - 2) +
              "\n)\n";
      }
      text += one;
    }
    text += helpers + functions;
    out.inputs = inputs_, out.places = places_, out.number_inputs = number_inputs_;
    out.parameters = program_.parameters.all();
    out.refused = std::move(program_.refused);
    out.warnings.assign(program_.warnings.begin(), program_.warnings.end());
    out.device_calls = program_.device_calls, out.host_calls = program_.host_calls, out.functions = program_.all.size();
    return out;
  }

  ir::Model& model_;
  Functions program_;
  std::set<std::string> written_;
  std::vector<std::string> inputs_, fixed_;
  std::vector<std::size_t> places_;
  std::set<std::size_t> number_inputs_;
};

}  // namespace

Program write_program(ir::Model& model, const ttrt::ArchProfile& arch) {
  open_whole_modules(*model.graph);
  return ProgramWriter(model, arch).run();
}

}  // namespace ttc::emit
