// Modules as one: fused projections, and whole modules as one operator of the file, give the bits of the operators one
// by one, in fast and exact numerics.
#include <cstring>
#include <filesystem>
#include <map>

#include <unistd.h>

#include "device/metrics.h"
#include "executor/executor.h"
#include "formats/model_file.h"
#include "formats/safetensors.h"
#include "ir/body.h"
#include "pass/compile.h"
#include "session/cases.h"
#include "session/checks.h"
#include "session/model_source.h"
#include "session/steps.h"
#include "session/values.h"
#include "tests/catch.h"

namespace {

using namespace ttc;

const std::string folder = std::string(TTC_SOURCE_ROOT) + "/models/";

using Ops = std::map<std::string, int>;

Ops ops_of(const ir::Model& model) {
  Ops out;
  ir::walk(*model.graph, [&](const ir::Node* node) { ++out[node->op()]; });
  return out;
}

struct Made {
  std::shared_ptr<ir::Model> model;
  CompileResult result;
};

Made make(const std::string& name, const CompileOptions& options, const PassManagerOptions& passes = {}) {
  Made out{.model = load(folder + name + ".pt2"), .result = {}};
  out.result = compile(*out.model, options, passes);
  return out;
}

std::vector<ttrt::HostTensor> outputs(const std::shared_ptr<const ir::Model>& model, const std::vector<Case>& cases,
                                      ttrt::Numerics numerics) {
  ttrt::Executor executor(model, {.numerics = numerics});
  StepRunner steps(executor, cases);
  std::vector<ttrt::HostTensor> out;
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (const ttrt::RtValue& value : flat_outputs(steps.run(i))) {
      const auto tensor = as_tensor(value);
      REQUIRE(tensor.has_value());
      out.push_back(contiguous(*tensor));
    }
  CHECK(executor.fallback_failures().empty());
  return out;
}

std::vector<ttrt::HostTensor> outputs(const std::shared_ptr<const ir::Model>& model, const std::string& name,
                                      ttrt::Numerics numerics) {
  const std::string io = folder + name + ".io.safetensors";
  InputOptions given = ways_to_call(read_safetensors(io)).front();
  given.io = io;
  return outputs(model, load_cases(*model, given), numerics);
}

void expect_same_bits(const std::vector<ttrt::HostTensor>& a, const std::vector<ttrt::HostTensor>& b) {
  REQUIRE(a.size() == b.size());
  REQUIRE(!a.empty());
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].nbytes() == b[i].nbytes());
    CHECK(std::memcmp(a[i].data, b[i].data, static_cast<std::size_t>(a[i].nbytes())) == 0);
  }
}

constexpr const char* qkv = "tt.split_query_key_value_and_heads";

// ---- models of one module, as text

// Norms of the heads of queries and keys, as Qwen3 has them.
constexpr std::string_view normed_heads = R"(
graph main(%x: f32[2, 40, 64] user, $q: f32[128, 64] parameter "at.q" = rand(1), $k: f32[64, 64] parameter "at.k" = rand(2), $v: f32[64, 64] parameter "at.v" = rand(3), $n: f32[32] parameter "at.n" = rand(4), $m: f32[32] parameter "at.m" = rand(5)) {
  %ql: f32[2, 40, 128] = aten.linear.default(%x, $q)    @at : ToyAttention
  %qr: f32[2, 40, 4, 32] = aten.reshape.default(%ql, [2, 40, 4, 32])    @at : ToyAttention
  %qn: f32[2, 40, 4, 32] = aten.rms_norm.default(%qr, [32], $n, 1e-06)    @at : ToyAttention
  %qh: f32[2, 4, 40, 32] = aten.transpose.int(%qn, 1, 2)    @at : ToyAttention
  %kl: f32[2, 40, 64] = aten.linear.default(%x, $k)    @at : ToyAttention
  %kr: f32[2, 40, 2, 32] = aten.reshape.default(%kl, [2, 40, 2, 32])    @at : ToyAttention
  %kn: f32[2, 40, 2, 32] = aten.rms_norm.default(%kr, [32], $m, 1e-06)    @at : ToyAttention
  %kh: f32[2, 2, 40, 32] = aten.transpose.int(%kn, 1, 2)    @at : ToyAttention
  %vl: f32[2, 40, 64] = aten.linear.default(%x, $v)    @at : ToyAttention
  %vr: f32[2, 40, 2, 32] = aten.reshape.default(%vl, [2, 40, 2, 32])    @at : ToyAttention
  %vh: f32[2, 2, 40, 32] = aten.transpose.int(%vr, 1, 2)    @at : ToyAttention
  %y: f32[2, 4, 40, 32] = aten.scaled_dot_product_attention.default(%qh, %kh, %vh, is_causal=true, enable_gqa=true)    @at : ToyAttention
  return %y
})";

