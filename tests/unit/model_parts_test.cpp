// Models taken apart and held side by side: modules cut out, culprits searched, differences told.
#include <algorithm>
#include <cmath>
#include <ranges>

#include "formats/model_file.h"
#include "session/bisect.h"
#include "session/checks.h"
#include "session/compare.h"
#include "session/diff.h"
#include "session/extract.h"
#include "session/precision_search.h"
#include "session/steps.h"
#include "support/error.h"
#include "tests/catch.h"
#include "tests/unit/session_test_util.h"

namespace {

using namespace ttc;
using ttc::test::models;
using ttc::test::recorded;

CompileSettings settings_for(const std::string& io) {
  CompileSettings out;
  out.io = models + io + ".io.safetensors";
  return out;
}

// Whether the model gives the outputs that were captured with it, bit for bit in LibTorch.
void check_captured(const Extracted& part) {
  std::shared_ptr<ir::Model> runnable = ir::parse(ir::print(*part.model));
  runnable->weights = part.model->weights;
  const std::vector<Case> cases = recorded_cases(*runnable, part.calls, {});
  ttrt::Executor executor(runnable, {.mode = ttrt::Mode::cpu});
  StepRunner steps(executor, cases);
  const auto checks = check_outputs(cases.at(0), steps.run(0), {}, false);
  REQUIRE_FALSE(checks.empty());
  for (const Check& check : checks) CHECK(check.metrics.equal);
}

std::vector<std::string> names_of(const std::vector<Difference>& found, const std::string& kind) {
  std::vector<std::string> out;
  for (const Difference& one : found)
    if (one.kind == kind) out.push_back(one.name);
  return out;
}

}  // namespace

TEST_CASE("a module is a model of its own, with what went into it") {
  for (const char* file : {"bert_small_dyn.pt2", "bert_small.pt"}) {
    INFO(file);
    const ModelSource source(models + file);
    const Extracted part = extract_module(source, "model.encoder.layer.1.attention", recorded("bert_small"));
    CHECK(part.nodes > 5);
    for (const auto& [name, weight] : part.model->weights) CHECK(name.find("encoder.layer.1.attention") != name.npos);
    // Sizes are those of the tensors that come in, no inputs of their own.
    for (const auto& input : part.model->graph->inputs())
      if (input.kind == ir::InputKind::user) CHECK(input.value->type.kind != ir::TypeKind::integer);
    check_captured(part);
  }
}

TEST_CASE("a part has the ranges of its own free dims, and no others") {
  const std::string text =
      "model {range s0 in [2, 8] range s1 in [2, 9] hint s1 = 4}\n"
      "graph main(%x: f32[s0, 4] user, %y: f32[s1, 4] user) {\n"
      "  %a: f32[s0, 4] = aten.relu.default(%x)  @a : A\n"
      "  %b: f32[s1, 4] = aten.relu.default(%y)  @b : B\n"
      "  return %a, %b\n}\n";
  const auto bytes = std::as_bytes(std::span(text));
  const ModelSource source("two.ir", {bytes.begin(), bytes.end()});
  const Extracted part = extract_module(source, "a", {.shapes = {"x=3x4", "y=5x4"}});
  CHECK(part.model->ranges == ir::SymRanges{{"s0", {.min = 2, .max = 8}}});
  CHECK(part.model->info.hints.empty());
}

TEST_CASE("there is a near name for a module that is not there, and no part of a rewritten model") {
  const ModelSource source(models + "bert_small_dyn.pt2");
  try {
    extract_module(source, "model.encoder.layer.9", recorded("bert_small"));
    FAIL("extracted");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    CHECK(error.hint().find("model.encoder.layer.") != std::string::npos);
  }
}

