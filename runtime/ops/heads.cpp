// tt.split_heads and tt.concat_heads: [B, S, H * D] <-> [B, H, S, D], the reshape and permutation around attention in
// one movement. Where D is a multiple of 32 whole tiles move.
#include "device/move.h"
#include "ops/library.h"
#include "ops/rules.h"

namespace ttrt::ops::heads_op {
namespace {

std::vector<TensorSpec> infer_split(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  const std::int64_t heads = call.integer("num_heads");
  if (x.logical.size() != 3) bad_call(call, "the input is not [batch, sequence, width]");
  if (heads < 1 || x.cols() % heads != 0)
    bad_call(call, std::to_string(x.cols()) + " columns in " + std::to_string(heads) + " heads");
  return {tiled({x.logical[0], heads, x.logical[1], x.logical[2] / heads}, x.dtype)};
}

Kernel prepare_split(const OpCall& call, const PrepareContext&) {
  const TensorSpec& x = spec_of(call, "x");
  const std::int64_t heads = call.integer("num_heads");
  const Move move = plan_split_heads(x, {.heads = heads, .head_dim = x.logical[2] / heads});
  return [move](const KernelArgs& args) { move.run(args.in[0]->data(), args.out[0]->data()); };
}

std::vector<RtValue> reference_split(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const RtValue split = aten.call("aten.unflatten.int",
                                  {as_float(args[0]), std::int64_t{2}, int_list({call.integer("num_heads"), -1})})[0];
  return aten.call("aten.transpose.int", {split, std::int64_t{1}, std::int64_t{2}});
}

std::vector<TensorSpec> infer_concat(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  if (x.logical.size() != 4) bad_call(call, "the input is not [batch, heads, sequence, size]");
  return {tiled({x.logical[0], x.logical[2], x.logical[1] * x.logical[3]}, x.dtype)};
}

Kernel prepare_concat(const OpCall& call, const PrepareContext&) {
  const Move move = plan_merge_heads(spec_of(call, "x"));
  return [move](const KernelArgs& args) { move.run(args.in[0]->data(), args.out[0]->data()); };
}

std::vector<RtValue> reference_concat(Reference& aten, const OpCall&, std::span<const RtValue> args) {
  const RtValue turned = aten.call("aten.transpose.int", {as_float(args[0]), std::int64_t{1}, std::int64_t{2}})[0];
  return aten.call("aten.flatten.using_ints", {turned, std::int64_t{2}});
}

const OpRecord split_heads{
    .name = "tt.split_heads",
    .summary = "[B, S, H * D] as [B, H, S, D]",
    .schema = "(Tensor x, int num_heads) -> Tensor",
    .lowers = {},
    .operands = {},
    .packed = {},
    .infer = infer_split,
    .supports = any_tiles,
    .prepare = prepare_split,
    .reference = reference_split,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"whole tiles", R"(graph main(%x: f32[2, 40, 96] user) {
  %y: f32[2, 3, 40, 32] = tt.split_heads(%x, num_heads=3)
  return %y
})"},
              {"ragged", R"(graph main(%x: f32[2, 5, 60] user) {
  %y: f32[2, 3, 5, 20] = tt.split_heads(%x, num_heads=3)
  return %y
})"}},
    .role = Role::split_heads,
};
TTRT_REGISTER_OP(split_heads);

const OpRecord concat_heads{
    .name = "tt.concat_heads",
    .summary = "[B, H, S, D] as [B, S, H * D]",
    .schema = "(Tensor x) -> Tensor",
    .lowers = {},
    .operands = {},
    .packed = {},
    .infer = infer_concat,
    .supports = any_tiles,
    .prepare = prepare_concat,
    .reference = reference_concat,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"whole tiles", R"(graph main(%x: f32[2, 3, 40, 32] user) {
  %y: f32[2, 40, 96] = tt.concat_heads(%x)
  return %y
})"},
              {"ragged", R"(graph main(%x: f32[2, 3, 5, 20] user) {
  %y: f32[2, 5, 60] = tt.concat_heads(%x)
  return %y
})"}},
    .role = Role::concat_heads,
};
TTRT_REGISTER_OP(concat_heads);
TTRT_LIBRARY_OP(concat_heads, {.record = "tt.concat_heads", .names = "concatenate_heads nlp_concat_heads"});

}  // namespace
}  // namespace ttrt::ops::heads_op
