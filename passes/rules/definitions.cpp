// Formulas of operators for which LibTorch has kernels only, in TorchScript: they run on the Meta device under the same
// recording as LibTorch's own definitions (pass composites), so dtypes promote and sizes broadcast as ATen has it, and
// loops and branches over numbers and shapes are decided. One row an operator, or several that share their arguments:
// names without namespace, parameters in schema order, the body. What reads the values of a tensor does not work here.
#include <map>

#include "definitions.h"

namespace ttc {
namespace {

// For use in bodies.
constexpr std::string_view helpers = R"(
def reduced(x, reduction: int):
  if reduction == 1:
    return x.mean()
  if reduction == 2:
    return x.sum()
  return x

def share(x, reduction: int):
  return 1.0 / x.numel() if reduction == 1 else 1.0

def real(x):
  return x if x.is_floating_point() else x.float()

# A number as a tensor like x, of the dtype that both have in common.
def like(number_: number, x):
  return torch.zeros_like(x) + number_

# Two operands of one dtype, as elementwise kernels compute in.
def common(a, b):
  dtype = torch.result_type(a, b)
  return a.to(dtype), b.to(dtype)

def wrapped(index, size: int):
  return torch.where(index < 0, index + size, index)

def bounded(count: int):
  assert count <= 1048576, "too many elements to write down"

# 2 pi j k / n of row j and column k, whole turns left out.
def turns(rows: int, columns: int, n: int, like):
  assert n <= 2048, "a spectrum of that many points as one product"
  at = (torch.arange(rows).unsqueeze(1) * torch.arange(columns)) % n
  return at.to(like.dtype) * (6.283185307179586 / n)

# As LibTorch numbers its ways to scale spectra.
def spectral_scale(n: int, way: int):
  if way == 0:
    return 1.0
  return 1.0 / float(n) ** 0.5 if way == 1 else 1.0 / n

# Sums over a dim of both parts, with factors for either; [columns, terms] each.
def parts_product(re, im, dim: int, of_re, of_im):
  both = torch.cat([re.movedim(dim, -1), im.movedim(dim, -1)], -1)
  return torch.linear(both, torch.cat([of_re, of_im], -1)).movedim(-1, dim)

def spectrum(re, im, dim: int, way: int, forward: bool):
  n = re.size(dim)
  angle = turns(n, n, n, re)
  scale = spectral_scale(n, way)
  c = angle.cos() * scale
  s = angle.sin() * (scale if forward else -scale)
  return parts_product(re, im, dim, c, s), parts_product(re, im, dim, -s, c)

# Of a spectrum's first half: what its real signal of n points has of each frequency's parts; [n, rows] each.
def half_inverse(rows: int, n: int, like):
  angle = turns(n, rows, n, like)
  k = torch.arange(rows)
  twice = torch.where((k == 0) | (k * 2 == n), 1.0, 2.0)
  return angle.cos() * twice, -angle.sin() * twice

# A window of n points with the given one in its middle; ones where there is none.
def whole_window(window: Optional[Tensor], length: int, n: int, like):
  w = torch.ones([length], dtype=like.dtype)
  if window is not None:
    w = window.to(like.dtype)
  left = (n - length) // 2
  if length < n:
    w = torch.constant_pad_nd(w, [left, n - length - left])
  return w

# The spectrum of each frame, as a convolution: its kernels are the window times a cosine or a sine.
def frames_spectrum(x, n: int, hop: Optional[int], length: Optional[int], window: Optional[Tensor], normalized: bool,
                    onesided: Optional[bool], return_complex: Optional[bool], align: Optional[bool]):
  assert x.is_floating_point() and (align is None or not align), "complex signals, or frames at the window"
  step = hop if hop is not None else n // 4
  rows = n // 2 + 1 if onesided is None or onesided else n
  angle = turns(rows, n, n, x)
  w = whole_window(window, length if length is not None else n, n, x)
  if normalized:
    w = w * (1.0 / float(n) ** 0.5)
  kernel = (torch.cat([angle.cos(), -angle.sin()]) * w).unsqueeze(1)
  y = x.unsqueeze(0) if x.dim() == 1 else x
  z = torch.conv1d(y.unsqueeze(1), kernel, None, [step])
  re = z.narrow(1, 0, rows)
  im = z.narrow(1, rows, rows)
  if x.dim() == 1:
    re = re.squeeze(0)
    im = im.squeeze(0)
  if return_complex is not None and return_complex:
    return torch.complex(re, im)
  return torch.stack([re, im], -1)

# [rows, columns]: where column - row is the offset.
def diagonal_mask(rows: int, columns: int, offset: int):
  return torch.arange(columns) - torch.arange(rows).unsqueeze(1) == offset

# y and a share of x, of which there is none where the share is 0, whatever x holds.
def sum_of(x, beta: number, y, alpha: number):
  if alpha != 1:
    y = y * alpha
  if beta == 0:
    return y
  return x + y if beta == 1 else x * beta + y

# The k-th of the sorted elements of each line, and where it was.
def kth(x, k: int, dim: int, keepdim: bool):
  values, places = torch.sort(x, dim)
  value = values.narrow(dim, k, 1)
  place = places.narrow(dim, k, 1)
  if keepdim:
    return value, place
  return value.squeeze(dim), place.squeeze(dim)

# The lower one of two in the middle.
def middle(x, dim: int, keepdim: bool):
  value, place = kth(x, (x.size(dim) - 1) // 2, dim, keepdim)
  if x.is_floating_point():
    value = torch.where((x != x).any(dim, keepdim), float("nan"), value)
  return value, place

# Of the elements that are numbers; the others come last.
def middle_number(x, dim: int, keepdim: bool):
  values, places = torch.sort(x, dim)
  at = (((x == x).sum(dim, True) - 1) >> 1).clamp(min=0)
  value = values.gather(dim, at)
  place = places.gather(dim, at)
  if keepdim:
    return value, place
  return value.squeeze(dim), place.squeeze(dim)

def axes(x, dims: Optional[List[int]]):
  return dims if dims is not None and len(dims) > 0 else list(range(x.dim()))

def norm_of(x, p: float, dims: List[int], keep: bool):
  assert p == 0 or abs(p) >= 0.25, "roots of that order need more bits than the device's formats have"
  if p == 0:
    return (x != 0).sum(dims, keep).to(x.dtype)
  if p == float("inf"):
    return x.abs().amax(dims, keep)
  if p == -float("inf"):
    return x.abs().amin(dims, keep)
  if p == 1:
    return x.abs().sum(dims, keep)
  if p == 2:
    return (x * x).sum(dims, keep).sqrt()
  return (x.abs() ** p).sum(dims, keep) ** (1.0 / p)

# The largest elements of windows of rows and columns, and their places in the plane. -1: no row or column.
def largest(x, rows, columns):
  width = x.size(-1)
  index = rows.unsqueeze(1).unsqueeze(3) * width + columns.unsqueeze(0).unsqueeze(2)
  within = (rows >= 0).unsqueeze(1).unsqueeze(3) & (columns >= 0).unsqueeze(0).unsqueeze(2)
  index = torch.where(within, index, 0).flatten(2).flatten(0, 1)
  bounded(index.numel() * (x.numel() // (x.size(-1) * x.size(-2))))
  picked = x.flatten(-2).index_select(-1, index.flatten()).unflatten(-1, index.shape)
  values, which = torch.where(within.flatten(2).flatten(0, 1), picked, -float("inf")).max(-1)
  places = index.expand(picked.shape).gather(-1, which.unsqueeze(-1)).squeeze(-1)
  size = [rows.size(0), columns.size(0)]
  return values.to(x.dtype).unflatten(-1, size), places.unflatten(-1, size)

def window(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool):
  room = size + 2 * padding - dilation * (kernel - 1) - 1
  count = (room + stride - 1 if ceil else room) // stride + 1
  if ceil and (count - 1) * stride >= size + padding:
    count = count - 1
  at = torch.arange(count).unsqueeze(1) * stride - padding + torch.arange(kernel) * dilation
  return torch.where((at >= 0) & (at < size), at, -1)

def share_of(size: int, count: int):
  first = torch.arange(count) * size // count
  last = ((torch.arange(count) + 1) * size + count - 1) // count
  at = first.unsqueeze(1) + torch.arange(size // count + 2)
  return torch.where(at < last.unsqueeze(1), at, -1)

# How many of the sorted elements lie before each element of x.
def places(sorted_, x, equal_too: bool, narrow: bool):
  if sorted_.dim() > 1 or sorted_.numel() > 4096:
    bounded(x.numel() * sorted_.size(-1))
  row = sorted_ if sorted_.dim() == 1 else sorted_.unsqueeze(-2)
  before = row <= x.unsqueeze(-1) if equal_too else row < x.unsqueeze(-1)
  count = before.sum(-1)
  return count.int() if narrow else count
)";

// ---- elementwise

constexpr Definition elementwise[] = {
    {"sigmoid_backward.default", "g, y", "g * ((1 - y) * y)"},
    {"tanh_backward.default", "g, y", "g * (1 - y * y)"},
    {"threshold_backward.default", "g, x, threshold: number", "torch.where(x <= threshold, 0, g)"},
    {"hardshrink_backward.default softshrink_backward.default", "g, x, lambd: number",
     "torch.where((x >= -lambd) & (x <= lambd), 0, g)"},
    {"hardsigmoid_backward.default", "g, x", "torch.where((x > -3) & (x < 3), g / 6, 0)"},
    {"hardswish_backward.default", "g, x", "torch.where(x < -3, 0, torch.where(x <= 3, g * (x / 3 + 0.5), g))"},
    {"hardtanh_backward.default", "g, x, low: number, high: number", "torch.where((x <= low) | (x >= high), 0, g)"},
    {"softplus_backward.default", "g, x, beta: number, threshold: number",
     "torch.where(x * beta > threshold, g, g * torch.sigmoid(x * beta))"},
    {"log_sigmoid_forward.default", "x", "return torch.log_sigmoid(x), torch.exp(-x.abs())"},
    {"log_sigmoid_backward.default", "g, x, buffer",
     "g * torch.where(x < 0, 1 - buffer / (1 + buffer), buffer / (1 + buffer))"},
    {"logit.default special_logit.default", "x, eps: Optional[float]", R"(
  p = real(x)
  if eps is not None and eps > 0.5:  # of bounds that cross, the lower one comes first
    p = torch.where(p < eps, eps, torch.where(p > 1 - eps, 1 - eps, p))
  elif eps is not None and eps >= 0:
    p = p.clamp(0, 1)
  y = p.log() - torch.log1p(-p)
  # The bounds of the logit: in a narrow format those of p may be 0 and 1, whose logits are infinite.
  if eps is not None and eps > 0 and eps <= 0.5:
    bound = torch.log(1 - eps) - torch.log(eps)
    y = y.clamp(-bound, bound)
  return y)"},
    {"logit_backward.default", "g, x, eps: Optional[float]", R"(
  if eps is None:
    return torch.where((x < 0) | (x > 1), float("nan"), g / (x * (1 - x)))
  return torch.where((x < eps) | (x > 1 - eps), 0, g / (x * (1 - x))))"},
    {"mish_backward.default", "g, x", R"(
  t = torch.tanh(torch.softplus(x))
  return g * (t + x * torch.sigmoid(x) * (1 - t * t)))"},
    {"conj_physical.default data.default detach_copy.default positive.default", "x", "x"},
    {"isposinf.default", "x", "x == float('inf')"},
    {"isneginf.default", "x", "x == -float('inf')"},
    {"addcmul.default", "x, a, b, value: number", "sum_of(x, 1, a * b, value)"},
    {"addcdiv.default", "x, a, b, value: number", "sum_of(x, 1, a / b, value)"},
    {"lerp.Scalar", "x, end, weight: number", "x + (end - x) * weight"},
    {"lerp.Tensor", "x, end, weight", "x + (end - x) * weight"},
    {"clamp.Tensor", "x, low: Optional[Tensor], high: Optional[Tensor]", R"(
  if low is not None:
    x = torch.maximum(x, low)
  if high is not None:
    x = torch.minimum(x, high)
  return x)"},
    {"clamp_min.Tensor", "x, low", "torch.maximum(x, low)"},
    {"clamp_max.Tensor", "x, high", "torch.minimum(x, high)"},
    {"hardshrink.default", "x, lambd: number", "torch.where(x.abs() <= lambd, 0, x).to(x.dtype)"},
    {"softshrink.default", "x, lambd: number", "x - x.clamp(-lambd, lambd)"},
    {"threshold.default", "x, threshold: number, value: number", "torch.where(x <= threshold, value, x).to(x.dtype)"},
    {"heaviside.default", "x, values", "torch.where(x == 0, values, torch.where(x > 0, torch.ones_like(x), 0))"},
    {"angle.default", "x", R"(
  y = real(x)
  return torch.where(y < 0, 3.141592653589793, torch.where(y == y, 0.0, y)).to(y.dtype))"},
    {"signbit.default", "x", "(torch.copysign(torch.ones_like(x), x) if x.is_floating_point() else x) < 0"},
    {"round.decimals", "x, *, decimals: int", R"(
  assert x.is_floating_point() and abs(decimals) <= 30, "no float, or too many decimals"
  if decimals == 0:
    return x.round()
  scale = 10.0 ** abs(decimals)
  return (x * scale).round() / scale if decimals > 0 else (x / scale).round() * scale)"},
    {"polygamma.default", "n: int, x", R"(
  assert n >= 0 and n <= 30, "an order that it is not written out for"
  if n == 0:
    return torch.digamma(real(x))
  factor = 1.0
  for i in range(n):
    factor = factor * (i + 1)
  if n % 2 == 0:
    factor = -factor
  return torch.special_zeta(n + 1.0, real(x)) * factor)"},
    {"ldexp.Tensor", "x, other", "x * torch.exp2(real(other))"},
    {"logaddexp2.default", "a, b", R"(
  ln2 = 0.6931471805599453
  return torch.logaddexp(a * ln2, b * ln2) * 1.4426950408889634)"},
    {"deg2rad.default", "x", "real(x) * 0.017453292519943295"},
    {"rad2deg.default", "x", "real(x) * 57.29577951308232"},
    {"special_ndtr.default", "x", "(torch.erf(real(x) * 0.7071067811865476) + 1) * 0.5"},
    {"special_log_ndtr.default", "x", R"(
  t = real(x) * 0.7071067811865476
  return torch.where(t < -1, torch.log(torch.special.erfcx(-t) / 2) - t * t, torch.log1p(torch.erfc(t) * -0.5)))"},
    {"special_entr.default", "x", R"(
  y = real(x)
  return torch.where(y > 0, -y * y.log(), torch.where(y < 0, -float("inf"), 0.0).to(y.dtype)))"},
    {"special_xlog1py.default", "x, y", "torch.where(x == 0, 0, x * torch.log1p(real(y)))"},
    {"special_xlog1py.other_scalar", "x, y: number", "torch.where(x == 0, 0, real(x) * torch.log1p(real(like(y, x))))"},
    {"prelu.default", "x, w", R"(
  if x.dim() > 1 and w.numel() > 1:
    w = w.view([1, -1] + [1] * (x.dim() - 2))
  return torch.where(x > 0, x, x * w))"},
};

// ---- losses

constexpr Definition losses[] = {
    {"mse_loss.default", "x, y, reduction: int", R"(
  d = x - y
  return reduced(d * d, reduction))"},
    {"mse_loss_backward.default", "g, x, y, reduction: int", "g * (x - y) * (2.0 * share(x, reduction))"},
    {"smooth_l1_loss.default", "x, y, reduction: int, beta: float", R"(
  d = (x - y).abs()
  if beta > 0:
    d = torch.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta)
  return reduced(d, reduction))"},
    {"smooth_l1_loss_backward.default", "g, x, y, reduction: int, beta: float", R"(
  d = x - y
  slope = torch.sign(d) if beta <= 0 else (d / beta).clamp(-1.0, 1.0)
  return g * slope * share(x, reduction))"},
    {"huber_loss.default", "x, y, reduction: int, delta: float", R"(
  d = (x - y).abs()
  return reduced(torch.where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta), reduction))"},
    {"huber_loss_backward.default", "g, x, y, reduction: int, delta: float", R"(
  d = x - y
  slope = torch.where(d <= -delta, -delta, torch.where(d >= delta, delta, d))
  return g * slope * share(x, reduction))"},
    {"soft_margin_loss.default", "x, y, reduction: int", "reduced(torch.log1p(torch.exp(-y * x)), reduction)"},
    {"soft_margin_loss_backward.default", "g, x, y, reduction: int",
     "-g * y * torch.sigmoid(-y * x) * share(x, reduction)"},
    {"binary_cross_entropy.default", "x, y, weight: Optional[Tensor], reduction: int", R"(
  loss = (y - 1) * torch.log1p(-x).clamp(min=-100.0) - y * x.log().clamp(min=-100.0)
  if weight is not None:
    loss = loss * weight
  return reduced(loss, reduction))"},
    {"binary_cross_entropy_backward.default", "g, x, y, weight: Optional[Tensor], reduction: int", R"(
  out = g * (x - y) / ((1 - x) * x).clamp(min=1e-12)
  if weight is not None:
    out = out * weight
  return out * share(x, reduction))"},
};

// ---- reductions and norms

constexpr Definition reductions[] = {
    {"aminmax.default", "x, *, dim: Optional[int], keepdim: bool", R"(
  dims = [dim] if dim is not None else list(range(x.dim()))
  return x.amin(dims, keepdim), x.amax(dims, keepdim))"},
    {"logsumexp.default", "x, dims: List[int], keepdim: bool", R"(
  y = real(x)
  dims = axes(y, dims)
  top = y.amax(dims, True)
  top = torch.where(top.abs() == float("inf"), 0, top)
  out = (y - top).exp().sum(dims, True).log() + top
  return out if keepdim else out.squeeze(dims))"},
    {"norm.Scalar", "x, p: number", "norm_of(x, float(p), axes(x, None), False)"},
    {"norm.ScalarOpt_dim", "x, p: Optional[number], dims: List[int], keepdim: bool", R"(
  order = 2.0
  if p is not None:
    order = float(p)
  return norm_of(x, order, axes(x, dims), keepdim))"},
    {"linalg_vector_norm.default", "x, p: number, dims: Optional[List[int]], keepdim: bool, *, dtype: Optional[int]",
     R"(
  if dtype is not None:
    x = x.to(dtype)
  return norm_of(x, float(p), axes(x, dims), keepdim))"},
    {"linalg__powsum.default", "x, p: number, dims: Optional[List[int]], keepdim: bool, *, dtype: Optional[int]", R"(
  if dtype is not None:
    x = x.to(dtype)
  return (x.abs() ** p).sum(axes(x, dims), keepdim))"},
    {"dist.default", "x, y, p: number", "torch.linalg_vector_norm(x - y, p)"},
    {"cdist.default _cdist_forward.default", "a, b, p: float, mode: Optional[int]", R"(
  d = a.unsqueeze(-2) - b.unsqueeze(-3)
  bounded(d.numel())
  return torch.linalg_vector_norm(d, p, [-1]))"},
    {"pdist.default _pdist_forward.default", "x, p: float", R"(
  pairs = torch.triu_indices(x.size(0), x.size(0), 1)
  bounded(pairs.size(1) * x.size(1))
  return norm_of(x.index_select(0, pairs[0]) - x.index_select(0, pairs[1]), p, [1], False))"},
    {"_weight_norm.default", "v, g, dim: int", "v * (g / torch.norm_except_dim(v, 2, dim))"},
    {"renorm.default", "x, p: number, dim: int, maxnorm: number", R"(
  others: List[int] = []
  for d in range(x.dim()):
    if d != dim % x.dim():
      others.append(d)
  n = norm_of(x, float(p), others, True)
  return x * torch.where(n > maxnorm, torch.reciprocal(n + 1e-7) * maxnorm, 1))"},
    {"dot.default vdot.default", "a, b", "(a * b).sum()"},
    {"mv.default", "a, b",
     "torch.mm(b.unsqueeze(0), a.t()).squeeze(0) if a.is_floating_point() else (a * b).sum(1).to(a.dtype)"},
    {"mm.default", "a, b", R"(
  assert not a.is_floating_point(), "a product of floats"
  bounded(a.numel() * b.size(1))
  return (a.unsqueeze(2) * b.unsqueeze(0)).sum(1).to(a.dtype))"},
    {"bmm.default", "a, b", R"(
  assert not a.is_floating_point(), "a product of floats"
  bounded(a.numel() * b.size(2))
  return (a.unsqueeze(3) * b.unsqueeze(1)).sum(2).to(a.dtype))"},
    {"addmm.default", "x, a, b, *, beta: number, alpha: number", "sum_of(x, beta, torch.mm(a, b), alpha)"},
    {"addmv.default", "x, a, b, *, beta: number, alpha: number", "sum_of(x, beta, torch.mv(a, b), alpha)"},
    {"addr.default", "x, a, b, *, beta: number, alpha: number", "sum_of(x, beta, a.unsqueeze(1) * b, alpha)"},
    {"baddbmm.default", "x, a, b, *, beta: number, alpha: number", "sum_of(x, beta, torch.bmm(a, b), alpha)"},
    {"addbmm.default", "x, a, b, *, beta: number, alpha: number", "sum_of(x, beta, torch.bmm(a, b).sum(0), alpha)"},
    {"linear.default", "x, w, bias: Optional[Tensor]", R"(
  y = torch.matmul(x, w.t())
  return y if bias is None else y + bias)"},
    {"linalg_cross.default", "a, b, *, dim: int", R"(
  x, y = torch.broadcast_tensors(a, b)
  return x.roll(-1, dim) * y.roll(-2, dim) - x.roll(-2, dim) * y.roll(-1, dim))"},
};

std::string text_of(const Definition& definition) {
  std::string body(definition.body);
  if (body.find("return") == std::string::npos) body = "return " + body;
  if (!body.starts_with("\n")) body = "\n  " + body;
  if (definition.parameters.starts_with("g, x,") || definition.parameters == "g, x")
    body = "\n  g, x = common(g, x)" + body;
  if (definition.parameters == "g, y") body = "\n  g, y = common(g, y)" + body;
  return std::string(helpers) + "\ndef f(" + std::string(definition.parameters) + "):" + body + "\n";
}

}  // namespace

std::string definition_of(std::string_view op) {
  static const auto table = [] {
    std::map<std::string, const Definition*, std::less<>> out;
    const auto add = [&](const auto& definitions) {
      for (const Definition& one : definitions)
        for (std::string_view rest = one.ops; !rest.empty();) {
          const std::string_view name = rest.substr(0, rest.find(' '));
          rest.remove_prefix(std::min(rest.size(), name.size() + 1));
          out.emplace("aten." + std::string(name), &one);
        }
    };
    add(elementwise);
    add(losses);
    add(reductions);
    add(definitions_of_moves());
    add(definitions_of_signals());
    return out;
  }();
  const auto found = table.find(op);
  return found == table.end() ? std::string() : text_of(*found->second);
}

}  // namespace ttc
