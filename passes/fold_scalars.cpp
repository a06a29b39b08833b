// Numbers, strings and lists of them that the model computes from literals, from the ranks, dtypes and sizes of
// tensors, or from numbers it is compiled for become literals; then branches and short loops that these decide are put
// in place. TorchScript checks its inputs with branches that raise: where the shapes do not decide such a branch, it
// becomes one assertion. An input number the model is compiled for gets an assertion too.
#include <algorithm>
#include <array>
#include <map>

#include "torch/cpu_op.h"
#include "effects.h"
#include "inline_wraps.h"
#include "pass/rewriter.h"
#include "torch/scalar_ops.h"
#include "support/error.h"

namespace ttc::fold_scalars_pass {
namespace {

constexpr std::string_view pass = "fold-scalars";
constexpr std::int64_t max_trips = 64;
constexpr std::size_t max_unrolled = 4096;  // nodes
constexpr std::size_t max_list = 64;        // elements of a list that becomes a literal

using ir::Arg;
using ir::Graph;
using ir::Node;
using ir::Type;
using ir::TypeKind;
using ir::Value;
using ttrt::RtValue;

bool is_plain(const Type& type) {
  switch (type.kind) {
    case TypeKind::integer:
    case TypeKind::floating:
    case TypeKind::boolean:
    case TypeKind::string:
    case TypeKind::none:
      return true;
    case TypeKind::list:
      return !type.elements.empty() && is_plain(type.elements[0]);
    default:
      return false;
  }
}

std::optional<RtValue> to_runtime(const Arg& arg) {
  if (arg.is_none()) return RtValue();
  if (const auto* n = arg.get_if<std::int64_t>()) return RtValue(*n);
  if (const auto* x = arg.get_if<double>()) return RtValue(*x);
  if (const auto* b = arg.get_if<bool>()) return RtValue(*b);
  if (const auto* s = arg.get_if<std::string>()) return RtValue(*s);
  const Arg::List* items = arg.list();
  if (items == nullptr) return std::nullopt;
  RtValue::List out;
  for (const Arg& item : *items) {
    auto one = to_runtime(item);
    if (!one) return std::nullopt;
    out.push_back(std::move(*one));
  }
  return RtValue(std::move(out));
}

std::optional<Arg> to_arg(const RtValue& value) {
  if (value.is_none()) return Arg();
  if (const auto* n = value.get_if<std::int64_t>()) return Arg(*n);
  if (const auto* x = value.get_if<double>()) return Arg(*x);
  if (const auto* b = value.get_if<bool>()) return Arg(*b);
  if (const auto* s = value.get_if<std::string>()) return Arg(*s);
  const auto* items = value.get_if<RtValue::List>();
  if (items == nullptr || items->size() > max_list) return std::nullopt;
  Arg::List out;
  for (const RtValue& item : *items) {
    auto one = to_arg(item);
    if (!one) return std::nullopt;
    out.push_back(std::move(*one));
  }
  return Arg(std::move(out));
}

// What rank, dtype and sizes of the operand give.
std::optional<Arg> from_metadata(const Node& node) {
  const Value* tensor = node.operand(0);
  if (tensor == nullptr || !tensor->type.is_tensor()) return std::nullopt;
  const Type& type = tensor->type;
  const std::string& op = node.op();
  if (type.has_dtype && op == "prim.dtype") return Arg(std::int64_t{c10_code(type.dtype)});
  if (type.has_dtype && op == "aten.is_floating_point.default") return Arg(is_floating(type.dtype));
  if (!type.has_shape) return std::nullopt;
  if (op == "aten.dim.default") return Arg(std::int64_t{type.rank()});
  if (op == "aten.sym_size.int" || op == "aten.size.int" || op == "aten.len.Tensor") {
    const auto dim = op == "aten.len.Tensor" ? std::optional<std::int64_t>(0) : node.arg(1).integer();
    const auto size = dim ? type.dim(static_cast<int>(*dim)) : std::nullopt;
    return size ? std::optional(Arg(*size)) : std::nullopt;
  }
  if (!type.is_static()) return std::nullopt;
  if (op == "aten.size.default") return Arg::ints(type.static_sizes());
  if (op == "aten.numel.default" || op == "aten.sym_numel.default") {
    std::int64_t n = 1;
    for (const std::int64_t size : type.static_sizes())
      if (__builtin_mul_overflow(n, size, &n)) return std::nullopt;
    return Arg(n);
  }
  return std::nullopt;
}

// Whether the operator's results are tensors, and so not None: what it takes from a list or dict may be.
bool makes_tensors(const Node& node) {
  const ir::OpSchema* schema = node.schema();
  return schema != nullptr && node.op().starts_with("aten.") &&
         std::ranges::all_of(schema->returns,
                             [](const auto& type) { return type.starts_with("Tensor") && !type.ends_with("?"); });
}

// x is None, for an x that an operator made.
std::optional<Arg> from_none(const Node& node) {
  const bool is = node.op() == "aten.__is__.default", is_not = node.op() == "aten.__isnot__.default";
  if ((!is && !is_not) || node.args().size() != 2 || !node.arg(1).is_none()) return std::nullopt;
  if (node.arg(0).is_none()) return Arg(is);
  const Value* value = node.operand(0);
  if (value == nullptr) return node.arg(0).has_values() ? std::nullopt : std::optional(Arg(is_not));
  const bool made = value->def() != nullptr && makes_tensors(*value->def()) && value->type.is_tensor();
  return made ? std::optional(Arg(is_not)) : std::nullopt;
}

// a is b: nn.MultiheadAttention asks which of its operands are one tensor. Different inputs of the model are not, nor
// is what these operators make.
std::optional<Arg> from_identity(const Node& node) {
  static constexpr std::array<std::string_view, 7> makes_new{
      "aten.transpose.int", "aten.permute.default", "aten.layer_norm.default", "aten.linear.default",
      "aten.add.Tensor",    "aten.mul.Tensor",      "aten.embedding.default"};
  const bool is = node.op() == "aten.__is__.default", is_not = node.op() == "aten.__isnot__.default";
  const Value *a = node.operand(0), *b = node.operand(1);
  if ((!is && !is_not) || !a || !b || !a->type.is_tensor() || !b->type.is_tensor()) return std::nullopt;
  if (a == b) return Arg(is);
  const auto is_new = [](const Value* value) {
    if (value->def()) return std::find(makes_new.begin(), makes_new.end(), value->def()->op()) != makes_new.end();
    // An input of unknown shape may be none.
    return value->graph()->parent() == nullptr && !ir::is_weight(value) && value->type.has_shape;
  };
  return is_new(a) && is_new(b) ? std::optional(Arg(is_not)) : std::nullopt;
}

// What appending gives to a list that is written out; its items may be values.
std::optional<Arg> from_append(const Node& node) {
  const Arg::List* items = node.op() == "aten.append.t" && node.args().size() == 2 ? node.arg(0).list() : nullptr;
  if (items == nullptr || items->size() >= max_list) return std::nullopt;
  Arg::List out = *items;
  out.push_back(node.arg(1));
  return Arg(std::move(out));
}

std::optional<Arg> from_literals(const Node& node) {
  if (node.op().starts_with("prim.") || node.op() == "_operator.getitem") return std::nullopt;
  std::vector<RtValue> args, results;
  for (const Arg& arg : node.args()) {
    auto value = to_runtime(arg);
    if (!value) return std::nullopt;
    args.push_back(std::move(*value));
  }
  try {
    if (const auto scalar = ttrt::find_scalar_op(node.op()))
      scalar(args, results);
    else if (const ttrt::CpuOp* op = ttrt::CpuOp::find(node.op()))
      op->call(args, results);
  } catch (const Error&) {
    return std::nullopt;  // it fails where it runs
  }
  return results.size() == 1 ? to_arg(results[0]) : std::nullopt;
}

// ---- symbolic comparisons -----------------------------------------------------------------------------------------

struct Bounds {
  std::optional<std::int64_t> low, high;
};

std::optional<std::int64_t> plus(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  std::int64_t out = 0;
  return a && b && !__builtin_add_overflow(*a, *b, &out) ? std::optional(out) : std::nullopt;
}

// Of sums and products with numbers; unbounded where anything else occurs.
Bounds bounds_of(const ir::SymExpr& expression, const ir::SymRanges& ranges) {
  if (expression.is_number()) return {expression.number(), expression.number()};
  if (expression.is_symbol()) {
    const auto found = ranges.find(expression.name());
    return found == ranges.end() ? Bounds{} : Bounds{found->second.min, found->second.max};
  }
  const auto& operands = expression.operands();
  if (expression.name() == "add") {
    Bounds sum{0, 0};
    for (const auto& operand : operands) {
      const Bounds one = bounds_of(operand, ranges);
      sum = {plus(sum.low, one.low), plus(sum.high, one.high)};
    }
    return sum;
  }
  if (expression.name() != "mul" || operands.size() != 2) return {};
  const bool first = operands[0].is_number();
  if (!first && !operands[1].is_number()) return {};
  const std::int64_t factor = operands[first ? 0 : 1].number();
  Bounds one = bounds_of(operands[first ? 1 : 0], ranges);
  const auto times = [&](std::optional<std::int64_t> n) {
    std::int64_t out = 0;
    return n && !__builtin_mul_overflow(*n, factor, &out) ? std::optional(out) : std::nullopt;
  };
  one = {times(one.low), times(one.high)};
  if (factor < 0) std::swap(one.low, one.high);
  return one;
}

std::optional<ir::SymExpr> symbolic(const Arg& arg) {
  if (const auto n = arg.integer(); n && arg.get_if<bool>() == nullptr) return ir::SymExpr(*n);
  const Value* value = arg.value();
  return value != nullptr ? value->type.sym : std::nullopt;
}

// The sizes that aten.size gives, or a list of integers.
std::optional<std::vector<ir::SymExpr>> symbolic_list(const Arg& arg) {
  if (const Value* value = arg.value()) {
    const Node* def = value->def();
    const Value* tensor = def != nullptr && def->op() == "aten.size.default" ? def->operand(0) : nullptr;
    return tensor != nullptr && tensor->type.has_shape ? std::optional(tensor->type.sizes) : std::nullopt;
  }
  const Arg::List* items = arg.list();
  if (items == nullptr) return std::nullopt;
  std::vector<ir::SymExpr> out;
  for (const Arg& item : *items) {
    const auto one = symbolic(item);
    if (!one) return std::nullopt;
    out.push_back(*one);
  }
  return out;
}

// Lists of sizes that are equal, or differ in a number or in length.
std::optional<Arg> from_lists(const Node& node) {
  const bool equal = node.op() == "aten.eq.int_list", differ = node.op() == "aten.ne.int_list";
  if ((!equal && !differ) || node.args().size() != 2) return std::nullopt;
  const auto a = symbolic_list(node.arg(0)), b = symbolic_list(node.arg(1));
  if (!a || !b) return std::nullopt;
  if (*a == *b) return Arg(equal);
  bool different = a->size() != b->size();
  for (std::size_t i = 0; i < a->size() && !different; ++i)
    different = (*a)[i].is_number() && (*b)[i].is_number() && !((*a)[i] == (*b)[i]);
  return different ? std::optional(Arg(differ)) : std::nullopt;
}

std::optional<Arg> from_ranges(const Node& node, const ir::SymRanges& ranges) {
  static const std::map<std::string_view, int> comparisons = {{"_operator.eq", 0}, {"_operator.ne", 1},
                                                              {"_operator.lt", 2}, {"_operator.le", 3},
                                                              {"_operator.gt", 4}, {"_operator.ge", 5}};
  const auto kind = comparisons.find(node.op());
  if (kind == comparisons.end() || node.args().size() != 2) return std::nullopt;
  const auto a = symbolic(node.arg(0)), b = symbolic(node.arg(1));
  if (!a || !b) return std::nullopt;
  const Bounds difference = bounds_of(*a + ir::SymExpr(-1) * *b, ranges);
  const auto below = [&](std::int64_t n) { return difference.high && *difference.high < n; };
  const auto above = [&](std::int64_t n) { return difference.low && *difference.low > n; };
  const bool equal = difference.low == 0 && difference.high == 0;
  switch (kind->second) {
    case 0:
    case 1:
      if (equal) return Arg(kind->second == 0);
      return below(0) || above(0) ? std::optional(Arg(kind->second == 1)) : std::nullopt;
    case 2:
      return below(0) ? std::optional(Arg(true)) : above(-1) ? std::optional(Arg(false)) : std::nullopt;
    case 3:
      return below(1) ? std::optional(Arg(true)) : above(0) ? std::optional(Arg(false)) : std::nullopt;
    case 4:
      return above(0) ? std::optional(Arg(true)) : below(1) ? std::optional(Arg(false)) : std::nullopt;
    default:
      return above(-1) ? std::optional(Arg(true)) : below(0) ? std::optional(Arg(false)) : std::nullopt;
  }
}

// ---- the pass -----------------------------------------------------------------------------------------------------

class Folder {
 public:
  explicit Folder(PassContext& context) : context_(context) {}

