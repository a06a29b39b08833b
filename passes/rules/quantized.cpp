// The operators of PT2E-quantised models (quantized_decomposed.*), which only Python registers: the formulas of
// torch/ao/quantization/fx/_decomposed.py, operator by operator, so that every rounding is the same.
#include <cmath>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Value;

const bool quantized_declared = declare_operators(
    {
        "quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType "
        "dtype) "
        "-> Tensor",
        "quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, "
        "ScalarType dtype) -> Tensor",
        "quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor "
        "quant_max, "
        "ScalarType dtype) -> Tensor",
        "dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType "
        "dtype, "
        "*, ScalarType? out_dtype=None) -> Tensor",
        "dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, "
        "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        "dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor "
        "quant_max, "
        "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        "choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) "
        "-> (Tensor, Tensor)",
        "choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) "
        "-> (Tensor, Tensor)",
        "quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, "
        "ScalarType dtype) -> Tensor",
        "dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int "
        "quant_max, "
        "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
        "choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
        "choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
        "_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
        "quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
        "ScalarType dtype) -> Tensor",
        "dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
        "ScalarType dtype, ScalarType output_dtype) -> Tensor",
        "quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
        "ScalarType dtype, int group_size) -> Tensor",
        "dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, "
        "ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor",
        "fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int "
        "quant_max) "
        "-> Tensor",
        "convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor",
    },
    "quantized_decomposed");

DType dtype_of(const Node& node, std::string_view name, DType absent) {
  const Arg* arg = node.arg(name);
  const DType* dtype = arg ? arg->get_if<DType>() : nullptr;
  return dtype ? *dtype : absent;
}

Value* wide(Rewriter& r, Value* x) { return x->type.dtype == DType::f32 ? x : r.cast(x, DType::f32); }

// f(a, b) in the dtype that ATen gives tensors of dims, or of one dim and none; integers give way to floats.
Value* promoted(Rewriter& r, const std::string& op, Value* a, Value* b) {
  Value* out = r.binary(op, a, b);
  const DType x = a->type.dtype, y = b->type.dtype;
  const bool to_b =
      is_floating(y) ? !is_floating(x) || size_of(y) > size_of(x) : !is_floating(x) && size_of(y) > size_of(x);
  out->type.dtype = to_b ? y : x;
  return out;
}

// Whole numbers: integers, and in a float tensor what was rounded, and what the rules below do to that.
bool is_whole(const Arg& arg) {
  const Value* x = arg.value();
  if (!x) return arg.integer().has_value();
  if (is_integral(x->type.dtype)) return true;
  const Node* made = x->def();
  if (!made) return false;
  if (made->op() == "aten.round.default") return true;
  if (made->op() == "aten.full_like.default") return is_whole(made->arg(1));
  if (made->op() == "aten.reshape.default") return is_whole(made->arg(0));
  if (made->op() == "aten.clamp.default")
    return is_whole(made->arg(0)) && made->arg(1).integer() && made->arg(2).integer();
  const bool keeps = made->op() == "aten.add.Tensor" || made->op() == "aten.rsub.Scalar";
  return keeps && is_whole(made->arg(0)) && is_whole(made->arg(1));
}

// Whole numbers that the integers of this dtype hold, so that a cast to them loses nothing.
bool holds(DType dtype, Value* x) {
  const int bits = 8 * static_cast<int>(size_of(dtype)) - (dtype == DType::u8 ? 0 : 1);
  const double most = std::ldexp(1.0, bits), least = dtype == DType::u8 ? 0 : -most;
  const auto inside = [&](const Arg& bound) {
    const auto number = bound.number();
    return number && *number >= least && *number < most;
  };
  const Node* made = x->def();
  if (made && made->op() == "aten.full_like.default") return is_whole(made->arg(1)) && inside(made->arg(1));
  const bool rounded = made && made->op() == "aten.round.default";
  if (rounded) made = made->operand(0)->def();
  if (!made || made->op() != "aten.clamp.default" || !inside(made->arg(1)) || !inside(made->arg(2))) return false;
  return rounded || is_whole(x);
}

