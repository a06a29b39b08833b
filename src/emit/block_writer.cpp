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

std::string BlockWriter::size_text(const ir::SymExpr& size) {
  std::vector<std::string> used;
  size.collect_symbols(used);
  for (const std::string& symbol : used) symbols.insert(identifier(symbol));
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
  if (const auto constant = program_.uploaded.find(value); constant != program_.uploaded.end())
    return parameter(*constant->second, at_ != nullptr ? role_of(*at_, value) : "");
  if (value->type.kind == ir::TypeKind::integer && value->type.sym) return size_text(*value->type.sym);
  if (ir::is_weight(value))
    return parameter(program_.parameters.add(value, Parameter::Form::host, {}, false, block_.path,
                                             at_ != nullptr ? role_of(*at_, value) : value->name),
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
    for (const ir::Value* value : node.operands()) {
      if (inside_.contains(value) || names_.contains(value) || program_.uploaded.contains(value) ||
          ir::is_weight(value))
        continue;
      if (value->type.kind == ir::TypeKind::integer && value->type.sym) continue;
      const std::string role = role_of(node, value);
      name(value, scope.fresh(is_generic(role) ? "x" : role));
      arguments.emplace_back(value);
    }
  });
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
      for (const ir::Node* user : result->users())
        read = read || user->results().empty() || !inside_.contains(user->result());
      if (!read || !names_.contains(result.get())) continue;
      results.push_back(result.get());
      scope.returns(names_.at(result.get()));
    }
  });
}

void BlockWriter::write_item(const Item& item) {
  if (const auto* inner = std::get_if<std::unique_ptr<Block>>(&item))
    write_call(**inner);
  else
    write_node(*std::get<const ir::Node*>(item));
}

void BlockWriter::write_call(const Block& block) {
  const Callee callee = program_.write(block);
  Python call(callee.function->name);
  for (const Argument& argument : callee.arguments) {
    if (const auto* value = std::get_if<const ir::Value*>(&argument))
      call.arg(text_of(*value));
    else
      call.arg(parameter(*std::get<const Parameter*>(argument), callee.function->parameters[call.args().size()]));
  }
  if (callee.function->weights) {
    weights = true;
    const std::size_t cut = block_.path.empty() ? 0 : block_.path.size() + 1;
    const std::string rest = attribute_path(block.path.size() > cut ? block.path.substr(cut) : "");
    call.key("parameters", "parameters" + std::string(rest.empty() || rest.starts_with("[") ? "" : ".") + rest);
  }
  if (callee.function->device) device = true, call.key("device", "device");
  for (const std::string& symbol : callee.function->symbols) symbols.insert(symbol), call.key(symbol, symbol);
  const std::string part = last_part(block.path);
  std::vector<std::string> targets;
  for (std::size_t i = 0; i < callee.results.size(); ++i) {
    targets.push_back(scope.fresh(is_number(part) || part == callee.function->name ? "x" : part));
    name(callee.results[i], targets.back());
    if (on_device(callee.results[i])) scope.owns(targets.back());
    // What the callee gives back of what it was given, under other sizes.
    if (const auto shared = callee.function->shared.find(i); shared != callee.function->shared.end())
      scope.shares(targets.back(), call.args().at(shared->second));
  }
  scope.add(std::move(targets), std::move(call));
}

