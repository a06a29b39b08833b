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
  CHECK(result.memory.fits);
  CHECK(result.summary().starts_with("3/4 nodes on device, 1 on CPU [mode x1: Unimplemented], 2 transfers, "));
}

TEST_CASE("the manifest is the same for the same input, and tells what happened") {
  const auto a = parsed(), b = parsed();
  compile(*a, {}, {}, {.sha256 = "12ab"});
  compile(*b, {}, {}, {.sha256 = "12ab"});
  const std::string text = a->extra.at(std::string(manifest_name));
  CHECK(text == b->extra.at(std::string(manifest_name)));
  for (const char* part : {"\"12ab\"", "linear + relu", "\"journal\"", "\"HiFi4\"", "aten.mode.default"})
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
