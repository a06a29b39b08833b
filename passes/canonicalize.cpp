// One spelling for each thing, and nothing that computes nothing: drops copies, aliases, dropout, casts and views that
// change nothing, checks of what export already knew, and integers that are known; merges reshapes and permutations
// that follow each other; respells the rest as canonical_forms.cpp lists.
#include <algorithm>
#include <array>

#include "canonical_forms.h"
#include "effects.h"
#include "match/kinds.h"
#include "pass/rewriter.h"

namespace ttc::canonicalize_pass {
namespace {

constexpr std::string_view pass = "canonicalize";

using ir::Arg;
using ir::Node;
using ir::Value;

constexpr std::array<std::string_view, 8> checks{"aten._assert_tensor_metadata.default",
                                                 "aten._assert_scalar.default",
                                                 "aten.sym_constrain_range.default",
                                                 "aten.sym_constrain_range_for_size.default",
                                                 "aten._functional_assert_scalar.default",
                                                 "aten._functional_sym_constrain_range.default",
                                                 "aten._functional_sym_constrain_range_for_size.default",
                                                 "aten._functional_assert_async.msg"};

class Canonicalizer {
 public:
  explicit Canonicalizer(PassContext& context)
      : context_(context), keep_copies_(any_mutation(*context.model.graph) || reads_strides()) {}

  void run() {
    // Each change drops a node, merges two or reaches a canonical spelling; the bound only guards against a bug.
    for (int round = 0; round < 32 && graph(*context_.model.graph); ++round) continue;
  }

 private:
  // Operators whose result depends on how their operand lies in memory.
  bool reads_strides() const {
    bool found = false;
    ir::walk(*context_.model.graph, [&](Node* node) {
      found = found || node->op().starts_with("aten.as_strided") || node->op() == "aten.view.dtype";
    });
    return found;
  }

  bool graph(ir::Graph& g) {
    bool changed = false;
    g.for_each([&](Node* node) {
      for (const auto& region : node->regions()) changed = graph(*region) || changed;
      changed = rewrite(node) || changed;
    });
    return changed;
  }

  bool rewrite(Node* node) {
    if (std::find(checks.begin(), checks.end(), node->op()) != checks.end()) return drop_check(node);
    return known_integer(node) || identity(node) || cast_back(node) || copied(node) || without_empty(node) ||
           merge_reshapes(node) || merge_permutations(node) || without_ones(node) || respell(node);
  }

  bool drop_check(Node* node) {
    const bool used =
        std::any_of(node->results().begin(), node->results().end(), [](const auto& r) { return r->has_uses(); });
    // TorchScript was not exported: what it asserts, and what fold-scalars does, is checked nowhere else.
    const bool only_here = node->op() == "aten._assert_scalar.default" && context_.model.info.format == "torchscript";
    return !used && !only_here && rewriter(node).commit({}, {.rule = "checked when exported"});
  }

  bool known_integer(Node* node) {
    if (node->results().size() != 1 || !node->regions().empty()) return false;
    const Value* result = node->result();
    if (result->type.kind != ir::TypeKind::integer || !result->type.sym || !result->type.sym->is_number()) return false;
    if (has_effects(*node)) return false;
    const auto literal = [&] {
      replace_with_arg(node->result(), result->type.sym->number());
      node->graph()->erase(node);
    };
    return rewriter(node).commit_edit("integer known", literal, result->type.sym->str());
  }

  // Replaces the node's result by a value that equals it.
  bool forward(std::string rule, Node* node, Value* by) {
    return rewriter(node).commit({by}, {.rule = std::move(rule)});
  }

  bool identity(Node* node) {
    const bool repeat = node->op() == "aten.repeat.default" && node->operand(0) &&
                        match::same_shape(node->operand(0)->type, node->result()->type);
    if (!repeat && !match::is_identity(*node) && !identity_permutation(*node) && !neutral(*node)) return false;
    static constexpr std::array<std::string_view, 3> aliases{"aten.alias.default", "aten.detach.default",
                                                             "aten.slice.Tensor"};
    const bool alias = std::find(aliases.begin(), aliases.end(), node->op()) != aliases.end() ||
                       node->op().ends_with("dropout.default");
    if (keep_copies_ && !alias) return false;
    return forward("changes nothing", node, node->operand(0));
  }

