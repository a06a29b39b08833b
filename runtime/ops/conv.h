// Convolutions over one to three dims as matrix products: every window becomes a row (taps outside, channels inside),
// the kernel a matrix of one column per output channel, as the op library lays weights out ([taps * channels, out]).
//
// A transposed convolution is the same over an input with zeros between its elements and a kernel turned around. Groups
// are batches of products; small groups share one product, their kernels on the diagonal of a matrix of zeros, until
// its columns fill a tile.
#pragma once

#include <array>
#include <memory>

#include "device/matmul.h"
#include "ops/op.h"

namespace ttrt::ops {

using Extent = std::array<std::int64_t, 3>;  // depth, height, width; leading dims that are not there are 1

struct ConvShape {
  std::int64_t images = 1, in_channels = 1, out_channels = 1;
  std::int64_t products = 1;  // groups that share a product count once; channels divide evenly
  Extent in, out, kernel, stride, dilation;
  Extent before;  // what lies before the first element: zeros, or (negative) elements that no window reads
  Extent insert;  // 1: nothing; s: s - 1 zeros between neighbours

  std::int64_t positions() const { return out[0] * out[1] * out[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t depth() const { return taps() * in_channels / products; }  // rows of a product's kernel matrix
  std::int64_t width() const { return out_channels / products; }          // its columns
  // Elements along dim d of the input that windows reach, zeros included.
  std::int64_t reach(std::size_t d) const { return (out[d] - 1) * stride[d] + dilation[d] * (kernel[d] - 1) + 1; }
};

// Arguments x, weight_shape (torch's: [out, in / groups, ...], transposed [in, out / groups, ...]), stride, padding,
// dilation, groups and, where transposed, output_padding. padding holds one number per dim, or all that go before and
// then all that go after. Throws ttc::Error for arguments that do not fit together.
ConvShape conv_shape(const OpCall& call, bool transposed);
// Only what the weights decide: channels, products, kernel. The input may have any size.
ConvShape conv_weights(const OpCall& call, bool transposed);

// Kernels as matrices [products, depth, width] and back; the shapes say how the groups lie.
HostTensor conv_matrix(const HostTensor& kernel, const TensorSpec& spec);
HostTensor conv_kernel(const HostTensor& matrix, const Shape& sizes);
HostTensor conv_transpose_matrix(const HostTensor& kernel, const TensorSpec& spec);
HostTensor conv_transpose_kernel(const HostTensor& matrix, const Shape& sizes);
// A bias [out] as [products, 1, width] and back.
HostTensor conv_bias_rows(const HostTensor& bias, const TensorSpec& spec);
HostTensor conv_bias_vector(const HostTensor& rows, const Shape& sizes);

// The kernel of both operators: x, weight and bias as packed. Memory beyond operands and result: the input and the
// output as rows, and a block of windows of a few MiB however long the input is.
Kernel prepare_conv(const OpCall& call, const PrepareContext& context, const ConvShape& shape);

// Every group has one input channel: conv_depthwise.cpp computes these, in fast numerics.
bool is_depthwise(const ConvShape& shape, std::int64_t groups);
Kernel prepare_depthwise(const OpCall& call, const PrepareContext& context, const ConvShape& shape, MatmulSpec spec);

// Windows of more than one element in exact numerics (conv_exact.cpp).
Kernel prepare_exact_windows(const OpCall& call, const PrepareContext& context, const ConvShape& shape,
                             MatmulSpec spec);

// Dense rows of a tensor's elements, bits in a T, as a host tensor whose sizes are written once.
template <typename T>
class ImageView {
 public:
  const HostTensor& at(const Shape& sizes, T* data) {
    if (tensor_.sizes != sizes || tensor_.strides.empty())
      tensor_ = {sizeof(T) == 2 ? DType::bf16 : DType::f32, sizes, contiguous_strides(sizes), nullptr, nullptr};
    tensor_.data = reinterpret_cast<std::byte*>(data);
    return tensor_;
  }

 private:
  HostTensor tensor_;
};

// A kernel of class C: C(shape, product), set_weight(tiles), set_bias(tiles), run(x, weight tiles, y). Operands
// that are constant are set once.
template <typename C>
Kernel bind_convolution(const OpCall& call, const PrepareContext& context, const ConvShape& shape, MatmulSpec spec) {
  const auto convolution = std::make_shared<C>(shape, std::move(spec));
  const int w = call.tensor_index("weight"), b = call.tensor_index("bias");
  const auto constant = [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    return i >= 0 && at < context.constants.size() ? context.constants[at] : nullptr;
  };
  const DeviceTensor *fixed_w = constant(w), *fixed_b = constant(b);
  if (fixed_w != nullptr) convolution->set_weight(fixed_w->data());
  if (fixed_b != nullptr) convolution->set_bias(fixed_b->data());
  const bool w_fixed = fixed_w != nullptr, b_fixed = b < 0 || fixed_b != nullptr;
  return [=](const KernelArgs& args) {
    const std::byte* weight = args.in[static_cast<std::size_t>(w)]->data();
    if (!w_fixed) convolution->set_weight(weight);
    if (!b_fixed) convolution->set_bias(args.in[static_cast<std::size_t>(b)]->data());
    convolution->run(*args.in[0], weight, *args.out[0]);
  };
}

}  // namespace ttrt::ops