  void run() {
    specialise_inputs();
    bool again = true;
    // Each round folds at least one node; the bound only guards against a bug.
    for (int round = 0; round < 1000 && again; ++round) {
      again = graph(*context_.model.graph);
      again = inline_regions(context_, *context_.model.graph) || again;
    }
  }

 private:
  void specialise_inputs() {
    Graph& main = *context_.model.graph;
    if (main.nodes().empty()) return;
    for (const ir::GraphInput& input : main.inputs()) {
      Value* value = input.value.get();
      if (input.kind != ir::InputKind::user || input.literal || value->type.kind != TypeKind::integer ||
          !value->type.sym || !value->type.sym->is_number() || value->users().empty())
        continue;
      const std::int64_t number = value->type.sym->number();
      const auto literal = [&] {
        replace_with_arg(value, number);
        value->type.sym.reset();
        Node* equal = main.insert_before(main.nodes().front().get(), "_operator.eq", {value, number});
        Value* holds = equal->add_result(Type::of(TypeKind::boolean), main.unique_name(value->name + "_fits"));
        main.insert_after(equal, "aten._assert_scalar.default",
                          {holds, "the model was compiled for " + value->name + " = " + std::to_string(number)});
      };
      Rewriter(context_, pass, nullptr)
          .commit_edit("compiled for " + std::to_string(number), literal, "", {value->name});
    }
  }