// Queries, keys and values of each head side by side, as GPT-NeoX has them.
constexpr std::string_view cut_by_heads = R"(
graph main(%x: f32[2, 40, 64] user, $w: f32[192, 64] parameter "at.w" = rand(1), $b: f32[192] parameter "at.b" = rand(2)) {
  %l: f32[2, 40, 192] = aten.linear.default(%x, $w, $b)    @at : ToyAttention
  %r: f32[2, 40, 4, 48] = aten.reshape.default(%l, [2, 40, 4, 48])    @at : ToyAttention
  %t: f32[2, 4, 40, 48] = aten.transpose.int(%r, 1, 2)    @at : ToyAttention
  %q: f32[2, 4, 40, 16], %k: f32[2, 4, 40, 16], %v: f32[2, 4, 40, 16] = aten.chunk.default(%t, 3, -1)    @at : ToyAttention
  %y: f32[2, 4, 40, 16] = aten.scaled_dot_product_attention.default(%q, %k, %v)    @at : ToyAttention
  return %y
})";

// The way of nn.MultiheadAttention: the sequence first, a dim of three taken apart.
constexpr std::string_view cut_by_three = R"(
graph main(%x: f32[40, 2, 64] user, $w: f32[192, 64] parameter "at.w" = rand(1)) {
  %l: f32[40, 2, 192] = aten.linear.default(%x, $w)    @at : ToyAttention
  %u: f32[40, 2, 3, 64] = aten.reshape.default(%l, [40, 2, 3, 64])    @at : ToyAttention
  %t: f32[3, 40, 2, 64] = aten.permute.default(%u, [2, 0, 1, 3])    @at : ToyAttention
  %q: f32[40, 2, 64] = aten.select.int(%t, 0, 0)    @at : ToyAttention
  %k: f32[40, 2, 64] = aten.select.int(%t, 0, 1)    @at : ToyAttention
  %v: f32[40, 2, 64] = aten.select.int(%t, 0, 2)    @at : ToyAttention
  %qr: f32[40, 8, 16] = aten.reshape.default(%q, [40, 8, 16])    @at : ToyAttention
  %kr: f32[40, 8, 16] = aten.reshape.default(%k, [40, 8, 16])    @at : ToyAttention
  %vr: f32[40, 8, 16] = aten.reshape.default(%v, [40, 8, 16])    @at : ToyAttention
  %qt: f32[8, 40, 16] = aten.transpose.int(%qr, 0, 1)    @at : ToyAttention
  %kt: f32[8, 40, 16] = aten.transpose.int(%kr, 0, 1)    @at : ToyAttention
  %vt: f32[8, 40, 16] = aten.transpose.int(%vr, 0, 1)    @at : ToyAttention
  %qh: f32[2, 4, 40, 16] = aten.reshape.default(%qt, [2, 4, 40, 16])    @at : ToyAttention
  %kh: f32[2, 4, 40, 16] = aten.reshape.default(%kt, [2, 4, 40, 16])    @at : ToyAttention
  %vh: f32[2, 4, 40, 16] = aten.reshape.default(%vt, [2, 4, 40, 16])    @at : ToyAttention
  %y: f32[2, 4, 40, 16] = aten.scaled_dot_product_attention.default(%qh, %kh, %vh)    @at : ToyAttention
  return %y
})";

