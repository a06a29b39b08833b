// Every model of models/ that has recorded outputs: on the CPU as it is, and compiled for the device; all shapes and
// steps its io file holds.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "executor/executor.h"
#include "executor/signature.h"
#include "formats/safetensors.h"
#include "session/checks.h"
#include "session/compile.h"
#include "session/device_profile.h"
#include "session/steps.h"
#include "tests/catch.h"

namespace {

namespace fs = std::filesystem;
using namespace ttc;

const fs::path models = fs::path(TTC_SOURCE_ROOT) / "models";

struct Job {
  fs::path model;
  std::string io;
  std::string prefix;
  bool steps = false;
  std::string name() const {
    return model.filename().string() + (prefix.empty() ? "" : " " + prefix) + (steps ? " steps" : "");
  }
};

// "bert_small_dyn_core.pt2" has the io file of bert_small.
std::string io_of(const fs::path& model) {
  std::string name = model.stem();
  for (const char* ending : {".script", "_core", "_dyn"})
    if (name.ends_with(ending)) name.erase(name.size() - std::string(ending).size());
  const fs::path io = models / (name + ".io.safetensors");
  return fs::exists(io) ? io.string() : "";
}

std::vector<Job> jobs() {
  std::vector<Job> out;
  for (const auto& entry : fs::directory_iterator(models)) {
    const std::string extension = entry.path().extension();
    const std::string io = io_of(entry.path());
    // custom_op calls an operator that exists nowhere: the command-line tests see it refused.
    if ((extension != ".pt2" && extension != ".pt") || io.empty() || entry.path().stem() == "custom_op") continue;
    const SafeTensors file = read_safetensors(io);
    const auto has = [&](const char* name) { return file.tensors.contains(name); };
    if (has("in0")) out.push_back({.model = entry.path(), .io = io, .prefix = ""});
    const bool free_dims = extension == ".pt" || entry.path().stem().string().find("_dyn") != std::string::npos;
    if (free_dims && (has("alt.in0"))) out.push_back({.model = entry.path(), .io = io, .prefix = "alt"});
    if (has("step0.in0")) out.push_back({.model = entry.path(), .io = io, .prefix = "", .steps = true});
  }
  std::sort(out.begin(), out.end(), [](const Job& a, const Job& b) { return a.name() < b.name(); });
  return out;
}

InputOptions options_of(const Job& job) {
  InputOptions options;
  options.io = job.io;
  options.io_prefix = job.prefix;
  options.io_steps = job.steps;
  return options;
}

// Compiled once for all cases of this program.
std::shared_ptr<const ir::Model> compiled(const Job& job) {
  static std::map<std::string, std::shared_ptr<const ir::Model>> done;
  auto& model = done[job.name()];
  if (!model) model = compiled_for(ModelSource(job.model.string()), options_of(job), "n150");
  return model;
}

void expect_outputs(ttrt::Executor& executor, const Job& job, const Thresholds& thresholds) {
  const std::vector<Case> cases = load_cases(executor.model(), options_of(job));
  StepRunner steps(executor, cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& outputs = steps.run(i);
    for (const Check& check :
         check_outputs(cases[i], outputs, thresholds, executor.options().mode == ttrt::Mode::device)) {
      INFO(check.output << " PCC " << check.metrics.pcc << " max_abs " << check.metrics.max_abs << " "
                        << check.problem);
      CHECK(check.pass);
    }
  }
}

// Not every output of a model made of comparisons and counters has a meaningful correlation in bfloat16.
bool on_device(const Job& job) {
  const std::string name = job.model.stem();
  for (const char* family : {"bert", "vit", "gpt2", "llama", "vision"})
    if (name.starts_with(family)) return true;
  return false;
}

}  // namespace

TEST_CASE("recorded outputs on the CPU", "[cpu]") {
  REQUIRE(jobs().size() > 20);
  for (const Job& job : jobs()) {
    DYNAMIC_SECTION(job.name()) {
      ttrt::Executor executor(load(job.model.string()), {.mode = ttrt::Mode::cpu});
      expect_outputs(executor, job, {.atol = 1e-4, .rtol = 1e-4});
    }
  }
}

TEST_CASE("recorded outputs on the device", "[device]") {
  for (const Job& job : jobs()) {
    if (!on_device(job)) continue;
    DYNAMIC_SECTION(job.name()) {
      const auto model = compiled(job);
      ttrt::Executor executor(model, {.mode = ttrt::Mode::device});
      expect_outputs(executor, job, {.pcc = 0.999});
      for (int more = 0; more < 2; ++more) {  // with the memory plan of the first run, then settled
        executor.reset_state();
        expect_outputs(executor, job, {.pcc = 0.999});
      }
      CHECK(executor.counts().device > 0);
      CHECK(executor.fallback_failures().empty());
    }
  }
}

