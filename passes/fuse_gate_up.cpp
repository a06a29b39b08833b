// act(gate(x)) * up(x) with both layers as one product, where a TT module asks for it: the activation then reads
// columns of a rounded result, where a layer's own activation reads its sums, so the bits are others.
#include "fused_product.h"
#include "ops/op.h"
#include "replacement.h"

namespace ttc::fuse_gate_up_pass {
namespace {

constexpr std::string_view pass = "fuse-gate-up", formula = "act(gate(x)) * up(x) as one product";

ir::Node* sole_linear(const ir::Value* value) {
  ir::Node* node = value == nullptr ? nullptr : value->def();
  return node != nullptr && is_packed_linear(*node) && value->use_count() == 1 ? node : nullptr;
}

// The operator in ATen of a layer's activation; "" where it has none, or one that is no operator of one value.
std::string activation_of(const ir::Node& linear) {
  const auto* name = linear.arg("activation")->get_if<std::string>();
  if (name == nullptr) return {};
  std::string op = "aten." + *name + ".default";
  return ir::find_schema(op) != nullptr ? op : std::string();
}

bool is_asked_for(const PassContext& context, const ir::Node& linear) {
  const MapEntry* entry = context.entry_for(linear, linear.op());
  return entry != nullptr && entry->module != nullptr && entry->module->joins_gate;
}

ir::Value* part(Rewriter& r, ir::Value* from, std::int64_t first, const ir::Node& linear) {
  const std::int64_t width = FusedProduct::columns(linear);
  ir::Type type = linear.result()->type;
  type.strides.clear();
  return r.emit("aten.slice.Tensor", {from, type.rank() - 1, first, first + width}, std::move(type));
}

void rewrite(PassContext& context, ir::Node* node) {
  if (node->op() != "aten.mul.Tensor") return;
  ir::Node *gate = sole_linear(node->operand(0)), *up = sole_linear(node->operand(1));
  if (gate == nullptr || up == nullptr || gate->operand(0) != up->operand(0)) return;
  if (activation_of(*gate).empty()) std::swap(gate, up);
  const std::string activation = activation_of(*gate);
  if (activation.empty() || !is_asked_for(context, *gate) || !is_asked_for(context, *up)) return;
  const FusedProduct fusion(context, {gate, up}, *node->provenance);
  if (Refusal no = fusion.refusal(true)) {
    no->detail = std::string(formula) + ": " + no->detail;
    context.refuse(pass, *node, std::move(*no));
    return;
  }
  Rewriter r(context, pass, node);
  ir::Value* product = fusion.emit(r);
  if (product == nullptr) return;
  ir::Value* gated = part(r, product, 0, *gate);
  ir::Value* activated = r.emit_like(activation, {gated}, gated);
  ir::Value* other = part(r, product, FusedProduct::columns(*gate), *up);
  replace_matched(r, formula, {gate, up}, "aten.mul.Tensor", {activated, other});
}

void run(PassContext& context) {
  for_each_node(*context.model.graph, [&](ir::Node* node) { rewrite(context, node); });
}

}  // namespace
}  // namespace ttc::fuse_gate_up_pass

TTC_REGISTER_PASS({"fuse-gate-up", "Make one product of a gated MLP's first two layers, where a TT module says so",
                   ttc::fuse_gate_up_pass::run});
