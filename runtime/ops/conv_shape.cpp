// See conv.h: sizes of convolutions, and how kernels lie in the matrices that are packed.
#include <algorithm>

#include "ops/conv.h"
#include "ops/rules.h"
#include "support/error.h"

namespace ttrt::ops {
namespace {

// One number per dim, right-aligned in three; a single number stands for all dims.
Extent extent(const OpCall& call, std::string_view name, std::size_t dims, std::int64_t missing, std::int64_t least) {
  std::vector<std::int64_t> list = call.integers(name);
  if (list.empty()) list = {missing};
  if (list.size() == 1) list.resize(dims, list[0]);
  if (list.size() != dims)
    bad_call(call, std::string(name) + " has " + std::to_string(list.size()) + " numbers for " + std::to_string(dims) +
                       " dims");
  Extent out{missing, missing, missing};
  for (std::size_t i = 0; i < dims; ++i) {
    if (list[i] < least || list[i] > (std::int64_t{1} << 31))
      bad_call(call, std::string(name) + " " + std::to_string(list[i]));
    out[3 - dims + i] = list[i];
  }
  return out;
}

// What goes before and after each dim.
std::pair<Extent, Extent> padding(const OpCall& call, std::size_t dims) {
  const auto list = call.integers("padding");
  if (list.size() <= 1 || list.size() == dims) {
    const Extent both = extent(call, "padding", dims, 0, 0);
    return {both, both};
  }
  if (list.size() != 2 * dims) bad_call(call, "padding has " + std::to_string(list.size()) + " numbers");
  Extent before{0, 0, 0}, after{0, 0, 0};
  for (std::size_t i = 0; i < dims; ++i) {
    if (list[i] < 0 || list[dims + i] < 0) bad_call(call, "negative padding");
    before[3 - dims + i] = list[i];
    after[3 - dims + i] = list[dims + i];
  }
  return {before, after};
}

// Groups that share one product: as many as fill a tile's columns.
std::int64_t shared_groups(std::int64_t groups, std::int64_t width) {
  for (std::int64_t n = std::min(groups, tile_dim / std::min(width, tile_dim)); n > 1; --n)
    if (groups % n == 0) return n;
  return 1;
}

void place_plain(const OpCall& call, ConvShape& s, const std::pair<Extent, Extent>& around) {
  s.insert = {1, 1, 1};
  s.before = around.first;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t room = s.in[d] + around.first[d] + around.second[d] - s.dilation[d] * (s.kernel[d] - 1) - 1;
    if (room < 0) bad_call(call, "the kernel reaches over the padded input");
    s.out[d] = room / s.stride[d] + 1;
  }
}

void place_transposed(const OpCall& call, ConvShape& s, const Extent& around, const Extent& extra) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (extra[d] >= std::max(s.stride[d], s.dilation[d]))
      bad_call(call, "output_padding must be smaller than stride or dilation");
    const std::int64_t span = s.dilation[d] * (s.kernel[d] - 1);
    s.out[d] = (s.in[d] - 1) * s.stride[d] - 2 * around[d] + span + extra[d] + 1;
    s.before[d] = span - around[d];
    if (s.out[d] < 1 || s.in[d] < 1) bad_call(call, "the result has no elements");
  }
  s.insert = s.stride;
  s.stride = {1, 1, 1};
}

}  // namespace

ConvShape conv_weights(const OpCall& call, bool transposed) {
  const auto weight = call.integers("weight_shape");
  const std::int64_t groups = call.integer("groups");
  if (weight.size() < 3 || weight.size() > 5) bad_call(call, "weight_shape must have three to five sizes");
  for (const std::int64_t size : weight)
    if (size < 1 || size > (std::int64_t{1} << 31)) bad_call(call, "weight_shape has the size " + std::to_string(size));
  if (groups < 1 || groups > weight[0] || weight[0] % groups != 0)
    bad_call(call, std::to_string(weight[0]) + " channels of the kernel do not divide into " + std::to_string(groups) +
                       " groups");
  ConvShape s;
  s.in_channels = transposed ? weight[0] : weight[1] * groups;
  s.out_channels = transposed ? weight[1] * groups : weight[0];
  s.products = groups / shared_groups(groups, s.out_channels / groups);
  s.in = s.out = s.kernel = {1, 1, 1};
  for (std::size_t i = 2; i < weight.size(); ++i) s.kernel[3 - (weight.size() - 2) + i - 2] = weight[i];
  return s;
}

ConvShape conv_shape(const OpCall& call, bool transposed) {
  ConvShape s = conv_weights(call, transposed);
  const Shape& x = spec_of(call, "x").logical;
  const std::size_t dims = call.integers("weight_shape").size() - 2;
  if (x.size() != dims + 2 && x.size() != dims + 1) bad_call(call, "the input has rank " + std::to_string(x.size()));
  const bool batched = x.size() == dims + 2;
  s.images = batched ? x[0] : 1;
  if (x[batched ? 1 : 0] != s.in_channels)
    bad_call(call, std::to_string(x[batched ? 1 : 0]) + " channels, the kernel wants " + std::to_string(s.in_channels));
  for (std::size_t i = 0; i < dims; ++i) s.in[3 - dims + i] = x[x.size() - dims + i];
  s.stride = extent(call, "stride", dims, 1, 1);
  s.dilation = extent(call, "dilation", dims, 1, 1);
  if (transposed)
    place_transposed(call, s, extent(call, "padding", dims, 0, 0), extent(call, "output_padding", dims, 0, 0));
  else
    place_plain(call, s, padding(call, dims));
  return s;
}

