// tt.attention: softmax(q k^T scale + mask) v per head, heads of q in groups that share a head of k and v.
// Padding and masked keys never take part; a query whose keys are all masked gives zeros (fast) or what the device
// gives (exact). The kernels are in attention_kernel.cpp and attention_exact.cpp.
#include "ops/attention.h"

#include <cmath>

#include "device/arch.h"
#include "ops/emit.h"
#include "ops/library.h"
#include "ops/rules.h"

namespace ttrt::ops::attention_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// [batch, heads, sequence, size], or without heads.
ttc::Refusal check_shapes(const AtenArgs& args) {
  const auto rank = args.rank("query");
  for (const char* name : {"query", "key", "value"}) {
    if ((rank != 3 && rank != 4) || args.rank(name) != rank) {
      return Reason{ReasonCode::RankUnsupported, std::string(name) + " is not [batch, heads, sequence, size]"};
    }
  }
  const ir::Type &q = *args.type("query"), &k = *args.type("key"), &v = *args.type("value");
  if (!(q.sizes[0] == k.sizes[0]) || !(k.sizes[0] == v.sizes[0])) return unsupported("batches that broadcast");
  if (rank == 3) return std::nullopt;
  const auto heads = q.dim(1), kv_heads = k.dim(1), v_heads = v.dim(1);
  if (!heads || !kv_heads || kv_heads != v_heads) {
    return Reason{ReasonCode::DynamicShape, "the number of heads is not fixed"};
  }
  if (*heads != *kv_heads && (args.is("enable_gqa", 0) || *kv_heads == 0 || *heads % *kv_heads != 0)) {
    return unsupported("heads that broadcast");
  }
  return std::nullopt;
}

LowerResult lower(const LowerContext& context) {
  if (auto no = check_floats(context, {"attn_mask"})) return *no;
  const AtenArgs args(context);
  if (auto no = check_shapes(args)) return *no;
  if (!args.is("dropout_p", 0)) return unsupported("dropout_p");
  const auto causal = args["is_causal"].boolean();
  if (!causal && args.given("is_causal")) return unsupported("is_causal is computed at run time");
  if (args.given("scale") && !args.number("scale")) return unsupported("scale is computed at run time");
  std::string kind = "additive";
  if (args.given("attn_mask")) {
    const ir::Type* mask = args.type("attn_mask");
    if (mask == nullptr || !mask->has_dtype || !mask->has_shape)
      return Reason{ReasonCode::DynamicShape, "the mask's type is not known"};
    if (mask->rank() < 2 || mask->rank() > *args.rank("query")) {
      return Reason{ReasonCode::RankUnsupported, "the mask is not [.., queries, keys]"};
    }
    if (mask->dtype != DType::boolean && !is_device_float(mask->dtype))
      return Reason{ReasonCode::DtypeUnsupported, "the mask's dtype"};
    if (mask->dtype == DType::boolean) kind = "boolean";
  }
  const auto scale = args.number("scale");
  return Lowered{.args = {args["query"], args["key"], args["value"], args["attn_mask"], causal.value_or(false),
                          scale ? ir::Arg(*scale) : ir::Arg(), kind}};
}

// With a dim of one head where the operands have none. Neither changes the tiles.
Shape with_heads(const OpCall& call, const TensorSpec& spec) {
  Shape shape = spec.logical;
  if (shape.size() == 3) shape.insert(shape.begin() + 1, 1);
  if (shape.size() != 4) bad_call(call, "q, k and v must be [batch, heads, sequence, size]");
  return shape;
}

// The mask as [B|1, H|1, S|1, T|1].
TensorSpec full_mask(const OpCall& call, const AttentionShape& s, bool heads) {
  TensorSpec mask = spec_of(call, "mask");
  const Shape full{s.batch, s.heads, s.queries, s.keys};
  if (mask.logical.size() == 3 && !heads) mask.logical.insert(mask.logical.begin() + 1, 1);
  if (mask.logical.size() >= 2 && mask.logical.size() < 4) {
    mask.logical.insert(mask.logical.begin(), 4 - mask.logical.size(), 1);
  }
  if (mask.logical.size() != 4 || broadcast(call, mask.logical, full) != full) {
    bad_call(call, "the mask does not broadcast to the scores");
  }
  return mask;
}

