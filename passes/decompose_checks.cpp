// Questions about infinities and NaN as comparisons, which the device has: NaN differs from itself, and nothing is
// further from zero than an infinity.
#include <limits>

#include "decompose.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "decompose-checks";

bool decompose(PassContext& context, ir::Node* node) {
  const bool nan = node->op() == "aten.isnan.default", finite = node->op() == "aten.isfinite.default";
  if (!nan && !finite && node->op() != "aten.isinf.default") return false;
  ir::Value* x = node->operand(0);
  if (!x || !x->type.is_tensor() || !x->type.has_dtype || !is_floating(x->type.dtype) || !context.allow_rewrite()) return false;
  Decomposer make(node);
  ir::Type mask = x->type;
  mask.dtype = DType::boolean;
  const double infinity = std::numeric_limits<double>::infinity();
  ir::Value* size = nan ? nullptr : make.emit_like("aten.abs.default", {x}, x);
  ir::Value* made = nan ? make.emit("aten.ne.Tensor", {x, x}, mask) : make.emit(finite ? "aten.lt.Scalar" : "aten.eq.Scalar", {size, infinity}, mask);
  finish_decomposition(context, pass, node, {made});
  return true;
}

bool run(PassContext& context) {
  bool changed = false;
  for_each_node(*context.model.graph, [&](ir::Node* node) { changed = decompose(context, node) || changed; });
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"decompose-checks", "Write out isnan, isinf and isfinite as comparisons", ttc::run});
