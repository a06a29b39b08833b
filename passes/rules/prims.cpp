// PyTorch's primitive operators (prims.*), which only Python registers, as the ATen operators they stand for. Those
// that draw random numbers or exist for the code generator only have no rule.
#include <algorithm>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Value;

// Of the same arguments as the ATen operator: one tensor, or two of the same sizes.
constexpr std::string_view unary_ops[] = {
    "abs",  "acos",    "acosh", "asin", "asinh", "atan",       "atanh",        "bitwise_not", "ceil",     "cos",
    "cosh", "digamma", "erf",   "erfc", "exp",   "exp2",       "expm1",        "floor",       "isfinite", "lgamma",
    "log",  "log10",   "log1p", "log2", "neg",   "reciprocal", "round",        "rsqrt",       "sign",     "signbit",
    "sin",  "sinh",    "sqrt",  "tan",  "tanh",  "trunc",      "conj_physical"};
constexpr std::string_view binary_ops[] = {
    "add",     "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "eq",        "fmax", "fmin", "fmod",
    "gcd",     "ge",    "gt",          "hypot",      "igamma",      "igammac",   "le",   "lt",   "maximum",
    "minimum", "mul",   "ne",          "nextafter",  "pow",         "remainder", "sub"};
// Their overloads in ATen.
std::string aten_of(std::string_view name) {
  static constexpr std::string_view plain[] = {"atan2",  "fmax",    "fmin",    "gcd",     "hypot",
                                               "igamma", "igammac", "maximum", "minimum", "nextafter"};
  const bool two = std::ranges::find(binary_ops, name) != std::end(binary_ops);
  if (!two || std::ranges::find(plain, name) != std::end(plain)) return "aten." + std::string(name) + ".default";
  return "aten." + std::string(name) + (name == "pow" ? ".Tensor_Tensor" : ".Tensor");
}

const bool prims_declared = [] {
  for (const std::string_view name : unary_ops)
    declare_operators({std::string(name) + "(Tensor self) -> Tensor"}, "prims");
  for (const std::string_view name : binary_ops)
    declare_operators({std::string(name) + "(Tensor self, Tensor other) -> Tensor"}, "prims");
  return declare_operators(
      {
          "amax(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor",
          "amin(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor",
          "bessel_i0(Tensor self) -> Tensor",
          "broadcast_in_dim(Tensor(a) a, SymInt[] shape, int[] broadcast_dimensions) -> Tensor(a)",
          "cat(Tensor[] tensors, int dim) -> Tensor",
          "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
          "collapse(Tensor a, int start, int end) -> Tensor",
          "collapse_view(Tensor(a) a, int start, int end) -> Tensor(a)",
          "convert_element_type(Tensor a, ScalarType dtype) -> Tensor",
          "device_put(Tensor a, Device device, bool non_blocking=False) -> Tensor",
          "div(Tensor self, Tensor other) -> Tensor",
          "erf_inv(Tensor self) -> Tensor",
          "fill(Tensor self, Scalar value) -> Tensor",
          "fma(Tensor a, Tensor b, Tensor c) -> Tensor",
          "full(SymInt[] shape, Scalar fill_value, *, ScalarType dtype, Device device, bool requires_grad) -> Tensor",
          "full_like(Tensor a, Scalar fill_value, *, ScalarType dtype, Device device, bool requires_grad) -> Tensor",
          "iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, bool requires_grad) -> "
          "Tensor",
          "prod(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor",
          "reshape(Tensor a, SymInt[] shape) -> Tensor",
          "rev(Tensor a, int[] dims) -> Tensor",
          "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
          "shift_left(Tensor self, Tensor other) -> Tensor",
          "shift_right_arithmetic(Tensor self, Tensor other) -> Tensor",
          "split_dim(Tensor(a) a, int dim, SymInt outer_length) -> Tensor(a)",
          "squeeze(Tensor(a) a, int[] dimensions) -> Tensor(a)",
          "sum(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor",
          "transpose(Tensor(a) a, int[] permutation) -> Tensor(a)",
          "var(Tensor inp, int[]? dims, float? correction=1, *, ScalarType? output_dtype=None) -> Tensor",
          "view_of(Tensor(a) a) -> Tensor(a)",
          "where(Tensor pred, Tensor a, Tensor b) -> Tensor",
      },
      "prims");
}();

Value* as_result(Rewriter& r, Node* node, std::string op, std::vector<Arg> args) {
  return r.emit_like(std::move(op), std::move(args), node->result());
}

Value* prim_function(Rewriter& r, Node* node) {
  std::string_view name = node->op();
  name.remove_prefix(6);  // "prims."
  return as_result(r, node, aten_of(name.substr(0, name.rfind('.'))), node->args());
}

// The operator, and its arguments as they are.
auto spelled(const char* op) {
  return [op](Rewriter& r, Node* node) -> Values { return as_result(r, node, op, node->args()); };
}

// Integers are divided as C++ divides them.
Value* div(Rewriter& r, Node* node) {
  if (is_floating(node->result()->type.dtype)) return as_result(r, node, "aten.div.Tensor", node->args());
  std::vector<Arg> args = node->args();
  args.emplace_back("trunc");
  return as_result(r, node, "aten.div.Tensor_mode", std::move(args));
}

Value* broadcast(Rewriter& r, Node* node) {
  const auto places = node->arg(2).integers();
  Value* x = node->operand(0);
  const int rank = node->result()->type.rank();
  if (!places || static_cast<int>(places->size()) != x->type.rank()) return nullptr;
  std::vector<SymExpr> sizes(static_cast<std::size_t>(rank), SymExpr(1));
  for (std::size_t i = 0; i < places->size(); ++i) sizes.at(static_cast<std::size_t>((*places)[i])) = x->type.sizes[i];
  return as_result(r, node, "aten.expand.default", {r.reshape(x, sizes), node->arg(1)});
}

