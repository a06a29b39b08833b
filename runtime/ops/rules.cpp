// Sizes and formats of results, refusals of what the kernels do not take, references in terms of ATen.
#include "ops/rules.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "device/arch.h"
#include "ops/literals.h"
#include "support/error.h"

namespace ttrt::ops {

using ttc::Reason;
using ttc::ReasonCode;
using ttc::Refusal;
namespace ir = ttc::ir;

// ---- shapes

TensorSpec tiled(Shape shape, DataType dtype) {
  TensorSpec spec;
  spec.logical = std::move(shape);
  spec.dtype = dtype;
  return spec;
}

void bad_call(const OpCall& call, const std::string& what) {
  throw ttc::usage_error(std::string(call.op->name) + ": " + what);
}

std::int64_t wrap_dim(const OpCall& call, std::int64_t dim, std::size_t rank) {
  const auto n = std::max<std::int64_t>(static_cast<std::int64_t>(rank), 1);
  if (dim < -n || dim >= n)
    bad_call(call, "dim " + std::to_string(dim) + " of a tensor of rank " + std::to_string(rank));
  return dim < 0 ? dim + n : dim;
}

std::vector<std::int64_t> wrap_dims(const OpCall& call, const std::vector<std::int64_t>& dims, std::size_t rank) {
  std::vector<std::int64_t> out;
  if (dims.empty()) {
    for (std::size_t i = 0; i < rank; ++i) out.push_back(static_cast<std::int64_t>(i));
    return out;
  }
  for (const std::int64_t dim : dims) out.push_back(wrap_dim(call, dim, rank));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) bad_call(call, "a dim is named twice");
  if (rank == 0) out.clear();  // 0 and -1 name the one dim that is thought of
  return out;
}

Shape broadcast(const OpCall& call, const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      bad_call(call, "sizes " + std::to_string(x) + " and " + std::to_string(y) + " do not broadcast");
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Shape resolve_sizes(const OpCall& call, const Shape& sizes, std::int64_t numel) {
  Shape out = sizes;
  std::int64_t known = 1;
  std::int64_t* unknown = nullptr;
  for (std::int64_t& size : out) {
    if (size == -1 && unknown == nullptr) {
      unknown = &size;
    } else if (size < 0 || (size > 0 && known > std::max<std::int64_t>(numel, 1) / size)) {
      bad_call(call, "size " + std::to_string(size) + " does not fit " + std::to_string(numel) + " elements");
    } else {
      known *= size;
    }
  }
  if (unknown != nullptr && known > 0 && numel % known == 0) *unknown = numel / known;
  if ((unknown != nullptr && *unknown < 0) || volume(out) != numel) {
    bad_call(call, "the sizes do not hold " + std::to_string(numel) + " elements");
  }
  return out;
}

const TensorSpec& spec_of(const OpCall& call, std::string_view name) {
  const TensorSpec* spec = call.tensor(name);
  if (spec == nullptr) bad_call(call, "argument '" + std::string(name) + "' is None");
  return *spec;
}

DataType promoted(std::span<const TensorSpec> specs) {
  bool all_int = !specs.empty();
  for (const TensorSpec& spec : specs) {
    if (spec.dtype == DataType::float32) return DataType::float32;
    all_int = all_int && spec.dtype == DataType::int32;
  }
  return all_int ? DataType::int32 : DataType::bfloat16;
}

std::vector<TensorSpec> same_as_x(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  return {tiled(x.logical, x.dtype)};
}

// ---- limits

namespace {

Refusal check_tiled(const TensorSpec& spec) {
  if (spec.layout == Layout::tile) return std::nullopt;
  return Reason{ReasonCode::Unsupported, "an operand is not in TILE layout"};
}

}  // namespace

Refusal float_tiles(const OpCall& call) {
  for (const TensorSpec& spec : call.tensors) {
    if (auto no = check_tiled(spec)) return no;
    if (spec.dtype != DataType::bfloat16 && spec.dtype != DataType::float32) {
      return Reason{ReasonCode::DtypeUnsupported,
                    "the kernel takes bfloat16 and float32, not " + std::string(to_string(spec.dtype))};
    }
  }
  return std::nullopt;
}

bool all_int32(const OpCall& call) {
  return !call.tensors.empty() && std::all_of(call.tensors.begin(), call.tensors.end(),
                                              [](const TensorSpec& spec) { return spec.dtype == DataType::int32; });
}

Refusal float_or_int_tiles(const OpCall& call) { return all_int32(call) ? any_tiles(call) : float_tiles(call); }

Reason no_terms() { return Reason{ReasonCode::Unsupported, "each result is a sum of nothing: a dim of size 0"}; }

Refusal any_tiles(const OpCall& call) {
  for (const TensorSpec& spec : call.tensors) {
    if (auto no = check_tiled(spec)) return no;
  }
  return std::nullopt;
}

// ---- lowering

Reason unsupported(std::string detail) { return Reason{ReasonCode::Unsupported, std::move(detail)}; }

const ir::Arg& AtenArgs::operator[](std::string_view name) const {
  static const ir::Arg none;
  const ir::Arg* arg = node_.arg(name);
  return arg == nullptr ? none : *arg;
}

bool AtenArgs::is(std::string_view name, double value) const {
  const ir::Arg& arg = (*this)[name];
  return arg.is_none() || arg.number() == value || (arg.boolean() && (*arg.boolean() ? 1.0 : 0.0) == value);
}

const ir::Type* AtenArgs::type(std::string_view name) const {
  const ir::Value* value = (*this)[name].value();
  return value != nullptr && value->type.is_tensor() ? &value->type : nullptr;
}

std::optional<int> AtenArgs::rank(std::string_view name) const {
  const ir::Type* t = type(name);
  if (t == nullptr || !t->has_shape) return std::nullopt;
  return t->rank();
}

bool is_device_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f64;
}