std::map<std::size_t, std::size_t> BlockWriter::shared() const {
  std::map<std::size_t, std::size_t> out;
  for (std::size_t i = 0; i < results.size(); ++i)
    for (std::size_t j = 0; j < arguments.size(); ++j)
      if (scope.buffer(names_.at(results[i])) == argument_name(arguments[j])) out[i] = j;
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
  scope.comment(said);
  const ttrt::OpRecord* record = ttrt::find_op(node.op());
  if (!node.regions().empty())
    refuse(node, {ReasonCode::Unsupported, "control flow is not written in Python yet"});
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
  scope.raw(bind_results(node, false).at(0) + " = " + text);
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

std::string BlockWriter::operand_text(const ir::Node& node, const ir::Value* value, std::size_t index,
                                      const ttrt::BoundCall& bound, Parameter::Form form) {
  if (!ir::is_weight(value) || names_.contains(value)) return text_of(value);
  const std::string role = role_of(node, value);
  const std::string& path =
      node.provenance->module_path.size() >= block_.path.size() ? node.provenance->module_path : block_.path;
  const bool packed = bound.operands.at(index).packed != nullptr;
  return parameter(program_.parameters.add(value, form, bound.call.tensors.at(index), packed, path, role), role);
}

PythonCall::Scope BlockWriter::scope_for(const ir::Node& node, const ttrt::BoundCall& bound) {
  std::vector<const ir::Value*> tensors;
  for (const ir::Value* value : node.operands())
    if (value->type.is_tensor()) tensors.push_back(value);
  PythonCall::Scope to;
  to.tensor = [this, &node, &bound, tensors](std::size_t i) {
    return operand_text(node, tensors.at(i), i, bound, Parameter::Form::tiles);
  };
  to.literal = [this, &node, &bound](std::string_view literal) -> std::string {
    const ir::Arg* arg = node.arg(literal);
    if (arg != nullptr) return arg->is_none() ? "" : text_of(*arg);
    const int at = node.schema()->index_of(literal);
    const auto& otherwise = node.schema()->args.at(static_cast<std::size_t>(at)).default_value;
    return !otherwise || otherwise->is_none() ? "" : text_of(*otherwise);
  };
  to.sizes = [this, &node](int result) { return sizes_text(node.result(static_cast<std::size_t>(result))); };
  to.tensor_sizes = [this, tensors](std::size_t i) { return sizes_text(tensors.at(i)); };
  to.fresh = [this](std::string_view name) {
    std::string made = scope.fresh(name);
    scope.owns(made);
    return made;
  };
  to.constant = [this](const std::string& name, const std::string& text) { program_.constants.emplace(name, text); };
  to.helper = [this](const std::string& helper) { program_.helpers.insert(helper); };
  to.device = [this] {
    device = true;
    return std::string("device");
  };
  to.warning = [this](const std::string& text) { program_.warnings.insert(text); };
  to.row_major = [this, &node, &bound, tensors](std::string_view operand) -> std::string {
    const auto index = static_cast<std::size_t>(bound.call.tensor_index(operand));
    if (program_.row_ids.contains(tensors.at(index))) return text_of(tensors[index]);
    if (!ir::is_weight(tensors[index])) return "";
    return operand_text(node, tensors[index], index, bound, Parameter::Form::rows);
  };
  to.fixed_sizes = true;
  const auto fixed = [](const ir::Value* value) { return !value->type.is_tensor() || value->type.is_static(); };
  for (const ir::Value* value : tensors) to.fixed_sizes = to.fixed_sizes && fixed(value);
  for (const auto& result : node.results()) to.fixed_sizes = to.fixed_sizes && fixed(result.get());
  return to;
}

void BlockWriter::write_device(const ir::Node& node, const ttrt::OpRecord& record) {
  auto made = concrete_call(record, node.args(), program_.sizes, {.arch = program_.arch.arch});
  if (auto* reason = std::get_if<Reason>(&made)) return refuse(node, std::move(*reason));
  const auto& bound = std::get<ttrt::BoundCall>(made);
  if (record.emit == nullptr)
    return refuse(node, {ReasonCode::Unsupported, "its record has no spelling in TT-NN's Python"});
  PythonCall call(bound.call, bound.results(), program_.arch, scope_for(node, bound));
  if (record.multiplies) {
    const ir::Value* second = node.operand(1);
    const auto price =
        ttrt::price_call(bound.call, second != nullptr && ir::is_weight(second), program_.arch, program_.chooser);
    if (price.split.product) call.program = price.split.product->program;
  }
  if (Refusal reason = record.emit(call)) return refuse(node, std::move(*reason));
  if (!no_spelling_.empty()) return refuse(node, {ReasonCode::DynamicShape, no_spelling_});
  ++program_.device_calls;
  if (!call.named_results.empty()) {
    for (std::size_t i = 0; i < call.named_results.size(); ++i) name(node.result(i), call.named_results[i]);
    for (ttrt::PythonStatement& one : call.statements) scope.add(std::move(one.targets), std::move(one.call));
    return;
  }
  for (std::size_t i = 0; i < call.statements.size(); ++i) {
    ttrt::PythonStatement& one = call.statements[i];
    if (one.targets.empty()) one.targets = bind_results(node, true);
    scope.add(std::move(one.targets), std::move(one.call));
  }
}

}  // namespace ttc::emit
