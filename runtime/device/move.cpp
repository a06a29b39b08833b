// The moves, as affine copies. See move.h for what each does.
#include "device/move.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "device/move_plan.h"
#include "device/shard.h"
#include "support/error.h"

namespace ttrt {
namespace {

constexpr std::int64_t largest_padding = std::int64_t{1} << 40;

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

TensorSpec like(const TensorSpec& in, Shape shape) {
  TensorSpec out = in;
  out.logical = std::move(shape);
  out.memory = {};
  return out;
}

std::size_t checked_dim(std::int64_t dim, std::size_t rank, const char* what) {
  const auto r = static_cast<std::int64_t>(rank);
  if (dim < -r || dim >= r)
    throw ttc::usage_error(std::string(what) + ": dim " + std::to_string(dim) + " of a tensor with " +
                           std::to_string(rank) + " dims");
  return static_cast<std::size_t>(dim < 0 ? dim + r : dim);
}

void require_rank(const Shape& shape, std::size_t rank, const char* what) {
  if (shape.size() != rank)
    throw ttc::usage_error(std::string(what) + ": needs " + std::to_string(rank) + " numbers, got " +
                           std::to_string(shape.size()));
}

// Before anything is multiplied.
void require_sizes(const Shape& shape, const char* what) {
  for (const std::int64_t dim : shape)
    if (dim < 0) throw ttc::usage_error(std::string(what) + ": shape " + shape_text(shape) + " has a negative size");
  check_spec({shape, DataType::bfloat16, Layout::tile, {}});
}

// Loops over an axis of `size` elements that source and destination walk with these steps.
Axis axis(std::int64_t size, Step src, Step dst) { return {size, src.row, src.col, dst.row, dst.col}; }

Step times(Step step, std::int64_t n) { return {step.row * n, step.col * n}; }

void advance(AffineCopy& copy, Step src, std::int64_t n_src, Step dst, std::int64_t n_dst) {
  copy.src_row += src.row * n_src, copy.src_col += src.col * n_src;
  copy.dst_row += dst.row * n_dst, copy.dst_col += dst.col * n_dst;
}

}  // namespace

Move plan_permute(const TensorSpec& in, std::span<const std::int64_t> dims) {
  const std::size_t rank = in.logical.size();
  if (dims.size() != rank) throw ttc::usage_error("permute: needs one number per dim");
  std::vector<bool> seen(rank);
  Shape shape;
  std::vector<std::size_t> from;
  for (const std::int64_t dim : dims) {
    from.push_back(checked_dim(dim, rank, "permute"));
    if (seen[from.back()]) throw ttc::usage_error("permute: dim " + std::to_string(dim) + " appears twice");
    seen[from.back()] = true;
    shape.push_back(in.logical[from.back()]);
  }
  const std::vector<Step> src = steps_of(in.logical), dst = steps_of(shape);
  AffineCopy copy;
  for (std::size_t d = 0; d < rank; ++d) copy.axes.push_back(axis(shape[d], src[from[d]], dst[d]));
  return make_move({in}, like(in, std::move(shape)), {std::move(copy)});
}

Move plan_transpose(const TensorSpec& in, std::int64_t dim0, std::int64_t dim1) {
  const std::size_t rank = in.logical.size();
  if (rank == 0) {
    if (dim0 < -1 || dim0 > 0 || dim1 < -1 || dim1 > 0)
      throw ttc::usage_error("transpose: a tensor with 0 dims has no such dim");
    return plan_permute(in, {});
  }
  Shape dims(rank);
  for (std::size_t d = 0; d < rank; ++d) dims[d] = static_cast<std::int64_t>(d);
  std::swap(dims[checked_dim(dim0, rank, "transpose")], dims[checked_dim(dim1, rank, "transpose")]);
  return plan_permute(in, dims);
}

Move plan_reshape(const TensorSpec& in, const Shape& shape) {
  require_sizes(shape, "reshape");
  if (volume(shape) != volume(in.logical))
    throw ttc::usage_error("reshape: " + shape_text(in.logical) + " and " + shape_text(shape) +
                           " differ in the number of elements");
  return make_reshape(in, like(in, shape));
}

Move plan_slice(const TensorSpec& in, const Shape& start, const Shape& count, const Shape& step) {
  const std::size_t rank = in.logical.size();
  for (const Shape* numbers : {&start, &count, &step}) require_rank(*numbers, rank, "slice");
  require_sizes(count, "slice");
  const std::vector<Step> src = steps_of(in.logical), dst = steps_of(count);
  AffineCopy copy;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t size = in.logical[d], n = count[d];
    const std::int64_t room = step[d] < 0 ? start[d] : size - 1 - start[d];  // to the last element in that direction
    const bool inside = n == 0 || (start[d] >= 0 && start[d] < size && (n == 1 || std::abs(step[d]) <= room / (n - 1)));
    if (!inside)
      throw ttc::usage_error("slice: " + std::to_string(n) + " elements from " + std::to_string(start[d]) + " by " +
                             std::to_string(step[d]) + " lie outside dim " + std::to_string(d) + " of " +
                             shape_text(in.logical));
    advance(copy, src[d], start[d], {}, 0);
    copy.axes.push_back(axis(n, n > 1 ? times(src[d], step[d]) : Step{}, dst[d]));
  }
  return make_move({in}, like(in, count), {std::move(copy)});
}