  static bool identity_permutation(const Node& node) {
    const auto order = match::permutation(node);
    return order && std::is_sorted(order->begin(), order->end());
  }

  // x * 1, x / 1, and x + 0 and x - 0 of integers (for floats, -0 + 0 is +0), where dtype and shape stay.
  static bool neutral(const Node& node) {
    if (node.results().size() != 1 || node.args().size() < 2 || !node.operand(0)) return false;
    const ir::Type &from = node.operand(0)->type, &to = node.result()->type;
    const auto number = node.arg(1).number();
    if (!number || !match::same_shape(from, to) || !from.has_dtype || !to.has_dtype || from.dtype != to.dtype)
      return false;
    const std::string& op = node.op();
    if (op == "aten.mul.Tensor" || op == "aten.div.Tensor") return *number == 1;
    return (op == "aten.add.Tensor" || op == "aten.sub.Tensor") && *number == 0 && is_integral(from.dtype);
  }

  // x.to(wider).to(dtype of x): every value survives the way there and back.
  bool cast_back(Node* node) {
    if (keep_copies_ || !match::is_cast(*node) || !node->operand(0)->def() || !match::is_cast(*node->operand(0)->def()))
      return false;
    Value *wide = node->operand(0), *source = wide->def()->operand(0);
    const auto holds = [](DType from, DType to) {
      if (to == DType::f64) return from == DType::f32 || from == DType::f16 || from == DType::bf16;
      return to == DType::f32 && (from == DType::f16 || from == DType::bf16);
    };
    if (!source->type.has_dtype || !wide->type.has_dtype || source->type.dtype != node->result()->type.dtype)
      return false;
    return holds(source->type.dtype, wide->type.dtype) && forward("cast there and back", node, source);
  }

  // copy(self, src): src in the dtype and shape of self.
  bool copied(Node* node) {
    if (node->op() != "aten.copy.default" || keep_copies_ || !node->operand(0) || !node->operand(1)) return false;
    const ir::Type &to = node->result()->type, &from = node->operand(1)->type;
    if (!to.has_dtype || !from.has_dtype) return false;
    if (match::same_shape(to, from) && to.dtype == from.dtype)
      return forward("copy of all elements", node, node->operand(1));
    if (match::same_shape(to, from)) return spell(node, {"aten.to.dtype", {node->arg(1), to.dtype}});
    if (to.dtype == from.dtype && to.is_static())
      return spell(node, {"aten.expand.default", {node->arg(1), Arg::ints(to.static_sizes())}});
    return false;
  }

  // cat of tensors of which some are known to be empty: they add nothing, and an old rule lets them have any rank.
  bool without_empty(Node* node) {
    if (node->op() != "aten.cat.default" || keep_copies_ || !node->arg(0).list() || !node->result()->type.has_dtype)
      return false;
    const auto is_empty = [](const Arg& item) {
      const Value* value = item.value();
      if (!value || !value->type.has_shape) return false;
      const auto& sizes = value->type.sizes;
      return std::any_of(sizes.begin(), sizes.end(), [](const ir::SymExpr& size) { return size == ir::SymExpr(0); });
    };
    Arg::List left;
    bool typed = false;
    for (const Arg& item : *node->arg(0).list()) {
      if (is_empty(item)) continue;
      left.push_back(item);
      typed = typed ||
              (item.value() && item.value()->type.has_dtype && item.value()->type.dtype == node->result()->type.dtype);
    }
    if (left.empty() || !typed || left.size() == node->arg(0).list()->size()) return false;
    if (left.size() == 1) return forward("cat with nothing", node, left[0].value());
    return edit("cat with nothing", node, [&] { node->set_arg(0, std::move(left)); });
  }

  bool merge_reshapes(Node* node) {
    if (node->op() != "aten.reshape.default" || keep_copies_ || !node->operand(0)) return false;
    Node* inner = node->operand(0)->def();
    if (!inner || !match::is_reshape(*inner)) return false;
    return edit("reshape of a reshape", node, [&] { node->set_arg(0, inner->operand(0)); });
  }

