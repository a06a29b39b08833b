// Brings instance norm back from its decomposition: a batch norm with the batch's statistics over one image that has
// all images' channels, between a view that merges batch and channels and one that takes them apart, weight and bias
// repeated for each image.
#include "common.h"

namespace ttc::raise_instance_norm_pass {
namespace {

constexpr std::string_view pass = "raise-instance-norm",
                           formula = "batch norm of [1, batch * channels, ..] as instance norm";

// The first of the equal pieces of `size` elements that make up a constant; nullptr where they are not equal.
ir::Value* first_piece(Rewriter& r, ir::Value* value, std::int64_t size) {
  const ir::Weight* weight = r.model().weight_of(value);
  if (!weight || !weight->data() || weight->sizes.size() != 1 || size < 1 || weight->numel() % size != 0)
    return nullptr;
  for (std::int64_t i = size; i < weight->numel(); ++i)
    if (match::weight_element(*weight, i * weight->strides[0]) !=
        match::weight_element(*weight, i % size * weight->strides[0]))
      return nullptr;
  ir::Weight piece = *weight;
  piece.sizes = {size};
  return shared_constant(r, ir::weight_input(value)->target + ".channels", std::move(piece));
}

// The vector over the channels that was repeated, or none; nullopt where it is something else.
std::optional<ir::Arg> channel_vector(Rewriter& r, const ir::Arg& arg, const ir::SymExpr& channels,
                                      std::vector<ir::Node*>& nodes) {
  if (arg.is_none()) return ir::Arg();
  ir::Value* value = arg.value();
  if (!value) return std::nullopt;
  ir::Node* node = value->def();
  if (node && node->op() == "aten.repeat.default" && node->arg(1).list() && node->arg(1).list()->size() == 1) {
    nodes.push_back(node);
    value = node->operand(0);
  }
  if (ir::is_weight(value) && channels.is_number() && value->type.rank() == 1 && !(value->type.sizes[0] == channels))
    if (ir::Value* piece = first_piece(r, value, channels.number())) return ir::Arg(piece);
  const ir::Type& type = value->type;
  if (!type.has_shape || type.rank() != 1 || !(type.sizes[0] == channels)) return std::nullopt;
  return ir::Arg(value);
}

void rewrite(PassContext& context, ir::Node* node) {
  if (!match::is_reshape(*node) || node->operand(0)->index() != 0) return;
  ir::Node* norm = node->operand(0)->def();
  if (!norm || norm->op() != "aten._native_batch_norm_legit.no_stats" || norm->args().size() < 6) return;
  ir::Node* merge = norm->operand(0)->def();
  const auto refuse = [&](std::size_t matched, const ir::Node* at, ReasonCode code, std::string expected,
                          std::string found) {
    refuse_near_miss(
        context, pass, formula, *node,
        {.matched = matched, .node = at, .code = code, .expected = std::move(expected), .found = std::move(found)});
  };
  if (!merge || !match::is_reshape(*merge) || !match::same_shape(merge->operand(0)->type, node->result()->type))
    return refuse(2, norm, ReasonCode::PatternNearMiss, "a view that merges batch and channels",
                  match::describe(norm->arg(0)));
  const ir::Type &x = merge->operand(0)->type, &wide = merge->result()->type;
  const bool merges = wide.rank() == x.rank() && x.rank() >= 3 && wide.dim(0) == 1 &&
                      wide.sizes[1] == x.sizes[0] * x.sizes[1] &&
                      std::equal(wide.sizes.begin() + 2, wide.sizes.end(), x.sizes.begin() + 2);
  if (!merges) return refuse(3, merge, ReasonCode::PatternNearMiss, "one image of batch * channels", wide.str());
  if (norm->result(0)->use_count() != 1 || norm->result(1)->has_uses() || norm->result(2)->has_uses())
    return refuse(3, norm, ReasonCode::MultiUse, "no other reader of its results", "further uses");
  std::vector<ir::Node*> nodes{norm, merge};
  Rewriter r(context, pass, node);
  const auto weight = channel_vector(r, norm->arg(1), x.sizes[1], nodes),
             bias = channel_vector(r, norm->arg(2), x.sizes[1], nodes);
  if (!weight || !bias)
    return refuse(3, norm, ReasonCode::RankUnsupported, "weight and bias over the channels, repeated for each image",
                  match::describe(norm->arg(weight ? 2 : 1)));
  replace_matched(r, formula, nodes, "aten.instance_norm.default",
                  {merge->operand(0), *weight, *bias, ir::Arg(), ir::Arg(), true, norm->arg(4), norm->arg(5), false});
}

void run(PassContext& context) { rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc::raise_instance_norm_pass

TTC_REGISTER_PASS({"raise-instance-norm", "Bring the batch norm over merged batch and channels back to instance_norm",
                   ttc::raise_instance_norm_pass::run});
