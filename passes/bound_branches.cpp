// where(v < c, a, f(v)) with integers v reads f(v) from c on only, so f may be given max(v, c): a logarithm of small or
// negative numbers gives infinities, and what those become as integers no device can hold. T5's relative positions are
// put into buckets this way: where(p < n, p, n + int(log(p / n) * s)).
#include <algorithm>
#include <array>
#include <string_view>

#include "common.h"

namespace ttc::bound_branches_pass {
namespace {

constexpr std::string_view pass = "bound-branches";
constexpr int max_depth = 16;  // nodes between v and the branch

using ir::Node;
using ir::Value;

// Element by element, so that what it gives where v < c stays there.
bool is_elementwise(const Node& node) {
  static constexpr std::array<std::string_view, 15> names{
      "aten.add.Tensor",  "aten.sub.Tensor",      "aten.mul.Tensor",      "aten.div.Tensor",    "aten.neg.default",
      "aten.abs.default", "aten.minimum.default", "aten.maximum.default", "aten.clamp.default", "aten.to.dtype",
      "aten.log.default", "aten.log2.default",    "aten.log10.default",   "aten.floor.default", "aten.trunc.default"};
  return node.results().size() == 1 && std::find(names.begin(), names.end(), node.op()) != names.end();
}

// How many nodes read the elements; the others take sizes and dtype.
std::int64_t readers(const Value& x) {
  const auto& users = x.users();
  return std::count_if(users.begin(), users.end(), [](const Node* user) {
    return !user->op().ends_with("_like.default") && user->op() != "aten.sym_size.int";
  });
}

// The node that reads v where `x` is computed from it by such nodes alone, each of them used once and one of them a
// logarithm; nullptr where there is none.
Node* reader_of(Value* v, Value* x, bool logarithm, int depth) {
  Node* node = x->def();
  if (!node || depth == 0 || readers(*x) != 1 || !is_elementwise(*node)) return nullptr;
  logarithm = logarithm || node->op().starts_with("aten.log");
  for (std::size_t i = 0; i < node->args().size(); ++i) {
    Value* operand = node->operand(static_cast<int>(i));
    if (!operand || !operand->type.is_tensor()) continue;
    if (operand == v) return logarithm ? node : nullptr;
    if (Node* found = reader_of(v, operand, logarithm, depth - 1)) return found;
  }
  return nullptr;
}

void bound(PassContext& context, Node* node) {
  if (node->op() != "aten.where.self") return;
  const Value *mask = node->operand(0), *taken = node->operand(2);
  const Node* test = mask ? mask->def() : nullptr;
  if (!test || !taken || !test->op().starts_with("aten.lt.") || test->args().size() != 2) return;
  Value* v = test->operand(0);
  const auto least = test->arg(1).integer();
  if (!v || !least || !v->type.is_tensor() || !v->type.has_dtype || !is_integral(v->type.dtype)) return;
  Node* reader = reader_of(v, node->operand(2), false, max_depth);
  if (!reader) return;
  Rewriter r(context, pass, node);
  r.emit_before(reader);
  Value* bounded = r.emit_like("aten.clamp.default", {v, *least}, v);
  r.commit_edit("logarithm behind a bound", [&] {
    for (std::size_t i = 0; i < reader->args().size(); ++i)
      if (reader->arg(i).value() == v) reader->set_arg(i, bounded);
  });
}

void run(PassContext& context) {
  for_each_node(*context.model.graph, [&](Node* node) { bound(context, node); });
}

}  // namespace
}  // namespace ttc::bound_branches_pass

TTC_REGISTER_PASS({"bound-branches", "Give a branch of where only the numbers for which it is taken",
                   ttc::bound_branches_pass::run});