// Two of four experts for each row, whose rows are sorted by expert, as Mixtral has them.
constexpr std::string_view experts = R"(
graph main(%x: f32[12, 64] user, $r: f32[4, 64] parameter "moe.r" = rand(1), $g: f32[4, 64, 96] parameter "moe.g" = rand(2), $d: f32[4, 96, 64] parameter "moe.d" = rand(3)) {
  %l: f32[12, 4] = aten.linear.default(%x, $r)    @moe.router : Router in moe : ToyMoE
  %p: f32[12, 4] = aten.softmax.int(%l, -1)    @moe.router : Router in moe : ToyMoE
  %v: f32[12, 2], %i: i64[12, 2] = aten.topk.default(%p, 2)    @moe.router : Router in moe : ToyMoE
  %f: i64[24] = aten.reshape.default(%i, [24])    @moe : ToyMoE
  %o: i64[24], %s: i64[24] = aten.sort.default(%f)    @moe : ToyMoE
  %t: i64[24] = aten.floor_divide.default(%s, 2)    @moe : ToyMoE
  %b: f32[24, 64] = aten.index.Tensor(%x, [%t])    @moe : ToyMoE
  %u: i64[24, 1] = aten.unsqueeze.default(%o, -1)    @moe : ToyMoE
  %n: i64[4] = aten.arange.default(4)    @moe : ToyMoE
  %e: bool[24, 4] = aten.eq.Tensor(%u, %n)    @moe : ToyMoE
  %c: i64[4] = aten.sum.dim_IntList(%e, [0])    @moe : ToyMoE
  %k: i64[4] = aten.cumsum.default(%c, 0)    @moe : ToyMoE
  %z: i32[4] = aten.to.dtype(%k, i32)    @moe : ToyMoE
  %h: f32[24, 96] = aten._grouped_mm.default(%b, $g, %z)    @moe : ToyMoE
  %a: f32[24, 96] = aten.silu.default(%h)    @moe : ToyMoE
  %y: f32[24, 64] = aten._grouped_mm.default(%a, $d, %z)    @moe : ToyMoE
  %w: f32[24] = aten.reshape.default(%v, [24])    @moe : ToyMoE
  %ws: f32[24] = aten.index.Tensor(%w, [%s])    @moe : ToyMoE
  %wu: f32[24, 1] = aten.unsqueeze.default(%ws, -1)    @moe : ToyMoE
  %m: f32[24, 64] = aten.mul.Tensor(%y, %wu)    @moe : ToyMoE
  %si: i64[24], %back: i64[24] = aten.sort.default(%s)    @moe : ToyMoE
  %j: f32[24, 64] = aten.index.Tensor(%m, [%back])    @moe : ToyMoE
  %j3: f32[12, 2, 64] = aten.reshape.default(%j, [12, 2, 64])    @moe : ToyMoE
  %out: f32[12, 64] = aten.sum.dim_IntList(%j3, [1])    @moe : ToyMoE
  return %out
})";

