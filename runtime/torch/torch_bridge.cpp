// See torch_bridge.h. Tensors are built from storages directly: at::from_blob costs more than most small operators.
#define AT_PER_OPERATOR_HEADERS
#include "torch/torch_bridge.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/zeros.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>

#include "support/error.h"

namespace ttrt {
namespace {

using Owner = std::shared_ptr<void>;

void release_owner(void* context) { delete static_cast<Owner*>(context); }

// Bytes from the first to the last element.
std::size_t span_bytes(const HostTensor& host) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < host.sizes.size(); ++i) {
    if (host.sizes[i] == 0) return 0;
    last += (host.sizes[i] - 1) * host.strides[i];
  }
  return static_cast<std::size_t>(last + 1) * static_cast<std::size_t>(ttc::size_of(host.dtype));
}

[[noreturn]] void wrong_type(const RtValue& value, const c10::TypePtr& type) {
  static constexpr const char* kinds[] = {"None",
                                          "a tensor",
                                          "a device tensor",
                                          "an int",
                                          "a float",
                                          "a bool",
                                          "a string",
                                          "a dtype",
                                          "a memory format",
                                          "a layout",
                                          "a device",
                                          "a complex",
                                          "a list",
                                          "a tensor kept on the device",
                                          "an object"};
  static_assert(std::size(kinds) == std::variant_size_v<RtValue::Variant>);
  throw ttc::Error(ttc::Exit::check_failed, "",
                   std::string("expected ") + type->repr_str() + ", got " + kinds[value.v.index()]);
}

std::optional<c10::Scalar> to_scalar(const RtValue& value) {
  if (const auto* i = value.get_if<std::int64_t>()) return c10::Scalar(*i);
  if (const auto* d = value.get_if<double>()) return c10::Scalar(*d);
  if (const auto* b = value.get_if<bool>()) return c10::Scalar(*b);
  if (const auto* c = value.get_if<std::complex<double>>())
    return c10::Scalar(c10::complex<double>(c->real(), c->imag()));
  if (const auto* t = value.get_if<HostTensor>())
    if (t->numel() == 1) return to_tensor(*t).item();
  return std::nullopt;
}

// .pt2 files and c10 number these differently.
std::int64_t c10_memory_format(int pt2) {
  static constexpr c10::MemoryFormat formats[] = {c10::MemoryFormat::Contiguous, c10::MemoryFormat::ChannelsLast,
                                                  c10::MemoryFormat::ChannelsLast3d, c10::MemoryFormat::Preserve};
  if (pt2 < 1 || pt2 > 4) throw ttc::Error(ttc::Exit::check_failed, "", "unknown memory format " + std::to_string(pt2));
  return static_cast<std::int64_t>(formats[pt2 - 1]);
}

std::int64_t c10_layout(int pt2) {
  static constexpr c10::Layout layouts[] = {c10::Layout::Sparse,    c10::Layout::SparseCsr, c10::Layout::SparseCsc,
                                            c10::Layout::SparseBsr, c10::Layout::SparseBsc, c10::Layout::Mkldnn,
                                            c10::Layout::Strided};
  if (pt2 < 1 || pt2 > 7) throw ttc::Error(ttc::Exit::check_failed, "", "unknown layout " + std::to_string(pt2));
  return static_cast<std::int64_t>(layouts[pt2 - 1]);
}

std::optional<std::int64_t> integer_of(const RtValue& value) {
  if (const auto* i = value.get_if<std::int64_t>()) return *i;
  if (const auto* b = value.get_if<bool>()) return *b;
  if (const auto* d = value.get_if<DType>()) return ttc::c10_code(*d);
  if (const auto* m = value.get_if<ttc::ir::MemoryFormatArg>()) return c10_memory_format(m->code);
  if (const auto* l = value.get_if<ttc::ir::LayoutArg>()) return c10_layout(l->code);
  if (const auto* t = value.get_if<HostTensor>())
    if (t->numel() == 1) return to_tensor(*t).item().toLong();
  return std::nullopt;
}

// The type of a value that its schema leaves open (t[], Any).
c10::TypePtr own_type(const RtValue& value) {
  if (value.get_if<HostTensor>()) return c10::TensorType::get();
  if (value.get_if<bool>()) return c10::BoolType::get();
  if (value.get_if<double>()) return c10::FloatType::get();
  if (value.get_if<std::string>()) return c10::StringType::get();
  if (value.get_if<ttc::ir::DeviceArg>()) return c10::DeviceObjType::get();
  if (value.get_if<std::complex<double>>()) return c10::ComplexType::get();
  if (const auto* list = value.get_if<RtValue::List>()) {
    if (list->empty()) return c10::ListType::create(c10::TensorType::get());
    const c10::TypePtr first = own_type(list->front());
    const bool uniform =
        std::all_of(list->begin(), list->end(), [&](const RtValue& v) { return *own_type(v) == *first; });
    return c10::ListType::create(uniform ? first : c10::AnyType::get());
  }
  if (value.is_none()) return c10::NoneType::get();
  if (value.get_if<std::shared_ptr<void>>()) return c10::AnyType::get();
  return c10::IntType::get();
}

