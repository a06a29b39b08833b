// Data movement on device tensors: the values stay, their places change. Any format, TILE or ROW_MAJOR.
//
// Two phases: plan_... works out once, for concrete shapes, what goes where; Move::run then copies without allocating
// (but for a scratch area that each thread keeps and that grows to the largest plan it has run).
// Padding of the output is always zero.
// Block formats: a tile that moves as a whole keeps its bytes. Where elements are regrouped they are decoded (exactly)
// and packed again as the device's packer does: exact while each new group of 16 spans no more powers of two than the
// format has magnitude bits, else rounded to the group's largest exponent.
//
// All functions throw ttc::Error for shapes that do not fit together. Sizes and positions count elements; dims may be
// negative (from the end).
#pragma once

#include <memory>
#include <span>

#include "device/tensor.h"

namespace ttrt {

struct MovePlan;

class Move {
 public:
  explicit Move(std::shared_ptr<const MovePlan> plan);
  const TensorSpec& output() const;
  std::size_t inputs() const;
  // The bytes of each input and of the output, which overlaps none of them. May run on several threads at once.
  void run(std::span<const std::byte* const> in, std::byte* out) const;
  void run(const std::byte* in, std::byte* out) const { run(std::span(&in, 1), out); }
  void run(const DeviceTensor& in, const DeviceTensor& out) const { run(in.data(), out.data()); }
  // Of a move that is nothing but whole tiles of one input, none of them twice: where in the output each of these goes,
  // -1: nowhere. Of others empty.
  std::vector<std::int64_t> tile_places() const;

 private:
  std::shared_ptr<const MovePlan> plan_;
};

// Outputs have the input's dtype and layout and live in interleaved DRAM unless the caller changes the spec he
// allocates.

// Dim i of the output is dim dims[i] of the input.
Move plan_permute(const TensorSpec& in, std::span<const std::int64_t> dims);
Move plan_transpose(const TensorSpec& in, std::int64_t dim0, std::int64_t dim1);
// The same elements in row-major order under another shape of the same volume.
Move plan_reshape(const TensorSpec& in, const Shape& shape);
// Along dim d the elements start[d], start[d] + step[d], ... (count[d] of them; steps may be negative).
Move plan_slice(const TensorSpec& in, const Shape& start, const Shape& count, const Shape& step);
Move plan_concat(std::span<const TensorSpec> in, std::int64_t dim);
// Broadcast to `shape`: leading dims are added, dims of size 1 repeated.
Move plan_expand(const TensorSpec& in, const Shape& shape);
// The whole tensor `repeats[d]` times along dim d (leading dims may be added, as Tensor.repeat does).
Move plan_repeat(const TensorSpec& in, const Shape& repeats);
// `before` and `after` elements of `value` around each dim; negative numbers cut.
Move plan_pad(const TensorSpec& in, const Shape& before, const Shape& after, double value = 0);
// The other layout, the same elements.
Move plan_to_layout(const TensorSpec& in, Layout layout);

// Attention heads. in [B, S, W] or [S, W]: columns first ... first + heads * head_dim become [B, heads, S, head_dim],
// or [B, heads, head_dim, S] where `transposed` (B = 1 for rank 2).
struct HeadSlice {
  std::int64_t heads = 1, head_dim = 1;
  std::int64_t first = 0;
  bool transposed = false;
};
Move plan_split_heads(const TensorSpec& in, const HeadSlice& slice);
// [B, H, S, D] -> [B, S, H * D].
Move plan_merge_heads(const TensorSpec& in);

// Rows of a table by index: table [N, D], indices of any shape I (uint32 or int32), output I + [D].
// Output in `dtype` (bfloat16 or float32, TILE or ROW_MAJOR): exact where it can hold the table's values, else nearest
// even.
class GatherRows {
 public:
  GatherRows(const TensorSpec& table, const TensorSpec& indices, DataType dtype, Layout layout);
  const TensorSpec& output() const { return out_; }
  // Throws ttc::Error for an index outside [0, N); the output is then incomplete.
  void run(const std::byte* table, const std::byte* indices, std::byte* out) const;

 private:
  TensorSpec table_, indices_, out_;
};

}  // namespace ttrt
