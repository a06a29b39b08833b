// One count of nodes for compiling, running and looking at a model; and what a run says follows what served it.
#include <filesystem>
#include <set>

#include <unistd.h>

#include "dispatch/config_dispatcher.h"
#include "executor/executor.h"
#include "executor/kernel_choice.h"
#include "formats/model_file.h"
#include "report/inspect.h"
#include "session/compile.h"
#include "session/steps.h"
#include "tests/catch.h"
#include "tests/unit/session_test_util.h"

namespace {

namespace fs = std::filesystem;
using namespace ttc;
using ttc::test::models;
using ttc::test::recorded;

std::unique_ptr<ttrt::Executor> executor(std::shared_ptr<const ir::Model> model, const std::string& dispatcher) {
  ttrt::KernelChoiceOptions choice;
  choice.dispatcher = dispatcher;
  ttrt::ExecutorOptions options;
  options.chooser = std::make_shared<ttrt::KernelChooser>(std::move(choice));
  return std::make_unique<ttrt::Executor>(std::move(model), std::move(options));
}

ir::NodeCounts counts_of(std::size_t device, std::size_t cpu) {
  return {.total = device + cpu, .device = device, .cpu = cpu};
}

}  // namespace

TEST_CASE("a node counts for the device where all that computes it is there") {
  const auto model = ir::parse(R"(model {}
graph main(%x: f32[4] user, %n: int user) {
  %a: f32[4] = aten.relu.default(%x) origins=[0, 2]
  %b: f32[4] = aten.neg.default(%a) origins=[1]
  %c: f32[4] = aten.abs.default(%b) origins=[1]
  %d: f32[4] = aten.neg.default(%c)
  %m: int = _operator.add(%n, 1)
  return %d
})");
  ir::NodeCounter numbered, plain;
  for (const auto& node : model->graph->nodes()) {
    numbered.add(*node, node->op() != "aten.abs.default");
    node->origins.clear();
    plain.add(*node, node->op() != "aten.abs.default");
  }
  CHECK(numbered.counts() == counts_of(2, 1));  // %d is a helper, %m no tensor
  CHECK(plain.counts() == counts_of(3, 1));
}

TEST_CASE("compiling, running the file and looking at it count the same nodes") {
  const fs::path stem = fs::temp_directory_path() / ("ttc_counts_" + std::to_string(::getpid()));
  for (const auto& [name, ending] : std::vector<std::pair<std::string, std::string>>{{"bert_small", ".pt2"},
                                                                                     {"vit_small", ".pt2"},
                                                                                     {"gpt2_small", ".pt2"},
                                                                                     {"llama_small_kv", ".pt2"},
                                                                                     {"bert_small", ".pt"},
                                                                                     {"vit_small", ".pt"},
                                                                                     {"llama_small_kv", ".pt"}}) {
    INFO(name << ending);
    const fs::path file = stem.string() + ending;
    InputOptions inputs = recorded(name);
    inputs.io_steps = name == "llama_small_kv";
    CompileSettings settings;
    settings.io = models + name + ".io.safetensors";
    Compiled compiled = compile_source(ModelSource(models + name + ".pt2"), settings);
    const ir::NodeCounts expected = compiled.result.nodes;
    CHECK(expected.device > 5);
    save_model(*compiled.model, file.string());
    const std::shared_ptr<const ir::Model> model = load(file.string());
    const std::string html = render_graph(*model, GraphForm::html);
    CHECK(html.find("device: " + std::to_string(expected.device) + "<") != std::string::npos);
    CHECK(html.find("CPU: " + std::to_string(expected.cpu) + "<") != std::string::npos);
    const auto runs = executor(model, "default");
    CHECK(runs->counts() == expected);  // as placed, before anything ran
    std::vector<Case> cases = load_cases(*model, inputs);
    cases.resize(1);
    StepRunner(*runs, cases).run(0);
    CHECK(runs->counts() == expected);
    fs::remove(file);
  }
}

