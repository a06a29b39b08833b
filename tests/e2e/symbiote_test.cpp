// The four models TT-Symbiote tests, by name: which modules become device ops, with which weight formats, and whether
// the outputs stay right. The small models of models/ have the module classes of the full-size ones.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <unistd.h>

#include "executor/executor.h"
#include "formats/model_file.h"
#include "ops/op.h"
#include "pass/compile.h"
#include "session/checks.h"
#include "session/compile_settings.h"
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
  std::map<std::string, std::string> modules;  // of the file, path to class without its package
  std::set<std::string> on_device;             // paths of the nodes there
};

using Formats = decltype(CompileOptions::weight_format);

Compiled rewrite(const std::string& name, const std::string& map = {}, const Formats& formats = {},
                 const std::vector<std::string>& exclude = {}) {
  CompileSettings settings;
  if (!map.empty()) settings.replace_file = std::string(TTC_SOURCE_ROOT) + "/tests/data/maps/" + map + ".json";
  CompileOptions options = compile_options(settings);
  options.weight_format = formats;
  options.exclude = exclude;
  std::unique_ptr<ir::Model> model = load(models + name + ".pt2");
  Compiled out;
  // Modules whose results nobody reads are no work: OWL-ViT's visual projection, SpeechT5's stop layer.
  const std::unique_ptr<ir::Model> file = load(models + name + ".pt2");
  PassContext alive(*file, options);
  PassManagerOptions only_dce;
  only_dce.passes = {"dce"};
  run_passes(alive, only_dce);
  ir::walk(*file->graph, [&](ir::Node* node) {
    for (const auto& [path, klass] : node->provenance->stack) out.modules[path] = klass.substr(klass.rfind('.') + 1);
  });
  out.result = compile(*model, options);
  for (const ModuleReport& module : out.result.modules) {
    ++out.replaced[module.klass.substr(module.klass.rfind('.') + 1)][module.op];
    if (module.op == "tt.linear") out.linear_formats.insert(module.weight_format);
  }
  ir::walk(*model->graph, [&](ir::Node* node) {
    if (node->op().starts_with("tt.") && !node->origins.empty()) out.on_device.insert(node->provenance->module_path);
  });
  // What is judged is the file, not what was in memory when it was written.
  const std::string saved = std::filesystem::temp_directory_path() / ("symbiote_" + std::to_string(getpid()) + ".pt2");
  save_model(*model, saved);
  out.model = load(saved);
  std::filesystem::remove(saved);  // its pages stay mapped
  return out;
}

bool is_inside(const std::string& path, const std::set<std::string>& modules) {
  return std::any_of(modules.begin(), modules.end(),
                     [&](const std::string& one) { return path == one || path.starts_with(one + "."); });
}

// The modules of these classes, but those inside of what an earlier map took whole.
std::set<std::string> of_classes(const Compiled& compiled, const std::set<std::string>& classes,
                                 const std::set<std::string>& whole = {}) {
  std::set<std::string> out;
  for (const auto& [path, klass] : compiled.modules)
    if (classes.contains(klass) && !is_inside(path, whole)) out.insert(path);
  return out;
}

std::set<std::string> swapped(const Compiled& compiled, const std::string& target = "") {
  std::set<std::string> out;
  for (const Swap& swap : compiled.result.swaps)
    if (target.empty() || swap.target == target) out.insert(swap.path);
  return out;
}

