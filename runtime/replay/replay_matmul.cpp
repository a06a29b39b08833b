// Replay of matmul and linear: on the matrix unit itself, as the cases vary what no record's literals do (the format of
// the result, sums that the packer adds in L1).
#include "device/matmul.h"
#include "ops/activation.h"
#include "ops/library.h"
#include "replay/records.h"
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

Tensor turned(const Tensor& t) {
  const Extent e = extent_of(t.shape);
  Tensor out = t;
  std::swap(out.shape.at(out.shape.size() - 1), out.shape.at(out.shape.size() - 2));
  for (std::int64_t i = 0; i < e.batch * e.rows * e.cols; ++i) {
    const std::int64_t batch = i / (e.rows * e.cols), row = i / e.cols % e.rows, col = i % e.cols;
    out.values[static_cast<std::size_t>((batch * e.cols + col) * e.rows + row)] = t.values[static_cast<std::size_t>(i)];
  }
  return out;
}
Tensor operand_of(const Case& c, const char* name, const char* transposed) {
  const ttc::Json* given = ttc::find_member(c.params, transposed);
  const Tensor& t = c.input(name);
  return given != nullptr && ttc::as_bool(*given) && t.shape.size() > 1 ? turned(t) : t;
}

Outcome multiply(const Case& c, Numerics numerics, std::string activation) {
  const Tensor a = operand_of(c, "a", "transpose_a"), b = operand_of(c, "b", "transpose_b");
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
  spec.device = MatmulDevice(default_profile(c.arch));
  // A program configuration's tiles of K between spills of Dest.
  if (const ttc::Json* block = ttc::find_member(c.params, "in0_block_w")) spec.k_block = ttc::as_int(*block);
  if (spec.k_block < 0 || (spec.k_block > 0 && round_up(spec.k, tile_dim) / tile_dim % spec.k_block != 0))
    return ttc::Reason{ttc::ReasonCode::Unsupported, "in0_block_w does not divide the tiles of K"};
  // The op library runs what it does not fuse as an op of its own.
  Runner behind = nullptr;
  const ttc::Json* in_dest = ttc::find_member(c.params, "fused");
  spec.activation = in_dest != nullptr && ttc::as_bool(*in_dest)
                        ? ops::activation_in_dest(activation, numerics, dest_of(spec.config))
                        : ops::fused_activation(activation, numerics, out);
  if (!activation.empty() && !spec.activation && (behind = find_runner(activation)) != nullptr) {
    activation.clear();
  }
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
  std::vector<float> values = from_tiles(tiles, spec.out, c.expected.at(0).shape);
  if (behind == nullptr) return Outputs{std::move(values)};
  Case after = case_behind(c, ttc::as_string(ttc::member(c.params, "activation")),
                           {.name = "x", .shape = c.expected.at(0).shape, .dtype = out, .values = std::move(values)});
  after.expected = c.expected;
  return behind(after, numerics);
}

Outcome matmul(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"out_dtype", "transpose_a", "transpose_b", "in0_block_w"})) return *refusal;
  return multiply(c, numerics, "");
}

Outcome linear(const Case& c, Numerics numerics) {
  if (auto refusal =
          c.unknown_params({"out_dtype", "activation", "fused", "transpose_a", "transpose_b", "in0_block_w"}))
    return *refusal;
  const ttc::Json* activation = ttc::find_member(c.params, "activation");
  return multiply(c, numerics, activation == nullptr || activation->is_null() ? "" : ttc::as_string(*activation));
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(matmul, "matmul", ttrt::replay::matmul, "a b")
TTRT_REGISTER_REPLAY(linear, "linear", ttrt::replay::linear, "a b bias")