AttentionShape shape_of(const OpCall& call) {
  const bool heads = spec_of(call, "q").logical.size() == 4;
  const Shape q = with_heads(call, spec_of(call, "q")), k = with_heads(call, spec_of(call, "k")),
              v = with_heads(call, spec_of(call, "v"));
  AttentionShape s{.batch = q[0],
                   .heads = q[1],
                   .kv_heads = k[1],
                   .queries = q[2],
                   .keys = k[2],
                   .head_dim = q[3],
                   .value_dim = v[3]};
  if (k[0] != s.batch || v[0] != s.batch || v[1] != s.kv_heads || v[2] != s.keys || k[3] != s.head_dim) {
    bad_call(call, "the shapes of q, k and v do not fit together");
  }
  if (s.kv_heads < 1 || s.heads % s.kv_heads != 0) {
    bad_call(call, std::to_string(s.heads) + " heads over " + std::to_string(s.kv_heads));
  }
  if (volume(q) < 1 || volume(k) < 1 || volume(v) < 1) bad_call(call, "an empty operand");
  s.q = spec_of(call, "q").dtype;
  s.k = spec_of(call, "k").dtype;
  s.v = spec_of(call, "v").dtype;
  s.out = s.q == DataType::float32 ? DataType::float32 : DataType::bfloat16;
  if (call.has("mask")) s.mask = full_mask(call, s, heads);
  s.boolean_mask = call.string("mask_kind") == "boolean";
  s.causal = call.boolean("is_causal");
  const float root = std::sqrt(static_cast<float>(s.head_dim));
  s.scale = call.has("scale") ? static_cast<float>(call.number("scale")) : 1.0F / root;
  s.config = call.compute_config();
  s.approx_exp = call.boolean("approx_exp");
  s.key_chunk = call.integer("key_chunk");
  constexpr std::int64_t largest_chunk = 1024;
  if (s.key_chunk < tile_dim || s.key_chunk > largest_chunk || s.key_chunk % tile_dim != 0) {
    bad_call(call, "a chunk of keys is 1 to 32 tiles");
  }
  return s;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const AttentionShape s = shape_of(call);
  Shape out = spec_of(call, "q").logical;
  out.back() = s.value_dim;
  return {tiled(std::move(out), s.out)};
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  if (context.variant == "unfused" && context.numerics == Numerics::fast) return unfused_attention(shape_of(call));
  return context.numerics == Numerics::exact ? exact_attention(shape_of(call), context.profile.arch)
                                             : fast_attention(shape_of(call));
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::vector<RtValue> f = as_floats(args);
  const AttentionShape s = shape_of(call);
  RtValue mask = f[3];
  if (!mask.is_none() && s.boolean_mask) mask = aten.call("aten.ne.Scalar", {mask, 0.0})[0];
  // ATen takes a mask or is_causal, not both.
  bool causal = s.causal;
  if (!has_elements(f[0])) mask = RtValue(), causal = false;  // the result's sizes are those without a mask
  if (causal && !mask.is_none()) {
    const auto ones = aten.call("aten.ones.default", {int_list({s.queries, s.keys}), DType::f32})[0];
    const auto keep = aten.call("aten.ne.Scalar", {aten.call("aten.tril.default", {ones})[0], 0.0})[0];
    if (s.boolean_mask) {
      mask = aten.call("aten.logical_and.default", {mask, keep})[0];
    } else {
      const auto hidden = aten.call("aten.logical_not.default", {keep})[0];
      mask = aten.call("aten.masked_fill.Scalar", {mask, hidden, -INFINITY})[0];
    }
    causal = false;
  }
  return aten.call("aten.scaled_dot_product_attention.default",
                   {f[0], f[1], f[2], mask, 0.0, causal, static_cast<double>(s.scale), s.heads != s.kv_heads});
}