// The float32 values that a tensor was made of by a cast that loses nothing (whole numbers to integers, float32 to
// float64): what is computed from them is the same, and the device has it. The tensor itself where there is no such.
Value* as_floats(Rewriter& r, Value* x) {
  const Node* made = x->def();
  if (made && made->op() == "aten.reshape.default" && made->operand(0)) {
    Value* inner = as_floats(r, made->operand(0));
    return inner == made->operand(0) ? x : r.reshape(inner, x->type.sizes);
  }
  if (!made || made->op() != "aten.to.dtype" || made->operand(0)->type.dtype != DType::f32) return x;
  const bool lossless =
      x->type.dtype == DType::f64 || (is_integral(x->type.dtype) && holds(x->type.dtype, made->operand(0)));
  return lossless ? made->operand(0) : x;
}

Value* clamped(Rewriter& r, Value* x, const Node& node) {
  return r.emit_like("aten.clamp.default", {x, *node.arg("quant_min"), *node.arg("quant_max")}, x);
}

// A number, or a tensor of one element, as an operand that changes neither the rank nor a float dtype of the other.
Arg scalar(Rewriter& r, const Arg& number, std::optional<DType> dtype) {
  if (!number.value()) return number;
  Value* tensor = as_floats(r, number.value());
  if (dtype && tensor->type.dtype != *dtype) tensor = r.cast(tensor, *dtype);
  return r.reshape(tensor, {});
}

// clamp(round(x * (1 / scale)) + zero_point)
Value* quantize_per_tensor(Rewriter& r, Node* node) {
  Value* x = wide(r, node->operand(0));
  const Arg& scale = *node->arg("scale");
  // float64's reciprocal rounded to float32 is float32's own: twice its digits and two more are enough.
  const Arg inverse = scale.value() ? Arg(r.unary("aten.reciprocal.default", as_floats(r, scale.value())))
                                    : Arg(1.0 / number_of(*node, "scale", 1));
  Value* steps = r.unary("aten.round.default", r.binary("aten.mul.Tensor", x, scalar(r, inverse, DType::f32)));
  steps = r.binary("aten.add.Tensor", steps, scalar(r, *node->arg("zero_point"), std::nullopt));
  if (node->arg("quant_min")->value())
    steps = r.emit_like(
        "aten.clamp.Tensor",
        {steps, scalar(r, *node->arg("quant_min"), DType::f32), scalar(r, *node->arg("quant_max"), DType::f32)}, steps);
  else
    steps = clamped(r, steps, *node);
  return r.cast(steps, dtype_of(*node, "dtype", DType::i8));
}

Value* dequantize_per_tensor(Rewriter& r, Node* node) {
  Value* x = as_floats(r, node->operand(0));
  const DType out = dtype_of(*node, "out_dtype", DType::f32);
  if (x->type.dtype != out) x = r.cast(x, out);
  x = r.binary("aten.sub.Tensor", x, scalar(r, *node->arg("zero_point"), std::nullopt));
  return r.binary("aten.mul.Tensor", x, scalar(r, *node->arg("scale"), DType::f32));
}

// determine_qparams of torch.ao: the range with zero in it, cut into steps.
Values choose_qparams(Rewriter& r, Node* node) {
  const bool symmetric = node->op() == "quantized_decomposed.choose_qparams_symmetric.tensor";
  const double least = number_of(*node, "quant_min", -128), most = number_of(*node, "quant_max", 127);
  Value* x = node->operand(0);
  ir::Type one = x->type;
  one.sizes.clear();
  const auto bound = [&](const char* op, const char* cut) {
    Value* end = r.emit(op, {x, Arg::List(), false}, one);
    return r.emit(cut, {end, 0}, one);
  };
  Value *low = bound("aten.amin.default", "aten.clamp_max.default"),
        *high = bound("aten.amax.default", "aten.clamp_min.default");
  if (symmetric) high = r.binary("aten.maximum.default", r.unary("aten.neg.default", low), high);
  Value* range = symmetric ? high : r.binary("aten.sub.Tensor", high, low);
  Value* scale = r.binary("aten.div.Tensor", range, symmetric ? (most - least) / 2 : most - least);
  scale = wide(r, scale), low = wide(r, low);
  scale = r.emit_like("aten.clamp_min.default",
                      {scale, static_cast<double>(static_cast<float>(number_of(*node, "eps", 0)))}, scale);
  Value* zero = nullptr;
  if (symmetric) {
    const int middle = dtype_of(*node, "dtype", DType::i8) == DType::u8 ? 128 : 0;
    zero = r.emit_like("aten.full_like.default", {scale, middle}, scale);
  } else {
    Value* steps = r.unary("aten.round.default", r.binary("aten.div.Tensor", low, scale));
    zero = clamped(r, r.emit_like("aten.rsub.Scalar", {steps, *node->arg("quant_min")}, steps), *node);
  }
  return {r.reshape(r.cast(scale, DType::f64), {SymExpr(1)}), r.reshape(r.cast(zero, DType::i64), {SymExpr(1)})};
}