TEST_CASE("the module with coarse weights is found in few runs") {
  const ModelSource source(models + "vit_small.pt2");
  CompileSettings settings = settings_for("vit_small");
  const std::string culprit = "model.vit.layers.1.mlp.fc1";
  settings.weight_dtype = {culprit + "=bfloat4_b"};
  const double fine = bisect_modules(source, settings_for("vit_small"), {.pcc = 0.99}).runs.at(0).pcc;
  const double coarse = bisect_modules(source, settings, {.pcc = 0.9}).runs.at(0).pcc;
  REQUIRE(coarse < fine);
  const Bisection found = bisect_modules(source, settings, {.pcc = (fine + coarse) / 2});
  CHECK(found.fails);
  CHECK(found.modules == std::vector<std::string>{culprit});
  const double n = static_cast<double>(found.candidates);
  CHECK(static_cast<double>(found.runs.size()) <= 2 * std::log2(n) + 4);
  CHECK_FALSE(found.runs.back().pass);
}

TEST_CASE("nothing is searched where nothing fails, and the first bad rewrite is found") {
  const ModelSource source(models + "vit_small.pt2");
  const CompileSettings settings = settings_for("vit_small");
  const Bisection good = bisect_rewrites(source, settings, {.pcc = 0.99});
  CHECK_FALSE(good.fails);
  CHECK(good.runs.size() == 1);
  const Bisection bad = bisect_rewrites(source, settings, {.pcc = 0.99999999});
  REQUIRE(bad.rewrite);
  CHECK(bad.rewrite_number > 0);
  CHECK(bad.rewrite_number <= bad.candidates);
  CHECK(bad.runs.size() <= static_cast<std::size_t>(std::log2(bad.candidates)) + 4);
}

TEST_CASE("two files differ in what was compiled differently, and in nothing else") {
  const ModelSource source(models + "vit_small.pt2");
  CompileSettings settings;
  const auto plain = compile_source(source, settings).model;
  CHECK(diff_models(*plain, *plain).empty());
  const std::string module = "model.vit.layers.0.attention.o_proj";
  settings.weight_dtype = {module + "=bfloat8_b"};
  const auto other = compile_source(source, settings).model;
  const std::vector<Difference> found = diff_models(*plain, *other);
  CHECK(names_of(found, "module") == std::vector<std::string>{module});
  CHECK(names_of(found, "weight") ==
        std::vector<std::string>{module + ".weight_bfloat16", module + ".weight_bfloat8_b"});
  CHECK(names_of(found, "op").empty());
  CHECK(names_of(found, "input").empty());
  CHECK_FALSE(diff_models(*source.read(), *other).empty());
}

TEST_CASE("ops are compared beside their references, on what the device has or on what the references gave") {
  const ModelSource source(models + "vit_small.pt2");
  CompileSettings settings;
  const std::string coarse = "model.vit.layers.0.attention.o_proj";
  settings.weight_dtype = {coarse + "=bfloat4_b"};
  const std::shared_ptr<const ir::Model> model = compile_source(source, settings).model;
  const std::vector<Case> cases = load_cases(*model, recorded("vit_small"));
  const auto rows = [&](CompareMode mode) {
    return compare_runs(model, cases, {}, {.mode = ttrt::Mode::cpu}, {.mode = mode}).rows;
  };
  const auto apart = rows(CompareMode::dpl), beside = rows(CompareMode::sel),
             fresh = rows(CompareMode::dpl_no_error_prop);
  REQUIRE(beside.size() == apart.size());
  REQUIRE(fresh.size() == apart.size());
  double worst_apart = 0, worst_beside = 0;
  for (std::size_t i = 0; i < apart.size(); ++i) {
    INFO(beside[i].node);
    CHECK(beside[i].node == apart[i].node);
    CHECK(beside[i].pass);
    if (beside[i].op == "output") continue;
    CHECK_FALSE(beside[i].module.empty());
    worst_apart = std::max(worst_apart, apart[i].metrics.max_rel);
    worst_beside = std::max(worst_beside, beside[i].metrics.max_rel);
    // An op by itself is off by its own roundings only.
    CHECK(beside[i].metrics.max_rel < 0.02);
    CHECK(fresh[i].metrics.max_rel < 0.02);
    CHECK(beside[i].threshold == (beside[i].module == coarse        ? 0.965
                                  : beside[i].op == "tt.attention"  ? 0.97
                                  : beside[i].op == "tt.layer_norm" ? 0.999
                                                                    : 0.997));
  }
  CHECK(worst_beside < worst_apart);
  // What later ops read differs: after the first ops, so do the rows.
  CHECK(std::ranges::any_of(std::views::iota(std::size_t{0}, fresh.size()),
                            [&](std::size_t i) { return fresh[i].metrics.max_abs != beside[i].metrics.max_abs; }));
}