// The softmax between the two products: three passes of each tile of scores through unpacker and packer, 20 vector
// instructions, a maximum and a sum (four phases) and a product by the matrix unit. With 32 queries and 32 keys at a
// time five more passes have one tile each: what is there already is scaled to the new maximum and added to.
Work work(const OpCall& call) {
  const AttentionShape s = shape_of(call);
  const auto tiles = [](std::int64_t n) { return round_up(n, tile_dim) / tile_dim; };
  const double scores =
      static_cast<double>(s.batch * s.heads * tiles(s.queries) * tiles(s.keys)) * (s.causal ? 0.5 : 1);
  const std::int64_t depth = tiles(s.head_dim) + tiles(s.value_dim);
  const double score_bytes = 3 * scores * static_cast<double>(tile_bytes(DataType::bfloat16));
  Work work = product_work(call, scores * static_cast<double>(depth), s.q, spec_of(call, "k").dtype);
  work.flops = 2 * static_cast<double>(s.batch * s.heads * s.queries * s.keys * (s.head_dim + s.value_dim));
  work.unpacked_bytes += score_bytes;
  work.packed_bytes += score_bytes;
  work.vector_ops = 20 * scores * static_cast<double>(tile_dim * tile_dim);
  work.reduced_tiles = 2 * 4 * scores;
  work.eltwise_tiles = 4 * scores;
  work.handovers = 5 * scores;
  work.pieces = s.batch * s.heads * tiles(s.queries);
  work.l1_bytes = depth * 8 * tile_bytes(s.q) + 16 * tile_bytes(DataType::float32);
  return work;
}

double flops(const ir::Node& node, const ir::SymBinding& shapes) {
  const auto queries = volume_of(node.operand(0), shapes), depth = dim_of(node.operand(0), -1, shapes);
  const auto keys = dim_of(node.operand(1), -2, shapes), width = dim_of(node.operand(2), -1, shapes);
  if (!queries || !depth || !keys || !width || *depth == 0) return 0;
  return 2 * *queries * *keys * (1 + *width / *depth);
}

void describe(const OpCall& call, VariantQuery& to) {
  const AttentionShape s = shape_of(call);
  to.batch = s.batch;
  to.queries = s.queries;
  to.keys = s.keys;
  to.heads = s.heads;
  to.kv_heads = s.kv_heads;
  to.head_dim = s.head_dim;
}

ttc::Refusal supports_unfused(const VariantQuery& call) {
  if (call.exact) return Reason{ReasonCode::Untested, "no recorded results of the three steps in exact numerics"};
  return std::nullopt;
}

// Scores and probabilities each go to DRAM and come back.
void unfused_work(const VariantQuery& call, Work& work) {
  const auto tiles = [](std::int64_t n) { return round_up(std::max<std::int64_t>(n, 1), tile_dim) / tile_dim; };
  const std::int64_t scores = std::max<std::int64_t>(call.batch, 1) * std::max<std::int64_t>(call.heads, 1) *
                              tiles(call.queries) * tiles(call.keys);
  for (const bool written : {true, false})
    work.moved.push_back({.count = 2 * scores, .bytes = tile_bytes(DataType::bfloat16), .written = written});
}

// The library takes a mask or causal attention of as many queries as keys, and adds masks that are whole: [1|batch,
// 1|heads, queries, keys]. A boolean one becomes 0 and -infinity before, together with the keys that causality hides.
std::string emit_mask(PythonCall& to, const AttentionShape& s, bool causal) {
  const std::vector<std::string> q = to.sizes("q"), k = to.sizes("k");
  const std::string queries = q[q.size() - 2], keys = k[k.size() - 2];
  const auto visible = [&] {
    to.needs("causal_mask");
    return Python("causal_mask").arg(queries).arg(keys).arg(to.device()).str();
  };
  const auto additive = [&](const std::string& shown) {
    return to.let("mask", Python("ttnn.where").arg(shown).arg("0.0").arg(python_number(-INFINITY)));
  };
  if (!s.mask) return additive(visible());
  std::string mask = to.operand("mask");
  if (s.mask->logical != spec_of(to.call, "mask").logical) {
    std::vector<std::string> sizes = to.sizes("mask");
    if (sizes.size() == 3 && q.size() == 3) sizes.insert(sizes.begin() + 1, "1");
    while (sizes.size() < 4) sizes.insert(sizes.begin(), "1");
    mask = to.let("mask", Python("ttnn.reshape").arg(mask).arg(python_list(sizes)));
  }
  const bool one_row = s.mask->logical[2] == 1 && s.queries != 1, one_column = s.mask->logical[3] == 1 && s.keys != 1;
  if (s.boolean_mask) {
    if (causal) {
      mask = to.let("shown", Python("ttnn.multiply").arg(mask).arg(visible()));
    } else if (one_row || one_column) {
      mask = to.let("shown", Python("ttnn.repeat")
                                 .arg(mask)
                                 .arg(python_list({"1", "1", one_row ? queries : "1", one_column ? keys : "1"})));
    }
    return additive(mask);
  }
  if (causal) return to.let("mask", Python("ttnn.add").arg(mask).arg(additive(visible())));
  if (!one_row && !one_column) return mask;
  return to.let(
      "mask",
      Python("ttnn.repeat").arg(mask).arg(python_list({"1", "1", one_row ? queries : "1", one_column ? keys : "1"})));
}