// A vector along one axis of a tensor of this rank.
Value* along(Rewriter& r, const Arg* vector, int axis, int rank) {
  Value* x = vector ? vector->value() : nullptr;
  if (!x) return nullptr;
  std::vector<SymExpr> sizes(static_cast<std::size_t>(rank), SymExpr(1));
  sizes.at(static_cast<std::size_t>(axis)) = x->type.sizes.at(0);
  return r.reshape(x, sizes);
}

Value* inverse(Rewriter& r, Value* scales) { return r.unary("aten.reciprocal.default", scales); }

Value* per_channel(Rewriter& r, Node* node) {
  const bool down = node->op().find(".quantize_") != std::string::npos;
  const bool both = node->op().find(".fake_quant") != std::string::npos;
  Value* x = node->operand(0);
  const auto axis = dim_of(*node, "axis", x->type.rank());
  if (!axis) return nullptr;
  Value* scales = along(r, node->arg("scales"), *axis, x->type.rank());
  Value* zeros = along(r, node->arg("zero_points"), *axis, x->type.rank());
  if (both) scales = wide(r, scales), zeros = r.cast(zeros, DType::i32);
  if (down || both) {
    if (down) x = wide(r, x);
    x = r.unary("aten.round.default", promoted(r, "aten.mul.Tensor", x, inverse(r, scales)));
    x = clamped(r, promoted(r, "aten.add.Tensor", x, zeros), *node);
    if (down) return r.cast(x, dtype_of(*node, "dtype", DType::i8));
  }
  if (!both) x = as_floats(r, x);
  if (zeros) x = promoted(r, "aten.sub.Tensor", x, zeros);
  x = promoted(r, "aten.mul.Tensor", x, scales);
  return both ? x : r.cast(x, dtype_of(*node, "out_dtype", DType::f32));
}

// ---- one scale for each token, or for each group of a row

Values choose_per_token(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const auto end = [&](const char* op, Value* of) { return r.reduce(op, of, {-1}, true); };
  if (node->op() == "quantized_decomposed.choose_qparams_per_token.default") {
    Value* scales = end("aten.amax.default", r.unary("aten.abs.default", x));
    if (scales->type.dtype == DType::f16) scales = r.cast(scales, DType::f32);
    scales = r.binary("aten.div.Tensor", r.emit_like("aten.clamp_min.default", {scales, 1e-5}, scales), 127);
    return {scales, r.emit_like("aten.zeros_like.default", {scales}, scales)};
  }
  constexpr double least = -128, most = 127, eps = 0x1p-23;
  Value* low = r.unary("aten.clamp_max.default", end("aten.amin.default", x), {0});
  Value* high = r.unary("aten.clamp_min.default", end("aten.amax.default", x), {0});
  Value* scale = r.binary("aten.div.Tensor", r.binary("aten.sub.Tensor", high, low), most - least);
  scale = r.unary("aten.clamp_min.default", scale, {eps});
  Value *below = r.binary("aten.div.Tensor", low, scale), *above = r.binary("aten.div.Tensor", high, scale);
  const auto from = [&](double bound, Value* steps) { return r.emit_like("aten.rsub.Scalar", {steps, bound}, steps); };
  Value* errors =
      r.binary("aten.add.Tensor", r.binary("aten.add.Tensor", below, least), r.binary("aten.add.Tensor", above, most));
  Value* zero =
      r.choose("aten.where.self", r.compare("aten.gt.Scalar", errors, 0), from(least, below), from(most, above));
  zero = r.unary("aten.round.default", r.unary("aten.clamp.default", zero, {least, most}));
  return {r.cast(scale, DType::f64), r.cast(zero, DType::i64)};
}

