// Tensors and numbers of the public interface: elements are shared, never copied, where their layout allows.
#include "api/convert.h"

#include <algorithm>
#include <cstring>

#include "torch/scalar_ops.h"

namespace ttrt {
namespace {

std::string shape_text(const Shape& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

// Bytes of a tensor. Throws Error (usage) for a negative dim and for more than a process can address.
std::size_t checked_bytes(ElementType type, const Shape& shape) {
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  std::int64_t bytes = static_cast<std::int64_t>(element_size(type));
  for (const std::int64_t dim : shape) {
    if (dim < 0) throw Error(Error::Kind::usage, "a negative dim in " + shape_text(shape));
    if (!empty && dim > (std::int64_t{1} << 46) / bytes)
      throw Error(Error::Kind::usage, "more elements than memory can hold: " + shape_text(shape));
    if (!empty) bytes *= dim;
  }
  return empty ? 0 : static_cast<std::size_t>(bytes);
}

void check_bytes(ElementType type, const Shape& shape, std::size_t given) {
  const std::size_t wanted = checked_bytes(type, shape);
  if (given == wanted) return;
  const std::size_t size = element_size(type);
  throw Error(Error::Kind::usage, std::to_string(given / size) + " elements of " + name(type) + " (" +
                                      std::to_string(given) + " bytes) for a tensor of shape " + shape_text(shape) +
                                      ", which has " + std::to_string(wanted / size));
}

}  // namespace

// ---- tensors --------------------------------------------------------------------------------------------------------

Tensor::Tensor() = default;

std::int64_t Tensor::numel() const { return volume(shape_); }

Tensor Tensor::empty(ElementType type, Shape shape) {
  checked_bytes(type, shape);
  return guarded([&] { return tensor_of(empty_host(dtype_of(type), std::move(shape))); });
}

Tensor Tensor::from_bytes(ElementType type, Shape shape, std::span<const std::byte> bytes) {
  check_bytes(type, shape, bytes.size());
  Tensor out = empty(type, std::move(shape));
  if (!bytes.empty()) std::memcpy(out.data_.get(), bytes.data(), bytes.size());
  return out;
}

Tensor Tensor::view_bytes(ElementType type, Shape shape, std::span<std::byte> bytes, std::shared_ptr<void> owner) {
  check_bytes(type, shape, bytes.size());
  return TensorAccess::make(type, std::move(shape), std::shared_ptr<void>(std::move(owner), bytes.data()));
}

void Tensor::check(ElementType wanted) const {
  if (is_resident())
    throw Error(Error::Kind::usage, "the elements of a " + text() + " are not in host memory",
                "Session::fetch() brings them there");
  if (wanted != type_)
    throw Error(Error::Kind::usage, "a tensor of " + std::string(name(type_)) + " is read as " + name(wanted),
                "Tensor::to() converts it");
}

void Tensor::check_single() const {
  if (numel() != 1) throw Error(Error::Kind::usage, "item() of a " + text() + ", which is not one element");
}

std::span<const std::byte> Tensor::bytes() const {
  check(type_);
  return {static_cast<const std::byte*>(data_.get()), size_bytes()};
}

std::span<std::byte> Tensor::mutable_bytes() {
  check(type_);
  return {static_cast<std::byte*>(data_.get()), size_bytes()};
}

Tensor Tensor::to(ElementType type) const {
  check(type_);
  if (type == type_) return *this;
  const auto converts = [](DType dtype) {
    return !ttc::is_complex(dtype) && (!ttc::is_floating(dtype) || dtype <= DType::f64 || dtype == DType::bf16);
  };
  if (!converts(dtype_of(type)) || !converts(dtype_of(type_)))
    throw Error(Error::Kind::unsupported, std::string("no conversion from ") + name(type_) + " to " + name(type));
  return guarded([&] { return tensor_of(convert(TensorAccess::host(*this), dtype_of(type))); });
}

std::string Tensor::text() const {
  return std::string(name(type_)) + shape_text(shape_) + (is_resident() ? " on the device" : "");
}

Tensor TensorAccess::make(ElementType type, Shape shape, std::shared_ptr<void> data) {
  Tensor out;
  out.type_ = type;
  out.shape_ = std::move(shape);
  out.data_ = std::move(data);
  return out;
}

Tensor TensorAccess::resident(const ResidentTensor& tensor) {
  Tensor out = make(element_of(tensor.dtype), tensor.tensor.spec.logical, nullptr);
  out.resident_ = std::make_shared<const ResidentTensor>(tensor);
  return out;
}

const ResidentTensor* TensorAccess::resident_of(const Tensor& tensor) {
  return static_cast<const ResidentTensor*>(tensor.resident_.get());
}

HostTensor TensorAccess::host(const Tensor& tensor) {
  tensor.check(tensor.type_);
  return {.dtype = dtype_of(tensor.type_),
          .sizes = tensor.shape_,
          .strides = contiguous_strides(tensor.shape_),
          .owner = tensor.data_,
          .data = static_cast<std::byte*>(tensor.data_.get())};
}

Tensor tensor_of(const HostTensor& tensor) {
  const HostTensor dense = contiguous(tensor);
  return TensorAccess::make(element_of(dense.dtype), dense.sizes, std::shared_ptr<void>(dense.owner, dense.data));
}

// ---- values of a program --------------------------------------------------------------------------------------------

RtValue to_value(const ttc::ir::Type& type, const Tensor& tensor) {
  if (const ResidentTensor* resident = TensorAccess::resident_of(tensor)) return *resident;
  const HostTensor host = TensorAccess::host(tensor);
  const auto number = [&](const char* what) -> const HostTensor& {
    if (host.numel() != 1)
      throw Error(Error::Kind::usage, std::string("the model takes ") + what + ", a " + tensor.text() + " is given",
                  "Tensor::scalar() makes a tensor of one element");
    return host;
  };
  if (type.kind == ttc::ir::TypeKind::integer) return to_integer(number("an integer"));
  if (type.kind == ttc::ir::TypeKind::floating) return to_number(number("a number"));
  if (type.kind == ttc::ir::TypeKind::boolean) return to_boolean(number("a boolean"));
  return host;
}

void append_tensors(const RtValue& value, std::vector<Tensor>& out) {
  if (const auto* host = value.get_if<HostTensor>())
    out.push_back(tensor_of(*host));
  else if (const auto* kept = value.get_if<ResidentTensor>())
    out.push_back(TensorAccess::resident(*kept));
  else if (const auto* i = value.get_if<std::int64_t>())
    out.push_back(Tensor::scalar(*i));
  else if (const auto* d = value.get_if<double>())
    out.push_back(Tensor::scalar(*d));
  else if (const auto* b = value.get_if<bool>())
    out.push_back(Tensor::scalar(*b));
  else if (const auto* list = value.get_if<RtValue::List>())
    for (const RtValue& item : *list) append_tensors(item, out);
  else
    out.emplace_back();
}

}  // namespace ttrt
