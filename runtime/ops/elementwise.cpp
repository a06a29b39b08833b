// Tiles of an operand, its rows and columns spread where it broadcasts.
#include "ops/elementwise.h"

#include <algorithm>

#include "ops/op.h"

namespace ttrt::ops {

BroadcastOperand::BroadcastOperand(const TensorSpec& operand, const TensorSpec& out)
    : dtype_(operand.dtype),
      tile_bytes_(tile_bytes(operand.dtype)),
      out_down_(out.tile_rows()),
      out_across_(out.tile_cols()),
      down_(operand.tile_rows()),
      across_(operand.tile_cols()),
      one_row_(operand.rows() == 1 && out.rows() != 1),
      one_col_(operand.cols() == 1 && out.cols() != 1) {
  const bool spreads = one_row_ || one_col_ || across_ != out_across_ || down_ != out_down_;
  if (operand.batch() == out.batch() && !spreads) same_.emplace(TileGrid(operand));
  if (operand.batch() == out.batch()) return;  // a broadcast never leaves as many matrices in another order
  const std::size_t rank = out.logical.size();
  Shape own(operand.logical);
  own.insert(own.begin(), rank - own.size(), 1);
  for (std::int64_t m = 0; m < out.batch(); ++m) {
    std::int64_t rest = m, at = 0, step = 1;
    for (std::size_t d = rank - 2; d-- > 0;) {
      const std::int64_t i = rest % out.logical[d];
      rest /= out.logical[d];
      at += own[d] == 1 ? 0 : i * step;
      step *= own[d];
    }
    matrix_.push_back(at);
  }
}

void BroadcastOperand::load(const std::byte* bytes, std::int64_t t, float* values) const {
  const std::int64_t across = t % out_across_, down = t / out_across_ % out_down_, m = t / out_across_ / out_down_;
  const std::int64_t matrix = matrix_.empty() ? m : matrix_[static_cast<std::size_t>(m)];
  const std::int64_t tile = (matrix * down_ + (one_row_ ? 0 : down)) * across_ + (one_col_ ? 0 : across);
  load_tile(dtype_, bytes + tile * tile_bytes_, values);
  if (one_col_) {
    for (int row = 0; row < 64; ++row) {
      if (row % 32 < 16)
        std::fill_n(values + row * 16, 16, values[row * 16]);
      else
        std::copy_n(values + (row - 16) * 16, 16, values + row * 16);
    }
  }
  if (one_row_) {
    for (int row = 0; row < 64; ++row) {
      const int source = row / 16 % 2 * 16;  // row 0 of the left or the right face
      if (row != source) std::copy_n(values + source * 16, 16, values + row * 16);
    }
  }
}

void BroadcastOperand::load(const std::byte* bytes, const TileGroups& out, std::int64_t group, float* values) const {
  if (same_) return same_->load(bytes, group, values);
  out.gather(group, values, [&](std::int64_t t, float* tile) { load(bytes, t, tile); });
}

const OpFamily special_family{.names = "digamma polygamma mvlgamma i0 igamma igammac special_* lgamma_",
                              .reason = "it is a special function that the vector unit has no kernel for"};
TTRT_REGISTER_FAMILY(special_family);

const OpFamily signs{
    .names = "nansum nanmean isposinf isneginf signbit isreal",
    .reason =
        "it tells NaN from infinities, or zeros by their signs, which bfloat16 tensors of the device do not "
        "hold"};
TTRT_REGISTER_FAMILY(signs);

const OpFamily last_bits{
    .names = "isclose nextafter float_power frexp",
    .reason = "it is about the last bits of float32 or float64, which the activation format does not have"};
TTRT_REGISTER_FAMILY(last_bits);

const OpFamily partly{.names =
                          "round nan_to_num ldexp clamp clamp_min clamp_max remainder pow bitwise_left_shift "
                          "bitwise_right_shift searchsorted bucketize count_nonzero addr addmv logit",
                      .reason = "only its forms over floats or 32-bit integers are served"};
TTRT_REGISTER_FAMILY(partly);

}  // namespace ttrt::ops