bool is_open(const c10::Type& type) {
  const auto kind = type.kind();
  return kind == c10::TypeKind::VarType || kind == c10::TypeKind::AnyType || kind == c10::TypeKind::AnyListType ||
         kind == c10::TypeKind::AnyTupleType || kind == c10::TypeKind::UnionType;
}

c10::IValue to_tensor_ivalue(const RtValue& value, const c10::TypePtr& type) {
  if (const auto* host = value.get_if<HostTensor>()) return to_tensor(*host);
  if (value.is_none()) return at::Tensor();
  const auto scalar = to_scalar(value);
  if (!scalar) wrong_type(value, type);
  at::Tensor tensor = at::detail::scalar_tensor_static(*scalar, scalar->type(), at::kCPU);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

template <typename T, typename F>
c10::IValue typed_list(const RtValue::List& items, F&& convert) {
  c10::List<T> out;
  out.reserve(items.size());
  for (const RtValue& item : items) out.push_back(convert(item));
  return out;
}

c10::IValue to_list_ivalue(const RtValue::List& items, const c10::TypePtr& element) {
  const auto convert = [&](const RtValue& item) { return to_ivalue(item, element); };
  switch (element->kind()) {
    case c10::TypeKind::TensorType:
      return typed_list<at::Tensor>(items, [&](const RtValue& v) { return convert(v).toTensor(); });
    case c10::TypeKind::SymIntType:
      if (std::any_of(items.begin(), items.end(), [](const RtValue& v) { return v.get_if<std::shared_ptr<void>>(); }))
        break;  // symbols of a tracer's among them
      [[fallthrough]];
    case c10::TypeKind::IntType:
    case c10::TypeKind::ScalarTypeType:
      return typed_list<std::int64_t>(items, [&](const RtValue& v) { return convert(v).toInt(); });
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      return typed_list<double>(items, [&](const RtValue& v) { return convert(v).toDouble(); });
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      return typed_list<bool>(items, [&](const RtValue& v) { return convert(v).toBool(); });
    case c10::TypeKind::StringType:
      return typed_list<std::string>(items, [&](const RtValue& v) { return convert(v).toStringRef(); });
    case c10::TypeKind::OptionalType:
      if (element->expectRef<c10::OptionalType>().getElementType()->kind() == c10::TypeKind::TensorType)
        return typed_list<std::optional<at::Tensor>>(items, [](const RtValue& v) -> std::optional<at::Tensor> {
          if (v.is_none()) return std::nullopt;
          return to_ivalue(v, c10::TensorType::get()).toTensor();
        });
      break;
    case c10::TypeKind::VarType: {
      RtValue whole(items);
      return to_list_ivalue(items, own_type(whole)->expectRef<c10::ListType>().getElementType());
    }
    default:
      break;
  }
  c10::impl::GenericList out(element);
  out.reserve(items.size());
  for (const RtValue& item : items) out.push_back(convert(item));
  return out;
}

c10::IValue to_tuple_ivalue(const RtValue::List& items, const c10::TypePtr& type) {
  const auto elements = type->expectRef<c10::TupleType>().elements();
  if (items.size() != elements.size()) wrong_type(RtValue(items), type);
  std::vector<c10::IValue> out;
  for (std::size_t i = 0; i < items.size(); ++i) out.push_back(to_ivalue(items[i], elements[i]));
  return c10::ivalue::Tuple::create(std::move(out));
}

RtValue object(const c10::IValue& value) {
  return RtValue(std::shared_ptr<void>(std::make_shared<c10::IValue>(value)));
}

RtValue from_elements(c10::ArrayRef<c10::IValue> values) {
  RtValue::List out;
  out.reserve(values.size());
  for (const c10::IValue& item : values) out.push_back(from_ivalue(item));
  return out;
}

}  // namespace

at::Tensor to_tensor(const HostTensor& host) {
  const auto type = static_cast<c10::ScalarType>(ttc::c10_code(host.dtype));
  c10::DataPtr data(host.data, new Owner(host.owner), &release_owner, c10::Device(c10::kCPU));
  c10::Storage storage(c10::Storage::use_byte_size_t(), span_bytes(host), std::move(data), nullptr,
                       /*resizable=*/false);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes, host.strides);
  return tensor;
}