Value* to_result(Rewriter& r, Node* node) { return r.reshape(node->operand(0), node->result()->type.sizes); }

// In the dtype asked for; none, or all dims, stand for every dim.
Value* reduction(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const std::string_view name = node->op();
  const bool sum = name.starts_with("prims.sum"), var = name.starts_with("prims.var"),
             prod = name.starts_with("prims.prod");
  const Arg* asked = node->arg("output_dtype");
  const DType dtype = node->result()->type.dtype;
  const Arg& dims = node->arg(1);
  if (sum)
    return as_result(r, node, "aten.sum.dim_IntList",
                     {x, dims, false, asked && !asked->is_none() ? *asked : Arg(dtype)});
  if (var) return as_result(r, node, "aten.var.correction", {x, dims, node->arg(2), false});
  if (!prod)
    return as_result(r, node, name.starts_with("prims.amax") ? "aten.amax.default" : "aten.amin.default",
                     {x, dims.is_none() ? Arg(Arg::List()) : dims, false});
  const auto over = dims.integers();
  if (!over || static_cast<int>(over->size()) == x->type.rank())
    return as_result(r, node, "aten.prod.default", {x, dtype});
  std::vector<std::int64_t> order = *over;
  std::ranges::sort(order, std::greater());
  for (const std::int64_t dim : order) {
    ir::Type type = x->type;
    type.sizes.erase(type.sizes.begin() + (dim < 0 ? dim + x->type.rank() : dim));
    type.dtype = dtype;
    x = r.emit("aten.prod.dim_int", {x, dim, false, dtype}, type);
  }
  return x;
}

// As eager PyTorch has it: rounded after the product too.
Value* fma(Rewriter& r, Node* node) {
  return r.binary("aten.add.Tensor", r.binary("aten.mul.Tensor", node->arg(0), node->arg(1)), node->arg(2));
}

Value* iota(Rewriter& r, Node* node) {
  const Arg *start = node->arg("start"), *step = node->arg("step");
  const auto first = start->integer(), by = step->integer(), count = node->arg(0).integer();
  const Arg dtype = *node->arg("dtype");
  if (first && by && count && *by != 0)
    return as_result(r, node, "aten.arange.start_step", {*first, *first + *count * *by, *by, dtype});
  if (!by || *by == 0 || !first) return nullptr;
  Value* steps = as_result(r, node, "aten.arange.default", {node->arg(0), dtype});
  return r.binary("aten.add.Tensor", r.binary("aten.mul.Tensor", steps, *by), *first);
}

Value* made(Rewriter& r, Node* node) {
  if (node->op() == "prims.full.default")
    return as_result(r, node, "aten.full.default", {node->arg(0), node->arg(1), *node->arg("dtype")});
  if (node->op() == "prims.scalar_tensor.default")
    return as_result(r, node, "aten.scalar_tensor.default", {node->arg(0), node->result()->type.dtype});
  if (node->op() == "prims.full_like.default")
    return as_result(r, node, "aten.full_like.default", {node->arg(0), node->arg(1), *node->arg("dtype")});
  return as_result(r, node, "aten.full_like.default", {node->arg(0), node->arg(1)});
}

Value* operand_itself(Rewriter&, Node* node) { return node->operand(0); }

}  // namespace

RulePart prims_rules() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const std::string_view name : unary_ops) out.push_back("prims." + std::string(name) + ".default");
    for (const std::string_view name : binary_ops) out.push_back("prims." + std::string(name) + ".default");
    return out;
  }();
  std::vector<Decomposition> rules{{{names.begin(), names.end()}, prim_function, nullptr, true}};
  const std::vector<Decomposition> others{
      {{"prims.div.default"}, div, nullptr, true},
      {{"prims.amax.default", "prims.amin.default", "prims.sum.default", "prims.prod.default", "prims.var.default"},
       reduction},
      {{"prims.broadcast_in_dim.default"}, broadcast},
      {{"prims.cat.default"}, spelled("aten.cat.default")},
      {{"prims.reshape.default", "prims.collapse.default", "prims.collapse_view.default", "prims.split_dim.default",
        "prims.squeeze.default"},
       to_result},
      {{"prims.convert_element_type.default"}, spelled("aten.to.dtype")},
      {{"prims.clone.default"}, spelled("aten.clone.default")},
      {{"prims.device_put.default", "prims.view_of.default"}, operand_itself},
      {{"prims.erf_inv.default"}, spelled("aten.erfinv.default")},
      {{"prims.bessel_i0.default"}, spelled("aten.special_i0.default")},
      {{"prims.fma.default"}, fma, nullptr, true},
      {{"prims.full.default", "prims.full_like.default", "prims.fill.default", "prims.scalar_tensor.default"}, made},
      {{"prims.iota.default"}, iota},
      {{"prims.rev.default"}, spelled("aten.flip.default")},
      {{"prims.shift_left.default"}, spelled("aten.bitwise_left_shift.Tensor")},
      {{"prims.shift_right_arithmetic.default"}, spelled("aten.bitwise_right_shift.Tensor")},
      {{"prims.transpose.default"}, spelled("aten.permute.default")},
      {{"prims.where.default"}, spelled("aten.where.self")},
  };
  rules.insert(rules.end(), others.begin(), others.end());
  return {"prims", nullptr, false, std::move(rules), true};
}

}  // namespace ttc
