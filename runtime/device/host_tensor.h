// A tensor in host memory without LibTorch: dtype, sizes, strides, and bytes that somebody keeps alive.
#pragma once

#include <cstddef>
#include <memory>

#include "device/types.h"

namespace ttrt {

struct HostTensor {
  DType dtype = DType::f32;
  Shape sizes;
  Shape strides;                // in elements
  std::shared_ptr<void> owner;  // keeps `data` alive: an allocation, a mapped file, an at::Tensor's storage
  std::byte* data = nullptr;    // the first element (the storage offset already added)

  std::int64_t numel() const { return volume(sizes); }
  std::int64_t nbytes() const { return numel() * ttc::size_of(dtype); }  // of the elements, not of the storage
  bool is_contiguous() const;
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

// Strides of a contiguous tensor, in elements.
Shape contiguous_strides(const Shape& sizes);
// Uninitialised, contiguous, 64-byte aligned.
HostTensor empty_host(DType dtype, Shape sizes);
// The same values contiguous; the tensor itself where it already is.
HostTensor contiguous(const HostTensor& tensor);
// The elements of `from` to those of `to`, which has the same dtype and sizes and any strides.
void copy_into(const HostTensor& from, const HostTensor& to);
// Values converted one by one: floats to bfloat16 round to nearest even, floats to integers truncate, as ATen does.
HostTensor convert(const HostTensor& tensor, DType dtype);

}  // namespace ttrt