ttc::Refusal emit(PythonCall& to) {
  const AttentionShape s = shape_of(to.call);
  if (spec_of(to.call, "q").logical.size() != 4) return unsupported("the library's attention wants a dim of heads");
  if (s.out != DataType::bfloat16) return unsupported("the library has no attention of float32");
  const bool causal = s.causal && !s.mask && s.queries == s.keys && to.fixed_sizes();
  Python made("ttnn.transformer.scaled_dot_product_attention");
  made.arg(to.operand("q")).arg(to.operand("k")).arg(to.operand("v"));
  if (!causal && (s.mask || s.causal)) made.key("attn_mask", emit_mask(to, s, s.causal));
  made.key("is_causal", python_bool(causal))
      .key("scale", python_number(static_cast<double>(to.call.has("scale") ? to.call.number("scale")
                                                                           : static_cast<double>(s.scale))));
  made.key("memory_config", to.memory_config());
  if (s.approx_exp != s.config.math_approx_mode || s.key_chunk != tile_dim) {
    to.needs("attention_program");
    Python program("attention_program");
    program.arg(to.device()).key("exp_approx_mode", python_bool(s.approx_exp));
    if (s.key_chunk != tile_dim) program.key("keys", std::to_string(s.key_chunk));
    made.key("program_config", program.str());
  }
  to.result(made.key("compute_kernel_config", to.compute_kernel_config()));
  return std::nullopt;
}

