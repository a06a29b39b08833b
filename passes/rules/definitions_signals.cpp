// Formulas of operators on signals and images: Fourier transforms as products with matrices of sines and cosines, frames
// of a signal as convolutions, patches of images, grids.
#include "definitions.h"

namespace ttc {
namespace {

constexpr Definition signals[] = {
    // ---- spectra
    {"_fft_r2c.default", "x, dims: List[int], way: int, onesided: bool", R"(
  d = dims[len(dims) - 1]
  n = x.size(d)
  rows = n // 2 + 1 if onesided else n
  angle = turns(rows, n, n, x)
  scale = spectral_scale(n, way)
  y = x.movedim(d, -1)
  re = torch.linear(y, angle.cos() * scale).movedim(-1, d)
  im = torch.linear(y, angle.sin() * -scale).movedim(-1, d)
  for i in range(len(dims) - 1):
    re, im = spectrum(re, im, dims[i], way, True)
  return torch.complex(re, im))"},
    {"_fft_c2c.default", "z, dims: List[int], way: int, forward: bool", R"(
  re = torch.real(z)
  im = torch.imag(z)
  for i in range(len(dims)):
    re, im = spectrum(re, im, dims[i], way, forward)
  return torch.complex(re, im))"},
    {"_fft_c2r.default", "z, dims: List[int], way: int, n: int", R"(
  re = torch.real(z)
  im = torch.imag(z)
  d = dims[len(dims) - 1]
  for i in range(len(dims) - 1):
    re, im = spectrum(re, im, dims[i], way, False)
  of_re, of_im = half_inverse(re.size(d), n, re)
  scale = spectral_scale(n, way)
  return parts_product(re, im, d, of_re * scale, of_im * scale))"},
    {"stft.default",
     "x, n: int, hop: Optional[int], length: Optional[int], window: Optional[Tensor], normalized: bool, onesided: "
     "Optional[bool], return_complex: Optional[bool], align: Optional[bool]",
     "return frames_spectrum(x, n, hop, length, window, normalized, onesided, return_complex, align)"},
    {"stft.center",
     "x, n: int, hop: Optional[int], length: Optional[int], window: Optional[Tensor], center: bool, pad_mode: str, "
     "normalized: bool, onesided: Optional[bool], return_complex: Optional[bool], align: Optional[bool]",
     R"(
  y = x
  if center:
    y = torch.pad(x.view([1] * (3 - x.dim()) + list(x.shape)), [n // 2, n // 2], pad_mode)
    y = y.view(list(x.shape[:-1]) + [x.size(-1) + n // 2 * 2])
  return frames_spectrum(y, n, hop, length, window, normalized, onesided, return_complex, align))"},
    {"istft.default",
     "z, n: int, hop: Optional[int], length: Optional[int], window: Optional[Tensor], center: bool, normalized: bool, "
     "onesided: Optional[bool], samples: Optional[int], return_complex: bool",
     R"(
  assert not return_complex, "a complex signal"
  re = torch.real(z)
  im = torch.imag(z)
  if z.dim() == 2:
    re = re.unsqueeze(0)
    im = im.unsqueeze(0)
  step = hop if hop is not None else n // 4
  rows = re.size(1)
  w = whole_window(window, length if length is not None else n, n, re)
  if onesided if onesided is not None else rows != n:
    of_re, of_im = half_inverse(rows, n, re)
  else:
    angle = turns(n, n, n, re)
    of_re = angle.cos()
    of_im = -angle.sin()
  kernel = torch.cat([of_re, of_im], 1).t() * (w * (1.0 / float(n) ** 0.5 if normalized else 1.0 / n))
  y = torch.conv_transpose1d(torch.cat([re, im], 1), kernel.unsqueeze(1), None, [step]).squeeze(1)
  weight = torch.conv_transpose1d(torch.ones([1, 1, re.size(2)], dtype=re.dtype), (w * w).view([1, 1, n]), None, [step])
  first = n // 2 if center else 0
  whole = n + step * (re.size(2) - 1)
  count = whole - first - (n // 2 if center else 0)
  if samples is not None:
    assert samples <= whole - first, "more samples than the frames have"
    count = samples
  y = y.narrow(1, first, count) / weight.squeeze(1).narrow(1, first, count)
  return y.squeeze(0) if z.dim() == 2 else y)"},

    // ---- images
    {"im2col.default", "x, kernel: List[int], dilation: List[int], padding: List[int], stride: List[int]", R"(
  y = torch.constant_pad_nd(x, [padding[1], padding[1], padding[0], padding[0]])
  high = (y.size(-2) - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
  wide = (y.size(-1) - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
  rows = torch.arange(kernel[0]).unsqueeze(1) * dilation[0] + torch.arange(high) * stride[0]
  columns = torch.arange(kernel[1]).unsqueeze(1) * dilation[1] + torch.arange(wide) * stride[1]
  y = y.index_select(-2, rows.flatten()).index_select(-1, columns.flatten())
  y = y.unflatten(-1, [kernel[1], wide]).unflatten(-3, [kernel[0], high]).transpose(-3, -2)
  return y.flatten(-2).flatten(-4, -2))"},
    {"col2im.default",
     "x, size: List[int], kernel: List[int], dilation: List[int], padding: List[int], stride: List[int]", R"(
  width = size[1] + 2 * padding[1]
  height = size[0] + 2 * padding[0]
  high = (height - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
  wide = (width - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
  rows = torch.arange(kernel[0]).view(-1, 1, 1, 1) * dilation[0] + torch.arange(high).view(-1, 1) * stride[0]
  columns = torch.arange(kernel[1]).view(-1, 1, 1) * dilation[1] + torch.arange(wide) * stride[1]
  y = x.unflatten(-2, [-1, kernel[0] * kernel[1]]).flatten(-2)
  plane = y.new_zeros(list(y.shape[:-1]) + [height * width])
  plane = plane.index_add(-1, (rows * width + columns).flatten(), y).unflatten(-1, [height, width])
  return plane.narrow(-2, padding[0], size[0]).narrow(-1, padding[1], size[1]))"},
    {"affine_grid_generator.default", "theta, size: List[int], corners: bool", R"(
  # Places between -1 and 1 along each dim, the last dim first; then a 1.
  rank = len(size) - 2
  places: List[Tensor] = []
  for i in range(rank):
    n = size[len(size) - 1 - i]
    line = (torch.arange(n).to(theta.dtype) * 2 - (n - 1)) * (1.0 / max(n - 1 if corners else n, 1))
    places.append(line.view([-1] + [1] * i).expand(size[2:]))
  places.append(torch.ones(size[2:], dtype=theta.dtype))
  y = torch.matmul(torch.stack(places, -1).flatten(0, -2), theta.transpose(1, 2))
  return y.unflatten(1, size[2:]))"},
    {"rot90.default", "x, k: int, dims: List[int]", R"(
  times = k % 4
  if times == 2:
    return x.flip(dims)
  if times == 1:
    return x.flip([dims[1]]).transpose(dims[0], dims[1])
  if times == 3:
    return x.flip([dims[0]]).transpose(dims[0], dims[1])
  return x)"},
    {"fill.Tensor", "x, value", "value.to(x.dtype).expand(x.shape)"},

    // ---- products of three
    {"bilinear.default", "a, b, w, bias: Optional[Tensor]", R"(
  y = torch.matmul(a, w.transpose(1, 2).flatten(0, 1).t()).unflatten(-1, [w.size(0), -1])
  y = (y * b.unsqueeze(-2)).sum(-1)
  return y if bias is None else y + bias)"},
    {"_trilinear.default",
     "a, b, c, new_a: List[int], new_b: List[int], new_c: List[int], over: List[int], unroll: int", R"(
  if new_a == [1, 3] and new_b == [0] and new_c == [1, 2] and over == [2, 3]:
    return torch.bilinear(a, c, b, None)
  for d in new_a:
    a = a.unsqueeze(d)
  for d in new_b:
    b = b.unsqueeze(d)
  for d in new_c:
    c = c.unsqueeze(d)
  x, y, z = torch.broadcast_tensors([a, b, c])
  bounded(x.numel())
  return (x * y * z).sum(over))"},

    // ---- bags of embeddings: which elements each bag has, times the rows
    {"_embedding_bag.default _embedding_bag_forward_only.default",
     "weight, index, offsets, by_frequency: bool, mode: int, sparse: bool, factors: Optional[Tensor], last: bool, "
     "padding: int",
     R"(
  start = offsets.narrow(0, 0, offsets.size(0) - 1) if last else offsets
  count = start.size(0)
  bounded(count * index.size(0))
  before = torch.arange(index.size(0)).unsqueeze(0) >= start.unsqueeze(1)
  behind = torch.constant_pad_nd(before.narrow(0, 1, count - 1).to(weight.dtype), [0, 0, 0, 1]) > 0
  if last:
    behind = torch.arange(index.size(0)).unsqueeze(0) >= offsets.narrow(0, 1, count).unsqueeze(1)
  has = before & ~behind
  if padding >= 0:
    has = has & (index != padding).unsqueeze(0)
  rows = weight.index_select(0, index)
  share = has.to(weight.dtype)
  size = share.sum(1)
  if mode == 2:
    bounded(count * rows.numel())
    y = torch.where(has.unsqueeze(2), rows.unsqueeze(0), -float("inf")).amax(1)
    y = torch.where((size == 0).unsqueeze(1), 0, y)
  else:
    if factors is not None:
      share = share * factors
    y = torch.mm(share, rows)
    if mode == 1:
      y = y / size.clamp(min=1.0).unsqueeze(1)
  bag = before.to(index.dtype).sum(0) - 1
  return y, bag, size.to(index.dtype), size.to(index.dtype))"},
};

}  // namespace

std::span<const Definition> definitions_of_signals() { return signals; }

}  // namespace ttc