Refusal check_float(const ir::Value& value, std::string_view what) {
  if (!value.type.is_tensor()) return unsupported(std::string(what) + " is no tensor");
  if (!value.type.has_dtype)
    return Reason{ReasonCode::DtypeUnsupported, "the dtype of " + std::string(what) + " is not known"};
  if (!value.type.has_shape)
    return Reason{ReasonCode::DynamicShape, "the rank of " + std::string(what) + " is not known"};
  if (is_device_float(value.type.dtype)) return std::nullopt;
  return Reason{ReasonCode::DtypeUnsupported,
                std::string(what) + " is " + std::string(ttc::torch_name(value.type.dtype))};
}

Refusal check_float_operands(const LowerContext& context, std::initializer_list<std::string_view> except) {
  const ir::Node& node = context.node;
  const ir::OpSchema* schema = node.schema();
  for (std::size_t i = 0; i < node.args().size(); ++i) {
    const std::string name = schema != nullptr && i < schema->args.size() ? schema->args[i].name : "an operand";
    if (std::find(except.begin(), except.end(), name) != except.end()) continue;
    Refusal refusal;
    node.arg(i).for_each_value([&](const ir::Value* value) {
      if (!refusal && value->type.is_tensor()) refusal = check_float(*value, "'" + name + "'");
    });
    if (refusal) return refusal;
  }
  return std::nullopt;
}

Refusal check_floats(const LowerContext& context, std::initializer_list<std::string_view> except) {
  if (auto no = check_float_operands(context, except)) return no;
  for (const auto& result : context.node.results()) {
    if (!result->has_uses() && result->index() > 0) continue;
    if (result->type.kind == ir::TypeKind::list) continue;
    if (auto no = check_float(*result, "the result")) return no;
  }
  return std::nullopt;
}

bool is_integer(const ir::Value* value) {
  return value != nullptr && value->type.is_tensor() && value->type.has_dtype && ttc::is_integral(value->type.dtype);
}

bool is_boolean(const ir::Value* value) {
  return value != nullptr && value->type.is_tensor() && value->type.has_dtype && value->type.dtype == DType::boolean;
}

namespace {

Refusal check_value(const ir::Value& value, std::string_view what) {
  if (!is_integer(&value) && !is_boolean(&value)) return check_float(value, what);
  if (value.type.has_shape) return std::nullopt;
  return Reason{ReasonCode::DynamicShape, "the rank of " + std::string(what) + " is not known"};
}

}  // namespace

Refusal check_values(const LowerContext& context) {
  const ir::Node& node = context.node;
  for (const ir::Value* value : node.operands()) {
    if (!value->type.is_tensor()) continue;
    if (auto no = check_value(*value, "%" + value->name)) return no;
  }
  for (const auto& result : node.results()) {
    if ((!result->has_uses() && result->index() > 0) || result->type.kind == ir::TypeKind::list) continue;
    if (auto no = check_value(*result, "the result")) return no;
  }
  return std::nullopt;
}

Refusal check_alike(const LowerContext& context) {
  if (auto no = check_values(context)) return no;
  const ir::Value* first = nullptr;
  for (const ir::Value* value : context.node.operands()) {
    if (!value->type.is_tensor()) continue;
    if (first == nullptr) first = value;
    if (is_integer(value) != is_integer(first) || is_boolean(value) != is_boolean(first))
      return Reason{ReasonCode::DtypeUnsupported, "operands of " + std::string(ttc::torch_name(first->type.dtype)) +
                                                      " and " + std::string(ttc::torch_name(value->type.dtype))};
  }
  return std::nullopt;
}

Refusal check_dtype_argument(const LowerContext& context) {
  const AtenArgs args(context);
  const DType* dtype = args["dtype"].get_if<DType>();
  if (dtype == nullptr || is_device_float(*dtype)) return std::nullopt;
  return Reason{ReasonCode::DtypeUnsupported, "dtype=" + std::string(ttc::torch_name(*dtype))};
}