// clamp(round(x / scales + zeros)), or (x - zeros) * scales: tokens have a scale for each row.
Value* per_row(Rewriter& r, Node* node, Value* x, Value* scales, Value* zeros) {
  if (node->op().find(".quantize_") != std::string::npos) {
    x = promoted(r, "aten.mul.Tensor", x, inverse(r, as_floats(r, scales)));
    x = promoted(r, "aten.add.Tensor", x, as_floats(r, zeros));
    return r.cast(clamped(r, r.unary("aten.round.default", x), *node), dtype_of(*node, "dtype", DType::i8));
  }
  x = as_floats(r, x);
  if (zeros) x = promoted(r, "aten.sub.Tensor", x, as_floats(r, zeros));
  return r.cast(promoted(r, "aten.mul.Tensor", x, as_floats(r, scales)), dtype_of(*node, "output_dtype", DType::f32));
}

Value* per_token(Rewriter& r, Node* node) {
  return per_row(r, node, node->operand(0), node->arg("scales")->value(), node->arg("zero_points")->value());
}

Value* per_group(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const std::vector<SymExpr> sizes = x->type.sizes;
  auto group = static_cast<std::int64_t>(number_of(*node, "group_size", 128));
  if (sizes.size() != 2 || !sizes[1].is_number()) return nullptr;
  group = std::min(group, sizes[1].number());
  if (group < 1 || sizes[1].number() % group != 0) return nullptr;
  const SymExpr groups = sizes[0] * SymExpr(sizes[1].number() / group);
  const auto column = [&](const char* name) {
    Value* all = node->arg(name)->value();
    return all ? r.reshape(all, {groups, SymExpr(1)}) : nullptr;
  };
  Value* out = per_row(r, node, r.reshape(x, {groups, SymExpr(group)}), column("scales"), column("zero_points"));
  return r.reshape(out, sizes);
}

Value* convert(Rewriter& r, Node* node) { return r.cast(node->operand(0), dtype_of(*node, "dtype", DType::f32)); }

}  // namespace

RulePart quantized_rules() {
  return {"quantized",
          known_tensors,
          false,
          {{{"quantized_decomposed.quantize_per_tensor.default", "quantized_decomposed.quantize_per_tensor.tensor",
             "quantized_decomposed.quantize_per_tensor.tensor2"},
            quantize_per_tensor},
           {{"quantized_decomposed.dequantize_per_tensor.default", "quantized_decomposed.dequantize_per_tensor.tensor",
             "quantized_decomposed.dequantize_per_tensor.tensor2"},
            dequantize_per_tensor},
           {{"quantized_decomposed.choose_qparams.tensor", "quantized_decomposed.choose_qparams_symmetric.tensor"},
            choose_qparams},
           {{"quantized_decomposed.quantize_per_channel.default", "quantized_decomposed.dequantize_per_channel.default",
             "quantized_decomposed.fake_quant_per_channel.default"},
            per_channel},
           {{"quantized_decomposed.choose_qparams_per_token.default",
             "quantized_decomposed.choose_qparams_per_token_asymmetric.default",
             "quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default"},
            choose_per_token},
           {{"quantized_decomposed.quantize_per_token.default", "quantized_decomposed.dequantize_per_token.default"},
            per_token},
           {{"quantized_decomposed.quantize_per_channel_group.default",
             "quantized_decomposed.dequantize_per_channel_group.default"},
            per_group},
           {{"quantized_decomposed.convert_element_type.no_fuse"}, convert}},
          true};
}

}  // namespace ttc