// Scores beside a learned column for each head, which takes its share of the softmax, as GPT-OSS has them.
constexpr std::string_view sinks = R"(
graph main(%x: f32[2, 40, 64] user, $w: f32[192, 64] parameter "at.w" = rand(1), $s: f32[4] parameter "at.s" = rand(2), %m: f32[40, 40] user) {
  %l: f32[2, 40, 192] = aten.linear.default(%x, $w)    @at : ToyAttention
  %r: f32[2, 40, 3, 4, 16] = aten.reshape.default(%l, [2, 40, 3, 4, 16])    @at : ToyAttention
  %t: f32[3, 2, 4, 40, 16] = aten.permute.default(%r, [2, 0, 3, 1, 4])    @at : ToyAttention
  %q: f32[2, 4, 40, 16] = aten.select.int(%t, 0, 0)    @at : ToyAttention
  %k: f32[2, 4, 40, 16] = aten.select.int(%t, 0, 1)    @at : ToyAttention
  %v: f32[2, 4, 40, 16] = aten.select.int(%t, 0, 2)    @at : ToyAttention
  %kt: f32[2, 4, 16, 40] = aten.transpose.int(%k, 2, 3)    @at : ToyAttention
  %p: f32[2, 4, 40, 40] = aten.matmul.default(%q, %kt)    @at : ToyAttention
  %d: f32[2, 4, 40, 40] = aten.mul.Tensor(%p, 0.02)    @at : ToyAttention
  %a: f32[2, 4, 40, 40] = aten.add.Tensor(%d, %m)    @at : ToyAttention
  %sr: f32[1, 4, 1, 1] = aten.reshape.default($s, [1, 4, 1, 1])    @at : ToyAttention
  %se: f32[2, 4, 40, 1] = aten.expand.default(%sr, [2, 4, 40, 1])    @at : ToyAttention
  %c: f32[2, 4, 40, 41] = aten.cat.default([%a, %se], -1)    @at : ToyAttention
  %g: f32[2, 4, 40, 1], %gi: i64[2, 4, 40, 1] = aten.max.dim(%c, -1, true)    @at : ToyAttention
  %h: f32[2, 4, 40, 41] = aten.sub.Tensor(%c, %g)    @at : ToyAttention
  %f: f32[2, 4, 40, 41] = aten.softmax.int(%h, -1)    @at : ToyAttention
  %u: f32[2, 4, 40, 40] = aten.slice.Tensor(%f, 3, 0, -1)    @at : ToyAttention
  %y: f32[2, 4, 40, 16] = aten.matmul.default(%u, %v)    @at : ToyAttention
  return %y
})";

Made make_of(std::string_view text, const CompileOptions& options, const PassManagerOptions& passes = {}) {
  Made out{.model = ir::parse(text), .result = {}};
  out.result = compile(*out.model, options, passes);
  return out;
}

std::shared_ptr<const ir::Model> saved_and_loaded(const ir::Model& model) {
  const auto file = std::filesystem::temp_directory_path() / ("modules_" + std::to_string(getpid()) + ".pt2");
  save_model(model, file);
  std::shared_ptr<const ir::Model> loaded = load(file.string());
  std::filesystem::remove(file);  // its pages stay mapped
  return loaded;
}

std::vector<ttrt::HostTensor> outputs_of(const std::shared_ptr<const ir::Model>& model, ttrt::Numerics numerics) {
  return outputs(model, load_cases(*model, {}), numerics);
}

}  // namespace

TEST_CASE("fused projections give the bits of the layers one by one") {
  const auto [name, fused, saved] = GENERATE(std::tuple("vit_small", 2, 4), std::tuple("llama_small_kv", 2, 4),
                                             std::tuple("owlvit_small", 4, 8), std::tuple("speecht5_tts", 6, 10));
  const auto format = GENERATE(ttrt::DataType::bfloat16, ttrt::DataType::bfloat8_b);
  INFO(name << " " << ttrt::to_string(format));
  CompileOptions options;
  options.weight_format = {{"*", format}};
  PassManagerOptions one_by_one;
  one_by_one.disable = {"fuse-projections"};
  const Made as_one = make(name, options), apart = make(name, options, one_by_one);
  CHECK(ops_of(*as_one.model)[qkv] == fused);
  CHECK(ops_of(*as_one.model)["tt.linear"] == ops_of(*apart.model)["tt.linear"] - saved);
  CHECK(as_one.result.modules.size() == apart.result.modules.size());  // each layer under its own name
  CHECK(as_one.result.nodes == apart.result.nodes);
  for (const ttrt::Numerics numerics : {ttrt::Numerics::fast, ttrt::Numerics::exact})
    expect_same_bits(outputs(as_one.model, name, numerics), outputs(apart.model, name, numerics));
}

