// tt.typecast: a float tensor as another float dtype. On the device all activations share one format, so the tensor
// keeps it; a cast to bfloat16 rounds float32 values to what bfloat16 holds (nearest even), any other keeps the values.
// Copies that ATen spells out (clone, contiguous) are the same without a dtype.
#include <cstring>

#include "ops/rules.h"
#include "ops/simd.h"
#include "ops/tiles.h"

namespace ttrt::ops {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

LowerResult lower(const LowerContext& context) {
  if (auto no = check_floats(context, {"other"})) return *no;
  const DType to = context.node.result()->type.dtype;
  // float16's range and precision are not the device's; only widening from it is harmless.
  if (to == DType::f16 && context.node.operand(0)->type.dtype != DType::f16)
    return Reason{ReasonCode::DtypeUnsupported, "a cast to float16"};
  return Lowered{.args = {context.node.arg(0), to}, .results = {}};
}

bool rounds(const OpCall& call) {
  const auto* dtype = std::get_if<DType>(&call.arg("dtype"));
  return dtype != nullptr && *dtype == DType::bf16 && spec_of(call, "x").dtype == DataType::float32;
}

Kernel prepare(const OpCall& call, const PrepareContext&) {
  const TileGrid grid(spec_of(call, "x"));
  const bool round = rounds(call);
  return [=](const KernelArgs& args) {
    const std::byte* in = args.in[0]->data();
    std::byte* out = args.out[0]->data();
    if (!round) {
      std::memcpy(out, in, static_cast<std::size_t>(grid.tiles() * grid.bytes));
      return;
    }
    parallel_for(grid.tiles(), 32, [&](std::int64_t t) {
      alignas(64) std::byte narrow[tile_elements * 2];
      store_tile(DataType::bfloat16, Rounding::even, reinterpret_cast<const float*>(in + t * grid.bytes), narrow);
      load_tile(DataType::bfloat16, narrow, reinterpret_cast<float*>(out + t * grid.bytes));
    });
  };
}

std::vector<RtValue> reference(Reference&, const OpCall& call, std::span<const RtValue> args) {
  const RtValue x = as_float(args[0]);
  const auto* host = x.get_if<HostTensor>();
  if (host == nullptr) bad_call(call, "the operand is no tensor");
  if (!rounds(call)) return {x};
  return {convert(convert(*host, DType::bf16), DType::f32)};
}

const OpRecord record{
    .name = "tt.typecast",
    .summary = "A float tensor as another float dtype, or a copy",
    .schema = "(Tensor x, ScalarType? dtype=None) -> Tensor",
    .lowers = {{"aten._to_copy.default", lower},
               {"aten.to.dtype", lower},
               {"aten.to.dtype_layout", lower},
               {"aten.type_as.default", lower},
               {"aten.clone.default", lower},
               {"aten.contiguous.default", lower}},
    .operands = {},
    .packed = {},
    .infer = same_as_x,
    .supports = float_tiles,
    .prepare = prepare,
    .reference = reference,
    .cost = movement_cost,
    .tolerance = {.pcc = 1.0},
    .cases = {{"to bfloat16", R"(graph main(%x: f32[3, 40] user) {
  %b: bf16[3, 40] = aten.to.dtype(%x, bf16)
  %y: f32[3, 40] = aten._to_copy.default(%b, dtype=f32)
  return %y
})"},
              {"copy", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 7, 33] = aten.clone.default(%x)
  return %y
})"}},
};
TTRT_REGISTER_OP(record);

}  // namespace
}  // namespace ttrt::ops