Move plan_concat(std::span<const TensorSpec> in, std::int64_t dim) {
  if (in.empty()) throw ttc::usage_error("concat: no tensors");
  const std::size_t rank = in[0].logical.size(), along = checked_dim(dim, rank, "concat");
  Shape shape = in[0].logical;
  shape[along] = 0;
  for (const TensorSpec& spec : in) {
    Shape same = spec.logical;
    if (same.size() == rank) same[along] = in[0].logical[along];
    if (same != in[0].logical || spec.layout != in[0].layout)
      throw ttc::usage_error("concat: " + shape_text(in[0].logical) + " and " + shape_text(spec.logical) +
                             " do not fit together along dim " + std::to_string(dim));
    shape[along] += spec.logical[along];
  }
  const std::vector<Step> dst = steps_of(shape);
  std::vector<AffineCopy> copies;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::vector<Step> src = steps_of(in[i].logical);
    AffineCopy copy;
    copy.input = static_cast<int>(i);
    advance(copy, {}, 0, dst[along], at);
    for (std::size_t d = 0; d < rank; ++d) copy.axes.push_back(axis(in[i].logical[d], src[d], dst[d]));
    at += in[i].logical[along];
    copies.push_back(std::move(copy));
  }
  return make_move({in.begin(), in.end()}, like(in[0], std::move(shape)), std::move(copies));
}

Move plan_expand(const TensorSpec& in, const Shape& shape) {
  require_sizes(shape, "expand");
  const std::size_t rank = in.logical.size();
  if (shape.size() < rank)
    throw ttc::usage_error("expand: " + shape_text(shape) + " has fewer dims than " + shape_text(in.logical));
  const std::size_t added = shape.size() - rank;
  const std::vector<Step> src = steps_of(in.logical), dst = steps_of(shape);
  AffineCopy copy;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool copied = d >= added && in.logical[d - added] == shape[d];
    if (!copied && d >= added && in.logical[d - added] != 1)
      throw ttc::usage_error("expand: " + shape_text(in.logical) + " cannot become " + shape_text(shape));
    copy.axes.push_back(axis(shape[d], copied ? src[d - added] : Step{}, dst[d]));
  }
  return make_move({in}, like(in, shape), {std::move(copy)});
}

Move plan_repeat(const TensorSpec& in, const Shape& repeats) {
  require_sizes(repeats, "repeat");
  const std::size_t rank = in.logical.size();
  if (repeats.size() < rank)
    throw ttc::usage_error("repeat: needs a number for each of " + std::to_string(rank) + " dims");
  const std::size_t added = repeats.size() - rank;
  Shape sizes(added, 1), shape;
  sizes.insert(sizes.end(), in.logical.begin(), in.logical.end());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 0 && repeats[d] > largest_padding / sizes[d]) throw ttc::usage_error("repeat: too large");
    shape.push_back(sizes[d] * repeats[d]);
  }
  require_sizes(shape, "repeat");
  const std::vector<Step> src = steps_of(sizes), dst = steps_of(shape);
  AffineCopy copy;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    copy.axes.push_back(axis(repeats[d], {}, times(dst[d], sizes[d])));
    copy.axes.push_back(axis(sizes[d], src[d], dst[d]));
  }
  return make_move({in}, like(in, std::move(shape)), {std::move(copy)});
}

