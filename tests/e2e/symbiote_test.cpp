// The four models TT-Symbiote tests, by name: which modules become device ops, with which weight formats, and whether
// the outputs stay right. The small models of models/ have the module classes of the full-size ones.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <unistd.h>

#include "executor/executor.h"
#include "formats/pt2_write.h"
#include "ops/op.h"
#include "pass/compile.h"
#include "session/checks.h"
#include "session/model_source.h"
#include "tests/catch.h"

namespace {

using namespace ttc;
using ttrt::DataType;

const std::string models = std::string(TTC_SOURCE_ROOT) + "/models/";

// class name without its package -> device op -> modules replaced
using Replaced = std::map<std::string, std::map<std::string, int>>;

struct Compiled {
  std::shared_ptr<const ir::Model> model;
  CompileResult result;
  Replaced replaced;
  std::set<std::string> linear_formats;  // weight formats of the modules that became tt.linear
};

using Replace = decltype(CompileOptions::replace);
using Formats = decltype(CompileOptions::weight_format);

Compiled rewrite(const std::string& name, const Replace& replace = {}, const Formats& formats = {},
                 const std::vector<std::string>& exclude = {}) {
  CompileOptions options;
  options.replace = replace;
  options.weight_format = formats;
  options.exclude = exclude;
  std::unique_ptr<ir::Model> model = load(models + name + ".pt2");
  Compiled out;
  out.result = compile(*model, options);
  for (const ModuleReport& module : out.result.modules) {
    ++out.replaced[module.klass.substr(module.klass.rfind('.') + 1)][module.op];
    if (module.op == "tt.linear") out.linear_formats.insert(module.weight_format);
  }
  // What is judged is the file, not what was in memory when it was written.
  const std::string file = std::filesystem::temp_directory_path() / ("symbiote_" + std::to_string(getpid()) + ".pt2");
  write_pt2(*model, file);
  out.model = load(file);
  std::filesystem::remove(file);  // its pages stay mapped
  return out;
}

// The lowest PCC of the outputs against the recorded ones.
double lowest_pcc(const Compiled& compiled, const std::string& name) {
  InputOptions inputs;
  inputs.io = models + name + ".io.safetensors";
  ttrt::Executor executor(compiled.model, {.mode = ttrt::Mode::device});
  double lowest = 1;
  for (const Case& one : load_cases(*compiled.model, inputs)) {
    const std::vector<Check> checks = check_outputs(one, executor.run(one.inputs), {.pcc = 0.9}, true);
    REQUIRE(!checks.empty());
    for (const Check& check : checks) {
      INFO(check.output << " " << check.problem);
      REQUIRE(check.problem.empty());
      lowest = std::min(lowest, check.metrics.pcc);
    }
  }
  CHECK(executor.fallback_failures().empty());
  CHECK(executor.counts().device > 0);
  return lowest;
}

}  // namespace

TEST_CASE("ViT: Linear, LayerNorm and the self-attention") {
  Compiled vit = rewrite(
      "vit_small",
      {{"torch.nn.Linear", "tt.linear"}, {"torch.nn.LayerNorm", "tt.layer_norm"}, {"ViTAttention", "tt.attention"}});
  // Two layers of q, k, v, out and two of the MLP, and the classifier; two norms a layer and the last one.
  const Replaced expected = {
      {"Linear", {{"tt.linear", 13}}}, {"LayerNorm", {{"tt.layer_norm", 5}}}, {"ViTAttention", {{"tt.attention", 2}}}};
  CHECK(vit.replaced == expected);
  CHECK(vit.linear_formats == std::set<std::string>{"bfloat16"});
  CHECK(lowest_pcc(vit, "vit_small") >= 0.999);
}

TEST_CASE("LLaMA: every Linear in bfloat8_b") {
  Compiled llama = rewrite("llama_small", {{"torch.nn.Linear", "tt.linear"}, {"SiLUActivation", "tt.silu"}},
                           {{"*", DataType::bfloat8_b}});
  // Two layers of q, k, v, o, gate, up and down, and the head of the vocabulary.
  CHECK(llama.replaced["Linear"] == std::map<std::string, int>{{"tt.linear", 15}});
  CHECK(llama.linear_formats == std::set<std::string>{"bfloat8_b"});
  CHECK(llama.result.weights.bytes_out < llama.result.weights.bytes_in / 2);
  CHECK(lowest_pcc(llama, "llama_small") >= 0.99);
}

TEST_CASE("LLaMA: the head kept in bfloat16, the rest in bfloat4_b") {
  Compiled llama = rewrite("llama_small", {}, {{"*", DataType::bfloat4_b}, {"*lm_head", DataType::bfloat16}});
  std::map<std::string, int> formats;
  for (const ModuleReport& module : llama.result.modules)
    if (module.op == "tt.linear") ++formats[module.weight_format];
  CHECK(formats == std::map<std::string, int>{{"bfloat16", 1}, {"bfloat4_b", 14}});
  CHECK(lowest_pcc(llama, "llama_small") >= 0.9);
}

TEST_CASE("OWL-ViT: Linear and attention of both towers") {
  Compiled owl = rewrite(
      "owlvit_small",
      {{"torch.nn.Linear", "tt.linear"}, {"torch.nn.LayerNorm", "tt.layer_norm"}, {"OwlViTAttention", "tt.attention"}});
  // Two layers of six in the text and in the vision tower, the projections and the box and class heads.
  const Replaced expected = {{"Linear", {{"tt.linear", 31}}},
                             {"LayerNorm", {{"tt.layer_norm", 12}}},
                             {"OwlViTAttention", {{"tt.attention", 4}}}};
  CHECK(owl.replaced == expected);
  CHECK(owl.linear_formats == std::set<std::string>{"bfloat16"});
  Compiled whole = rewrite("owlvit_small");
  CHECK(lowest_pcc(whole, "owlvit_small") >= 0.99);
}

TEST_CASE("SpeechT5: Linear and LayerNorm") {
  Compiled speech =
      rewrite("speecht5_tts", {{"torch.nn.Linear", "tt.linear"}, {"torch.nn.LayerNorm", "tt.layer_norm"}});
  const Replaced expected = {{"Linear", {{"tt.linear", 37}}}, {"LayerNorm", {{"tt.layer_norm", 11}}}};
  CHECK(speech.replaced == expected);
  CHECK(speech.linear_formats == std::set<std::string>{"bfloat16"});
  Compiled whole = rewrite("speecht5_tts");
  CHECK(whole.replaced["SpeechT5Attention"]["tt.attention"] == 6);
  CHECK(lowest_pcc(whole, "speecht5_tts") >= 0.99);
}

TEST_CASE("SpeechT5: an excluded module stays as it is, its neighbours go") {
  Compiled speech = rewrite("speecht5_tts", {}, {}, {"*feed_forward*"});
  for (const ModuleReport& module : speech.result.modules) {
    INFO(module.path);
    CHECK(module.path.find("feed_forward") == std::string::npos);
  }
  CHECK(speech.replaced["Linear"]["tt.linear"] > 20);
}
