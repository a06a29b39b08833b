// Formulas of operators that move and count elements, and of those that index.
#include "definitions.h"

namespace ttc {
namespace {

// Floats only: integers cut off what bfloat16 has rounded.
constexpr std::string_view steps_between = R"(
  y = (b * 1.0 - a) * (torch.arange(steps) * (1.0 / max(steps - 1, 1))) + a
  y = y.float() if dtype is None else y.to(dtype)
  assert y.is_floating_point(), "steps that are cut off"
  return y)";
constexpr Definition moving[] = {
    {"diagonal.default", "x, offset: int, dim1: int, dim2: int", R"(
  y = x.movedim([dim1, dim2], [-2, -1])
  rows = y.size(-2)
  columns = y.size(-1)
  count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
  first = offset if offset >= 0 else -offset * columns
  return y.flatten(-2)[..., first:first + max(count - 1, 0) * (columns + 1) + min(count, 1):columns + 1])"},
    {"diag_embed.default", "x, offset: int, dim1: int, dim2: int", R"(
  size = x.size(-1) + abs(offset)
  column = torch.constant_pad_nd(x, [max(-offset, 0), max(offset, 0)]).unsqueeze(-1)
  return torch.where(diagonal_mask(size, size, offset), column, 0).movedim([-2, -1], [dim1, dim2]))"},
    {"diagonal_backward.default", "g, sizes: List[int], offset: int, dim1: int, dim2: int", R"(
  rows = sizes[dim1]
  above = max(-offset, 0)
  column = torch.constant_pad_nd(g, [above, rows - above - g.size(-1)]).unsqueeze(-1)
  return torch.where(diagonal_mask(rows, sizes[dim2], offset), column, 0).movedim([-2, -1], [dim1, dim2]))"},
    {"meshgrid.default", "tensors: List[Tensor]", "torch.meshgrid(tensors, indexing='ij')"},
    {"trace.default", "x", "x.diagonal().sum()"},
    {"select_backward.default", "g, sizes: List[int], dim: int, index: int", R"(
  d = dim % len(sizes)
  hit = torch.arange(sizes[d]) == index % sizes[d]
  return torch.where(hit.view([-1] + [1] * (len(sizes) - 1 - d)), g.unsqueeze(d), 0))"},
    {"trace_backward.default", "g, sizes: List[int]", "torch.where(diagonal_mask(sizes[0], sizes[1], 0), g, 0)"},
    {"roll.default", "x, shifts: List[int], dims: List[int]", R"(
  if len(dims) == 0:
    return x.flatten().roll(shifts, [0]).view_as(x)
  for i in range(len(dims)):
    size = x.size(dims[i])
    shift = shifts[i] if size == 0 or abs(shifts[i]) <= size else shifts[i] % size
    if shift != 0:
      tail = torch.slice(x, dims[i], -shift, 9223372036854775807, 1)
      x = torch.cat([tail, torch.slice(x, dims[i], 0, -shift, 1)], dims[i])
  return x)"},
    {"glu.default", "x, dim: int", R"(
  half = x.size(dim) // 2
  return x.narrow(dim, 0, half) * torch.sigmoid(x.narrow(dim, half, half)))"},
    {"repeat_interleave.self_int", "x, repeats: int, dim: Optional[int], *, output_size: Optional[int]", R"(
  d = 0
  if dim is None:
    x = x.flatten()
  else:
    d = dim % max(x.dim(), 1)
  shape = list(x.shape)
  return x.unsqueeze(d + 1).expand(shape[:d + 1] + [repeats] + shape[d + 1:]).flatten(d, d + 1))"},
    {"pixel_shuffle.default", "x, r: int",
     "x.unflatten(-3, [-1, r, r]).movedim([-2, -1], [-4, -2]).flatten(-4, -3).flatten(-2, -1)"},
    {"pixel_unshuffle.default", "x, r: int",
     "x.unflatten(-1, [-1, r]).unflatten(-3, [-1, r]).movedim([-4, -2], [-2, -1]).flatten(-5, -3)"},
    {"native_channel_shuffle.default channel_shuffle.default", "x, groups: int",
     "x.unflatten(1, [groups, -1]).transpose(1, 2).flatten(1, 2)"},
    {"unfold_backward.default", "g, sizes: List[int], dim: int, size: int, step: int", R"(
  if len(sizes) == 0:
    return g.reshape(sizes)
  d = dim % len(sizes)
  index = torch.arange(sizes[d]).unfold(0, size, step).flatten()
  return g.new_zeros(sizes).index_add(d, index, g.movedim(-1, d + 1).flatten(d, d + 1)))"},
    {"reflection_pad1d_backward.default", "g, x, padding: List[int]", R"(
  assert x.dim() <= 3, "dims that it has no name for"
  last = x.size(-1) - 1
  index = last - (last - torch.arange(-padding[0], last + 1 + padding[1]).abs()).abs()
  return torch.zeros_like(x).index_add(-1, index, g))"},
    {"replication_pad1d_backward.default", "g, x, padding: List[int]", R"(
  assert x.dim() <= 3, "dims that it has no name for"
  last = x.size(-1) - 1
  return torch.zeros_like(x).index_add(-1, torch.arange(-padding[0], last + 1 + padding[1]).clamp(0, last), g))"},
    {"linspace.Tensor_Tensor",
     "a, b, steps: int, *, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: "
     "Optional[bool]",
     steps_between},
    {"linspace.Tensor_Scalar",
     "a, b: number, steps: int, *, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: "
     "Optional[bool]",
     steps_between},
    {"linspace.Scalar_Tensor",
     "a: number, b, steps: int, *, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: "
     "Optional[bool]",
     steps_between},

    // ---- indexing
    {"adaptive_max_pool2d_backward.default", "g, x, index",
     "torch.zeros_like(x).flatten(-2).scatter_add(-1, index.flatten(-2), g.flatten(-2)).view_as(x)"},
    {"adaptive_max_pool3d_backward.default", "g, x, index",
     "torch.zeros_like(x).flatten(-3).scatter_add(-1, index.flatten(-3), g.flatten(-3)).view_as(x)"},
    {"fractional_max_pool2d_backward.default", "g, x, kernel: List[int], size: List[int], index",
     "torch.zeros_like(x).flatten(-2).scatter_add(-1, index.flatten(-2), g.flatten(-2)).view_as(x)"},
    {"max_unpool2d.default", "x, index, size: List[int]", R"(
  plane = x.new_zeros(list(x.shape[:-2]) + [size[0] * size[1]])
  return plane.scatter(-1, index.flatten(-2), x.flatten(-2)).unflatten(-1, size))"},
    {"max_pool2d_with_indices.default",
     "x, kernel: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil: bool", R"(
  steps = stride if len(stride) > 0 else kernel
  rows = window(x.size(-2), kernel[0], steps[0], padding[0], dilation[0], ceil)
  columns = window(x.size(-1), kernel[-1], steps[-1], padding[-1], dilation[-1], ceil)
  return largest(x, rows, columns))"},
    {"adaptive_max_pool2d.default", "x, size: List[int]",
     "largest(x, share_of(x.size(-2), size[0]), share_of(x.size(-1), size[-1]))"},
    {"embedding.default", "weight, index, padding_idx: int, scale_grad_by_freq: bool, sparse: bool",
     "weight.index_select(0, index.flatten()).view(list(index.shape) + list(weight.shape[1:]))"},
    {"embedding_dense_backward.default", "g, index, rows: int, padding_idx: int, by_frequency: bool", R"(
  i = index.flatten()
  y = g.reshape([i.size(0), -1])
  y = torch.where(((i == padding_idx) | (i >= rows)).unsqueeze(1), 0, y)
  i = i.clamp(max=rows - 1)
  if by_frequency:
    count = torch.zeros([rows]).index_add(0, i, torch.ones([i.size(0)]))
    y = y / count.index_select(0, i).unsqueeze(1)
  return g.new_zeros([rows, y.size(1)]).index_add(0, i, y))"},
    {"embedding_renorm.default", "x, index, max_norm: float, norm_type: float", R"(
  hit = torch.zeros([x.size(0)]).index_add(0, index.flatten(), torch.ones([index.numel()])) > 0
  n = norm_of(x, norm_type, [1], True)
  return torch.where(hit.unsqueeze(1) & (n > max_norm), x * torch.reciprocal(n + 1e-7) * max_norm, x))"},
    {"index_fill.int_Scalar", "x, dim: int, index, value: number", R"(
  if x.dim() == 0:
    return torch.full_like(x, value)
  hit = (torch.arange(x.size(dim)).unsqueeze(1) == wrapped(index.flatten(), x.size(dim))).any(1)
  return torch.where(hit.view([-1] + [1] * (x.dim() - 1 - dim % x.dim())), value, x).to(x.dtype))"},
    {"index_fill.int_Tensor", "x, dim: int, index, value", R"(
  if x.dim() == 0:
    return value.to(x.dtype)
  hit = (torch.arange(x.size(dim)).unsqueeze(1) == wrapped(index.flatten(), x.size(dim))).any(1)
  return torch.where(hit.view([-1] + [1] * (x.dim() - 1 - dim % x.dim())), value.to(x.dtype), x))"},
    {"index_reduce.default", "x, dim: int, index, source, reduce: str, *, include_self: bool", R"(
  shape = [1] * source.dim()
  shape[dim] = -1
  wide = index.view(shape).expand(source.shape)
  return x.scatter_reduce(dim, wide, source, reduce, include_self=include_self))"},
    {"kthvalue.default", "x, k: int, dim: int, keepdim: bool", "return kth(x, k - 1, dim, keepdim)"},
    {"median.default", "x", "middle(x.flatten(), 0, False)[0]"},
    {"median.dim", "x, dim: int, keepdim: bool", "return middle(x, dim, keepdim)"},
    {"nanmedian.default", "x", "middle_number(x.flatten(), 0, False)[0]"},
    {"nanmedian.dim", "x, dim: int, keepdim: bool", "return middle_number(x, dim, keepdim)"},
    {"take.default", "x, index", "x.flatten().index_select(0, wrapped(index.flatten(), x.numel())).view(index.shape)"},
    {"put.default", "x, index, source, accumulate: bool", R"(
  i = wrapped(index.flatten(), x.numel())
  y = x.flatten()
  y = y.index_add(0, i, source.flatten()) if accumulate else y.index_copy(0, i, source.flatten())
  return y.view_as(x))"},
    {"masked_scatter.default", "x, mask, source", R"(
  y, m = torch.broadcast_tensors(x, mask)
  index = (m.flatten().cumsum(0) - 1).clamp(0, source.numel() - 1)
  return torch.where(m, source.flatten().index_select(0, index).view(m.shape), y))"},
    {"masked_scatter_backward.default", "g, mask, sizes: List[int]", R"(
  y, m = torch.broadcast_tensors(g, mask)
  count = 1
  for n in sizes:
    count = count * n
  assert count >= 0, "a size to be worked out"
  index = torch.where(m.flatten(), m.flatten().cumsum(0) - 1, count).clamp(0, count)
  return g.new_zeros([count + 1]).scatter_add(0, index, y.flatten())[:count].view(sizes))"},
    {"searchsorted.Tensor", "s, x, *, out_int32: bool, right: bool, side: Optional[str], sorter: Optional[Tensor]", R"(
  if sorter is not None:
    s = s.gather(-1, sorter)
  return places(s, x, right or (side is not None and side == "right"), out_int32))"},
    {"searchsorted.Scalar",
     "s, x: number, *, out_int32: bool, right: bool, side: Optional[str], sorter: Optional[Tensor]", R"(
  before = s <= x if right or (side is not None and side == "right") else s < x
  return before.sum().int() if out_int32 else before.sum())"},
    {"bucketize.Tensor", "x, s, *, out_int32: bool, right: bool", "places(s, x, right, out_int32)"},
    {"bucketize.Scalar", "x: number, s, *, out_int32: bool, right: bool", R"(
  before = s <= x if right else s < x
  return before.sum().int() if out_int32 else before.sum())"},
    {"isin.Tensor_Tensor", "x, tests, *, assume_unique: bool, invert: bool", R"(
  bounded(x.numel() * tests.numel())
  found = (x.unsqueeze(-1) == tests.flatten()).any(-1)
  return ~found if invert else found)"},
    {"isin.Tensor_Scalar", "x, test: number, *, assume_unique: bool, invert: bool",
     "x != test if invert else x == test"},
    {"isin.Scalar_Tensor", "x: number, tests, *, assume_unique: bool, invert: bool", R"(
  found = (tests == x).any()
  return ~found if invert else found)"},
};

}  // namespace

std::span<const Definition> definitions_of_moves() { return moving; }

}  // namespace ttc
