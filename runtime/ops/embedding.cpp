// tt.embedding: rows of a packed table by index. An index outside the table is an error, never clamped.
// The op library's embedding takes tables in bfloat16 only, so lowering packs them so whatever format the user chose
// for matrix products (float32 where the activations are); the kernel reads any float format.
#include <algorithm>
#include <memory>

#include "device/move.h"
#include "ops/emit.h"
#include "ops/rules.h"

namespace ttrt::ops::embedding_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

LowerResult lower(const LowerContext& context) {
  const AtenArgs args(context);
  const ir::Value* weight = args["weight"].value();
  if (weight == nullptr || !ir::is_weight(weight))
    return Reason{ReasonCode::NonConstantWeight, "the table is computed at run time"};
  if (auto no = check_float(*weight, "the table")) return *no;
  if (weight->type.rank() != 2 || !weight->type.is_static())
    return Reason{ReasonCode::RankUnsupported, "the table is no matrix"};
  const ir::Type* indices = args.type("indices");
  if (indices == nullptr || !indices->has_dtype || !indices->has_shape)
    return Reason{ReasonCode::DynamicShape, "the indices' type is not known"};
  if (!ttc::is_integral(indices->dtype))
    return Reason{ReasonCode::DtypeUnsupported, "indices are " + std::string(ttc::torch_name(indices->dtype))};
  const bool wide = context.options.activation == DataType::float32;
  const std::string format(to_string(wide ? DataType::float32 : DataType::bfloat16));
  return Lowered{.args = {args["indices"], args["weight"], ir::Arg::ints({*weight->type.dim(0), *weight->type.dim(1)}),
                          format, format}};
}

TensorSpec table_spec(const OpCall& call) {
  const auto shape = call.integers("weight_shape");
  const auto format = data_type_from_string(call.string("weight_format"));
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1) bad_call(call, "weight_shape must be [rows, width]");
  if (!format || !is_float_format(*format)) bad_call(call, "weight_format '" + call.string("weight_format") + "'");
  return tiled(shape, *format);
}

DataType result_format(const OpCall& call) {
  const auto format = data_type_from_string(call.string("format"));
  if (format != DataType::bfloat16 && format != DataType::float32)
    bad_call(call, "format '" + call.string("format") + "'");
  return *format;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  Shape shape = spec_of(call, "indices").logical;
  shape.push_back(table_spec(call).logical[1]);
  return {tiled(std::move(shape), result_format(call))};
}

ttc::Refusal supports(const OpCall& call) {
  const DataType dtype = spec_of(call, "indices").dtype;
  if (dtype == DataType::int32 || dtype == DataType::uint32) return any_tiles(call);
  return Reason{ReasonCode::DtypeUnsupported, "indices are " + std::string(to_string(dtype))};
}

Kernel prepare(const OpCall& call, const PrepareContext&) {
  const auto gather =
      std::make_shared<GatherRows>(table_spec(call), spec_of(call, "indices"), result_format(call), Layout::tile);
  return [gather](const KernelArgs& args) { gather->run(args.in[1]->data(), args.in[0]->data(), args.out[0]->data()); };
}

std::vector<RtValue> reference(Reference& aten, const OpCall&, std::span<const RtValue> args) {
  return aten.call("aten.embedding.default", {as_float(args[1]), args[0]});
}

// Only the rows that are read cross the memory.
Work work(const OpCall& call) {
  const TensorSpec out = infer(call)[0];
  Work work;
  work.pieces = out.tiles();
  work.read(spec_of(call, "indices"));
  work.read(out);
  work.write(out);
  // A row of tiles, double-buffered; wide ones in pieces.
  work.l1_bytes = 2 * tile_bytes(DataType::bfloat16) * std::min<std::int64_t>(out.tile_cols(), 128);
  return work;
}

const OpFamily bags{.names = "embedding_bag _embedding_bag _embedding_bag_forward_only embedding_renorm renorm",
                    .reason = "bags of rows and rows that are changed as they are read have no kernel"};
TTRT_REGISTER_FAMILY(bags);

// Ids are rows of uint32.
ttc::Refusal emit(PythonCall& to) {
  to.result(Python("ttnn.embedding")
                .arg(to.row_major_ids("indices"))
                .arg(to.row_major_weight("weight"))
                .key("layout", "ttnn.TILE_LAYOUT")
                .key("dtype", python_dtype(to.results[0].dtype))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpRecord record{
    .name = "tt.embedding",
    .summary = "Rows of a packed table by index",
    .schema =
        "(Tensor indices, Tensor weight, *, int[] weight_shape, str weight_format=\"bfloat16\", str "
        "format=\"bfloat16\") -> Tensor",
    .lowers = {{"aten.embedding.default", lower}},
    .operands = {{"indices", OperandKind::index}},
    .packed = {{"weight", Packed::Form::matrix, table_spec}},
    .infer = infer,
    .supports = supports,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.99999},
    .cases = {{"matrix of indices", R"(graph main(%i: i64[2, 5] user, $w: f32[50, 40] parameter "w" = rand(1)) {
  %y: f32[2, 5, 40] = aten.embedding.default($w, %i)
  return %y
})",
               "index"},
              {"padding index, more rows than a tile",
               R"(graph main(%i: i64[40] user, $w: f32[50, 64] parameter "w" = rand(1)) {
  %y: f32[40, 64] = aten.embedding.default($w, %i, padding_idx=0)
  return %y
})",
               "index"}},
    .emit = emit,
};
TTRT_REGISTER_OP(record);

}  // namespace
}  // namespace ttrt::ops::embedding_op
