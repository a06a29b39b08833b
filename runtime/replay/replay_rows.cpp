// Replay of what the device computes row by row beside the records: softmax behind a scale and a mask, variances.
#include <cmath>

#include "device/exact_rows.h"
#include "device/sfpu.h"
#include "ops/library.h"
#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

// x scale + mask in the matrix unit, each through a buffer; then the stable softmax. The scale is as wide as a source
// register.
Outcome masked_softmax(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"scale", "head_size", "attention_mask"})) return *refusal;
  if (numerics == Numerics::fast) return ttc::Reason{ttc::ReasonCode::Unimplemented, c.op + " in fast numerics"};
  const Tensor& x = c.input("x");
  const Tensor* mask = c.find("mask");
  const Extent e = extent_of(x.shape);
  const Extent of_mask = mask != nullptr ? extent_of(mask->shape) : Extent{};
  if (mask != nullptr &&
      (of_mask.cols != e.cols || (of_mask.rows != 1 && of_mask.rows != e.rows) || of_mask.batch != 1))
    return ttc::Reason{ttc::ReasonCode::Unsupported, "a mask of another shape"};
  const ttc::Json* given = ttc::find_member(c.params, "scale");
  const float wanted = given != nullptr
                           ? static_cast<float>(ttc::as_double(*given))
                           : 1.0F / std::sqrt(static_cast<float>(ttc::as_double(ttc::member(c.params, "head_size"))));
  const exact::RowConfig config = exact::row_config(c.config ? *c.config : *ops::library_config("tt.softmax"));
  const float scale = config.dest == Dest::bits32 ? cut_tf32(wanted) : bf16_to_f32(f32_to_bf16(wanted));
  const std::vector<float> scales(static_cast<std::size_t>(e.cols), scale);
  Tensor out = x;
  out.dtype = config.dest == Dest::bits32 ? DataType::float32 : DataType::bfloat16;
  for (std::int64_t r = 0; r < e.batch * e.rows; ++r) {
    float* row = out.values.data() + r * e.cols;
    fpu::mul(row, scales.data(), row, e.cols, config.dest, config.fidelity);
    if (mask != nullptr) {
      for (std::int64_t i = 0; i < e.cols; ++i) row[i] = exact::through_buffer(row[i], config.dest);
      fpu::add(row, mask->values.data() + (of_mask.rows == 1 ? 0 : r % e.rows * e.cols), row, e.cols, config.dest);
    }
    if (config.dest == Dest::bits16)
      for (std::int64_t i = 0; i < e.cols; ++i) row[i] = exact::through_buffer(row[i], config.dest);
    exact::softmax_row(row, e.cols, config, true);
  }
  return Outputs{packed_as(std::move(out), c.expected.at(0))};
}

// Of the last dim, in one pass on the vector unit with a 32-bit Dest; a root where it is a deviation.
Outcome spread(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"dim", "keepdim", "correction"})) return *refusal;
  const Tensor& x = c.input("x");
  const Extent e = extent_of(x.shape);
  const ttc::Json* dim = ttc::find_member(c.params, "dim");
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  if (dim == nullptr || dim->is_array() || (ttc::as_int(*dim) != -1 && ttc::as_int(*dim) != rank - 1) || e.cols == 0)
    return ttc::Reason{ttc::ReasonCode::Unimplemented, c.op + " over another dim than the last"};
  Tensor out{.name = {}, .shape = c.expected.at(0).shape, .dtype = DataType::float32, .values = {}};
  for (std::int64_t r = 0; r < e.batch * e.rows; ++r) {
    const float variance = exact::variance(x.values.data() + r * e.cols, e.cols, 1, 1.0F);
    const auto bits = std::bit_cast<std::uint32_t>(variance);
    out.values.push_back(
        c.op == "var" ? variance : std::bit_cast<float>(sfpu::apply(sfpu::Function::sqrt, {}, Dest::bits32, bits)));
  }
  return Outputs{packed_as(std::move(out), c.expected.at(0))};
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(attention_softmax, "attention_softmax", ttrt::replay::masked_softmax, "x mask")
TTRT_REGISTER_REPLAY(attention_softmax_inplace, "attention_softmax_", ttrt::replay::masked_softmax, "x mask")
TTRT_REGISTER_REPLAY(scale_mask_softmax, "scale_mask_softmax", ttrt::replay::masked_softmax, "x mask")
TTRT_REGISTER_REPLAY(var, "var", ttrt::replay::spread)
TTRT_REGISTER_REPLAY(std, "std", ttrt::replay::spread)
