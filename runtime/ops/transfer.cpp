// tt.to_device and tt.to_host: where a program crosses between host and device tensors. The executor runs them itself
// (tilize_from_host, untilize_to_host); as device kernels they do not exist. The records give schema, shapes and
// numbers.
#include "ops/emit.h"
#include "ops/rules.h"

namespace ttrt::ops::transfer_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;

DataType format_of(const OpCall& call) {
  const auto format = data_type_from_string(call.string("format"));
  if (!format) bad_call(call, "format '" + call.string("format") + "'");
  return *format;
}

std::vector<TensorSpec> infer_to_device(const OpCall& call) {
  return {tiled(spec_of(call, "x").logical, format_of(call))};
}

// What the value is once it has the device format, block formats as bfloat16.
std::vector<RtValue> reference_to_device(Reference&, const OpCall& call, std::span<const RtValue> args) {
  return {as_dtype(args[0], torch_dtype(format_of(call)))};
}

DType dtype_of(const OpCall& call) {
  const auto* dtype = std::get_if<DType>(&call.arg("dtype"));
  if (dtype == nullptr) bad_call(call, "dtype is missing");
  return *dtype;
}

DataType format_that_holds(DType dtype) {
  if (dtype == DType::bf16) return DataType::bfloat16;
  return ttc::is_floating(dtype) ? DataType::float32 : DataType::int32;
}

std::vector<TensorSpec> infer_to_host(const OpCall& call) {
  TensorSpec spec = tiled(spec_of(call, "x").logical, format_that_holds(dtype_of(call)));
  spec.layout = Layout::row_major;
  return {spec};
}

std::vector<RtValue> reference_to_host(Reference&, const OpCall& call, std::span<const RtValue> args) {
  return {as_dtype(args[0], dtype_of(call))};
}

// What crosses the host link on the device's side; the executor asks the time model for the link (estimate_transfer).
Work upload_work(const OpCall& call) {
  Work work;
  work.write(infer_to_device(call)[0]);
  return work;
}
Work download_work(const OpCall& call) {
  Work work;
  work.read(spec_of(call, "x"));
  return work;
}

const OpFamily host_numbers{
    .names =
        "item _local_scalar_dense is_nonzero equal allclose Bool Int Float ScalarImplicit _assert_async "
        "_assert_scalar sym_* _assert_tensor_metadata",
    .reason = "its result is a number for the host"};
TTRT_REGISTER_FAMILY(host_numbers);

const OpRecord to_device{
    .name = "tt.to_device",
    .summary = "A host tensor as tiles on the device",
    .schema = "(Tensor x, *, str format) -> Tensor",
    .operands = {{"x", OperandKind::exact}},
    .infer = infer_to_device,
    .reference = reference_to_device,
    .work = upload_work,
    .tolerance = equal_results,
    .cases = {{"bfloat16", R"(graph main(%x: f32[3, 40] user) {
  %y: bf16[3, 40] = tt.to_device(%x, format="bfloat16")
  return %y
})"},
              {"float32", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[2, 5, 64] = tt.to_device(%x, format="float32")
  return %y
})"}},
    .role = Role::to_device,
};
TTRT_REGISTER_OP(to_device);

const OpRecord to_host{
    .name = "tt.to_host",
    .summary = "A device tensor as a host tensor of a dtype",
    .schema = "(Tensor x, *, ScalarType dtype) -> Tensor",
    .infer = infer_to_host,
    .reference = reference_to_host,
    .work = download_work,
    .tolerance = equal_results,
    .cases = {{"float32", R"(graph main(%x: f32[1, 7, 33] user) {
  %d: f32[1, 7, 33] = tt.to_device(%x, format="float32")
  %y: f32[1, 7, 33] = tt.to_host(%d, dtype=f32)
  return %y
})"}},
    .role = Role::to_host,
};
TTRT_REGISTER_OP(to_host);
TTRT_NOT_EMITTED(transfers, "tt.to_device tt.to_host", "programs have ttnn.from_torch and ttnn.to_torch")

}  // namespace
}  // namespace ttrt::ops::transfer_op