// Boards of three generations; device time includes what crosses the host link.
TEST_CASE("a newer board takes less device time for every model", "[time]") {
  for (const Job& job : jobs()) {
    if (!job.prefix.empty()) continue;
    DYNAMIC_SECTION(job.name()) {
      const auto model = compiled(job);
      const std::vector<Case> cases = load_cases(*model, options_of(job));
      const auto device_us = [&](const char* board) {
        const ttrt::ArchProfile& profile = ttrt::find_profile(board);
        ttrt::Executor executor(model, {.mode = ttrt::Mode::device, .profile = profile});
        StepRunner(executor, cases).run(0);
        return (executor.work().device_cycles + executor.work().transfers.cycles) / profile.clock_mhz;
      };
      const double e150 = device_us("e150"), n150 = device_us("n150"), p150 = device_us("p150");
      INFO("e150 " << e150 << " us, n150 " << n150 << " us, p150 " << p150 << " us");
      if (n150 == 0) continue;  // nothing of it is on the device
      CHECK(p150 < n150);
      CHECK(n150 < e150);
    }
  }
}

TEST_CASE("recorded outputs with exact numerics", "[exact]") {
  for (const Job& job : jobs()) {
    // One spelling of each is enough: the graphs that reach the device are the same.
    if (!on_device(job) || job.model.extension() != ".pt2" || job.model.stem().string().ends_with("_core")) continue;
    DYNAMIC_SECTION(job.name()) {
      const auto model = compiled(job);
      ttrt::Executor executor(model, {.mode = ttrt::Mode::device, .numerics = ttrt::Numerics::exact});
      // Queries whose keys are all hidden give what the device gives, which PyTorch's zeros are not.
      expect_outputs(executor, job, {.pcc = 0.99});
      CHECK(executor.fallback_failures().empty());
    }
  }
}

// What a run reports is what can be known before it: control flow apart, whose bodies run as often as their inputs say.
TEST_CASE("the profile of a model without a run is that of a run", "[time]") {
  for (const Job& job : jobs()) {
    if (!job.prefix.empty()) continue;
    DYNAMIC_SECTION(job.name()) {
      const auto model = compiled(job);
      const std::vector<Case> cases = load_cases(*model, options_of(job));
      ttrt::Executor executor(model, {.mode = ttrt::Mode::device});
      const auto step = [&] { StepRunner(executor, cases).run(0); };
      step();
      const DeviceProfile profile =
          profile_device(*model, ttrt::default_profile(), ttrt::bind_symbols(*model, cases[0].inputs));
      bool repeats = false;
      ir::walk(*model->graph, [&](const ir::Node* node) { repeats = repeats || !node->regions().empty(); });
      if (repeats || profile.unpriced > 0 || executor.work().weights.moves > 0) continue;
      CHECK((profile.us - profile.transfer_us) * profile.arch.clock_mhz ==
            Approx(executor.work().device_cycles).epsilon(1e-6));
      if (executor.fallback_failures().empty())
        CHECK(profile.host_nodes == static_cast<std::int64_t>(executor.counts().cpu));
      // The first run finds out what lies where; then the memory holds what was estimated, to the byte.
      if (executor.fallback_failures().empty()) {
        step();
        const ttrt::MemoryUsage dram = executor.device()->memory_report().dram;
        const bool planned = std::ranges::any_of(dram.live, [](const auto& h) { return h.label == "activations"; });
        CHECK(profile.dram.peak >= dram.allocated_per_bank * dram.banks);
        if (planned) CHECK(profile.dram.peak == dram.allocated_per_bank * dram.banks);
      }
      // The first call of a model with a state brings that too.
      if (!profile.keeps_state) {
        CHECK(profile.transfer_us * profile.arch.clock_mhz > 0.999 * executor.work().transfers.cycles);
        CHECK(profile.transfer_us * profile.arch.clock_mhz < 1.5 * executor.work().transfers.cycles + 1);
      }
      // Within a loop the caches stay on the device.
      const std::string name = job.name();
      CHECK(profile.decode.has_value() == (name.find("_decode") != name.npos || name.find("_kv") != name.npos));
      if (profile.decode && cases.size() > 1) {
        StepRunner loop(executor, cases);
        loop.run(0), loop.run(1);
        const double cycles = executor.work().device_cycles + executor.work().transfers.cycles;
        CHECK(profile.decode->token_us * profile.arch.clock_mhz > 0.99 * cycles);
        CHECK(profile.decode->token_us * profile.arch.clock_mhz < 1.15 * cycles);
      }
    }
  }
}
