// Brings x * sigmoid(x) back to aten.silu.
#include "common.h"

namespace ttc::raise_silu_pass {
namespace {

using namespace match;

constexpr std::string_view pass = "raise-silu", formula = "x * sigmoid(x)";

void rewrite(PassContext& context, ir::Node* node) {
  static const Pattern rule = mul(any("x"), past_casts(op({"aten.sigmoid.default"}, {past_casts(any("x"))}).sole()));
  if (node->op() != "aten.mul.Tensor") return;
  const Outcome found = match::match(context.model, rule, node, 2);
  if (found.near_miss) refuse_near_miss(context, pass, formula, *node, *found.near_miss);
  if (!found.match || !same_shape(found.match->value("x")->type, node->result()->type)) return;
  replace_matched(context, pass, formula, node, found.match->nodes, "aten.silu.default", {found.match->value("x")});
}

void run(PassContext& context) { rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc::raise_silu_pass

TTC_REGISTER_PASS({"raise-silu", "Bring x * sigmoid(x) back to silu", ttc::raise_silu_pass::run});