  bool graph(Graph& g) {
    bool changed = false;
    g.for_each([&](Node* node) {
      for (const auto& region : node->regions()) changed = graph(*region) || changed;
      if (node->op() == "prim.loop")
        changed = unroll(node) || changed;
      else if (node->op() == "prim.if")
        changed = merge_results(node) || assert_instead(node) || changed;
      else if (node->regions().empty())
        changed = fold(node) || changed;
    });
    return changed;
  }

  bool fold(Node* node) {
    if (node->results().size() != 1 || !node->result()->has_uses()) return false;
    // The list that append is given is nobody's but its own: a literal.
    auto folded = from_append(*node);
    if (!folded && (!is_plain(node->result()->type) || mutates(*node))) return false;
    if (!folded) folded = from_metadata(*node);
    if (!folded) folded = from_none(*node);
    if (!folded) folded = from_identity(*node);
    if (!folded) folded = from_literals(*node);
    if (!folded) folded = from_lists(*node);
    if (!folded) folded = from_ranges(*node, context_.model.ranges);
    if (!folded && node->result()->type.sym && node->result()->type.sym->is_number() && !has_effects(*node))
      folded = Arg(node->result()->type.sym->number());
    return folded && edit(node, [&] {
             replace(node->result(), *folded);
             if (mutates(*node)) node->graph()->erase(node);  // an append, which nobody else would take for useless
           });
  }

