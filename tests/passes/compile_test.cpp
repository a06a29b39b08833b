// The pass manager's flags, and what compile() counts and writes down.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "torch/cpu_op.h"
#include "pass/compile.h"
#include "support/error.h"
#include "tests/catch.h"

namespace {

using namespace ttc;

constexpr const char* mlp =
    R"(graph main(%x: f32[2, 64] user, $w: f32[128, 64] parameter "fc1.weight" = rand(1), $v: f32[64, 128] parameter "fc2.weight" = rand(2)) {
  %h: f32[2, 128] = aten.linear.default(%x, $w)    @fc1 : torch.nn.modules.linear.Linear
  %a: f32[2, 128] = aten.relu.default(%h)    @act : torch.nn.modules.activation.ReLU
  %y: f32[2, 64] = aten.linear.default(%a, $v)    @fc2 : torch.nn.modules.linear.Linear
  %s: f32[2, 64], %i: i64[2, 64] = aten.mode.default(%y, -1)
  return %s
})";

std::unique_ptr<ir::Model> parsed(const char* text = mlp) {
  ttrt::install_torch_schemas();
  return ir::parse(text, "mlp.ir");
}

void break_graph(PassContext& context) {
  ir::Node* last = context.model.graph->nodes().back().get();
  context.model.graph->move_before(last, context.model.graph->nodes().front().get());
  context.changed = true;
}

struct Registered {
  Registered() { register_pass({"test-break", "Moves the last node before its operands.", break_graph}); }
} registered;

}  // namespace

TEST_CASE("compile counts nodes, flops, transfers and fallbacks") {
  const auto model = parsed();
  const CompileResult result = compile(*model, {});
  CHECK(result.nodes.total == 4);
  CHECK(result.nodes.device == 3);  // the fused relu is one of them
  CHECK(result.nodes.cpu == 1);
  CHECK(result.flops.total == 2.0 * 2 * (64 * 128 + 128 * 64));
  CHECK(result.flops.device == result.flops.total);
  REQUIRE(result.fallbacks.size() == 1);
  CHECK(result.fallbacks[0].op == "aten.mode.default");
  CHECK(result.fallbacks[0].reason.code == ReasonCode::Unimplemented);
  CHECK(result.transfers.count == 2);
  REQUIRE(result.modules.size() == 2);
  CHECK(result.modules[0].path == "fc1");
  CHECK(result.modules[0].op == "tt.linear");
  CHECK(result.weights.bytes_in == 2 * 128 * 64 * 4);
  CHECK(result.weights.bytes_out == 2 * 128 * 64 * 2);
  CHECK(result.summary().starts_with("3/4 nodes on device, 1 on CPU [mode x1: Unimplemented], 2 transfers, "));
}

TEST_CASE("compile says what it was told of memory, and refuses what does not fit where all has to") {
  const auto compiled = [](MemoryNeed need, bool full) {
    const auto model = parsed();
    CompileOptions options;
    options.require_full = full;
    return compile(*model, options, {}, {.memory = [&](const ir::Model&, const ir::SymBinding&) { return need; }});
  };
  const std::int64_t gib = 1ll << 30;
  const CompileResult fits = compiled({.l1 = 1024, .dram = gib, .streamed = gib}, false);
  CHECK(fits.memory.fits());
  CHECK(fits.memory.l1_peak == 1024);
  const CompileResult streamed = compiled({.l1 = 1024, .dram = 13 * gib, .streamed = gib}, false);
  CHECK(!streamed.memory.fits());
  CHECK(streamed.memory.streamed());
  CHECK(streamed.shortage() == "it needs 13.0 GiB of DRAM, n150 has 12.0 GiB");
  CHECK(!compiled({.l1 = 2048 * 1024, .dram = gib, .streamed = gib}, false).memory.fits());
  CHECK_THROWS_AS(compiled({.l1 = 1024, .dram = 13 * gib, .streamed = gib}, true), Error);
}

TEST_CASE("the manifest is the same for the same input, and tells what happened") {
  const auto a = parsed(), b = parsed();
  compile(*a, {}, {}, {.sha256 = [] { return std::string("12ab"); }});
  compile(*b, {}, {}, {.sha256 = [] { return std::string("12ab"); }});
  const std::string text = a->extra.at(std::string(manifest_name));
  CHECK(text == b->extra.at(std::string(manifest_name)));
  for (const char* part : {"\"12ab\"", "linear + relu", "\"journal\"", "\"HiFi2\"", "aten.mode.default"})
    CHECK(text.find(part) != std::string::npos);
  CHECK(text.find("\"ms\"") == std::string::npos);
}

TEST_CASE("require_full refuses a model of which something stays on the CPU") {
  const auto model = parsed();
  CompileOptions options;
  options.require_full = true;
  try {
    compile(*model, options);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::unsupported);
    CHECK(error.hint().find("mode") != std::string::npos);
  }
}

