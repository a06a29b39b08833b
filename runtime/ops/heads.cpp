// tt.split_heads and tt.concat_heads: [B, S, H * D] <-> [B, H, S, D], the reshape and permutation around attention in
// one movement; tt.split_query_key_value_and_heads: the same of three projections that one product gave. Where D is a
// multiple of 32 whole tiles move.
#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <vector>

#include "device/move.h"
#include "ops/emit.h"
#include "ops/library.h"
#include "ops/rules.h"

namespace ttrt::ops::heads_op {
namespace {

// Where the moves of operand 0, of which each makes a result, put its tiles. Empty where they move more or less than
// each of these once.
std::function<std::byte*(const KernelArgs&, std::int64_t)> places_of(std::span<const Move> moves, const TensorSpec& x) {
  struct Place {
    std::size_t result = 0;
    std::int64_t tile = -1;
  };
  std::vector<Place> of(static_cast<std::size_t>(x.tiles()));
  for (std::size_t result = 0; result < moves.size(); ++result) {
    const std::vector<std::int64_t> places = moves[result].tile_places();
    if (places.size() != of.size()) return {};
    for (std::size_t t = 0; t < of.size(); ++t) {
      if (places[t] < 0) continue;
      if (of[t].tile >= 0) return {};
      of[t] = {.result = result, .tile = places[t]};
    }
  }
  if (std::ranges::any_of(of, [](const Place& place) { return place.tile < 0; })) return {};
  return [of, bytes = tile_bytes(x.dtype)](const KernelArgs& args, std::int64_t t) {
    const auto [result, tile] = of[static_cast<std::size_t>(t)];
    return args.out[result]->data() + tile * bytes;
  };
}

Kernel one_move(const Move& move, const TensorSpec& x) {
  Kernel kernel = [move](const KernelArgs& args) { move.run(args.in[0]->data(), args.out[0]->data()); };
  kernel.place = places_of(std::span(&move, 1), x);
  return kernel;
}

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
  return one_move(plan_split_heads(x, {.heads = heads, .head_dim = x.logical[2] / heads}), x);
}

std::vector<RtValue> reference_split(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const RtValue split = aten.call("aten.unflatten.int",
                                  {as_float(args[0]), std::int64_t{2}, int_list({call.integer("num_heads"), -1})})[0];
  return aten.call("aten.transpose.int", {split, std::int64_t{1}, std::int64_t{2}});
}

// ---- queries, keys and values side by side

// Where each of the three is cut from.
struct Cut {
  std::string_view operand;
  HeadSlice slice;
};

std::array<Cut, 3> cuts_of(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  const TensorSpec* kv = call.tensor("kv");
  const std::int64_t heads = call.integer("num_heads");
  const std::int64_t kv_heads = call.has("num_kv_heads") ? call.integer("num_kv_heads") : heads;
  if (x.logical.size() != 3 || (kv != nullptr && (kv->logical.size() != 3 || kv->logical[0] != x.logical[0])))
    bad_call(call, "the inputs are not [batch, sequence, width] of one batch");
  const std::int64_t all = heads + (kv != nullptr ? 0 : 2 * kv_heads);
  if (heads < 1 || kv_heads < 1 || x.cols() % all != 0)
    bad_call(call, std::to_string(x.cols()) + " columns in " + std::to_string(all) + " heads");
  const std::int64_t dim = x.cols() / all;
  if (kv != nullptr && kv->cols() != 2 * kv_heads * dim)
    bad_call(call, std::to_string(kv->cols()) + " columns of keys and values in " + std::to_string(2 * kv_heads) +
                       " heads of " + std::to_string(dim));
  const std::string_view from = kv != nullptr ? "kv" : "x";
  const std::int64_t first = kv != nullptr ? 0 : heads * dim;
  return {Cut{"x", {.heads = heads, .head_dim = dim}},
          Cut{from, {.heads = kv_heads, .head_dim = dim, .first = first, .transposed = call.boolean("transpose_key")}},
          Cut{from, {.heads = kv_heads, .head_dim = dim, .first = first + kv_heads * dim}}};
}

std::vector<TensorSpec> infer_qkv(const OpCall& call) {
  std::vector<TensorSpec> out;
  for (const auto& [operand, slice] : cuts_of(call)) {
    const TensorSpec& from = spec_of(call, operand);
    Shape shape{from.logical[0], slice.heads, from.logical[1], slice.head_dim};
    if (slice.transposed) std::swap(shape[2], shape[3]);
    out.push_back(tiled(std::move(shape), from.dtype));
  }
  return out;
}

Kernel prepare_qkv(const OpCall& call, const PrepareContext&) {
  std::vector<std::size_t> from;
  std::vector<Move> moves;
  for (const auto& [operand, slice] : cuts_of(call)) {
    from.push_back(static_cast<std::size_t>(call.tensor_index(operand)));
    moves.push_back(plan_split_heads(spec_of(call, operand), slice));
  }
  Kernel kernel = [from, moves](const KernelArgs& args) {
    for (std::size_t i = 0; i < moves.size(); ++i) moves[i].run(args.in[from[i]]->data(), args.out[i]->data());
  };
  if (!call.has("kv")) kernel.place = places_of(moves, spec_of(call, "x"));
  return kernel;
}

std::vector<RtValue> reference_qkv(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  std::vector<RtValue> out;
  for (const auto& [operand, slice] : cuts_of(call)) {
    const RtValue x = as_float(args[operand == "x" ? 0 : 1]);
    const std::int64_t end = slice.first + slice.heads * slice.head_dim;
    const RtValue part = aten.call("aten.slice.Tensor", {x, std::int64_t{2}, slice.first, end})[0];
    const RtValue heads = aten.call("aten.unflatten.int", {part, std::int64_t{2}, int_list({slice.heads, -1})})[0];
    out.push_back(aten.call("aten.permute.default",
                            {heads, slice.transposed ? int_list({0, 2, 3, 1}) : int_list({0, 2, 1, 3})})[0]);
  }
  return out;
}

// ---- heads side by side

std::vector<TensorSpec> infer_concat(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  if (x.logical.size() != 4) bad_call(call, "the input is not [batch, heads, sequence, size]");
  return {tiled({x.logical[0], x.logical[2], x.logical[1] * x.logical[3]}, x.dtype)};
}

Kernel prepare_concat(const OpCall& call, const PrepareContext&) {
  return one_move(plan_merge_heads(spec_of(call, "x")), spec_of(call, "x"));
}

std::vector<RtValue> reference_concat(Reference& aten, const OpCall&, std::span<const RtValue> args) {
  const RtValue turned = aten.call("aten.transpose.int", {as_float(args[0]), std::int64_t{1}, std::int64_t{2}})[0];
  return aten.call("aten.flatten.using_ints", {turned, std::int64_t{2}});
}

// The library's functions of heads want whole tiles of each; narrower heads go through a shape of their own.
bool whole_tiles(std::int64_t width) { return width % tile_dim == 0; }

std::string moved_heads(PythonCall& to, const char* name, const std::string& x, const std::vector<std::string>& sizes,
                        bool turned) {
  const std::string apart = to.let("heads", Python("ttnn.reshape").arg(x).arg(python_list(sizes)));
  return to.let(name, Python("ttnn.permute").arg(apart).arg(turned ? "(0, 2, 3, 1)" : "(0, 2, 1, 3)"));
}

ttc::Refusal emit_split(PythonCall& to) {
  const Shape& out = to.results[0].logical;
  const std::vector<std::string> x = to.sizes("x");
  const std::string apart =
      to.let("heads", Python("ttnn.reshape")
                          .arg(to.operand("x"))
                          .arg(python_list({x[0], x[1], std::to_string(out[1]), std::to_string(out[3])})));
  to.result(Python("ttnn.permute").arg(apart).arg("(0, 2, 1, 3)").key("memory_config", to.memory_config()));
  return std::nullopt;
}

ttc::Refusal emit_qkv(PythonCall& to) {
  const bool turned = to.call.boolean("transpose_key");
  const Shape &q = to.results[0].logical, &v = to.results[2].logical;
  const std::int64_t width = q[3];
  const std::string kv = to.operand("kv");
  // The library has keys of as many rows as queries.
  const bool together = kv.empty() || to.sizes("kv")[1] == to.sizes("x")[1];
  if (whole_tiles(width) && together) {
    Python made("ttnn.transformer.split_query_key_value_and_split_heads");
    made.arg(to.operand("x"));
    if (!kv.empty()) made.arg(kv);
    made.key("num_heads", std::to_string(q[1]));
    if (v[1] != q[1]) made.key("num_kv_heads", std::to_string(v[1]));
    made.key("transpose_key", python_bool(turned)).key("memory_config", to.memory_config());
    for (const std::string& name : to.let_all({"query", "key", "value"}, made)) to.result_is(name);
    return std::nullopt;
  }
  std::int64_t at = 0;
  for (int part = 0; part < 3; ++part) {
    const bool from_kv = part > 0 && !kv.empty();
    if (part == 1 && from_kv) at = 0;
    const std::int64_t heads = part == 0 ? q[1] : v[1], end = at + heads * width;
    const std::vector<std::string> in = to.sizes(from_kv ? "kv" : "x");
    const std::string columns = to.let("columns", Python("ttnn.slice")
                                                      .arg(from_kv ? kv : to.operand("x"))
                                                      .arg(python_list({"0", "0", std::to_string(at)}))
                                                      .arg(python_list({in[0], in[1], std::to_string(end)})));
    constexpr const char* names[] = {"query", "key", "value"};
    to.result_is(moved_heads(to, names[part], columns, {in[0], in[1], std::to_string(heads), std::to_string(width)},
                             part == 1 && turned));
    at = end;
  }
  return std::nullopt;
}

ttc::Refusal emit_concat(PythonCall& to) {
  const Shape& x = spec_of(to.call, "x").logical;
  if (whole_tiles(x[3])) {
    to.result(
        Python("ttnn.transformer.concatenate_heads").arg(to.operand("x")).key("memory_config", to.memory_config()));
    return std::nullopt;
  }
  const std::string turned = to.let("heads", Python("ttnn.permute").arg(to.operand("x")).arg("(0, 2, 1, 3)"));
  to.result(Python("ttnn.reshape").arg(turned).arg(python_list(to.sizes())).key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpRecord split_heads{
    .name = "tt.split_heads",
    .summary = "[B, S, H * D] as [B, H, S, D]",
    .schema = "(Tensor x, int num_heads) -> Tensor",
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
    .emit = emit_split,
};
TTRT_REGISTER_OP(split_heads);

const OpRecord split_qkv{
    .name = "tt.split_query_key_value_and_heads",
    .summary = "Queries, keys and values of one product, or keys and values of another, as [B, H, S, D] each",
    .schema =
        "(Tensor x, Tensor? kv=None, *, int num_heads, int? num_kv_heads=None, bool transpose_key=False) -> "
        "(Tensor, Tensor, Tensor)",
    .infer = infer_qkv,
    .supports = any_tiles,
    .prepare = prepare_qkv,
    .reference = reference_qkv,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"whole tiles", R"(graph main(%x: f32[2, 40, 192] user) {
  %q: f32[2, 2, 40, 32], %k: f32[2, 2, 40, 32], %v: f32[2, 2, 40, 32] = tt.split_query_key_value_and_heads(%x, num_heads=2)
  return %q, %k, %v
})"},
              {"groups of heads, keys turned round, ragged", R"(graph main(%x: f32[2, 5, 160] user) {
  %q: f32[2, 4, 5, 20], %k: f32[2, 2, 20, 5], %v: f32[2, 2, 5, 20] = tt.split_query_key_value_and_heads(%x, num_heads=4, num_kv_heads=2, transpose_key=true)
  return %q, %k, %v
})"},
              {"keys and values of another sequence", R"(graph main(%x: f32[2, 5, 64] user, %y: f32[2, 33, 64] user) {
  %q: f32[2, 4, 5, 16], %k: f32[2, 2, 33, 16], %v: f32[2, 2, 33, 16] = tt.split_query_key_value_and_heads(%x, %y, num_heads=4, num_kv_heads=2)
  return %q, %k, %v
})"}},
    .role = Role::split_query_key_value,
    .emit = emit_qkv,
};
TTRT_REGISTER_OP(split_qkv);

const OpRecord concat_heads{
    .name = "tt.concat_heads",
    .summary = "[B, H, S, D] as [B, S, H * D]",
    .schema = "(Tensor x) -> Tensor",
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
    .emit = emit_concat,
};
TTRT_REGISTER_OP(concat_heads);
TTRT_LIBRARY_OP(concat_heads, {.record = "tt.concat_heads", .names = "concatenate_heads nlp_concat_heads"});

}  // namespace
}  // namespace ttrt::ops::heads_op
