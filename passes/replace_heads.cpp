// The movements around attention become one operator each: view and transpose of [B, S, H * D] to [B, H, S, D]
// become tt.split_heads, the way back tt.concat_heads.
#include "match/kinds.h"
#include "replace.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "replace-heads";
const std::vector<int> swaps_heads{0, 2, 1, 3};

// The value that `value` permutes, with the whole permutation; identities and several permutations in between count.
struct Permuted {
  ir::Value* base;
  std::vector<int> order{0, 1, 2, 3};
  std::vector<ir::Node*> nodes = {};
};

Permuted permuted(ir::Value* value) {
  Permuted p{.base = value};
  while (ir::Node* node = p.base->def()) {
    const auto order = match::permutation(*node);
    if (order && order->size() == 4) {
      for (int& dim : p.order) dim = (*order)[static_cast<std::size_t>(dim)];
    } else if (!match::is_identity(*node)) {
      break;
    }
    p.nodes.push_back(node);
    p.base = node->operand(0);
  }
  return p;
}

bool same(const ir::Type& a, int i, const ir::Type& b, int j) {
  return a.sizes[static_cast<std::size_t>(i)] == b.sizes[static_cast<std::size_t>(j)];
}

bool make(PassContext& context, std::string_view rule, ir::Node* root, const std::vector<ir::Node*>& nodes,
          std::string op, std::vector<ir::Arg> args) {
  const ttrt::OpRecord* record = ttrt::find_op(op);
  if (!record || user_refusal(context, *root, op) || call_refusal(context, *record, args)) return false;
  return replace_matched(context, pass, rule, root, nodes, std::move(op), std::move(args)) != nullptr;
}

bool split(PassContext& context, ir::Node* node) {
  if (!match::permutation(*node) || node->result()->type.rank() != 4) return false;
  const Permuted p = permuted(node->result());
  ir::Node* view = p.base->def();
  if (p.order != swaps_heads || !view || !match::is_reshape(*view) || p.base->use_count() != 1) return false;
  const ir::Type &wide = view->operand(0)->type, &heads = p.base->type;
  const auto count = heads.dim(2);
  if (!wide.has_shape || wide.rank() != 3 || !same(wide, 0, heads, 0) || !same(wide, 1, heads, 1) || !count ||
      !is_floating(wide.dtype))
    return false;
  std::vector<ir::Node*> nodes = p.nodes;
  nodes.push_back(view);
  return make(context, "view + transpose", node, nodes, "tt.split_heads", {view->operand(0), *count});
}

bool concat(PassContext& context, ir::Node* node) {
  if (!match::is_reshape(*node) || !node->operand(0)->type.has_shape || node->operand(0)->type.rank() != 4)
    return false;
  const ir::Type &merged = node->result()->type, &split = node->operand(0)->type;
  if (!merged.has_shape || merged.rank() != 3 || !same(merged, 0, split, 0) || !same(merged, 1, split, 1) ||
      !is_floating(merged.dtype))
    return false;
  const Permuted p = permuted(node->operand(0));
  if (p.order != swaps_heads) return false;
  return make(context, "transpose + reshape", node, p.nodes, "tt.concat_heads", {p.base});
}

bool run(PassContext& context) {
  bool changed = false;
  for_each_node(*context.model.graph,
                [&](ir::Node* node) { changed |= split(context, node) || concat(context, node); });
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"replace-heads", "Replace the views and transposes around attention by split_heads and concat_heads",
                   ttc::run});
