// Nodes as statements: device operators through their records, host operators as torch calls, inner modules as calls
// of their functions.
#include <algorithm>

#include "emit/functions.h"
#include "emit/python_text.h"
#include "executor/call_price.h"
#include "ir/node_name.h"
#include "pass/call.h"

namespace ttc::emit {

using ttrt::DataType;
using ttrt::Python;
using ttrt::PythonCall;

namespace {

// What names say nothing of.
bool is_generic(std::string_view name) {
  return name == "x" || name == "a" || name == "b" || name == "xs" || name.size() < 2;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

void read_from_outside(const ir::Graph& graph, std::set<const ir::Value*>& inside, std::vector<ir::Value*>& out) {
  for (const ir::GraphInput& input : graph.inputs()) inside.insert(input.value.get());
  for (const auto& node : graph.nodes()) {
    for (ir::Value* value : node->operands())
      if (!inside.contains(value)) out.push_back(value);
    for (const auto& region : node->regions()) read_from_outside(*region, inside, out);
    for (const auto& result : node->results()) inside.insert(result.get());
  }
  for (const ir::GraphOutput& output : graph.outputs())
    if (ir::Value* value = output.arg.value(); value != nullptr && !inside.contains(value)) out.push_back(value);
}

// Operands, and what graphs inside, however deep, read from outside.
std::vector<ir::Value*> read_by(const ir::Node& node) {
  std::vector<ir::Value*> out = node.operands();
  std::set<const ir::Value*> inside;
  for (const auto& region : node.regions()) read_from_outside(*region, inside, out);
  return out;
}

// The user in the graph of the value, around the one that uses it.
const ir::Node* around(const ir::Node* user, const ir::Value& value) {
  const ir::Graph* graph = value.graph();
  while (user->graph() != graph && user->graph()->parent() != nullptr) user = user->graph()->parent();
  return user;
}

}  // namespace

std::string role_of(const ir::Node& node, const ir::Value* value) {
  if (node.schema() == nullptr) return "";
  for (std::size_t i = 0; i < node.args().size() && i < node.schema()->args.size(); ++i) {
    bool found = false;
    node.arg(i).for_each_value([&](const ir::Value* one) { found = found || one == value; });
    if (found) return node.schema()->args[i].name;
  }
  return "";
}

// ---- names

const std::string& BlockWriter::argument_name(const Argument& argument) const {
  if (const auto* value = std::get_if<const ir::Value*>(&argument)) return names_.at(*value);
  return given_.at(std::get<const Parameter*>(argument));
}

// A size that no input has, but a tensor that the function has already: `u0 = x.shape[1]`, once.
bool BlockWriter::takes_size(const std::string& symbol) {
  if (taken_sizes_.contains(symbol)) return true;
  std::string from;  // the first by name: the map's order is that of addresses
  for (const auto& [value, variable] : names_) {
    if (!value->type.is_tensor() || !value->type.has_shape) continue;
    for (std::size_t d = 0; d < value->type.sizes.size(); ++d) {
      if (!value->type.sizes[d].is_symbol() || value->type.sizes[d].name() != symbol) continue;
      const std::string text = variable + ".shape[" + std::to_string(d) + "]";
      if (from.empty() || text < from) from = text;
    }
  }
  if (from.empty()) return false;
  scope.raw(identifier(symbol) + " = " + from);
  return taken_sizes_.insert(symbol).second;
}

std::string BlockWriter::size_text(const ir::SymExpr& size) {
  std::vector<std::string> used;
  size.collect_symbols(used);
  for (const std::string& symbol : used) {
    if (program_.symbols_of_inputs.contains(symbol))
      symbols.insert(identifier(symbol));
    else if (!takes_size(symbol))
      no_spelling_ = symbol + " is a size that only a run knows";
  }
  std::string text = symbolic(size);
  if (text.empty()) no_spelling_ = "a size of " + size.str() + " has no spelling in Python";
  return text;
}

std::vector<std::string> BlockWriter::sizes_text(const ir::Value* value) {
  std::vector<std::string> out;
  for (const ir::SymExpr& size : value->type.sizes) out.push_back(size_text(size));
  return out;
}

std::string BlockWriter::parameter(const Parameter& one, std::string_view role) {
  if (std::string text = parameter_text(one, block_.path); !text.empty()) {
    weights = true;
    return text;
  }
  if (const auto at = given_.find(&one); at != given_.end()) return at->second;
  arguments.emplace_back(&one);
  return given_[&one] = scope.fresh(is_generic(role) ? "weight" : std::string(role));
}

std::string BlockWriter::text_of(const ir::Value* value) {
  if (const auto known = names_.find(value); known != names_.end()) return known->second;
  if (const auto last = last_.find(value); last != last_.end()) {
    const std::string made = scope.fresh(stem(*value->def()));
    name(value, made);
    scope.owns(made);
    scope.add({made}, with_channels(last->second, value->type.rank(), false));
    return made;
  }
  value = program_.weight_behind(value);
  if (const auto constant = program_.uploaded.find(value); constant != program_.uploaded.end())
    return parameter(*constant->second, at_ != nullptr ? role_of(*at_, value) : "");
  if (value->type.kind == ir::TypeKind::integer && value->type.sym) return size_text(*value->type.sym);
  if (ir::is_weight(value))
    return parameter(program_.parameters.add({.name = {}, .weight = value, .form = Parameter::Form::torch, .spec = {}},
                                             block_.path, at_ != nullptr ? role_of(*at_, value) : value->name),
                     "");
  return identifier(value->name);
}

std::string BlockWriter::text_of(const ir::Arg& arg) {
  if (const ir::Value* value = arg.value()) return text_of(value);
  if (arg.is_none()) return "None";
  if (const auto* items = arg.list()) {
    std::string out;
    for (const ir::Arg& item : *items) out += (out.empty() ? "" : ", ") + text_of(item);
    return "[" + out + "]";
  }
  if (const auto* flag = arg.get_if<bool>()) return ttrt::python_bool(*flag);
  if (const auto* number = arg.get_if<std::int64_t>()) return std::to_string(*number);
  if (const auto* number = arg.get_if<double>()) return ttrt::python_number(*number);
  if (const auto* text = arg.get_if<std::string>()) return ttrt::python_text(*text);
  if (const auto* dtype = arg.get_if<DType>()) return torch_dtype_text(*dtype);
  if (const auto* device_arg = arg.get_if<ir::DeviceArg>())
    return "torch.device(" + ttrt::python_text(device_arg->type) + ")";
  if (arg.get_if<ir::LayoutArg>() != nullptr) return "torch.strided";
  if (const auto* format = arg.get_if<ir::MemoryFormatArg>()) {
    constexpr const char* names[] = {"contiguous_format", "contiguous_format", "channels_last", "channels_last_3d",
                                     "preserve_format"};
    return std::string("torch.") + names[std::clamp(format->code, 0, 4)];
  }
  if (const auto* number = arg.get_if<std::complex<double>>())
    return "complex(" + ttrt::python_number(number->real()) + ", " + ttrt::python_number(number->imag()) + ")";
  return "None";
}

// ---- the block

void BlockWriter::take_arguments() {
  for_each_node(block_, [&](const ir::Node& node) {
    for (const auto& result : node.results()) inside_.insert(result.get());
  });
  for_each_node(block_, [&](const ir::Node& node) {
    for (const ir::Value* value : read_by(node)) take_argument(value, role_of(node, value));
  });
}

// What the function reads from outside is an argument of it, but for weights and sizes, which have arguments of their
// own.
void BlockWriter::take_argument(const ir::Value* value, const std::string& role) {
  if (inside_.contains(value) || names_.contains(value) || program_.uploaded.contains(value) ||
      ir::is_weight(program_.weight_behind(value)) || (value->type.kind == ir::TypeKind::integer && value->type.sym))
    return;
  name(value, scope.fresh(is_generic(role) ? "x" : role));
  arguments.emplace_back(value);
}

BlockWriter::BlockWriter(Functions& program, const Block& block) : program_(program), block_(block) {
  for (const char* word : {"parameters", "device", "ttnn", "torch"}) scope.reserve(word);
  for (const auto& [symbol, size] : program_.sizes) scope.reserve(identifier(symbol));
  scope.reserve_functions(program_.function_names);
}

void BlockWriter::write() {
  take_arguments();
  for (const Item& item : block_.items) write_item(item);
  for_each_node(block_, [&](const ir::Node& node) {
    for (const auto& result : node.results()) {
      bool read = result->output_uses() > 0;
      for (const ir::Node* user : result->users()) {
        const ir::Node* reader = around(user, *result);
        read = read || reader->results().empty() || !inside_.contains(reader->result());
      }
      if (!read || (!names_.contains(result.get()) && !last_.contains(result.get()))) continue;
      results.push_back(result.get());
      returned.push_back(text_of(result.get()));
      scope.returns(returned.back());
    }
  });
}

void BlockWriter::write_item(const Item& item) {
  if (const auto* inner = std::get_if<std::unique_ptr<Block>>(&item))
    write_call(**inner);
  else
    write_node(*std::get<const ir::Node*>(item));
}

Python BlockWriter::call_of(const Callee& callee, const std::string& path,
                            const std::map<const ir::Value*, std::string>& given) {
  Python call(callee.function->name);
  for (const Argument& argument : callee.arguments) {
    if (const auto* value = std::get_if<const ir::Value*>(&argument)) {
      const auto known = given.find(*value);
      call.arg(known != given.end() ? known->second : text_of(*value));
    } else {
      call.arg(parameter(*std::get<const Parameter*>(argument), callee.function->parameters[call.args().size()]));
    }
  }
  if (callee.function->weights) {
    weights = true;
    const std::size_t cut = block_.path.empty() ? 0 : block_.path.size() + 1;
    const std::string rest = attribute_path(path.size() > cut ? path.substr(cut) : "");
    call.key("parameters", "parameters" + std::string(rest.empty() || rest.starts_with("[") ? "" : ".") + rest);
  }
  if (callee.function->device) device = true, call.key("device", "device");
  for (const std::string& symbol : callee.function->symbols) symbols.insert(symbol), call.key(symbol, symbol);
  return call;
}

void BlockWriter::write_call(const Block& block) {
  const Callee callee = program_.write(block);
  Python call = call_of(callee, block.path);
  const std::string part = last_part(block.path);
  std::vector<std::string> targets;
  for (std::size_t i = 0; i < callee.results.size(); ++i) {
    targets.push_back(scope.fresh(is_number(part) || part == callee.function->name ? "x" : part));
    name(callee.results[i], targets.back());
    if (program_.on_device(callee.results[i])) scope.owns(targets.back());
    share(targets.back(), i, callee, call);  // under other sizes
  }
  scope.add(std::move(targets), std::move(call));
}

std::map<std::size_t, std::size_t> BlockWriter::shared() const {
  std::map<std::size_t, std::size_t> out;
  for (std::size_t i = 0; i < results.size(); ++i)
    for (std::size_t j = 0; j < arguments.size(); ++j)
      if (scope.buffer(returned[i]) == argument_name(arguments[j])) out[i] = j;
  return out;
}

// ---- nodes

// The module that the node is all of, else its operator: the same for modules of one class, whatever the values are
// called.
std::string BlockWriter::stem(const ir::Node& node) const {
  const std::string &path = node.provenance->module_path, part = last_part(path);
  if (path.size() > block_.path.size() && !is_number(part)) return part;
  const std::size_t space = node.op().find('.');
  const std::string name = node.op().substr(space == std::string::npos ? 0 : space + 1);
  return name.substr(0, name.find('.'));
}

std::vector<std::string> BlockWriter::bind_results(const ir::Node& node, bool device_results) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < node.results().size(); ++i) {
    const ir::Value* value = node.result(i);
    out.push_back(value->has_uses() ? scope.fresh(stem(node)) : scope.fresh("_unused"));
    name(value, out.back());
    if (device_results) scope.owns(out.back());
  }
  return out;
}

