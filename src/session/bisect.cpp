// Excluding a module keeps its own nodes on the CPU and leaves its children alone, so modules can be chosen one by one.
#include "session/bisect.h"

#include <algorithm>
#include <map>
#include <set>

#include "formats/safetensors.h"
#include "pass/call.h"
#include "session/steps.h"
#include "support/error.h"

namespace ttc {
namespace {

class Bisector {
 public:
  Bisector(const ModelSource& source, const CompileSettings& settings, const Thresholds& thresholds,
           const std::function<void(const BisectRun&)>& told)
      : source_(source), settings_(settings), thresholds_(thresholds), told_(told) {
    const std::shared_ptr<const ir::Model> plain = source.read();
    const InputOptions given{.io = settings.io, .inputs = settings.inputs, .shapes = settings.shapes};
    std::vector<InputOptions> ways = {given};
    if (!settings.io.empty()) ways = ways_to_call(read_safetensors(settings.io));
    for (InputOptions& way : ways) {
      way.io = given.io;
      std::vector<Case> cases = load_cases(*plain, way);
      if (!std::ranges::all_of(cases, [&](const Case& one) { return fits(*plain, one); })) continue;
      expect_cpu(plain, cases);
      calls_.push_back(std::move(cases));
    }
    if (calls_.empty()) throw usage_error(settings.io + " holds no call that fits the model");
  }

  // Whether the model passes when it is compiled so.
  bool passes(const CompileSettings& settings, const std::string& what) {
    compiled_ = compile_source(source_, settings);
    BisectRun run{.what = what, .pass = true};
    const std::shared_ptr<const ir::Model> model = std::move(compiled_.model);
    for (const std::vector<Case>& cases : calls_) {
      ttrt::Executor executor(model, {.profile = profile_for(*model, settings.arch)});
      StepRunner steps(executor, cases);
      for (std::size_t i = 0; i < cases.size(); ++i)
        for (const Check& check : check_outputs(cases[i], steps.run(i), thresholds_, true)) {
          run.pass = run.pass && check.pass;
          run.pcc = std::min(run.pcc, check.problem.empty() ? check.metrics.pcc : 0.0);
        }
    }
    model_ = model;
    out.runs.push_back(run);
    if (told_) told_(run);
    return run.pass;
  }

  const ir::Model& model() const { return *model_; }  // of the last run
  const CompileResult& result() const { return compiled_.result; }
  const CompileSettings& settings() const { return settings_; }

  Bisection out;

 private:
  const ModelSource& source_;
  const CompileSettings& settings_;
  const Thresholds& thresholds_;
  const std::function<void(const BisectRun&)>& told_;
  std::vector<std::vector<Case>> calls_;
  Compiled compiled_;
  std::shared_ptr<const ir::Model> model_;
};

// Paths of the modules with nodes on the device, in the order of the run.
std::vector<std::string> device_modules(const ir::Model& model) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  ir::walk(*model.graph, [&](ir::Node* node) {
    if (is_device_node(*node) && node->place != "cpu" && !node->origins.empty() &&
        seen.insert(node->provenance->module_path).second)
      out.push_back(node->provenance->module_path);
  });
  return out;
}

[[noreturn]] void fails_anyway(const ModelSource& source) {
  throw Error(Exit::check_failed, source.path(), "it misses the threshold with nothing on the device",
              "the outputs to compare with are another model's, or the threshold is too high");
}

// The smallest k in (low, high] with fails(k), where fails(high) and not fails(low) are known.
template <typename Fails>
std::size_t first_failing(std::size_t low, std::size_t high, const Fails& fails) {
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (fails(middle) ? high : low) = middle;
  }
  return high;
}

std::string counted(std::size_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

}  // namespace

Bisection bisect_modules(const ModelSource& source, const CompileSettings& settings, const Thresholds& thresholds,
                         const std::function<void(const BisectRun&)>& told) {
  Bisector bisector(source, settings, thresholds, told);
  Bisection& out = bisector.out;
  out.fails = !bisector.passes(settings, "all modules");
  const std::vector<std::string> all = device_modules(bisector.model());
  out.candidates = all.size();
  if (!out.fails) return std::move(out);
  // The first k modules and those kept before, which stand behind them.
  std::set<std::string> kept;
  std::map<std::vector<std::string>, bool> known;  // by the modules that are left out
  const auto passes = [&](std::size_t k) {
    std::vector<std::string> left_out;
    for (std::size_t i = k; i < all.size(); ++i)
      if (!kept.contains(all[i])) left_out.push_back(all[i]);
    if (const auto found = known.find(left_out); found != known.end()) return found->second;
    CompileSettings trial = settings;
    trial.exclude.insert(trial.exclude.end(), left_out.begin(), left_out.end());
    return known[left_out] = bisector.passes(trial, counted(all.size() - left_out.size(), "module"));
  };
  if (!passes(0)) fails_anyway(source);
  for (std::size_t end = all.size(); end > 0;) {
    const std::size_t k = first_failing(0, end, [&](std::size_t n) { return !passes(n); });
    kept.insert(all[k - 1]);
    out.modules.insert(out.modules.begin(), all[k - 1]);
    if (!passes(0)) break;
    end = k - 1;
  }
  return std::move(out);
}

Bisection bisect_rewrites(const ModelSource& source, const CompileSettings& settings, const Thresholds& thresholds,
                          const std::function<void(const BisectRun&)>& told) {
  Bisector bisector(source, settings, thresholds, told);
  Bisection& out = bisector.out;
  out.fails = !bisector.passes(settings, "all rewrites");
  const std::vector<MatchRecord> all = bisector.result().matches;
  out.candidates = all.size();
  if (!out.fails) return std::move(out);
  const auto passes = [&](std::size_t limit) {
    CompileSettings trial = settings;
    trial.passes.rewrite_limit = static_cast<long>(limit);
    return bisector.passes(trial, counted(limit, "rewrite"));
  };
  if (!passes(0)) fails_anyway(source);
  out.rewrite_number = first_failing(0, all.size(), [&](std::size_t n) { return !passes(n); });
  out.rewrite = all[out.rewrite_number - 1];
  return std::move(out);
}

}  // namespace ttc
