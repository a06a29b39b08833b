// Replay of matmul and linear: on the matrix unit itself, as the cases vary what no record's literals do (the format of
// the result, sums that the packer adds in L1).
#include "device/matmul.h"
#include "ops/activation.h"
#include "ops/library.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

ttc::Refusal refuse(const Tensor& a, const Tensor& b, DataType out) {
  if (!is_float_format(a.dtype) || !is_float_format(b.dtype) || !is_float_format(out)) {
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "products are of float formats"};
  }
  const Extent ea = extent_of(a.shape), eb = extent_of(b.shape);
  if (ea.cols != eb.rows || eb.batch == 0 || ea.batch % eb.batch != 0 || ea.cols == 0) {
    return ttc::Reason{ttc::ReasonCode::Unsupported, "the operands' shapes do not fit"};
  }
  return std::nullopt;
}

Outcome multiply(const Case& c, Numerics numerics, const std::string& activation) {
  const Tensor &a = c.input("a"), &b = c.input("b");
  const DataType out = c.format_param("out_dtype").value_or(c.expected.at(0).dtype);
  if (auto refusal = refuse(a, b, out)) return *refusal;
  const Extent ea = extent_of(a.shape), eb = extent_of(b.shape);
  if (volume(c.expected.at(0).shape) != ea.batch * ea.rows * eb.cols) {
    return ttc::Reason{ttc::ReasonCode::Unsupported, "the output does not have the product's size"};
  }
  MatmulSpec spec{.batch = ea.batch, .b_batch = eb.batch, .m = ea.rows, .k = ea.cols, .n = eb.cols};
  spec.a = a.dtype, spec.b = b.dtype, spec.out = out;
  spec.config = c.config.value_or(ops::library_matmul_config(a.dtype, b.dtype, out));
  spec.numerics = numerics;
  spec.activation = ops::fused_activation(activation, numerics, out);
  if (!activation.empty() && !spec.activation)
    return ttc::Reason{ttc::ReasonCode::Unimplemented, "fused activation " + activation};
  std::vector<std::byte> bias;
  if (const Tensor* t = c.find("bias")) {
    if (!is_float_format(t->dtype) || extent_of(t->shape).rows != 1 || extent_of(t->shape).cols != spec.n) {
      return ttc::Reason{ttc::ReasonCode::Unsupported, "the bias is one row of N float values"};
    }
    spec.bias = t->dtype;
    bias = to_tiles(*t);
  }
  Matmul product(spec);
  std::vector<std::byte> tiles(
      static_cast<std::size_t>(Extent{spec.batch, spec.m, spec.n}.tiles() * tile_bytes(spec.out)));
  const std::vector<std::byte> a_tiles = to_tiles(a), b_tiles = to_tiles(b);
  product.run(a_tiles.data(), b_tiles.data(), bias.empty() ? nullptr : bias.data(), tiles.data());
  return Outputs{from_tiles(tiles, spec.out, c.expected.at(0).shape)};
}

Outcome matmul(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"out_dtype"})) return *refusal;
  return multiply(c, numerics, "");
}

Outcome linear(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"out_dtype", "activation"})) return *refusal;
  const ttc::Json* activation = ttc::find_member(c.params, "activation");
  return multiply(c, numerics, activation == nullptr ? "" : ttc::as_string(*activation));
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(matmul, "matmul", ttrt::replay::matmul, "a b")
TTRT_REGISTER_REPLAY(linear, "linear", ttrt::replay::linear, "a b bias")