void BlockWriter::refuse(const ir::Node& node, Reason reason) {
  program_.refused.push_back({ir::node_name(node), node.op(), node.provenance->module_path, std::move(reason)});
  bind_results(node, false);
}

void BlockWriter::write_node(const ir::Node& node) {
  at_ = &node;
  no_spelling_.clear();
  const auto known_size = [](const auto& result) {
    return result->type.kind == ir::TypeKind::integer && result->type.sym;
  };
  if (!node.results().empty() && std::ranges::all_of(node.results(), known_size)) return;
  std::string said = node.provenance->source;
  if (!node.results().empty() && node.result()->type.is_tensor() && node.result()->type.has_shape) {
    std::string sizes;
    for (const ir::SymExpr& size : node.result()->type.sizes) sizes += (sizes.empty() ? "" : ", ") + size.str();
    said += (said.empty() ? "[" : ": [") + sizes + "]";
  }
  if (said.size() > 120) said = node.provenance->source;  // longer than what the sizes explain
  scope.comment(said);
  const ttrt::OpRecord* record = ttrt::find_op(node.op());
  if (!node.regions().empty())
    write_control(node);
  else if (record == nullptr || node.place == "cpu")
    record != nullptr && record->role == ttrt::Role::to_host ? write_upload(node, *record) : write_host(node);
  else if (is_transfer(record->role))
    write_upload(node, *record);
  else
    write_device(node, *record);
  at_ = nullptr;
}