Move plan_pad(const TensorSpec& in, const Shape& before, const Shape& after, double value) {
  const std::size_t rank = in.logical.size();
  require_rank(before, rank, "pad");
  require_rank(after, rank, "pad");
  Shape shape;
  for (std::size_t d = 0; d < rank; ++d) {
    if (std::abs(before[d]) > largest_padding || std::abs(after[d]) > largest_padding)
      throw ttc::usage_error("pad: too large");
    shape.push_back(in.logical[d] + before[d] + after[d]);
  }
  require_sizes(shape, "pad");
  const std::vector<Step> src = steps_of(in.logical), dst = steps_of(shape);
  AffineCopy copy;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t cut_front = std::max<std::int64_t>(-before[d], 0),
                       cut_back = std::max<std::int64_t>(-after[d], 0);
    advance(copy, src[d], cut_front, dst[d], std::max<std::int64_t>(before[d], 0));
    copy.axes.push_back(axis(std::max<std::int64_t>(in.logical[d] - cut_front - cut_back, 0), src[d], dst[d]));
  }
  return make_move({in}, like(in, std::move(shape)), {std::move(copy)}, value);
}

Move plan_to_layout(const TensorSpec& in, Layout layout) {
  TensorSpec out = like(in, in.logical);
  out.layout = layout;
  if (layout == Layout::row_major && is_block_format(in.dtype))
    throw ttc::usage_error(std::string(to_string(in.dtype)) + " tensors must be in TILE layout");
  return make_reshape(in, std::move(out));
}

Move plan_split_heads(const TensorSpec& in, const HeadSlice& slice) {
  const std::size_t rank = in.logical.size();
  if (rank != 2 && rank != 3)
    throw ttc::usage_error("split_heads: needs [B, S, W] or [S, W], got " + shape_text(in.logical));
  const std::int64_t batch = rank == 3 ? in.logical[0] : 1, length = in.rows(), width = in.cols();
  const std::int64_t heads = slice.heads, dim = slice.head_dim, first = slice.first;
  if (heads < 1 || dim < 1 || first < 0 || heads > width || dim > width || first > width - heads * dim)
    throw ttc::usage_error("split_heads: " + std::to_string(heads) + " heads of " + std::to_string(dim) +
                           " columns from column " + std::to_string(first) + " do not fit " + shape_text(in.logical));
  Shape shape{batch, heads, length, dim};
  if (slice.transposed) std::swap(shape[2], shape[3]);
  const std::vector<Step> dst = steps_of(shape);
  AffineCopy copy;
  copy.src_col = first;
  copy.axes = {axis(batch, {length, 0}, dst[0]), axis(heads, {0, dim}, dst[1]),
               axis(length, {1, 0}, dst[slice.transposed ? 3 : 2]), axis(dim, {0, 1}, dst[slice.transposed ? 2 : 3])};
  return make_move({in}, like(in, std::move(shape)), {std::move(copy)});
}

Move plan_merge_heads(const TensorSpec& in) {
  if (in.logical.size() != 4) throw ttc::usage_error("merge_heads: needs [B, H, S, D], got " + shape_text(in.logical));
  const std::int64_t batch = in.logical[0], heads = in.logical[1], length = in.logical[2], dim = in.logical[3];
  AffineCopy copy;
  copy.axes = {axis(batch, {heads * length, 0}, {length, 0}), axis(heads, {length, 0}, {0, dim}),
               axis(length, {1, 0}, {1, 0}), axis(dim, {0, 1}, {0, 1})};
  return make_move({in}, like(in, {batch, length, heads * dim}), {std::move(copy)});
}

}  // namespace ttrt