TEST_CASE("what dispatch leaves to the host is no work of the device") {
  const auto model = compiled_for(ModelSource(models + "bert_small.pt2"), recorded("bert_small"), "n150");
  const std::vector<Case> cases = load_cases(*model, recorded("bert_small"));
  const auto on_device = executor(model, "default"), on_host = executor(model, "cpu");
  for (auto* one : {on_device.get(), on_host.get()}) {
    one->set_profiling(true);
    StepRunner(*one, cases).run(0);
  }
  const ir::NodeCounts all = on_device->counts();
  CHECK(all.cpu == 0);
  CHECK(on_device->work().device_cycles > 0);
  CHECK(on_host->counts() == counts_of(0, all.total));
  CHECK(on_host->counts().device_fraction() == 0);
  CHECK(on_host->work().device_cycles == 0);
  // The host takes what it computes from the device and gives it back.
  CHECK(on_host->work().transfers.to_host > on_device->work().transfers.to_host + 10);
  CHECK(on_host->work().transfers.cycles > on_device->work().transfers.cycles);
  for (const ttrt::InstructionProfile& p : on_host->profiler().profile()) {
    CHECK(p.place != ttrt::OpPlace::device);
    CHECK((p.place == ttrt::OpPlace::transfer || p.cycles == 0));
  }
}

TEST_CASE("a profile counts the FLOPs that the compile counted, whatever the operators became") {
  for (const char* name : {"bert_small", "vit_small", "llama_small", "vision_small", "gpt2_small", "owlvit_small"}) {
    INFO(name);
    Compiled compiled = compile_source(ModelSource(models + std::string(name) + ".pt2"), {});
    const std::shared_ptr<const ir::Model> model = std::move(compiled.model);
    ttrt::Executor executor(model, {});
    executor.set_profiling(true);
    const std::vector<Case> cases = load_cases(*model, recorded(name));
    StepRunner(executor, cases).run(0);
    double device = 0, all = 0;
    for (const ttrt::InstructionProfile& p : executor.profiler().profile()) {
      all += p.flops;
      if (p.place == ttrt::OpPlace::device) device += p.flops;
    }
    CHECK(device > 0);
    CHECK(device == compiled.result.flops.device);
    CHECK(all == compiled.result.flops.total);
  }
}

TEST_CASE("a profile has an entry for each kernel that served a node") {
  const auto model = compiled_for(ModelSource(models + "bert_small.pt2"), recorded("bert_small"), "n150");
  const std::vector<Case> cases = load_cases(*model, recorded("bert_small"));
  const fs::path rules = fs::temp_directory_path() / ("ttc_profile_" + std::to_string(::getpid()) + ".yaml");
  const auto write = [&](const char* kernel) {
    std::FILE* const out = std::fopen(rules.c_str(), "w");
    std::fprintf(out, "version: \"1.0\"\nkernel_locks:\n  tt.layer_norm: %s\n", kernel);
    std::fclose(out);
  };
  write("tt.layer_norm.device");
  ttrt::KernelChoiceOptions choice;
  choice.dispatch.mode = ttrt::dispatch::DispatchMode::HOT_RELOAD;
  choice.dispatch.config_path = rules.string();
  ttrt::ExecutorOptions options;
  options.chooser = std::make_shared<ttrt::KernelChooser>(std::move(choice));
  ttrt::Executor executor(model, options);
  executor.set_profiling(true);
  StepRunner(executor, cases).run(0);
  write("tt.layer_norm.host");
  options.chooser->rules()->reload();
  for (int i = 0; i < 2; ++i) StepRunner(executor, cases).run(0);
  std::int64_t by_device = 0, by_host = 0;
  for (const ttrt::InstructionProfile& p : executor.profiler().profile()) {
    if (p.instruction->node->op() != "tt.layer_norm") continue;
    INFO(p.kernel);
    const bool host = p.kernel == "tt.layer_norm.host";
    CHECK((p.place == ttrt::OpPlace::cpu) == host);
    CHECK((p.cycles == 0) == host);
    (host ? by_host : by_device) += p.calls;
  }
  CHECK(by_device > 0);
  CHECK(by_host == 2 * by_device);
  CHECK(executor.counts().cpu > 0);
  fs::remove(rules);
}