Python upload(const std::string& value, DType dtype, DataType format, bool rows) {
  std::string given = value;
  if (!is_floating(dtype)) given += ttrt::is_float_format(format) ? ".to(torch.float32)" : ".to(torch.int32)";
  return Python("ttnn.from_torch")
      .arg(given)
      .key("dtype", rows ? "ttnn.uint32" : ttrt::python_dtype(format))
      .key("layout", rows ? "ttnn.ROW_MAJOR_LAYOUT" : "ttnn.TILE_LAYOUT")
      .key("device", "device");
}

Python download(const std::string& value) { return Python("ttnn.to_torch").arg(value); }

std::string converted(const std::string& torch_value, DataType from, DType to) {
  const bool same = from == DataType::float32 ? to == DType::f32 : from == DataType::bfloat16 && to == DType::bf16;
  return same ? torch_value : torch_value + ".to(" + torch_dtype_text(to) + ")";
}

// In the middle of a program.
void BlockWriter::write_upload(const ir::Node& node, const ttrt::OpRecord& record) {
  const ir::Value* operand = node.operand(0);
  const std::string value = text_of(operand);
  if (record.role == ttrt::Role::to_device) {
    device = true;
    const auto format = ttrt::exact_format(node.result()->type.dtype).value_or(DataType::bfloat16);
    Python made = upload(value, operand->type.dtype, format, program_.row_ids.contains(node.result()));
    scope.add(bind_results(node, true), std::move(made));
    return;
  }
  const auto from = ttrt::exact_format(operand->type.dtype).value_or(DataType::bfloat16);
  const std::string text = converted(download(value).str(), from, node.result()->type.dtype);
  const std::string made = scope.fresh(value + "_host");
  name(node.result(), made);
  scope.if_read(made, made + " = " + text);
}