const OpRecord record{
    .name = "tt.attention",
    .summary = "Scaled dot-product attention over heads, with an optional mask",
    .schema =
        "(Tensor q, Tensor k, Tensor v, Tensor? mask=None, *, bool is_causal=False, float? scale=None, "
        "str mask_kind=\"additive\", str? fidelity=\"HiFi4\", bool? fp32_acc=True, bool? approx=False, "
        "bool? approx_exp=False, int key_chunk=32) -> Tensor",
    .lowers = {{"aten.scaled_dot_product_attention.default", lower, flops}},
    .operands = {{"mask", OperandKind::boolean}},
    .infer = infer,
    .supports = float_tiles,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.9995, .exact_max_rel = 0.04},
    .cases =
        {{"plain, ragged",
          R"(graph main(%q: f32[2, 3, 7, 40] user, %k: f32[2, 3, 33, 40] user, %v: f32[2, 3, 33, 24] user) {
  %y: f32[2, 3, 7, 24] = aten.scaled_dot_product_attention.default(%q, %k, %v)
  return %y
})"},
         {"causal", R"(graph main(%q: f32[1, 2, 70, 32] user, %k: f32[1, 2, 70, 32] user, %v: f32[1, 2, 70, 32] user) {
  %y: f32[1, 2, 70, 32] = aten.scaled_dot_product_attention.default(%q, %k, %v, is_causal=true)
  return %y
})"},
         {"causal, fewer keys than queries, and more",
          R"(graph main(%q: f32[1, 2, 40, 32] user, %k: f32[1, 2, 5, 32] user, %v: f32[1, 2, 5, 32] user, %w: f32[1, 2, 90, 32] user) {
  %y: f32[1, 2, 40, 32] = aten.scaled_dot_product_attention.default(%q, %k, %v, is_causal=true)
  %z: f32[1, 2, 40, 32] = aten.scaled_dot_product_attention.default(%q, %w, %w, is_causal=true)
  return %y, %z
})"},
         {"additive mask of one row, scale",
          R"(graph main(%q: f32[2, 3, 40, 32] user, %k: f32[2, 3, 40, 32] user, %v: f32[2, 3, 40, 32] user, %m: f32[2, 1, 1, 40] user) {
  %y: f32[2, 3, 40, 32] = aten.scaled_dot_product_attention.default(%q, %k, %v, attn_mask=%m, scale=0.3)
  return %y
})"},
         {"additive mask per head",
          R"(graph main(%q: f32[2, 3, 40, 32] user, %k: f32[2, 3, 50, 32] user, %v: f32[2, 3, 50, 32] user, %m: f32[1, 3, 40, 50] user) {
  %y: f32[2, 3, 40, 32] = aten.scaled_dot_product_attention.default(%q, %k, %v, attn_mask=%m)
  return %y
})"},
         {"boolean mask",
          R"(graph main(%q: f32[2, 2, 40, 32] user, %k: f32[2, 2, 33, 32] user, %v: f32[2, 2, 33, 32] user, %m: bool[2, 1, 40, 33] user) {
  %y: f32[2, 2, 40, 32] = aten.scaled_dot_product_attention.default(%q, %k, %v, attn_mask=%m)
  return %y
})"},
         {"no heads, a mask per batch",
          R"(graph main(%q: f32[2, 40, 32] user, %k: f32[2, 33, 32] user, %m: f32[2, 40, 33] user) {
  %y: f32[2, 40, 32] = aten.scaled_dot_product_attention.default(%q, %k, %k, attn_mask=%m)
  return %y
})"},
         {"a mask without leading dims", R"(graph main(%q: f32[2, 3, 7, 32] user, %m: f32[7, 7] user) {
  %y: f32[2, 3, 7, 32] = aten.scaled_dot_product_attention.default(%q, %q, %q, attn_mask=%m)
  return %y
})"},
         {"groups of heads",
          R"(graph main(%q: f32[2, 6, 9, 32] user, %k: f32[2, 2, 33, 32] user, %v: f32[2, 2, 33, 32] user) {
  %y: f32[2, 6, 9, 32] = aten.scaled_dot_product_attention.default(%q, %k, %v, enable_gqa=true)
  return %y
})"},
         {"one query, many keys",
          R"(graph main(%q: f32[1, 2, 1, 64] user, %k: f32[1, 2, 1100, 64] user, %v: f32[1, 2, 1100, 64] user) {
  %y: f32[1, 2, 1, 64] = aten.scaled_dot_product_attention.default(%q, %k, %v)
  return %y
})"},
         {"one query, groups of many heads, a mask",
          R"(graph main(%q: f32[2, 36, 1, 40] user, %k: f32[2, 2, 530, 40] user, %v: f32[2, 2, 530, 24] user, %m: f32[2, 1, 1, 530] user) {
  %y: f32[2, 36, 1, 24] = aten.scaled_dot_product_attention.default(%q, %k, %v, attn_mask=%m, enable_gqa=true)
  %z: f32[2, 36, 1, 24] = aten.scaled_dot_product_attention.default(%q, %k, %v, is_causal=true, enable_gqa=true)
  return %y, %z
})"}},
    .variants = {{.name = "fused", .summary = "bands of queries against blocks of keys; scores stay in L1"},
                 {.name = "unfused",
                  .summary = "product, softmax, product; scores go through DRAM",
                  .supports = supports_unfused,
                  .more = unfused_work}},
    .describe = describe,
    .multiplies = true,
    .family = "attention",
    .words = {{"mask_kind", "additive boolean"}},
    .special_values = "hidden keys weigh zero, and zero times NaN is NaN",
    .emit = emit,
};
TTRT_REGISTER_OP(record);
TTRT_LIBRARY_OP(attention, {.record = "tt.attention",
                            .names = "scaled_dot_product_attention",
                            .config = ComputeConfig{.math_fidelity = MathFidelity::HiFi2,
                                                    .fp32_dest_acc_en = false,
                                                    .math_approx_mode = true},
                            .choose =
                                [](const OpCall& call) {
                                  // The library has no attention of float32.
                                  if (spec_of(call, "q").dtype == DataType::float32) return ComputeConfig{};
                                  return *library_config("tt.attention");
                                },
                            .approx_exp = true});

}  // namespace
}  // namespace ttrt::ops::attention_op
