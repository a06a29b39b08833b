// Calls of op records: literals from the schema's defaults, kernels prepared and run on this program's device.
#include "call.h"

#include "harness.h"
#include "ir/op_schema.h"

namespace ttrt::test {
namespace {

OpArg default_of(const std::optional<ttc::ir::Arg>& given) {
  if (!given) return {};
  if (const auto* b = given->get_if<bool>()) return *b;
  if (const auto* n = given->get_if<std::int64_t>()) return *n;
  if (const auto* d = given->get_if<double>()) return *d;
  if (const auto* s = given->get_if<std::string>()) return *s;
  return {};
}

}  // namespace

DeviceTensor upload(const std::vector<float>& values, Shape shape, DataType dtype) {
  const HostTensor host = empty_host(DType::f32, std::move(shape));
  std::copy(values.begin(), values.end(), host.as<float>());
  TensorSpec spec;
  spec.logical = host.sizes;
  spec.dtype = dtype;
  return to_device(host, device(), spec);
}

DeviceTensor upload_integers(const std::vector<std::int64_t>& values, Shape shape) {
  const HostTensor host = empty_host(DType::i64, std::move(shape));
  std::copy(values.begin(), values.end(), host.as<std::int64_t>());
  TensorSpec spec;
  spec.logical = host.sizes;
  spec.dtype = DataType::int32;
  return to_device(host, device(), spec);
}

Call::Call(std::string_view op, std::vector<DeviceTensor> tensors) : in(std::move(tensors)) {
  call.op = find_op(op);
  const auto* schema = ttc::ir::find_schema(op);
  for (std::size_t i = 0; i < schema->args.size(); ++i) {
    if (i < in.size()) {
      call.args.emplace_back(TensorRef{static_cast<int>(i)});
      call.tensors.push_back(in[i].spec);
    } else {
      call.args.push_back(default_of(schema->args[i].default_value));
    }
  }
}

Call& Call::set(std::string_view name, OpArg value) {
  call.args.at(static_cast<std::size_t>(ttc::ir::find_schema(call.op->name)->index_of(name))) = std::move(value);
  return *this;
}

Call& Call::literals(const std::vector<OpArg>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) call.args.at(in.size() + i) = values[i];
  return *this;
}

DeviceTensor Call::result(Numerics numerics) const {
  std::vector<const DeviceTensor*> pointers, constants(in.size(), nullptr);
  for (const DeviceTensor& tensor : in) pointers.push_back(&tensor);
  const Kernel kernel = call.op->prepare(call, {.numerics = numerics, .constants = constants});
  DeviceTensor out = allocate(device(), call.op->infer(call).at(0));
  DeviceTensor* outs[] = {&out};
  kernel({.in = pointers, .out = outs});
  return out;
}

std::vector<float> Call::run(Numerics numerics) const {
  const HostTensor host = to_host(result(numerics), DType::f32);
  return {host.as<float>(), host.as<float>() + host.numel()};
}

std::vector<std::int64_t> Call::integers(Numerics numerics) const {
  const DeviceTensor out = result(numerics);
  // A device's booleans are numbers of a float format.
  const HostTensor host = to_host(out, is_float_format(out.spec.dtype) ? DType::boolean : DType::i64);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < host.numel(); ++i)
    values.push_back(host.dtype == DType::boolean ? host.as<bool>()[i] : host.as<std::int64_t>()[i]);
  return values;
}

}  // namespace ttrt::test