  // A dtype is an integer in TorchScript, and a literal of its own as an operator's argument.
  static void replace(Value* value, const Arg& by) {
    const auto code = by.integer();
    const std::vector<Node*> users = value->users();
    for (Node* user : users) {
      if (!code || user->schema() == nullptr) continue;
      for (std::size_t i = 0; i < user->args().size() && i < user->schema()->args.size(); ++i)
        if (user->arg(i).value() == value && user->schema()->args[i].type.starts_with("ScalarType"))
          if (const auto dtype = dtype_from_c10(static_cast<int>(*code))) user->set_arg(i, *dtype);
    }
    replace_with_arg(value, by);
  }

  // What both branches return.
  bool merge_results(Node* node) {
    if (node->regions().size() != 2) return false;
    bool changed = false;
    for (std::size_t i = 0; i < node->results().size(); ++i) {
      const Graph &yes = *node->regions()[0], &no = *node->regions()[1];
      if (i >= yes.outputs().size() || i >= no.outputs().size() || !node->result(i)->has_uses()) continue;
      const Arg a = yes.outputs()[i].arg, b = no.outputs()[i].arg;
      const bool outer = a.value() != nullptr && a.value()->graph() != node->regions()[0].get();
      if (!(a == b) || (a.has_values() && !outer)) continue;
      changed = edit(node, [&] { replace_with_arg(node->result(i), a); }) || changed;
    }
    return changed;
  }

