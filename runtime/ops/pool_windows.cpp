// Windows as ATen counts them: with strides, padding, dilation and a last part of one, and adaptive ones.
#include "ops/pool_windows.h"

#include <algorithm>

#include "ops/rules.h"

namespace ttrt::ops::pool_op {

std::vector<std::int64_t> numbers(const OpCall& call, std::string_view name, std::size_t dims, std::int64_t missing) {
  auto list = call.integers(name);
  if (list.empty()) list = {missing};
  if (list.size() == 1) list.resize(dims, list[0]);
  if (list.size() != dims)
    bad_call(call, std::string(name) + " has " + std::to_string(list.size()) + " numbers for " + std::to_string(dims) +
                       " dims");
  return list;
}

std::size_t dims_of(const OpCall& call, std::string_view list) {
  const std::size_t dims = call.integers(list).size(), rank = spec_of(call, "x").logical.size();
  if (dims < 1 || dims > 3 || rank < dims + 1)
    bad_call(call, "windows over " + std::to_string(dims) + " dims of a tensor of rank " + std::to_string(rank));
  return dims;
}

namespace {

// ATen's: with ceil_mode a last window that starts in the padding behind the input is left out.
std::int64_t window_count(std::int64_t in, std::int64_t reach, std::int64_t stride, std::int64_t pad, bool ceil) {
  const std::int64_t room = in + 2 * pad - reach;
  if (room < 0 && !(ceil && room + stride > 0)) return 0;
  std::int64_t n = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  if (ceil && (n - 1) * stride >= in + pad) --n;
  return n;
}

Axes windows(const OpCall& call) {
  const std::size_t dims = dims_of(call, "kernel");
  const Shape& x = spec_of(call, "x").logical;
  const auto kernel = call.integers("kernel");
  const auto stride = call.integers("stride").empty() ? kernel : numbers(call, "stride", dims, 1);
  const auto padding = numbers(call, "padding", dims, 0);
  const bool mean = call.op->name == "tt.avg_pool2d";
  const auto dilation = mean ? std::vector<std::int64_t>(dims, 1) : numbers(call, "dilation", dims, 1);
  Axes axes;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t in = x[x.size() - dims + i], k = kernel[i], s = stride[i], p = padding[i], d = dilation[i];
    if (k < 1 || s < 1 || d < 1 || p < 0 || p > (d * (k - 1) + 1) / 2 || k > (1 << 24) || d > (1 << 24) ||
        s > (1 << 24))
      bad_call(call,
               "window " + std::to_string(k) + ", stride " + std::to_string(s) + ", padding " + std::to_string(p));
    const std::int64_t n = window_count(in, d * (k - 1) + 1, s, p, call.boolean("ceil_mode"));
    if (n < 1) bad_call(call, "the window reaches over the padded input");
    Axis& axis = axes[3 - dims + i];
    axis = {in, d, {}};
    for (std::int64_t o = 0; o < n; ++o) {
      const std::int64_t start = o * s - p, skipped = start < 0 ? (-start + d - 1) / d : 0;
      const std::int64_t first = start + skipped * d;
      const std::int64_t count = std::max<std::int64_t>(0, std::min(k - skipped, (in - first + d - 1) / d));
      axis.out.push_back({first, count, std::min(start + k, in + p) - start});
    }
  }
  return axes;
}

// Window i of n covers [i in / n, ceil((i + 1) in / n)). A size of -1 keeps the dim.
Axes adaptive_windows(const OpCall& call) {
  const std::size_t dims = dims_of(call, "sizes");
  const Shape& x = spec_of(call, "x").logical;
  const auto sizes = call.integers("sizes");
  Axes axes;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t in = x[x.size() - dims + i], n = sizes[i] == -1 ? in : sizes[i];
    if (n < 0 || n > (std::int64_t{1} << 24)) bad_call(call, "size " + std::to_string(n));
    Axis& axis = axes[3 - dims + i];
    axis = {in, 1, {}};
    for (std::int64_t o = 0; o < n; ++o) {
      const std::int64_t first = o * in / n, last = ((o + 1) * in + n - 1) / n;
      axis.out.push_back({first, last - first, last - first});
    }
  }
  return axes;
}

}  // namespace

bool is_adaptive(const OpCall& call) { return call.op->name.starts_with("tt.adaptive"); }

Axes axes_of(const OpCall& call) { return is_adaptive(call) ? adaptive_windows(call) : windows(call); }

}  // namespace ttrt::ops::pool_op