TEST_CASE("verify-each names the pass that broke the graph") {
  const auto model = parsed();
  CompileOptions options;
  PassContext context(*model, options);
  PassManagerOptions flags;
  flags.passes = {"raise-silu", "test-break", "raise-gelu"};
  flags.verify_each = true;
  try {
    run_passes(context, flags);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::bug);
    CHECK(std::string(error.what()).find("test-break") != std::string::npos);
  }
}

TEST_CASE("passes are chosen, disabled, stopped after, dumped and reported") {
  const auto model = parsed();
  CompileOptions options;
  PassContext context(*model, options);
  std::ostringstream log;
  const auto folder = std::filesystem::temp_directory_path() / "ttc_pass_dump_test";
  std::filesystem::remove_all(folder);
  PassManagerOptions flags;
  flags.passes = {"raise-silu", "replace:linear", "raise-gelu", "replace"};
  flags.disable = {"raise-gelu"};
  flags.stop_after = "replace-linear";  // as it was called
  flags.dump_before = {"replace:linear+norm"};
  flags.dump_after = {"all"};
  flags.dump_dir = folder.string();
  flags.print_pipeline = flags.stats = true;
  flags.log = &log;
  const std::vector<PassReport> reports = run_passes(context, flags);
  REQUIRE(reports.size() == 2);
  CHECK_FALSE(reports[0].changed);
  CHECK(reports[1].changed);
  CHECK(reports[1].matched == 3);
  CHECK(reports[1].nodes_before == 4);
  CHECK(reports[1].nodes_after == 3);
  CHECK(log.str().find("raise-gelu: ") == std::string::npos);
  CHECK(log.str().find("(unchanged)") != std::string::npos);
  const auto content = [&](const char* name) {
    std::ostringstream text;
    text << std::ifstream(folder / name).rdbuf();
    return text.str();
  };
  CHECK(content("01-raise-silu.after.ir") == "(unchanged)\n");
  CHECK(content("02-replace.before.ir").find("aten.linear") != std::string::npos);
  CHECK(content("02-replace.after.ir") == ir::print(*model));
  std::filesystem::remove_all(folder);
}

TEST_CASE("parts of passes are chosen and switched off by themselves, by former names as well") {
  PassManagerOptions flags;
  const auto names = [&] {
    std::string out;
    for (const PassStep& step : select_passes(flags)) out += step.name() + " ";
    return out;
  };
  flags.passes = {"decompose-rnn", "replace:norm+linear", "place", "replace-ops"};
  CHECK(names() == "decompose:rnn replace:linear+norm place place:islands ");
  flags.disable = {"replace-linear", "place:islands"};
  CHECK(names() == "decompose:rnn replace:norm place:transfers ");
  flags.disable = {"decompose", "replace:norm+linear"};
  CHECK(names() == "place place:islands ");
  flags.disable = {"decompose:rn"};
  CHECK_THROWS_AS(select_passes(flags), Error);
}

TEST_CASE("every step of the default pipeline says why it stands where it stands") {
  for (const PassStep& step : select_passes({})) {
    INFO(step.name());
    CHECK_FALSE(step.why.empty());
  }
}

TEST_CASE("free sizes that nobody gave grow until every tensor has elements, or as far as they may") {
  const auto shape_of = [](const std::string& range, const ir::SymBinding& given = {}) {
    const std::string text = "model {range s0 in " + range + R"(}
graph main(%x: f32[1, 3, s0, s0] user, $w: f32[8, 3, 5, 5] parameter "w") {
  %y: f32[1, 8, s0 - 4, s0 - 4] = aten.conv2d.default(%x, $w)
  return %y
})";
    const auto model = parsed(text.c_str());
    CompileOptions options;
    options.shapes = given;
    return PassContext(*model, options).shapes.at("s0");
  };
  CHECK(shape_of("[1, 64]") == 8);
  CHECK(shape_of("[5, 64]") == 5);
  CHECK(shape_of("[3, 5]") == 5);
  CHECK(shape_of("[0, 3]") == 3);
  CHECK(shape_of("[1, 64]", {{"s0", 3}}) == 3);
}

TEST_CASE("a fallback's reason is the last refusal, a raising pass's only where there is no other") {
  const auto reason = [](const std::string& last) {
    const auto model = parsed(R"(graph main(%x: f32[8] user, %z: f32[8] user) {
  %s: f32[8] = aten.sigmoid.default(%z)
  %y: f32[8] = aten.mul.Tensor(%x, %s)
  %m: f32[8], %i: i64[8] = aten.mode.default(%y, -1)
  return %m
})");
    PassManagerOptions passes;
    passes.stop_after = last;
    for (const Fallback& fallback : compile(*model, {}, passes).fallbacks)
      if (fallback.node == "y") return fallback.reason.code;
    return ReasonCode::ControlFlow;
  };
  CHECK(reason("number-nodes") == ReasonCode::UserExcluded);
  CHECK(reason("raise-silu") == ReasonCode::PatternNearMiss);
  CHECK(reason("") == ReasonCode::TooSmall);
}

