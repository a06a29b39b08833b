// See pt2_wrappers.h. Argument layouts are those of torch/_higher_order_ops; what autocast casts is that of PyTorch's
// documentation ("Autocast Op Reference").
#include "formats/pt2_wrappers.h"

#include <algorithm>
#include <array>

#include "formats/pt2_names.h"
#include "support/error.h"
#include "support/json_util.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Graph;
using ir::Node;
using ir::Type;
using ir::Value;

// Every use of `value`, which may become a literal.
Arg replaced(const Arg& in, const Value* value, const Arg& by) {
  if (in.value() == value) return by;
  if (!in.list()) return in;
  Arg::List out;
  for (const Arg& item : *in.list()) out.push_back(replaced(item, value, by));
  return out;
}
void replace_uses(Value* value, const Arg& by) {
  if (Value* other = by.value()) return value->replace_all_uses_with(other);
  const std::vector<Node*> users = value->users();
  for (Node* user : users) {
    std::vector<Arg> args;
    for (const Arg& arg : user->args()) args.push_back(replaced(arg, value, by));
    user->set_args(std::move(args));
  }
  Graph& graph = *value->graph();
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    graph.set_output(i, replaced(graph.outputs()[i].arg, value, by));
}

struct Given {
  std::vector<Arg> args;
  std::vector<std::string> names;  // "" where positional
};

// The node's arguments from `from` on.
Given given_from(const Node& node, std::size_t from) {
  Given out;
  for (std::size_t i = from; i < node.args().size(); ++i) {
    out.args.push_back(node.arg(i));
    out.names.push_back(i < node.arg_names.size() ? node.arg_names[i] : "");
  }
  return out;
}

// In the order of the schema, with its defaults; as they are where nobody knows the operator.
Given in_order(const std::string& op, Given given) {
  const ir::OpSchema* schema = ir::find_schema(op);
  if (!schema || schema->varargs) return given;
  std::vector<std::optional<Arg>> slots(schema->args.size());
  for (std::size_t i = 0; i < given.args.size(); ++i) {
    const int at = given.names[i].empty() ? static_cast<int>(i) : schema->index_of(given.names[i]);
    if (at < 0 || static_cast<std::size_t>(at) >= slots.size())
      throw bad_file("", "an argument is not in the schema of " + op);
    slots[static_cast<std::size_t>(at)] = std::move(given.args[i]);
  }
  Given out;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i] && !schema->args[i].default_value)
      throw bad_file("", op + ": argument '" + schema->args[i].name + "' is missing");
    out.args.push_back(slots[i] ? std::move(*slots[i]) : *schema->args[i].default_value);
  }
  return out;
}

Node* insert(Node* before, std::string op, Given given) {
  given = in_order(op, std::move(given));
  Node* made = before->graph()->insert_before(before, std::move(op), std::move(given.args));
  if (std::any_of(given.names.begin(), given.names.end(), [](const auto& name) { return !name.empty(); }))
    made->arg_names = std::move(given.names);
  made->provenance = before->provenance;
  made->place = before->place;
  made->origins = before->origins;
  return made;
}

// The operator that argument i names, "torch.ops.aten.mm.default", as the IR spells it.
std::string operator_at(const Node& node, std::size_t i) {
  const std::string* target = i < node.args().size() ? node.arg(i).get_if<std::string>() : nullptr;
  if (!target) throw bad_file("", node.op() + ": argument " + std::to_string(i) + " names no operator");
  return op_from_target(*target);
}

// with_effects(token, op, ...) -> (token, results of op...)
void write_out_effects(Node* node) {
  if (node->args().empty() || !node->operand(0) || node->results().empty())
    throw bad_file("", "with_effects without a token");
  Node* made = insert(node, operator_at(*node, 1), given_from(*node, 2));
  node->result(0)->replace_all_uses_with(node->operand(0));
  for (std::size_t i = 1; i < node->results().size(); ++i) {
    Value* old = node->result(i);
    // What an operator without results gives is None in the wrapper's tuple.
    if (old->type.kind == ir::TypeKind::none)
      replace_uses(old, Arg());
    else
      made->take_result(*old);
  }
  node->graph()->erase(node);
}

