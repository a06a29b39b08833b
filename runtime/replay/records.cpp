// See records.h. All calls share one device, which is opened at the first of them.
#include "replay/records.h"

#include <cstring>

#include "device/buffer.h"
#include "device/formats_device.h"
#include "ir/op_schema.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

const std::shared_ptr<DeviceMemory>& memory() {
  static const std::shared_ptr<DeviceMemory> device = [] {
    auto opened = std::make_shared<DeviceMemory>(default_profile(), 0);
    opened->open();
    return opened;
  }();
  return device;
}

DeviceTensor allocated(const TensorSpec& spec) {
  const BufferSpec buffer{.bytes = spec.nbytes(), .page_bytes = tile_bytes(spec.dtype)};
  return {.spec = spec, .buffer = std::make_shared<Buffer>(memory(), buffer, "replay")};
}

const ttc::ir::OpSchema& schema_of(const OpCall& call) {
  const auto* schema = ttc::ir::find_schema(call.op->name);
  TTC_CHECK(schema != nullptr, "a record without a schema");
  return *schema;
}

OpArg default_of(const ttc::ir::SchemaArg& arg) {
  if (!arg.default_value || arg.default_value->is_none()) return std::monostate{};
  const ttc::ir::Arg& value = *arg.default_value;
  if (const auto* b = value.get_if<bool>()) return *b;
  if (const auto i = value.integer()) return arg.type.starts_with("float") ? OpArg(static_cast<double>(*i)) : OpArg(*i);
  if (const auto d = value.number()) return *d;
  if (const auto* s = value.get_if<std::string>()) return *s;
  if (const auto list = value.integers()) return *list;
  TTC_CHECK(false, "a default that no record has: " + arg.name);
}

}  // namespace

RecordCall::RecordCall(std::string_view op) {
  call_.op = find_op(op);
  TTC_CHECK(call_.op != nullptr, "no op record " + std::string(op));
  for (const auto& arg : schema_of(call_).args) call_.args.push_back(default_of(arg));
}

OpArg& RecordCall::slot(std::string_view name) {
  const int i = schema_of(call_).index_of(name);
  TTC_CHECK(i >= 0, std::string(call_.op->name) + " has no argument " + std::string(name));
  return call_.args[static_cast<std::size_t>(i)];
}

TensorRef RecordCall::add(const Tensor& value) {
  TensorSpec spec;
  spec.logical = value.shape;
  spec.dtype = is_block_format(value.dtype) ? DataType::bfloat16 : value.dtype;
  const std::vector<std::byte> tiles = to_tiles(value, spec.dtype);
  operands_.push_back(allocated(spec));
  std::memcpy(operands_.back().data(), tiles.data(), tiles.size());
  call_.tensors.push_back(spec);
  return {static_cast<int>(call_.tensors.size()) - 1};
}

RecordCall& RecordCall::tensor(std::string_view name, const Tensor& value) {
  slot(name) = add(value);
  return *this;
}

RecordCall& RecordCall::tensors(std::string_view name, std::initializer_list<const Tensor*> values) {
  std::vector<TensorRef> refs;
  for (const Tensor* value : values) refs.push_back(add(*value));
  slot(name) = std::move(refs);
  return *this;
}

RecordCall& RecordCall::set(std::string_view name, OpArg value) {
  slot(name) = std::move(value);
  return *this;
}

std::variant<Tensor, ttc::Reason> RecordCall::run(Numerics numerics) const {
  const std::vector<TensorSpec> specs = call_.op->infer(call_);
  if (call_.op->supports != nullptr) {
    if (auto refusal = call_.op->supports(call_)) return *refusal;
  }
  std::vector<DeviceTensor> results;
  for (const TensorSpec& spec : specs) results.push_back(allocated(spec));
  std::vector<const DeviceTensor*> in, constants(operands_.size(), nullptr);
  std::vector<DeviceTensor*> out;
  for (const DeviceTensor& t : operands_) in.push_back(&t);
  for (DeviceTensor& t : results) out.push_back(&t);
  const Kernel kernel = call_.op->prepare(call_, {.numerics = numerics, .constants = constants});
  if (!kernel) {
    return ttc::Reason{ttc::ReasonCode::Unimplemented,
                       std::string(to_string(numerics)) + " numerics of " + std::string(call_.op->name)};
  }
  kernel({.in = in, .out = out});
  const TensorSpec& spec = specs.at(0);
  std::vector<std::byte> tiles(static_cast<std::size_t>(spec.nbytes()));
  std::memcpy(tiles.data(), results[0].data(), tiles.size());
  return Tensor{.name = {},
                .shape = spec.logical,
                .dtype = spec.dtype,
                .layout = spec.layout,
                .values = from_tiles(tiles, spec.dtype, spec.logical)};
}

Tensor RecordCall::result(Numerics numerics) const {
  auto outcome = run(numerics);
  if (const auto* reason = std::get_if<ttc::Reason>(&outcome)) throw ttc::usage_error(reason->text());
  return std::get<Tensor>(std::move(outcome));
}

bool RecordCall::has(std::string_view name) const { return schema_of(call_).index_of(name) >= 0; }

void configure(RecordCall& call, const ComputeConfig& config) {
  if (call.has("fidelity")) call.set("fidelity", std::string(to_string(config.math_fidelity)));
  if (call.has("fp32_acc")) call.set("fp32_acc", config.fp32_dest_acc_en);
  if (call.has("approx")) call.set("approx", config.math_approx_mode);
}

Outcome record_outcome(const RecordCall& call, const Tensor& expected, Numerics numerics) {
  auto result = call.run(numerics);
  if (auto* reason = std::get_if<ttc::Reason>(&result)) return std::move(*reason);
  auto& tensor = std::get<Tensor>(result);
  if (tensor.dtype == expected.dtype) return Outputs{std::move(tensor.values)};
  const std::vector<std::byte> values = to_tiles(tensor, DataType::float32);
  const auto count = static_cast<std::int64_t>(values.size()) / tile_bytes(DataType::float32);
  const std::int64_t size = tile_bytes(expected.dtype);
  std::vector<std::byte> tiles(static_cast<std::size_t>(count * size));
  for (std::int64_t t = 0; t < count; ++t) {
    alignas(64) float tile[tile_elements];
    unpack_tile(DataType::float32, values.data() + t * tile_bytes(DataType::float32), tile);
    pack_dest(expected.dtype, dest_of({.fp32_dest_acc_en = tensor.dtype == DataType::float32}), tile,
              tiles.data() + t * size);
  }
  return Outputs{from_tiles(tiles, expected.dtype, tensor.shape)};
}

}  // namespace ttrt::replay