TEST_CASE("a summary names eight kinds of fallbacks, the most frequent first, and counts the others") {
  CompileResult result;
  const auto fall_back = [&](int kinds) {
    result.fallbacks.clear();
    for (int kind = 0; kind < kinds; ++kind)
      for (int n = kind == 3 ? 0 : 1; n < 2; ++n)
        result.fallbacks.push_back(
            {"", "aten.op" + std::to_string(kind) + ".default", "", {ReasonCode::Unimplemented, ""}, ""});
    result.nodes.cpu = static_cast<int>(result.fallbacks.size());
    const std::string text = result.summary();
    const auto open = text.find('['), close = text.find(']');
    return text.substr(open, close + 1 - open);
  };
  CHECK(fall_back(2) == "[op0 x1: Unimplemented, op1 x1: Unimplemented]");
  CHECK(fall_back(4).starts_with("[op3 x2: Unimplemented, op0 x1"));
  CHECK(fall_back(8).ends_with("op7 x1: Unimplemented]"));
  CHECK(fall_back(9).ends_with("op6 x1: Unimplemented, op7 x1: Unimplemented, and 1 more kinds]"));
}

TEST_CASE("bytes are told in the unit that fits") {
  CompileResult result;
  const auto told = [&](std::int64_t bytes, int count = 2) {
    result.transfers.count = count;
    result.transfers.bytes = bytes;
    const std::string text = result.summary();
    return text.substr(text.find(", ") + 2);
  };
  CHECK(told(0, 0) == "0 transfers, 0 B");
  CHECK(told(1023, 1) == "1 transfer, 1023 B");
  CHECK(told(1024) == "2 transfers, 1.0 KiB");
  CHECK(told(1024 * 1024 - 512) == "2 transfers, 1023.5 KiB");
  CHECK(told(std::int64_t{3} << 30) == "2 transfers, 3.0 GiB");
  CHECK(told(std::int64_t{4096} << 40) == "2 transfers, 4096.0 TiB");
}

namespace {

std::vector<std::string> swapped_paths(ir::Model& model, const std::vector<ReplacementMap>& maps,
                                       const std::vector<std::string>& exclude = {}) {
  CompileOptions options;
  options.replace = maps;
  options.exclude = exclude;
  std::vector<std::string> out;
  for (const Swap& swap : compile(model, options).swaps) out.push_back(swap.path + " " + swap.op + " " + swap.target);
  return out;
}

}  // namespace

TEST_CASE("what the maps took is told by module, an activation that went along too") {
  using Paths = std::vector<std::string>;
  CHECK(swapped_paths(*parsed(), {{map_entry("torch.nn.Linear", "TTNNLinear"), map_entry("ReLU", "TTNNReLU")}}) ==
        Paths{"fc1 tt.linear TTNNLinear", "act tt.relu TTNNReLU", "fc2 tt.linear TTNNLinear"});
  CHECK(swapped_paths(*parsed(), {{map_entry("ReLU", "tt.relu")}}) ==
        Paths{"act tt.relu tt.relu"});  // small, but asked for
  CHECK(swapped_paths(*parsed(),
                      {{map_entry("Linear", "TTNNLinearActivation")}, {map_entry("module:*", "TTNNLinear")}}) ==
        Paths{"fc1 tt.linear TTNNLinearActivation", "fc2 tt.linear TTNNLinear"});
}

TEST_CASE("an entry without fallback is an error where the device refuses what it names") {
  CompileOptions options;
  options.replace = {{map_entry("module:fc2", "TTNNLinearActivation", {.fallback = false})}};
  try {
    compile(*parsed(), options);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::unsupported);
    CHECK(std::string(error.what()).find("module:fc2=TTNNLinearActivation has no fallback") != std::string::npos);
  }
  options.replace[0][0].key = "module:fc1";
  CHECK(compile(*parsed(), options).swaps.size() == 1);
  options.replace[0][0].key = "module:fc2";
  options.exclude = {"fc2"};  // left on purpose
  CHECK(compile(*parsed(), options).swaps.empty());
}

TEST_CASE("a module that the model holds under several names is taken and left by any of them") {
  const auto shared = [] {
    auto model = parsed(
        R"(graph main(%x: f32[2, 64] user, $a: f32[64, 64] parameter "a.weight" = rand(1), $b: f32[64, 64] parameter "b.weight" = rand(1), $c: f32[64, 64] parameter "c.weight" = rand(1)) {
  %p: f32[2, 64] = aten.linear.default(%x, $a)    @a : torch.nn.modules.linear.Linear
  %q: f32[2, 64] = aten.linear.default(%p, $b)    @b : torch.nn.modules.linear.Linear
  %r: f32[2, 64] = aten.linear.default(%q, $c)    @c : torch.nn.modules.linear.Linear
  return %r
})");
    model->weights["b.weight"] = model->weights["a.weight"];  // one tensor; that of c only has its values
    return model;
  };
  using Paths = std::vector<std::string>;
  CHECK(swapped_paths(*shared(), {{map_entry("module:b", "TTNNLinear")}}) ==
        Paths{"a tt.linear TTNNLinear", "b tt.linear TTNNLinear"});
  CHECK(swapped_paths(*shared(), {{map_entry("Linear", "tt.linear")}}, {"a"}) == Paths{"c tt.linear tt.linear"});
}
