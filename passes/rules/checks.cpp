// "Is it finite?" as a comparison, which the device has. isnan and isinf stay as they are: the device's formats do not
// tell a NaN from an infinity.
#include <limits>

#include "../decompose.h"

namespace ttc {
namespace {

bool float_tensor(const ir::Node& node) {
  const ir::Value* x = node.operand(0);
  return x && x->type.is_tensor() && x->type.has_dtype && is_floating(x->type.dtype);
}

ir::Value* isfinite(Rewriter& r, ir::Node* node) {
  ir::Value* x = node->operand(0);
  ir::Type mask = x->type;
  mask.dtype = DType::boolean;
  ir::Value* size = r.emit_like("aten.abs.default", {x}, x);
  return r.emit("aten.lt.Scalar", {size, std::numeric_limits<double>::infinity()}, mask);
}

}  // namespace

RulePart check_rules() { return {"checks", float_tensor, false, {{{"aten.isfinite.default"}, isfinite}}}; }

}  // namespace ttc
