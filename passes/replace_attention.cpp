// Scaled dot-product attention becomes tt.attention. A causal part of a boolean mask becomes the operator's is_causal,
// which ATen does not take together with a mask; masks of lower rank get leading dims.
#include "attention_mask.h"
#include "match/kinds.h"
#include "replacement.h"

namespace ttc {
namespace {

constexpr std::string_view attention_op = "aten.scaled_dot_product_attention.default";

bool is_and(const ir::Node& node) {
  return node.op() == "aten.__and__.Tensor" || node.op() == "aten.bitwise_and.Tensor" ||
         node.op() == "aten.logical_and.default";
}

// mask = causal and rest: rest. The nodes between go where nobody else reads them.
ir::Value* without_causal(const ir::Model& model, ir::Value* mask, std::vector<ir::Node*>& nodes) {
  while (mask->def() && (match::is_identity(*mask->def()) || mask->def()->op() == "aten.expand.default")) {
    nodes.push_back(mask->def());
    mask = mask->def()->operand(0);
  }
  ir::Node* both = mask->def();
  if (!both || !is_and(*both) || mask->type.dtype != DType::boolean || mask->type.rank() != 4) return nullptr;
  for (std::size_t i = 0; i < 2; ++i) {
    ir::Value *part = both->operand(i), *rest = both->operand(1 - i);
    std::vector<ir::Node*> behind;
    while (part && part->def() && (match::is_identity(*part->def()) || part->def()->op() == "aten.expand.default")) {
      behind.push_back(part->def());
      part = part->def()->operand(0);
    }
    if (!part || !rest || !rest->type.is_tensor() || rest->type.dtype != DType::boolean || !is_causal_mask(model, part))
      continue;
    nodes.push_back(both);
    nodes.insert(nodes.end(), behind.begin(), behind.end());
    return rest;
  }
  return nullptr;
}

ir::Value* with_rank_4(Rewriter& r, ir::Value* mask) {
  while (mask->type.has_shape && mask->type.rank() < 4) {
    ir::Type type = mask->type;
    type.sizes.insert(type.sizes.begin(), ir::SymExpr(1));
    type.strides.clear();
    mask = r.insert("aten.unsqueeze.default", {mask, 0})->add_result(std::move(type));
  }
  return mask;
}

int argument(const Replacement& replacement, std::string_view name) {
  return ttrt::schema_of(*replacement.record).index_of(name);
}

// What replaces the node when it reads `mask`.
std::variant<Replacement, Reason> with_mask(const PassContext& context, const WrittenMemory& written, ir::Node* node,
                                            ir::Value* mask) {
  if (mask == node->operand(3)) return find_replacement(context, written, *node);
  const ir::Arg given = node->arg(3);
  node->set_arg(3, mask);
  auto found = find_replacement(context, written, *node);
  node->set_arg(3, given);
  return found;
}

void replace(PassContext& context, const WrittenMemory& written, ir::Node* node) {
  Rewriter r(context, "replace", node);
  ir::Value* mask = node->operand(3);
  const ir::Value* query = node->operand(0);
  const bool lift = mask && query && query->type.has_shape && query->type.rank() == 4;  // another rank stays on the CPU
  if (lift) mask = with_rank_4(r, mask);
  auto found = with_mask(context, written, node, mask);
  if (Reason* reason = std::get_if<Reason>(&found)) {
    r.refuse(std::move(*reason));
    return;
  }
  auto& replacement = std::get<Replacement>(found);
  std::vector<ir::Node*> mask_nodes;
  const int mask_index = argument(replacement, "mask"), causal_index = argument(replacement, "is_causal");
  if (mask && mask->type.dtype == DType::boolean && mask_index >= 0 && causal_index >= 0)
    if (ir::Value* rest = without_causal(context.model, mask, mask_nodes)) {
      replacement.args[static_cast<std::size_t>(mask_index)] = with_rank_4(r, rest);
      replacement.args[static_cast<std::size_t>(causal_index)] = true;
    }
  r.commit_as(std::string(replacement.record->name), std::move(replacement.args),
              {.matched = mask_nodes, .results = replacement.results});
}

}  // namespace

void replace_attention(PassContext& context, const WrittenMemory& written) {
  for_each_node(*context.model.graph, [&](ir::Node* node) {
    if (node->op() == attention_op) replace(context, written, node);
  });
}

}  // namespace ttc
