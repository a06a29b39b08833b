// tt.convert: a tiled float tensor in another float format, as the device casts (device/tile_formats_device.h): float32
// to bfloat16 rounds to nearest even. What the compiler puts where values that it keeps in float32 (angles) meet
// activations in bfloat16.
#include "device/tile_formats_device.h"
#include "ops/emit.h"
#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops::convert_op {
namespace {

DataType format_of(const OpCall& call) {
  const auto format = data_type_from_string(call.string("format"));
  if (!format || !is_float_format(*format)) bad_call(call, "format '" + call.string("format") + "'");
  return *format;
}

ttc::Refusal supports(const OpCall& call) {
  if (!is_float_format(spec_of(call, "x").dtype))
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "the kernel takes floats"};
  return any_tiles(call);
}

std::vector<TensorSpec> infer(const OpCall& call) { return {tiled(spec_of(call, "x").logical, format_of(call))}; }

Kernel prepare(const OpCall& call, const PrepareContext&) {
  const TileGrid from(spec_of(call, "x")), to(infer(call)[0]);
  return [=](const KernelArgs& args) {
    const std::byte* in = args.in[0]->data();
    std::byte* out = args.out[0]->data();
    parallel_for(from.tiles(), 32,
                 [&](std::int64_t t) { typecast_tile(from.dtype, in + t * from.bytes, to.dtype, out + t * to.bytes); });
  };
}

std::vector<RtValue> reference(Reference&, const OpCall& call, std::span<const RtValue> args) {
  return {as_dtype(as_dtype(args[0], torch_dtype(format_of(call))), DType::f32)};
}

ttc::Refusal emit(PythonCall& to) {
  to.result(Python("ttnn.typecast")
                .arg(to.operand("x"))
                .arg(python_dtype(to.results[0].dtype))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpRecord record{
    .name = "tt.convert",
    .summary = "A float tensor in another float format",
    .schema = "(Tensor x, *, str format) -> Tensor",
    .infer = infer,
    .supports = supports,
    .prepare = prepare,
    .reference = reference,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"to bfloat16", R"(graph main(%x: f32[3, 40] user) {
  %y: bf16[3, 40] = tt.convert(%x, format="bfloat16")
  return %y
})"},
              {"to float32", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 7, 33] = tt.convert(%x, format="float32")
  return %y
})"}},
    .role = Role::change_format,
    .special_values = "bfloat16 tensors hold no NaN",
    .emit = emit,
};
TTRT_REGISTER_OP(record);

}  // namespace
}  // namespace ttrt::ops::convert_op