Refusal check_unused(const ir::Node& node, std::size_t first) {
  for (std::size_t i = first; i < node.results().size(); ++i) {
    if (node.result(i)->has_uses()) return unsupported("result " + std::to_string(i) + " is used");
  }
  return std::nullopt;
}

// ---- references

RtValue as_dtype(const RtValue& value, DType dtype) {
  const auto* host = value.get_if<HostTensor>();
  return host == nullptr || host->dtype == dtype ? value : RtValue(convert(*host, dtype));
}

bool has_elements(const RtValue& value) { return value.get_if<HostTensor>() != nullptr; }

std::vector<RtValue> padded(Reference& aten, RtValue x, const RtValue& pad, double value) {
  // Cut first, by slices, as ATen's operator does not cut where sizes are symbols.
  RtValue::List grown = *pad.get_if<RtValue::List>();
  for (std::size_t i = 0; i < grown.size(); ++i) {
    const auto* size = grown[i].get_if<std::int64_t>();
    if (size == nullptr || *size >= 0) continue;
    const bool before = i % 2 == 0;
    x = aten.call("aten.slice.Tensor", {x, -1 - static_cast<std::int64_t>(i / 2), before ? RtValue(-*size) : RtValue(),
                                        before ? RtValue() : RtValue(*size)})[0];
    grown[i] = std::int64_t{0};
  }
  return aten.call("aten.constant_pad_nd.default", {std::move(x), RtValue(std::move(grown)), value});
}

RtValue as_float(const RtValue& value) {
  const auto* host = value.get_if<HostTensor>();
  return host != nullptr && ttc::is_floating(host->dtype) ? as_dtype(value, DType::f32) : value;
}

RtValue as_wide(const RtValue& value) {
  const auto* host = value.get_if<HostTensor>();
  return host != nullptr && ttc::is_integral(host->dtype) ? as_dtype(value, DType::i64) : value;
}

std::vector<RtValue> as_floats(std::span<const RtValue> values) {
  std::vector<RtValue> out;
  for (const RtValue& value : values) {
    if (const auto* list = value.get_if<RtValue::List>()) {
      out.emplace_back(as_floats(*list));
    } else {
      out.push_back(as_float(value));
    }
  }
  return out;
}

RtValue int_list(const std::vector<std::int64_t>& values) {
  RtValue::List list;
  for (const std::int64_t value : values) list.emplace_back(value);
  return list;
}

// ---- work

Work moving_work(const OpCall& call) {
  Work work;
  for (const TensorSpec& spec : call.tensors) work.read(spec);
  for (const TensorSpec& spec : call.op->infer(call)) {
    work.write(spec);
    work.pieces = std::max(work.pieces, spec.tiles());
  }
  work.l1_bytes = 2 * 3 * tile_bytes(DataType::bfloat16);  // two operands and a result, double-buffered
  return work;
}

Work tile_work(const OpCall& call) {
  Work work = moving_work(call);
  for (const Pages& pages : work.moved)
    (pages.written ? work.packed_bytes : work.unpacked_bytes) += static_cast<double>(pages.count * pages.bytes);
  return work;
}

Work vector_work(const OpCall& call, double instructions) {
  Work work = tile_work(call);
  work.vector_ops = instructions * static_cast<double>(work.pieces * tile_dim * tile_dim);
  return work;
}

Work product_work(const OpCall& call, double tile_products, DataType a, DataType b) {
  // Four products side by side in Dest share a tile of a; each has a tile of b of its own.
  constexpr double shared = 4;
  Work work = tile_work(call);
  work.tile_products = tile_products;
  work.fidelity = call.compute_config().math_fidelity;
  work.unpacked_bytes =
      tile_products * (static_cast<double>(tile_bytes(b)) + static_cast<double>(tile_bytes(a)) / shared);
  return work;
}

// ---- FLOPs

std::optional<double> dim_of(const ir::Value* value, int dim, const ir::SymBinding& shapes) {
  if (value == nullptr || !value->type.has_shape) return std::nullopt;
  const int rank = value->type.rank();
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) return std::nullopt;
  const auto n = value->type.sizes[static_cast<std::size_t>(dim)].evaluate(shapes);
  return n ? std::optional<double>(static_cast<double>(*n)) : std::nullopt;
}

std::optional<double> volume_of(const ir::Value* value, const ir::SymBinding& shapes) {
  if (value == nullptr || !value->type.has_shape) return std::nullopt;
  double product = 1;
  for (int i = 0; i < value->type.rank(); ++i) {
    const auto n = dim_of(value, i, shapes);
    if (!n) return std::nullopt;
    product *= *n;
  }
  return product;
}

double product_flops(const ir::Node& node, const ir::Value* operand, const ir::SymBinding& shapes) {
  const auto results = volume_of(node.result(), shapes), terms = dim_of(operand, -1, shapes);
  return results && terms ? 2 * *results * *terms : 0;
}

double matmul_flops(const ir::Node& node, const ir::SymBinding& shapes) {
  return product_flops(node, node.operand(0), shapes);
}

}  // namespace ttrt::ops