  static const Node* raised(const Graph& branch) {
    const Node* last = branch.nodes().empty() ? nullptr : branch.nodes().back().get();
    return last != nullptr && last->op() == "prim.RaiseException" ? last : nullptr;
  }

  // if c: raise -> assert not c; the other branch.
  bool assert_instead(Node* node) {
    if (node->regions().size() != 2 || node->operand(0) == nullptr) return false;
    const bool first = raised(*node->regions()[0]) != nullptr, second = raised(*node->regions()[1]) != nullptr;
    if (first == second) return false;
    const Node* raise = raised(*node->regions()[first ? 0 : 1]);
    const auto* text = raise->args().empty() ? nullptr : raise->arg(0).get_if<std::string>();
    Value* holds = node->operand(0);
    if (holds->type.kind != TypeKind::boolean) return false;
    Rewriter r(context_, pass, node);
    if (first) holds = r.insert("torch.sym_not", {holds})->add_result(Type::of(TypeKind::boolean), "holds");
    r.insert("aten._assert_scalar.default",
             {holds, text != nullptr ? *text : "a check of the model failed at " + node->provenance->source});
    return r.commit_edit(node->op(), [&] { node->set_arg(0, !first); });
  }

  bool unroll(Node* node) {
    if (node->regions().size() != 1 || node->args().size() < 2) return false;
    const Graph& body = *node->regions()[0];
    const auto trips = node->arg(0).integer();
    const bool plain = !body.outputs().empty() && body.outputs()[0].arg.boolean() == true &&
                       body.inputs().size() + 1 == node->args().size() &&
                       body.outputs().size() + 1 == node->args().size();
    if (!trips || node->arg(1).boolean() != true || !plain || *trips > max_trips) return false;
    if (static_cast<std::size_t>(std::max<std::int64_t>(*trips, 0)) * count_nodes(body) > max_unrolled) return false;
    return edit(node, [&] { unroll(node, body, *trips); });
  }

  static void unroll(Node* node, const Graph& body, std::int64_t trips) {
    std::vector<Arg> carried(node->args().begin() + 2, node->args().end());
    for (std::int64_t i = 0; i < trips; ++i) {
      std::vector<Arg> args{Arg(i)};
      args.insert(args.end(), carried.begin(), carried.end());
      const std::vector<Arg> outputs = ir::inline_region(body, args, node);
      carried.assign(outputs.begin() + 1, outputs.end());
    }
    for (std::size_t i = 0; i < node->results().size() && i < carried.size(); ++i)
      replace_with_arg(node->result(i), carried[i]);
    node->graph()->erase(node);
  }

  bool edit(Node* node, const std::function<void()>& change) {
    return Rewriter(context_, pass, node).commit_edit(node->op(), change);
  }

  PassContext& context_;
};

void run(PassContext& context) { Folder(context).run(); }

}  // namespace
}  // namespace ttc::fold_scalars_pass

TTC_REGISTER_PASS(
    {"fold-scalars",
     "Compute numbers that literals and shapes decide, and put the branches and short loops they choose in place",
     ttc::fold_scalars_pass::run});
