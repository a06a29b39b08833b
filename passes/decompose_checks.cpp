// "Is it finite?" as a comparison, which the device has. isnan and isinf stay as they are: the device's formats do not
// tell a NaN from an infinity.
#include <limits>

#include "decompose.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "decompose-checks";

bool decompose(PassContext& context, ir::Node* node) {
  if (node->op() != "aten.isfinite.default") return false;
  ir::Value* x = node->operand(0);
  if (!x || !x->type.is_tensor() || !x->type.has_dtype || !is_floating(x->type.dtype) || !context.allow_rewrite())
    return false;
  Decomposer make(node);
  ir::Type mask = x->type;
  mask.dtype = DType::boolean;
  ir::Value* size = make.emit_like("aten.abs.default", {x}, x);
  finish_decomposition(context, pass, node,
                       {make.emit("aten.lt.Scalar", {size, std::numeric_limits<double>::infinity()}, mask)});
  return true;
}

bool run(PassContext& context) {
  bool changed = false;
  for_each_node(*context.model.graph, [&](ir::Node* node) { changed = decompose(context, node) || changed; });
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"decompose-checks", "Write out isfinite as a comparison", ttc::run});