bool is_host_tensor(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_nested() && tensor.layout() == c10::kStrided && tensor.device().is_cpu() &&
         tensor.has_storage() && !tensor.key_set().has(c10::DispatchKey::Python) &&  // of a tracer's: no elements
         ttc::dtype_from_c10(static_cast<int>(tensor.scalar_type())).has_value();
}

HostTensor from_tensor(const at::Tensor& given) {
  at::Tensor tensor = given;
  if (tensor.is_conj()) tensor = tensor.resolve_conj();
  if (tensor.is_neg()) tensor = tensor.resolve_neg();
  if (tensor._is_zerotensor()) tensor = at::zeros(tensor.sizes(), tensor.options());
  HostTensor host;
  host.dtype = *ttc::dtype_from_c10(static_cast<int>(tensor.scalar_type()));
  host.sizes = tensor.sizes().vec();
  host.strides = tensor.strides().vec();
  host.data = static_cast<std::byte*>(tensor.data_ptr());
  const c10::DataPtr& data = tensor.storage().data_ptr();
  if (data.get_deleter() == &release_owner)
    host.owner = *static_cast<Owner*>(data.get_context());
  else
    host.owner = std::make_shared<c10::Storage>(tensor.storage());
  return host;
}

c10::IValue to_ivalue(const RtValue& value, const c10::TypePtr& type, std::optional<std::int32_t> list_size) {
  if (const auto* opaque = value.get_if<std::shared_ptr<void>>()) return *static_cast<c10::IValue*>(opaque->get());
  switch (type->kind()) {
    case c10::TypeKind::OptionalType:
      if (value.is_none()) return c10::IValue();
      return to_ivalue(value, type->expectRef<c10::OptionalType>().getElementType(), list_size);
    case c10::TypeKind::TensorType:
      return to_tensor_ivalue(value, type);
    case c10::TypeKind::NumberType:
      if (const auto scalar = to_scalar(value)) return *scalar;
      break;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
      if (const auto integer = integer_of(value)) return *integer;
      break;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      if (const auto scalar = to_scalar(value); scalar && !scalar->isComplex()) return scalar->toDouble();
      break;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      if (const auto scalar = to_scalar(value); scalar && !scalar->isComplex()) return scalar->toBool();
      break;
    case c10::TypeKind::ComplexType:
      if (const auto scalar = to_scalar(value)) return scalar->toComplexDouble();
      break;
    case c10::TypeKind::StringType:
      if (const auto* text = value.get_if<std::string>()) return *text;
      break;
    case c10::TypeKind::DeviceObjType:
      if (const auto* device = value.get_if<ttc::ir::DeviceArg>())
        return c10::Device(device->type == "meta" ? c10::kMeta : c10::kCPU);
      break;
    case c10::TypeKind::ListType: {
      const c10::TypePtr& element = type->expectRef<c10::ListType>().getElementType();
      if (const auto* items = value.get_if<RtValue::List>()) return to_list_ivalue(*items, element);
      if (list_size)
        return to_list_ivalue(RtValue::List(static_cast<std::size_t>(std::max(*list_size, 1)), value), element);
      break;
    }
    case c10::TypeKind::TupleType:
      if (const auto* items = value.get_if<RtValue::List>()) return to_tuple_ivalue(*items, type);
      break;
    case c10::TypeKind::NoneType:
    case c10::TypeKind::GeneratorType:
      if (value.is_none()) return c10::IValue();
      break;
    default:
      if (!is_open(*type)) break;
      if (value.is_none()) return c10::IValue();
      return to_ivalue(value, own_type(value));
  }
  wrong_type(value, type);
}

RtValue from_ivalue(const c10::IValue& value) {
  if (value.isNone()) return {};
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return {};
    return is_host_tensor(tensor) ? RtValue(from_tensor(tensor)) : object(value);
  }
  if (value.isInt() || value.isSymInt()) return value.toInt();
  if (value.isDouble() || value.isSymFloat()) return value.toDouble();
  if (value.isBool() || value.isSymBool()) return value.toBool();
  if (value.isString()) return value.toStringRef();
  if (value.isComplexDouble()) return std::complex<double>(value.toComplexDouble());
  if (value.isDevice()) {
    const c10::Device device = value.toDevice();
    ttc::ir::DeviceArg arg{c10::DeviceTypeName(device.type(), /*lower_case=*/true), std::nullopt};
    if (device.has_index()) arg.index = device.index();
    return arg;
  }
  if (value.isList()) return from_elements(value.toListRef());
  if (value.isTuple()) return from_elements(value.toTupleRef().elements());
  return object(value);
}

std::string first_line(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = c10_error ? c10_error->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace ttrt