  bool merge_permutations(Node* node) {
    const auto outer = match::permutation(*node);
    if (!outer || !node->operand(0)->def()) return false;
    Node* first = node->operand(0)->def();
    const auto inner = match::permutation(*first);
    if (!inner || inner->size() != outer->size()) return false;
    Arg::List order;
    for (const int dim : *outer) order.emplace_back(static_cast<std::int64_t>((*inner)[static_cast<std::size_t>(dim)]));
    return edit("permutation of a permutation", node, [&] {
      node->set_op("aten.permute.default");
      node->set_args({first->operand(0), std::move(order)});
    });
  }

  // view(permute(unsqueeze(x))) -> view(permute(x)): einsum gives its operands dims of size 1 and takes them off again.
  // From rank 5 on, so that batches, heads and steps of size 1 keep their places.
  bool without_ones(Node* node) {
    if (node->op() != "aten.reshape.default" || keep_copies_ || !node->operand(0)->def()) return false;
    Node* move = node->operand(0)->def();
    const auto order = match::permutation(*move);
    if (!order || order->size() < 5 || move->result()->use_count() != 1 || !move->operand(0)->def()) return false;
    Node* wide = move->operand(0)->def();
    ir::Type type = wide->result()->type;
    const Arg::List* sizes = wide->op() == "aten.reshape.default" ? wide->arg(1).list() : nullptr;
    const bool fits =
        type.has_shape && type.sizes.size() == order->size() && (!sizes || sizes->size() == order->size());
    std::optional<int> one;
    if (fits && wide->op() == "aten.unsqueeze.default") one = match::dim_argument(&wide->arg(1), type.rank());
    for (std::size_t i = order->size() - 1; fits && sizes && !one && i > 0; --i)
      if ((*sizes)[i].integer() == 1) one = static_cast<int>(i);
    if (!one) return false;
    Rewriter r = rewriter(node);
    const auto insert = [&](std::string op, std::vector<Arg> args, const Node* origin, ir::Type of) {
      Node* made = r.insert(std::move(op), std::move(args));
      made->provenance = origin->provenance;
      return made->add_result(std::move(of));
    };
    type.sizes.erase(type.sizes.begin() + *one);
    type.strides.clear();
    Value* base = wide->operand(0);
    if (sizes) {
      Arg::List fewer = *sizes;
      fewer.erase(fewer.begin() + *one);
      base = insert("aten.reshape.default", {base, std::move(fewer)}, wide, type);
    }
    Arg::List rest;
    bool moves = false;
    for (const int dim : *order) {
      if (dim == *one) continue;
      const int at = dim - (dim > *one ? 1 : 0);
      moves = moves || at != static_cast<int>(rest.size());
      rest.emplace_back(static_cast<std::int64_t>(at));
    }
    if (moves) {
      ir::Type turned = type;
      for (std::size_t i = 0; i < rest.size(); ++i)
        turned.sizes[i] = type.sizes[static_cast<std::size_t>(*rest[i].integer())];
      base = insert("aten.permute.default", {base, std::move(rest)}, move, std::move(turned));
    }
    return r.commit_edit("dim of size 1 moved", [&] { node->set_args({base, node->arg(1)}); }, node->result()->name);
  }

  bool respell(Node* node) {
    auto spelling = canonical_spelling(*node, keep_copies_);
    return spelling && spell(node, std::move(*spelling));
  }

  bool spell(Node* node, Spelling spelling) {
    return ir::find_schema(spelling.op) && edit("spelled " + spelling.op, node, [&] {
             node->set_op(std::move(spelling.op));
             node->set_args(std::move(spelling.args));
             node->arg_names.clear();
           });
  }

  Rewriter rewriter(Node* node) { return Rewriter(context_, pass, node); }
  bool edit(std::string rule, Node* node, const std::function<void()>& change) {
    return rewriter(node).commit_edit(std::move(rule), change, node->result()->name);
  }

  PassContext& context_;
  // Dropping a copy would let a later write, or a view by strides, see other memory.
  const bool keep_copies_;
};

void run(PassContext& context) { Canonicalizer(context).run(); }

}  // namespace
}  // namespace ttc::canonicalize_pass

TTC_REGISTER_PASS({"canonicalize", "Drop what computes nothing and spell each operator one way",
                   ttc::canonicalize_pass::run});