// Nothing that computes is on the device outside of what was swapped.
void check_nothing_else(const Compiled& compiled) {
  for (const std::string& path : compiled.on_device) {
    INFO(path);
    CHECK(is_inside(path, swapped(compiled)));
  }
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

TEST_CASE("ViT: the self-attention and the linear layers with gelu first, then Linear and LayerNorm") {
  const Compiled vit = rewrite("vit_small", "vit");
  const std::set<std::string> attention = of_classes(vit, {"ViTAttention"});
  CHECK(attention.size() == 2);
  CHECK(swapped(vit, "TTNNViTSelfAttention") == attention);
  std::set<std::string> linear = of_classes(vit, {"Linear"}, attention);
  CHECK(linear.size() == 5);  // two of each MLP, and the classifier
  std::set<std::string> with_gelu;
  for (const std::string& path : linear)
    if (path.ends_with(".mlp.fc1")) with_gelu.insert(path);
  CHECK(swapped(vit, "TTNNLinearGelu") == with_gelu);
  for (const std::string& path : with_gelu) linear.erase(path);
  CHECK(swapped(vit, "TTNNLinear") == linear);
  CHECK(swapped(vit, "TTNNLayerNorm") == of_classes(vit, {"LayerNorm"}));
  check_nothing_else(vit);
  CHECK(vit.linear_formats == std::set<std::string>{"bfloat16"});
  CHECK(lowest_pcc(vit, "vit_small") >= 0.999);
}

TEST_CASE("LLaMA: every Linear in bfloat8_b, and SiLU") {
  const Compiled llama = rewrite("llama_small", "llama");
  CHECK(swapped(llama, "TTNNLinearLLama") == of_classes(llama, {"Linear"}));
  CHECK(swapped(llama, "TTNNSilu") == of_classes(llama, {"SiLUActivation"}));
  check_nothing_else(llama);
  CHECK(llama.linear_formats == std::set<std::string>{"bfloat8_b"});
  CHECK(llama.result.weights.bytes_out < llama.result.weights.bytes_in / 2);
  CHECK(lowest_pcc(llama, "llama_small") >= 0.99);
}

TEST_CASE("LLaMA: the head kept in bfloat16, the rest in bfloat4_b") {
  Compiled llama = rewrite("llama_small", "", {{"*", DataType::bfloat4_b}, {"*lm_head", DataType::bfloat16}});
  std::map<std::string, int> formats;
  for (const ModuleReport& module : llama.result.modules)
    if (module.op == "tt.linear") ++formats[module.weight_format];
  CHECK(formats == std::map<std::string, int>{{"bfloat16", 1}, {"bfloat4_b", 14}});
  CHECK(lowest_pcc(llama, "llama_small") >= 0.9);
}

TEST_CASE("OWL-ViT: attention of both towers first, then Linear and LayerNorm") {
  const Compiled owl = rewrite("owlvit_small", "owlvit");
  const std::set<std::string> attention = of_classes(owl, {"OwlViTAttention"});
  CHECK(attention.size() == 4);
  CHECK(swapped(owl, "TTNNViTSelfAttention") == attention);
  CHECK(swapped(owl, "TTNNLinear") == of_classes(owl, {"Linear"}, attention));
  CHECK(swapped(owl, "TTNNLayerNorm") == of_classes(owl, {"LayerNorm"}));
  check_nothing_else(owl);
  CHECK(owl.linear_formats == std::set<std::string>{"bfloat16"});
  CHECK(lowest_pcc(owl, "owlvit_small") >= 0.99);
}

TEST_CASE("SpeechT5: Linear and LayerNorm; it has no SiLU") {
  const Compiled speech = rewrite("speecht5_tts", "speecht5");
  CHECK(swapped(speech, "TTNNLinear") == of_classes(speech, {"Linear"}));
  CHECK(swapped(speech, "TTNNLayerNorm") == of_classes(speech, {"LayerNorm"}));
  check_nothing_else(speech);
  CHECK(speech.linear_formats == std::set<std::string>{"bfloat16"});
  const Compiled whole = rewrite("speecht5_tts");
  CHECK(whole.replaced.at("SpeechT5Attention").at("tt.attention") == 6);
  CHECK(lowest_pcc(whole, "speecht5_tts") >= 0.99);
}

TEST_CASE("SpeechT5: an excluded module stays as it is, its neighbours go") {
  Compiled speech = rewrite("speecht5_tts", "", {}, {"*feed_forward*"});
  for (const ModuleReport& module : speech.result.modules) {
    INFO(module.path);
    CHECK(module.path.find("feed_forward") == std::string::npos);
  }
  CHECK(speech.replaced["Linear"]["tt.linear"] > 20);
}