namespace {

// A group's kernel: `in` channels, `out` channels, taps. at(group, out, in, tap) -> element of torch's kernel.
struct Groups {
  std::int64_t products, shared, in, out, taps;
};

template <typename F>
void for_each_element(const Groups& g, const F& f) {
  const std::int64_t depth = g.taps * g.shared * g.in, width = g.shared * g.out;
  for (std::int64_t group = 0; group < g.products * g.shared; ++group) {
    const std::int64_t product = group / g.shared, j = group % g.shared;
    for (std::int64_t tap = 0; tap < g.taps; ++tap)
      for (std::int64_t i = 0; i < g.in; ++i) {
        const std::int64_t row = (tap * g.shared + j) * g.in + i;
        for (std::int64_t o = 0; o < g.out; ++o) f(group, o, i, tap, (product * depth + row) * width + j * g.out + o);
      }
  }
}

std::int64_t taps_of(const Shape& sizes) {
  std::int64_t taps = 1;
  for (std::size_t i = 2; i < sizes.size(); ++i) taps *= sizes[i];
  return taps;
}

Groups groups_of(const Shape& sizes, const Shape& matrix, bool transposed) {
  TTC_CHECK(matrix.size() == 3 && sizes.size() >= 3, "a kernel and its matrices");
  Groups g{.products = matrix[0], .shared = 1, .in = 0, .out = 0, .taps = taps_of(sizes)};
  if (transposed) {
    g.out = sizes[1];
    g.shared = matrix[2] / g.out;
    g.in = matrix[1] / (g.taps * g.shared);
  } else {
    g.in = sizes[1];
    g.shared = matrix[1] / (g.taps * g.in);
    g.out = matrix[2] / g.shared;
  }
  return g;
}

// Position in torch's kernel: [out, in, taps], transposed [in, out, taps backwards].
std::int64_t kernel_index(const Groups& g, bool transposed, std::int64_t group, std::int64_t o, std::int64_t i,
                          std::int64_t tap) {
  if (transposed) return ((group * g.in + i) * g.out + o) * g.taps + g.taps - 1 - tap;
  return ((group * g.out + o) * g.in + i) * g.taps + tap;
}

HostTensor to_matrix(const HostTensor& kernel, const TensorSpec& spec, bool transposed) {
  const HostTensor from = contiguous(convert(kernel, DType::f32));
  HostTensor to = empty_host(DType::f32, spec.logical);
  std::fill_n(to.as<float>(), to.numel(), 0.0F);
  const Groups g = groups_of(kernel.sizes, spec.logical, transposed);
  for_each_element(g, [&](auto group, auto o, auto i, auto tap, auto at) {
    to.as<float>()[at] = from.as<float>()[kernel_index(g, transposed, group, o, i, tap)];
  });
  return to;
}

HostTensor to_kernel(const HostTensor& matrix, const Shape& sizes, bool transposed) {
  const HostTensor from = contiguous(convert(matrix, DType::f32));
  HostTensor to = empty_host(DType::f32, sizes);
  const Groups g = groups_of(sizes, matrix.sizes, transposed);
  for_each_element(g, [&](auto group, auto o, auto i, auto tap, auto at) {
    to.as<float>()[kernel_index(g, transposed, group, o, i, tap)] = from.as<float>()[at];
  });
  return to;
}

HostTensor reshaped(const HostTensor& tensor, const Shape& sizes) {
  HostTensor out = contiguous(tensor);
  TTC_CHECK(out.numel() == volume(sizes), "the same elements");
  out.sizes = sizes;
  out.strides = contiguous_strides(sizes);
  return out;
}

}  // namespace

HostTensor conv_matrix(const HostTensor& kernel, const TensorSpec& spec) { return to_matrix(kernel, spec, false); }
HostTensor conv_kernel(const HostTensor& matrix, const Shape& sizes) { return to_kernel(matrix, sizes, false); }
HostTensor conv_transpose_matrix(const HostTensor& kernel, const TensorSpec& spec) {
  return to_matrix(kernel, spec, true);
}
HostTensor conv_transpose_kernel(const HostTensor& matrix, const Shape& sizes) {
  return to_kernel(matrix, sizes, true);
}
HostTensor conv_bias_rows(const HostTensor& bias, const TensorSpec& spec) { return reshaped(bias, spec.logical); }
HostTensor conv_bias_vector(const HostTensor& rows, const Shape& sizes) { return reshaped(rows, sizes); }

}  // namespace ttrt::ops
