// Case tensors onto the device that all calls for one architecture share, which is opened at the first of them, through
// the binder, and back.
#include "replay/records.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "device/tile_formats_device.h"
#include "ops/library.h"
#include "replay/tiles.h"
#include "support/error.h"

namespace ttrt::replay {
namespace {

Device& device(Arch arch) {
  static std::map<Arch, std::shared_ptr<Device>> shared;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Device>& one = shared[arch];
  if (!one) one = open_free_device(default_profile(arch));
  return *one;
}

DeviceTensor uploaded(const Tensor& value, DataType format, Arch arch) {
  if (Resident* own = value.values.resident())
    if (auto there = own->holding(value, format, device(arch))) return *std::move(there);
  TensorSpec spec;
  spec.logical = value.shape;
  spec.dtype = format;
  const std::vector<std::byte> tiles = to_tiles(value, spec.dtype);
  DeviceTensor tensor = allocate(device(arch), spec, "replay");
  std::memcpy(tensor.data(), tiles.data(), tiles.size());
  return tensor;
}

DeviceTensor uploaded(const Tensor& value, Arch arch) {
  return uploaded(value, is_block_format(value.dtype) ? DataType::bfloat16 : value.dtype, arch);
}

template <typename T>
const T& known(const T* found, std::string_view op) {
  TTC_CHECK(found != nullptr, "no op record " + std::string(op));
  return *found;
}

}  // namespace

std::optional<DeviceTensor> Resident::holding(const Tensor& value, DataType format, Device& device) {
  const Extent here = extent_of(memory_.spec.logical), asked = extent_of(value.shape);
  const bool same_tiles = here.batch == asked.batch && here.rows == asked.rows && here.cols == asked.cols;
  if (memory_.spec.dtype != format || !same_tiles || !memory_.is_allocated()) return std::nullopt;
  const TensorSpec spec{.logical = value.shape, .dtype = format, .layout = Layout::tile, .memory = {}};
  const std::lock_guard lock(mutex_);
  if (!tiles_ || !tiles_->is_allocated()) {
    tiles_ = memory_.spec.layout == Layout::tile ? memory_ : allocate(device, spec, "tiles");
    const std::vector<std::byte> tiles = to_tiles(value, format);
    std::memcpy(tiles_->data(), tiles.data(), tiles.size());
  }
  DeviceTensor out = *tiles_;
  out.spec = spec;
  return out;
}

void Resident::forget() {
  const std::lock_guard lock(mutex_);
  tiles_.reset();
}

RecordCall::RecordCall(std::string_view op, Arch arch)
    : record_(known(find_op(op), op)), schema_(known(ttc::ir::find_schema(op), op)), arch_(arch) {}

RecordCall& RecordCall::tensor(std::string_view name, const Tensor& value) {
  if (!is_float_format(value.dtype)) return set(name, host_integers(value.values, value.shape));
  return set(name, uploaded(value, arch_));
}

RecordCall& RecordCall::tensors(std::string_view name, const std::vector<const Tensor*>& values) {
  RtValue::List list;
  for (const Tensor* value : values) list.emplace_back(uploaded(*value, arch_));
  return set(name, std::move(list));
}

RecordCall& RecordCall::stored(std::string_view name, const Tensor& value) {
  return set(name, uploaded(value, value.dtype, arch_));
}

RecordCall& RecordCall::stored(std::string_view name, const std::vector<const Tensor*>& values) {
  RtValue::List list;
  for (const Tensor* value : values) list.emplace_back(uploaded(*value, value->dtype, arch_));
  return set(name, std::move(list));
}

RecordCall& RecordCall::set(std::string_view name, RtValue value) {
  TTC_CHECK(has(name), std::string(record_.name) + " has no argument " + std::string(name));
  args_.emplace_back(name, std::move(value));
  return *this;
}

RecordCall& RecordCall::configure(const std::optional<ComputeConfig>& config) {
  if (!config) {
    for (const std::string_view name : ops::configuration_literals)
      if (has(name)) set(name, {});
    return *this;
  }
  if (has("fidelity")) set("fidelity", std::string(to_string(config->math_fidelity)));
  if (has("fp32_acc")) set("fp32_acc", config->fp32_dest_acc_en);
  if (has("approx")) set("approx", config->math_approx_mode);
  if (has("packer_l1_acc")) set("packer_l1_acc", config->packer_l1_acc);
  return *this;
}

bool RecordCall::has(std::string_view name) const { return schema_.index_of(name) >= 0; }

std::variant<std::vector<Tensor>, ttc::Reason> RecordCall::run_all(Numerics numerics) const {
  const auto args = schema_order(schema_, {}, args_);
  if (const auto* reason = std::get_if<ttc::Reason>(&args)) throw ttc::usage_error(reason->detail);
  const auto& values = std::get<std::vector<RtValue>>(args);
  const auto bound = bind_call(record_, values, {.arch = arch_});
  if (const auto* reason = std::get_if<ttc::Reason>(&bound)) throw ttc::usage_error(reason->detail);
  const auto& call = std::get<BoundCall>(bound);
  call.results();
  auto results = call.run(values, device(arch_), numerics);
  if (auto* reason = std::get_if<ttc::Reason>(&results)) return std::move(*reason);
  std::vector<Tensor> out;
  for (const DeviceTensor& result : std::get<std::vector<DeviceTensor>>(results))
    out.push_back(host_tensor(result.spec, result.data()));
  return out;
}

std::variant<Tensor, ttc::Reason> RecordCall::run(Numerics numerics) const {
  auto results = run_all(numerics);
  if (auto* reason = std::get_if<ttc::Reason>(&results)) return std::move(*reason);
  return std::get<std::vector<Tensor>>(std::move(results)).at(0);
}

Tensor RecordCall::result(Numerics numerics) const {
  auto outcome = run(numerics);
  if (const auto* reason = std::get_if<ttc::Reason>(&outcome)) throw ttc::usage_error(reason->text());
  return std::get<Tensor>(std::move(outcome));
}

HostTensor host_integers(const Values& values, const Shape& shape) {
  HostTensor host = empty_host(DType::i32, shape);
  std::transform(values.begin(), values.end(), host.as<std::int32_t>(),
                 [](float v) { return static_cast<std::int32_t>(v); });
  return host;
}

HostTensor host_values(const Tensor& tensor) {
  if (!is_float_format(tensor.dtype)) return host_integers(tensor.values, tensor.shape);
  HostTensor host = empty_host(DType::f32, tensor.shape);
  std::copy(tensor.values.begin(), tensor.values.end(), host.as<float>());
  return host;
}

Tensor host_tensor(const TensorSpec& spec, const std::byte* bytes) {
  const HostTensor host = empty_host(is_float_format(spec.dtype) ? DType::f32 : torch_dtype(spec.dtype), spec.logical);
  untilize_to_host(spec, bytes, host);
  const HostTensor floats = convert(host, DType::f32);
  return {.name = {},
          .shape = spec.logical,
          .dtype = spec.dtype,
          .layout = spec.layout,
          .values = {floats.as<float>(), floats.as<float>() + floats.numel()}};
}

std::vector<float> packed_as(Tensor values, const Tensor& expected) {
  if (values.dtype == expected.dtype || !is_float_format(expected.dtype)) return std::move(values.values);
  const std::vector<std::byte> wide = to_tiles(values, DataType::float32);
  const auto count = static_cast<std::int64_t>(wide.size()) / tile_bytes(DataType::float32);
  const std::int64_t size = tile_bytes(expected.dtype);
  std::vector<std::byte> tiles(static_cast<std::size_t>(count * size));
  for (std::int64_t t = 0; t < count; ++t) {
    alignas(64) float tile[tile_elements];
    unpack_tile(DataType::float32, wide.data() + t * tile_bytes(DataType::float32), tile);
    pack_dest(expected.dtype, dest_of({.fp32_dest_acc_en = values.dtype == DataType::float32}), tile,
              tiles.data() + t * size);
  }
  return from_tiles(tiles, expected.dtype, values.shape);
}

Outcome record_outcome(const RecordCall& call, const std::vector<Tensor>& expected, Numerics numerics) {
  auto results = call.run_all(numerics);
  if (auto* reason = std::get_if<ttc::Reason>(&results)) return std::move(*reason);
  auto& tensors = std::get<std::vector<Tensor>>(results);
  Outputs out;
  for (std::size_t i = 0; i < std::min(tensors.size(), expected.size()); ++i)
    out.push_back(packed_as(std::move(tensors[i]), expected[i]));
  return out;
}

}  // namespace ttrt::replay
