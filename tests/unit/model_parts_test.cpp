// Models taken apart and held side by side: modules cut out, culprits searched, differences told.
#include <cmath>

#include "formats/model_file.h"
#include "session/bisect.h"
#include "session/checks.h"
#include "session/diff.h"
#include "session/extract.h"
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
  const std::string module = "model.vit.layers.0.attention.q_proj";
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