// torch.ops.aten.add.Tensor(x, y, alpha=2)
void BlockWriter::write_host(const ir::Node& node) {
  const std::string& op = node.op();
  const bool python_operator = op.starts_with("_operator."), of_math = op.starts_with("math."),
             of_torch = op.starts_with("torch.");
  if (op.starts_with("prim.") || op.starts_with("higher_order.") || op.starts_with("tt."))
    return refuse(node, {ReasonCode::Unsupported, op + " has no spelling in Python"});
  Python made(python_operator ? op.substr(1) : of_math || of_torch ? op : "torch.ops." + op);
  if (python_operator || of_math) program_.helpers.insert(python_operator ? "operator" : "math");
  for (std::size_t i = 0; i < node.args().size(); ++i) {
    const bool keyword =
        node.schema() != nullptr && i < node.schema()->args.size() && node.schema()->args[i].kwarg_only;
    if (!keyword) {
      made.arg(text_of(node.arg(i)));
    } else if (!node.arg(i).is_none()) {
      made.key(node.schema()->args[i].name, text_of(node.arg(i)));
    }
  }
  if (!no_spelling_.empty()) return refuse(node, {ReasonCode::DynamicShape, no_spelling_});
  ++program_.host_calls;
  scope.add(bind_results(node, false), std::move(made));
}