// The operands of a wrapper's only graph; nullopt where the operator is no such wrapper.
std::optional<std::vector<Arg>> wrapped_operands(const Node& node) {
  static constexpr std::array<std::string_view, 5> plain = {
      "higher_order.wrap", "higher_order.tag_activation_checkpoint", "higher_order.wrap_activation_checkpoint",
      "higher_order.invoke_subgraph", "higher_order.strict_mode"};
  const bool hints = node.op() == "higher_order.hints_wrapper";
  if ((!hints && std::find(plain.begin(), plain.end(), node.op()) == plain.end()) || node.regions().size() != 1 ||
      node.args().empty() || !node.arg(0).get_if<ir::RegionArg>())
    return std::nullopt;
  if (hints || node.op() == "higher_order.strict_mode") {  // (graph, [operands], ...)
    if (node.args().size() < 2 || !node.arg(1).list()) return std::nullopt;
    return *node.arg(1).list();
  }
  // Settings are passed by keyword; invoke_subgraph has a name for the graph first.
  const std::size_t first = node.op() == "higher_order.invoke_subgraph" ? 2 : 1;
  std::vector<Arg> out;
  for (std::size_t i = first; i < node.args().size(); ++i)
    if (i >= node.arg_names.size() || node.arg_names[i].empty()) out.push_back(node.arg(i));
  return out;
}

bool write_out_wrapper(Node* node) {
  const auto operands = wrapped_operands(*node);
  if (!operands) return false;
  const Graph& region = *node->regions()[0];
  if (region.inputs().size() != operands->size() || region.outputs().size() != node->results().size()) return false;
  const std::vector<Arg> outputs = ir::inline_region(region, *operands, node);
  for (std::size_t i = 0; i < outputs.size(); ++i) replace_uses(node->result(i), outputs[i]);
  node->graph()->erase(node);
  return true;
}

Value* cast(Node* before, Value* value, DType dtype) {
  Node* made = insert(before, "aten.to.dtype", {{value, dtype, false, false, Arg()}, std::vector<std::string>(5)});
  Type type = value->type;
  type.dtype = dtype;
  return made->add_result(std::move(type), before->graph()->unique_name(value->name + "_cast"));
}

// Rank of a dtype in type promotion among tensors of rank 1 and more.
int promotion_rank(DType dtype) {
  static constexpr std::array order{DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                                    DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};
  return static_cast<int>(std::find(order.begin(), order.end(), dtype) - order.begin());
}
DType promoted(DType a, DType b) {
  const auto pair = [&](DType x, DType y) { return (a == x && b == y) || (a == y && b == x); };
  if (pair(DType::u8, DType::i8)) return DType::i16;
  if (pair(DType::f16, DType::bf16)) return DType::f32;
  return promotion_rank(a) > promotion_rank(b) ? a : b;
}

// out_dtype(op, dtype, ...): operands and result dtype promoted together, then the operator, then the cast.
void write_out_dtype(Node* node) {
  const DType* dtype = node->args().size() > 1 ? node->arg(1).get_if<DType>() : nullptr;
  if (!dtype || node->results().size() != 1) throw bad_file("", "out_dtype without a dtype");
  DType common = *dtype;
  for (const Value* value : node->operands())
    if (value->type.is_tensor() && value->type.has_dtype) common = promoted(common, value->type.dtype);
  Given given = given_from(*node, 2);
  for (Arg& arg : given.args)
    if (Value* value = arg.value(); value && value->type.is_tensor() && value->type.dtype != common)
      arg = cast(node, value, common);
  Node* made = insert(node, operator_at(*node, 0), std::move(given));
  Type type = node->result()->type;
  type.dtype = common;
  Value* result = made->add_result(type, node->graph()->unique_name(node->result()->name));
  node->result()->replace_all_uses_with(common == *dtype ? result : cast(node, result, *dtype));
  node->graph()->erase(node);
}

// Operators that autocast computes in its dtype.
bool runs_in_lower_precision(std::string_view op) {
  static constexpr std::array<std::string_view, 29> names = {"conv1d",
                                                             "conv2d",
                                                             "conv3d",
                                                             "convolution",
                                                             "_convolution",
                                                             "conv_transpose1d",
                                                             "conv_transpose2d",
                                                             "conv_tbc",
                                                             "bmm",
                                                             "conv_transpose3d",
                                                             "mm",
                                                             "mv",
                                                             "addmm",
                                                             "addmv",
                                                             "addr",
                                                             "addbmm",
                                                             "baddbmm",
                                                             "linear",
                                                             "matmul",
                                                             "linalg_vecdot",
                                                             "chain_matmul",
                                                             "linalg_multi_dot",
                                                             "prelu",
                                                             "_thnn_fused_lstm_cell",
                                                             "_thnn_fused_gru_cell",
                                                             "lstm_cell",
                                                             "gru_cell",
                                                             "_addmm_activation",
                                                             "scaled_dot_product_attention"};
  if (!op.starts_with("aten.")) return false;
  op.remove_prefix(5);
  return std::find(names.begin(), names.end(), op.substr(0, op.find('.'))) != names.end();
}