TEST_CASE("modes of comparing are known by name, and a near one is offered") {
  for (const std::string& name : compare_modes()) CHECK(to_string(compare_mode(name)) == name);
  try {
    compare_mode("dlp");
    FAIL("taken");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    CHECK(error.hint() == "did you mean 'dpl'?");
  }
}

TEST_CASE("a search finds a mix that is cheaper than one precision for all, on calls that it has not seen") {
  const std::string name = GENERATE("vit_small", "llama_small");
  INFO(name);
  const ModelSource source(models + name + ".pt2");
  const CompileSettings settings = settings_for(name);
  const SearchGoal goal{.min_pcc = 0.999};
  const PrecisionSearch found = search_precision(source, settings, goal);
  CHECK(goal.met(found.seen));
  CHECK(goal.met(found.held_back));
  CHECK(found.made_held_back);
  CHECK(found.seen.pcc != found.held_back.pcc);
  for (const SearchTrial& trial : found.trials) {
    INFO(trial.what);
    if (trial.what.starts_with("all ") && trial.met) CHECK(found.seen.bytes < trial.score.bytes);
    if (trial.what.starts_with("all ") && trial.met) CHECK(found.seen.cycles <= trial.score.cycles);
  }
  CHECK(found.trials.size() < 3 * found.choice.size());
  // No precision makes a model this small faster than the coarsest fidelity does, and the search says so.
  CHECK(found.is_fastest());
  double waits = 0;
  for (const auto& [bound, cycles] : found.seen.bounds) waits += cycles;
  CHECK(waits == Approx(found.seen.cycles));
  for (const SearchTrial& trial : found.trials) CHECK(trial.score.cycles >= found.least_cycles * (1 - 1e-9));
  // The choice gives the same model again.
  Trials again(source, {.pcc = -1});
  const Score same = again.run(with_choice(settings, found.choice), calls_of(source, settings));
  CHECK(same.pcc == found.seen.pcc);
  CHECK(same.bytes == found.seen.bytes);
  // Nor does it undo what a compile without a search makes one product.
  CHECK(same.cycles == found.seen.cycles);
  for (const char* format : {"bfloat16", "bfloat8_b"}) {
    CompileSettings uniform = settings;
    uniform.weight_dtype = {std::string("*=") + format};
    const Score all = again.run(uniform, calls_of(source, settings));
    CHECK(same.cycles < all.cycles);
    CHECK(same.bytes < all.bytes);
  }
  CHECK(options_text(found.choice).find("weight-dtype = [\"") != std::string::npos);
  CHECK(options_text(found.choice).find("fp32-acc") == std::string::npos);  // it helps no module that is coarse
}

TEST_CASE("sums in float32 are taken where only they are accurate enough, and where the user leaves the choice") {
  const ModelSource source(models + "vit_small.pt2");
  CompileSettings settings = settings_for("vit_small");
  const SearchGoal goal{.min_pcc = 0.999981};  // all modules reach .9999808 with the op library's sums
  const PrecisionSearch found = search_precision(source, settings, goal);
  CHECK(goal.met(found.held_back));
  CHECK(options_text(found.choice).find("=on\"") != std::string::npos);
  settings.fp32_acc = {"off"};
  CHECK_THROWS_AS(search_precision(source, settings, goal), Error);
}

TEST_CASE("a goal that the finest precision misses is an error, and so is none") {
  const ModelSource source(models + "vit_small.pt2");
  const auto code = [&](const SearchGoal& goal) {
    try {
      search_precision(source, settings_for("vit_small"), goal);
    } catch (const Error& error) {
      return error.code();
    }
    return Exit::ok;
  };
  CHECK(code({.min_pcc = 0.99999999}) == Exit::check_failed);
  CHECK(code({}) == Exit::usage);
}
