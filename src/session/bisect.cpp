// Excluding a module keeps its own nodes on the CPU and leaves its children alone, so modules can be chosen one by one.
#include "session/bisect.h"

#include <algorithm>
#include <map>
#include <set>

#include "pass/call.h"
#include "session/trial.h"
#include "support/error.h"

namespace ttc {
namespace {

class Bisector {
 public:
  Bisector(const ModelSource& source, const CompileSettings& settings, const Thresholds& thresholds,
           const std::function<void(const BisectRun&)>& told)
      : trials_(source, thresholds), told_(told), calls_(calls_of(source, settings)) {}

  // Whether the model passes when it is compiled so.
  bool passes(const CompileSettings& settings, const std::string& what) {
    const Score score = trials_.run(settings, calls_);
    out.runs.push_back({.what = what, .pass = score.pass, .pcc = score.pcc});
    if (told_) told_(out.runs.back());
    return score.pass;
  }

  const ir::Model& model() const { return trials_.model(); }  // of the last run
  const CompileResult& result() const { return trials_.result(); }

  Bisection out;

 private:
  Trials trials_;
  const std::function<void(const BisectRun&)>& told_;
  Calls calls_;
};

// Paths of the modules with nodes on the device, in the order of the run.
std::vector<std::string> device_modules(const ir::Model& model) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  const auto add = [&](const std::string& path) {
    if (seen.insert(path).second) out.push_back(path);
  };
  ir::walk(*model.graph, [&](ir::Node* node) {
    if (!is_device_node(*node) || node->place == "cpu" || node->origins.empty()) return;
    for (const auto& [path, klass] : node->provenance->merged) add(path);
    if (node->provenance->merged.empty()) add(node->provenance->module_path);
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