TEST_CASE("whole modules are one operator of the file, and give the bits of their parts") {
  const auto [name, whole] =
      GENERATE(std::pair("vit_small", Ops{{"tt.self_attention", 2}, {"tt.mlp", 2}}),
               std::pair("llama_small_kv", Ops{{"tt.self_attention", 2}, {"tt.mlp", 2}}),
               std::pair("speecht5_tts", Ops{{"tt.self_attention", 4}, {"tt.cross_attention", 2}, {"tt.mlp", 4}}));
  INFO(name);
  CompileOptions options;
  options.replace = {{map_entry("*Attention", "TTNNWhisperAttention"), map_entry("*MLP", "TTNNMLP"),
                      map_entry("*FeedForward", "TTNNMLP")},
                     {map_entry("torch.nn.Linear", "TTNNLinear"), map_entry("torch.nn.LayerNorm", "TTNNLayerNorm")}};
  const Made made = make(name, options);
  for (const auto& miss : made.result.near_misses()) UNSCOPED_INFO(miss.pass << " " << miss.reason.detail);
  for (const auto& [op, count] : whole) CHECK(ops_of(*made.model)[op] == count);
  const auto loaded = saved_and_loaded(*made.model);
  CHECK(ops_of(*loaded) == ops_of(*made.model));
  PassManagerOptions one_by_one;
  one_by_one.disable = {"whole-modules"};
  const Made apart = make(name, options, one_by_one);
  CHECK(made.result.nodes == apart.result.nodes);
  const auto expected = outputs(apart.model, name, ttrt::Numerics::fast);
  expect_same_bits(outputs(made.model, name, ttrt::Numerics::fast), expected);
  expect_same_bits(outputs(loaded, name, ttrt::Numerics::fast), expected);
}

TEST_CASE("norms of heads do not keep projections apart") {
  PassManagerOptions one_by_one;
  one_by_one.disable = {"fuse-projections", "replace:heads"};
  const Made as_one = make_of(normed_heads, {}), apart = make_of(normed_heads, {}, one_by_one);
  CHECK(ops_of(*as_one.model)[qkv] == 1);
  CHECK(ops_of(*as_one.model)["tt.linear"] == 1);
  CHECK(ops_of(*apart.model)["tt.linear"] == 3);
  CHECK(as_one.result.nodes == apart.result.nodes);
  for (const ttrt::Numerics numerics : {ttrt::Numerics::fast, ttrt::Numerics::exact})
    expect_same_bits(outputs_of(as_one.model, numerics), outputs_of(apart.model, numerics));
}

TEST_CASE("whatever cuts one product, and experts, are whole modules with the bits of their parts") {
  const auto [text, op] =
      GENERATE(std::pair(normed_heads, "tt.self_attention"), std::pair(cut_by_heads, "tt.self_attention"),
               std::pair(cut_by_three, "tt.self_attention"), std::pair(sinks, "tt.self_attention"),
               std::pair(experts, "tt.moe"));
  CompileOptions options;
  options.replace = {{map_entry("ToyAttention", "TTNNSelfAttention"), map_entry("ToyMoE", "TTNNMoE")}};
  const Made made = make_of(text, options);
  for (const auto& refused : made.result.refusals) UNSCOPED_INFO(refused.pass << " " << refused.reason.text());
  CHECK(ops_of(*made.model)[op] == 1);
  const auto loaded = saved_and_loaded(*made.model);
  CHECK(ops_of(*loaded) == ops_of(*made.model));
  PassManagerOptions one_by_one;
  one_by_one.disable = {"whole-modules"};
  const Made apart = make_of(text, options, one_by_one);
  const auto expected = outputs_of(apart.model, ttrt::Numerics::fast);
  expect_same_bits(outputs_of(made.model, ttrt::Numerics::fast), expected);
  expect_same_bits(outputs_of(loaded, ttrt::Numerics::fast), expected);
}

TEST_CASE("an attention with sinks is one operator, and near to what its formula gives") {
  const std::shared_ptr<const ir::Model> plain = ir::parse(sinks);
  const Made made = make_of(sinks, {});
  CHECK(ops_of(*made.model)["tt.attention"] == 1);
  CHECK(ops_of(*made.model)["tt.softmax"] == 0);
  std::vector<Case> cases = load_cases(*plain, {});
  expect_cpu(plain, cases);
  for (const ttrt::Numerics numerics : {ttrt::Numerics::fast, ttrt::Numerics::exact}) {
    const ttrt::Metrics m = ttrt::compare(outputs(made.model, cases, numerics)[0], *cases[0].expected[0]);
    CHECK(m.pcc > 0.9995);
    CHECK(m.max_rel < 0.04);
  }
}