bool keeps_operand_dtypes(const Node& node) {
  static constexpr std::array<std::string_view, 6> casts = {"aten.to.",      "aten._to_copy.", "aten.view.dtype",
                                                            "aten.type_as.", "aten.copy",      "aten._assert"};
  return node.op().starts_with("higher_order.") ||
         std::any_of(casts.begin(), casts.end(), [&](std::string_view name) { return node.op().starts_with(name); });
}

// Tensors of the argument whose dtype `wants` names become tensors of `dtype`.
template <typename F>
bool cast_tensors(Node* node, Arg& arg, DType dtype, const F& wants) {
  if (Arg::List* items = arg.list()) {
    bool changed = false;
    for (Arg& item : *items) changed = cast_tensors(node, item, dtype, wants) || changed;
    return changed;
  }
  Value* value = arg.value();
  if (!value || !value->type.is_tensor() || !value->type.has_dtype || value->type.dtype == dtype ||
      !wants(value->type.dtype))
    return false;
  arg = cast(node, value, dtype);
  return true;
}

// The dtypes that export recorded tell which operators autocast touched: those of the list give its dtype; those that
// it computes in float32, and those that take the widest of their operands' dtypes, give float32.
void write_out_casts(Graph& graph, DType lower) {
  graph.for_each([&](Node* node) {
    for (const auto& region : node->regions()) write_out_casts(*region, lower);
    if (node->results().empty() || keeps_operand_dtypes(*node)) return;
    const Type& type = node->result()->type;
    if (!type.is_tensor() || !type.has_dtype) return;
    const bool down = type.dtype == lower && runs_in_lower_precision(node->op());
    if (!down && type.dtype != DType::f32) return;
    std::vector<Arg> args = node->args();
    bool changed = false;
    for (Arg& arg : args)
      changed = cast_tensors(node, arg, type.dtype,
                             [&](DType from) {
                               return down ? is_floating(from) && from != DType::f64
                                           : from == DType::f16 || from == DType::bf16;
                             }) ||
                changed;
    if (changed) node->set_args(std::move(args));
  });
}

// wrap_with_autocast(device type, dtype, enabled, cache enabled, graph, ...)
void write_out_autocast(Node* node) {
  if (node->args().size() < 5 || node->regions().size() != 1 || node->arg(2).boolean() == false) return;
  const DType* dtype = node->arg(1).get_if<DType>();
  write_out_casts(*node->regions()[0], dtype ? *dtype : DType::bf16);
  node->set_arg(2, false);
}

void visit(Graph& graph) {
  for (bool again = true; again;) {  // what is put in place may hold wrappers itself
    again = false;
    graph.for_each([&](Node* node) {
      try {
        for (const auto& region : node->regions()) visit(*region);
        if (node->op() == "higher_order.with_effects")
          write_out_effects(node);
        else if (node->op() == "higher_order.out_dtype")
          write_out_dtype(node);
        else if (node->op() == "higher_order.wrap_with_autocast")
          write_out_autocast(node);
        else
          again = write_out_wrapper(node) || again;
      } catch (const Error& error) {
        throw add_context(error, "node of " + graph.name);
      }
    });
  }
}

void drop_tokens(Graph& graph) {
  for (std::size_t i = graph.outputs().size(); i-- > 0;)
    if (graph.outputs()[i].kind == ir::OutputKind::token) graph.remove_output(i);
  for (std::size_t i = graph.inputs().size(); i-- > 0;)
    if (graph.inputs()[i].kind == ir::InputKind::token && !graph.inputs()[i].value->has_uses()) graph.remove_input(i);
}

}  // namespace

void write_out_wrappers(ir::Model& model) {
  visit(*model.graph);
  drop_tokens(*model.graph);
}

}  // namespace ttc
