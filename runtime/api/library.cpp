// Calls of the op library as cases of the replay, which knows its functions' parameters.
#include "api/library.h"

#include "api/convert.h"
#include "api/devices.h"
#include "device/buffer.h"
#include "replay/replay.h"
#include "support/json_util.h"

namespace ttrt::library {
namespace {

DataType format_of(const std::string& name) {
  if (const auto format = data_type_from_string(name)) return *format;
  throw Error(Error::Kind::usage, "'" + name + "' is no format");
}

replay::Tensor case_tensor(const Call& call, std::size_t index) {
  const Operand& operand = call.operands[index];
  if (operand.values.type() != ElementType::float32)
    throw Error(Error::Kind::usage, "the values of an operand are float32, not " + operand.values.text());
  return {.name = operand.name.empty() ? operand_name(call.function, index) : operand.name,
          .shape = operand.values.shape(),
          .dtype = format_of(operand.format),
          .layout = operand.row_major ? Layout::row_major : Layout::tile,
          .values = {operand.values.values<float>(), std::make_shared<ttrt::Tensor>(operand.values),
                     operand.buffer.memory}};
}

replay::Case case_of(const Call& call) {
  replay::Case out;
  out.id = out.op = call.function;
  out.arch = call.blackhole ? Arch::blackhole : Arch::wormhole;
  out.params = ttc::parse_json(call.params);
  for (std::size_t i = 0; i < call.operands.size(); ++i) out.inputs.push_back(case_tensor(call, i));
  for (const Result& result : call.results)
    out.expected.push_back({.name = "out" + std::to_string(out.expected.size()),
                            .shape = result.shape,
                            .dtype = format_of(result.format),
                            .values = {}});
  if (!call.config) return out;
  const auto fidelity = math_fidelity_from_string(call.config->math_fidelity);
  if (!fidelity) throw Error(Error::Kind::usage, "'" + call.config->math_fidelity + "' is no fidelity");
  out.config = ComputeConfig{.math_fidelity = *fidelity,
                             .fp32_dest_acc_en = call.config->fp32_dest_acc_en,
                             .math_approx_mode = call.config->math_approx_mode,
                             .packer_l1_acc = call.config->packer_l1_acc};
  return out;
}

Tensor tensor_of_values(const std::vector<float>& values, const Shape& shape) {
  if (static_cast<std::int64_t>(values.size()) != volume(shape))
    throw Error(Error::Kind::usage,
                "a result of " + std::to_string(values.size()) + " elements, not of the shape that was named");
  return Tensor::from(values, shape);
}

TensorSpec spec_of(const Result& tensor, bool row_major) {
  return {.logical = tensor.shape,
          .dtype = format_of(tensor.format),
          .layout = row_major ? Layout::row_major : Layout::tile,
          .memory = {}};
}

}  // namespace

std::vector<Tensor> run(const Call& call) {
  return guarded([&] {
    const replay::Runner runner = replay::find_runner(call.function);
    if (runner == nullptr) throw Error(Error::Kind::unsupported, "no function is called " + call.function);
    const replay::Case one = case_of(call);
    const replay::Outcome outcome =
        runner(one, call.numerics == NumericsMode::exact ? Numerics::exact : Numerics::fast);
    if (const auto* reason = std::get_if<ttc::Reason>(&outcome))
      throw Error(Error::Kind::unsupported, call.function + ": " + reason->detail);
    const auto& values = std::get<replay::Outputs>(outcome);
    if (values.size() < call.results.size())
      throw Error(Error::Kind::usage, call.function + " has " + std::to_string(values.size()) + " results");
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < call.results.size(); ++i)
      out.push_back(tensor_of_values(values[i], call.results[i].shape));
    return out;
  });
}

bool knows(const std::string& function) { return replay::find_runner(function) != nullptr; }

std::string operand_name(const std::string& function, std::size_t index) { return replay::input_name(function, index); }

std::vector<std::byte> stored(const Tensor& values, const std::string& format, bool row_major) {
  return guarded([&] {
    const TensorSpec spec = spec_of({.shape = values.shape(), .format = format}, row_major);
    std::vector<std::byte> out(static_cast<std::size_t>(spec.nbytes()));
    tilize_from_host(TensorAccess::host(values), spec, out.data());
    return out;
  });
}

Tensor restored(std::span<const std::byte> bytes, const Result& tensor, bool row_major) {
  return guarded([&] {
    const TensorSpec spec = spec_of(tensor, row_major);
    if (static_cast<std::int64_t>(bytes.size()) < spec.nbytes())
      throw Error(Error::Kind::usage,
                  std::to_string(bytes.size()) + " bytes for a tensor of " + std::to_string(spec.nbytes()));
    const HostTensor out = empty_host(is_float_format(spec.dtype) ? DType::f32 : DType::i32, spec.logical);
    untilize_to_host(spec, bytes.data(), out);
    return tensor_of(out);
  });
}

Buffer allocate(const std::shared_ptr<tt_lib::device::Device>& device, const Result& tensor, bool row_major,
                bool in_l1) {
  return guarded([&]() -> Buffer {
    const TensorSpec spec{
        .logical = tensor.shape,
        .dtype = format_of(tensor.format),
        .layout = row_major ? Layout::row_major : Layout::tile,
        .memory = {.buffer_type = in_l1 ? BufferType::l1 : BufferType::dram, .layout = {}, .shard = {}}};
    if (volume(tensor.shape) == 0) return {};
    auto held = std::make_shared<replay::Resident>(ttrt::allocate(*inner_device(device), spec, "tensor"));
    const std::int64_t address = held->memory().buffer->address();
    return {address, std::move(held)};
  });
}

void forget(const Buffer& buffer) {
  if (buffer.memory) buffer.memory->forget();
}

}  // namespace ttrt::library
