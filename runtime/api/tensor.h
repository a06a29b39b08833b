// Tensors in host memory: what all public headers of the library share. Needs no header of LibTorch.
#pragma once

#include <ttc/types.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#define TTRT_API __attribute__((visibility("default")))

namespace tt_lib::device {  // tt_lib.h
class Device;
class Host;
}  // namespace tt_lib::device

namespace ttrt {

using ttc::api::element_size;
using ttc::api::ElementType;
using ttc::api::Error;
using ttc::api::name;
using ttc::api::Shape;

// Elements of the two half formats; Tensor::to() converts whole tensors.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

// The element type that a C++ type holds: element_type_of<float>. Not every element type has a C++ type (float8, half
// complex): those are read and written as bytes.
template <typename T>
constexpr ElementType element_type_for() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) return ElementType::boolean;
  if constexpr (std::is_same_v<U, float>) return ElementType::float32;
  if constexpr (std::is_same_v<U, double>) return ElementType::float64;
  if constexpr (std::is_same_v<U, Float16>) return ElementType::float16;
  if constexpr (std::is_same_v<U, BFloat16>) return ElementType::bfloat16;
  if constexpr (std::is_same_v<U, std::complex<float>>) return ElementType::complex64;
  if constexpr (std::is_same_v<U, std::complex<double>>) return ElementType::complex128;
  if constexpr (std::is_integral_v<U> && !std::is_same_v<U, bool>) {
    constexpr ElementType of_signed[] = {ElementType::int8, ElementType::int16, ElementType::int32, ElementType::int64};
    constexpr ElementType of_unsigned[] = {ElementType::uint8, ElementType::uint16, ElementType::uint32,
                                           ElementType::uint64};
    constexpr int log2 = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
    return std::is_signed_v<U> ? of_signed[log2] : of_unsigned[log2];
  }
}
template <typename T>
concept Element =
    std::is_integral_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Float16> ||
    std::is_same_v<T, BFloat16> || std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <Element T>
inline constexpr ElementType element_type_of = element_type_for<T>();

// A contiguous, row-major array in host memory, or a handle of one that a session keeps on the device
// (Session::run_keeping, Session::place). Copies of a Tensor share its elements.
class TTRT_API Tensor {
 public:
  Tensor();  // float32 of shape [0]

  // Uninitialised elements. Throws Error (usage) for a negative dim or more elements than memory can hold.
  static Tensor empty(ElementType type, Shape shape);
  // A copy of the elements: of a span, vector or array. Throws Error (usage) where their number is not the shape's.
  template <std::ranges::contiguous_range R>
  static Tensor from(const R& values, Shape shape) {
    using T = std::remove_cv_t<std::ranges::range_value_t<R>>;
    return from_bytes(element_type_of<T>, std::move(shape), std::as_bytes(std::span(values)));
  }
  // A tensor of shape [].
  template <Element T>
  static Tensor scalar(T value) {
    return from(std::span<const T>(&value, 1), {});
  }
  // A copy of elements of any type. Throws Error (usage) where the number of bytes does not fit.
  static Tensor from_bytes(ElementType type, Shape shape, std::span<const std::byte> bytes);
  // The caller's memory, which has to outlive the tensor and its copies; a model that writes its inputs writes here.
  // Throws like from.
  template <std::ranges::contiguous_range R>
  static Tensor view(R&& values, Shape shape) {
    using T = std::remove_reference_t<std::ranges::range_reference_t<R>>;
    static_assert(!std::is_const_v<T>, "a view may be written: give memory that is not const, or use from()");
    return view_bytes(element_type_of<T>, std::move(shape), std::as_writable_bytes(std::span(values)));
  }
  // With an owner: it, not the caller, keeps the memory, as long as the tensor or a copy is there.
  static Tensor view_bytes(ElementType type, Shape shape, std::span<std::byte> bytes, std::shared_ptr<void> owner = {});

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  std::int64_t numel() const;
  std::size_t size_bytes() const { return static_cast<std::size_t>(numel()) * element_size(type_); }
  // Its elements lie on a device: Session::fetch() brings them to the host.
  bool is_resident() const { return resident_ != nullptr; }

  // The elements. Throw Error (usage) where T is not the element type's and where the tensor is resident.
  template <Element T>
  std::span<const T> values() const {
    check(element_type_of<T>);
    return {static_cast<const T*>(data_.get()), static_cast<std::size_t>(numel())};
  }
  template <Element T>
  std::span<T> mutable_values() {
    check(element_type_of<T>);
    return {static_cast<T*>(data_.get()), static_cast<std::size_t>(numel())};
  }
  // The only element. Throws Error (usage) where there is not exactly one.
  template <Element T>
  T item() const {
    check_single();
    return values<T>()[0];
  }
  // Elements of any type. Throw Error (usage) where the tensor is resident.
  std::span<const std::byte> bytes() const;
  std::span<std::byte> mutable_bytes();
  // The same values in another element type, as Tensor.to(dtype) of PyTorch converts them; the tensor itself where it
  // has that type. Throws Error (usage) where the tensor is resident, (unsupported) for types that have no conversion.
  Tensor to(ElementType type) const;
  // To a device, in bfloat16 or int32 tiles, and to host memory: tt_lib.h, which documents both.
  Tensor to(const std::shared_ptr<tt_lib::device::Device>& device) const;
  Tensor to(const tt_lib::device::Host& host) const;
  // "float32[2, 3]", with " on the device" where it is resident.
  std::string text() const;

 private:
  friend struct TensorAccess;
  void check(ElementType wanted) const;
  void check_single() const;

  ElementType type_ = ElementType::float32;
  Shape shape_{0};
  std::shared_ptr<void> data_;
  std::shared_ptr<const void> resident_;  // a ResidentTensor
};

}  // namespace ttrt