// Intermediates that the function has already, an index of two gathers say, stand under their first name.
bool BlockWriter::computed_before(const PythonCall& call, ttrt::PythonStatement& one,
                                  std::map<std::string, std::string>& known_as) {
  if (!known_as.empty()) {
    Python same(one.call.function());
    for (const std::string& arg : one.call.args()) same.arg(renamed(arg, known_as));
    one.call = std::move(same);
  }
  const bool result = std::ranges::any_of(call.named_results, [&](const std::string& name) {
    return std::ranges::find(one.targets, name) != one.targets.end();
  });
  if (one.targets.size() != 1 || result) return false;
  const auto [at, added] = computed_.emplace(one.call.str(), one.targets[0]);
  if (!added) known_as.emplace(one.targets[0], at->second);
  return !added;
}

void BlockWriter::write_device(const ir::Node& node, const ttrt::OpRecord& record) {
  auto made = concrete_call(record, node.args(), program_.sizes, {.arch = program_.arch.arch});
  if (auto* reason = std::get_if<Reason>(&made)) return refuse(node, std::move(*reason));
  const auto& bound = std::get<ttrt::BoundCall>(made);
  if (record.emit == nullptr) {
    const std::string_view known = ttrt::not_emitted(record.name);
    const std::string why = known.empty() ? "its record has no spelling in TT-NN's Python" : std::string(known);
    return refuse(node, {ReasonCode::Unsupported, why});
  }
  PythonCall::Scope known = scope_for(node, bound);
  const bool last = stays_channels_last(node);
  if (last) known.tensor = known.channels_last;
  PythonCall call(bound.call, bound.results(), program_.arch, std::move(known));
  if (record.multiplies) {
    const ir::Value* second = program_.weight_behind(node.operand(1));
    const auto price =
        ttrt::price_call(bound.call, second != nullptr && ir::is_weight(second), program_.arch, program_.chooser);
    if (price.split.product) call.program = price.split.product->program;
  }
  if (Refusal reason = record.emit(call)) return refuse(node, std::move(*reason));
  if (!no_spelling_.empty()) return refuse(node, {ReasonCode::DynamicShape, no_spelling_});
  ++program_.device_calls;
  for (std::size_t i = 0; i < call.named_results.size(); ++i) name(node.result(i), call.named_results[i]);
  std::map<std::string, std::string> known_as;
  for (ttrt::PythonStatement& one : call.statements) {
    if (computed_before(call, one, known_as)) continue;
    if (one.targets.empty() && (last || call.result_is_channels_last)) {
      one.targets = {last_[node.result()] = scope.fresh(stem(node))};
      scope.owns(one.targets[0]);
    }
    if (one.targets.empty()) one.targets = bind_results(node, true);
    scope.add(std::move(one.targets), std::move(one.call));
  }
}

}  // namespace ttc::emit
