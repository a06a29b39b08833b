// See host_tensor.h. Strided tensors are walked as runs: the trailing dims that lie dense in memory are one memcpy.
#include "device/host_tensor.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "device/cast.h"
#include "support/error.h"

namespace ttrt {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::int64_t largest_tensor = std::int64_t{1} << 46;  // 64 TiB: beyond any host, far below overflow

std::string shape_text(const Shape& sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

std::int64_t checked_nbytes(DType dtype, const Shape& sizes) {
  bool empty = false;
  for (const std::int64_t dim : sizes) {
    if (dim < 0) throw ttc::usage_error("a tensor cannot have shape " + shape_text(sizes));
    empty |= dim == 0;
  }
  if (empty) return 0;
  std::int64_t bytes = ttc::size_of(dtype);
  for (const std::int64_t dim : sizes) {
    if (dim > largest_tensor / bytes)
      throw ttc::usage_error("a tensor of shape " + shape_text(sizes) + " is too large");
    bytes *= dim;
  }
  return bytes;
}

// Copies the dims before `outer` one index at a time; what lies under them is `run` bytes without gaps.
struct Copier {
  const HostTensor& src;
  std::size_t outer;
  std::size_t element;
  std::size_t run;
  std::byte* dst;

  void walk(std::size_t dim, const std::byte* from) {
    if (dim == outer) {
      std::memcpy(dst, from, run);
      dst += run;
      return;
    }
    const std::int64_t step = src.strides[dim] * static_cast<std::int64_t>(element);
    if (dim + 1 == outer && run == element) return gather(from, src.sizes[dim], step);
    for (std::int64_t i = 0; i < src.sizes[dim]; ++i) walk(dim + 1, from + i * step);
  }

  void gather(const std::byte* from, std::int64_t n, std::int64_t step) {
    switch (element) {
      case 1:
        return gather_as<std::uint8_t>(from, n, step);
      case 2:
        return gather_as<std::uint16_t>(from, n, step);
      case 4:
        return gather_as<std::uint32_t>(from, n, step);
      case 8:
        return gather_as<std::uint64_t>(from, n, step);
      default:
        for (std::int64_t i = 0; i < n; ++i, dst += element) std::memcpy(dst, from + i * step, element);
    }
  }

  template <typename T>
  void gather_as(const std::byte* from, std::int64_t n, std::int64_t step) {
    for (std::int64_t i = 0; i < n; ++i) std::memcpy(dst + i * sizeof(T), from + i * step, sizeof(T));
    dst += n * static_cast<std::int64_t>(sizeof(T));
  }
};

void scatter(const HostTensor& from, const HostTensor& to, std::size_t dim, const std::byte* src, std::byte* dst) {
  const std::int64_t element = ttc::size_of(from.dtype);
  if (dim == from.sizes.size()) {
    std::memcpy(dst, src, static_cast<std::size_t>(element));
    return;
  }
  const bool last = dim + 1 == from.sizes.size();
  if (last && from.strides[dim] == 1 && to.strides[dim] == 1) {
    std::memcpy(dst, src, static_cast<std::size_t>(from.sizes[dim] * element));
    return;
  }
  for (std::int64_t i = 0; i < from.sizes[dim]; ++i)
    scatter(from, to, dim + 1, src + i * from.strides[dim] * element, dst + i * to.strides[dim] * element);
}

}  // namespace

Shape contiguous_strides(const Shape& sizes) {
  Shape strides(sizes.size());
  std::uint64_t stride = 1;  // unsigned: an empty tensor's other sizes may be anything
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(sizes[i] > 1 ? sizes[i] : 1);
  }
  return strides;
}

bool HostTensor::is_contiguous() const {
  std::int64_t stride = 1;
  bool dense = true;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    dense &= strides[i] == stride;
    stride *= sizes[i];
  }
  return dense;
}

HostTensor empty_host(DType dtype, Shape sizes) {
  const auto bytes = static_cast<std::size_t>(checked_nbytes(dtype, sizes));
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;  // never zero
  void* memory = std::aligned_alloc(alignment, rounded);
  if (!memory)
    throw ttc::Error(ttc::Exit::unsupported, "",
                     "the host has no " + std::to_string(bytes) + " bytes for a tensor of shape " + shape_text(sizes));
  HostTensor tensor{
      dtype, std::move(sizes), {}, std::shared_ptr<void>(memory, std::free), static_cast<std::byte*>(memory)};
  tensor.strides = contiguous_strides(tensor.sizes);
  return tensor;
}

HostTensor contiguous(const HostTensor& tensor) {
  if (tensor.is_contiguous()) {
    HostTensor same = tensor;
    same.strides = contiguous_strides(tensor.sizes);
    return same;
  }
  HostTensor out = empty_host(tensor.dtype, tensor.sizes);
  const auto element = static_cast<std::size_t>(ttc::size_of(tensor.dtype));
  std::size_t outer = tensor.sizes.size();
  std::int64_t stride = 1;
  while (outer > 0 && (tensor.sizes[outer - 1] == 1 || tensor.strides[outer - 1] == stride))
    stride *= tensor.sizes[--outer];
  Copier copier{tensor, outer, element, element * static_cast<std::size_t>(stride), out.data};
  copier.walk(0, tensor.data);
  return out;
}

void copy_into(const HostTensor& from, const HostTensor& to) {
  TTC_CHECK(from.dtype == to.dtype && from.sizes == to.sizes, "copy_into needs two tensors of one kind");
  if (from.numel() == 0) return;
  if (from.is_contiguous() && to.is_contiguous()) {
    std::memcpy(to.data, from.data, static_cast<std::size_t>(from.nbytes()));
  } else {
    scatter(from, to, 0, from.data, to.data);
  }
}

HostTensor convert(const HostTensor& tensor, DType dtype) {
  const HostTensor dense = contiguous(tensor);
  if (dense.dtype == dtype) return dense;
  HostTensor out = empty_host(dtype, dense.sizes);
  cast(dense.data, dense.dtype, out.data, dtype, dense.numel());
  return out;
}

}  // namespace ttrt
