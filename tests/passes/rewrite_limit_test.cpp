// --rewrite-limit n gives exactly min(n, N) rewrites, N being what a run without a limit makes; each leaves one entry in
// the journal, and the graph is well-formed wherever the limit falls. A pass that may not rewrite leaves the model as
// it prints, but for what a program cannot do without. Over the small models in the default suite, over all in `long`.
#include <algorithm>
#include <filesystem>
#include <set>

#include "formats/pt2_read.h"
#include "pass/manager.h"
#include "tests/catch.h"
#include "torch/cpu_op.h"

namespace {

using namespace ttc;
namespace fs = std::filesystem;

// What has no limit: see pass/rewriter.h.
bool is_required(const std::string& step) {
  return step == "number-nodes" || step == "place:transfers" || step == "pack" || step == "close-regions";
}

struct Run {
  std::vector<PassReport> reports;
  std::size_t rewrites = 0;
};

Run run_limited(const fs::path& path, long limit) {
  const auto model = read_pt2(path);
  const CompileOptions options;
  PassContext context(*model, options);
  PassManagerOptions flags;
  flags.rewrite_limit = limit;
  Run run{.reports = run_passes(context, flags)};
  run.rewrites = context.matches.size();
  CHECK(context.budget.taken() == static_cast<long>(run.rewrites));
  const std::vector<std::string> problems = ir::verify(*model);
  INFO((problems.empty() ? "" : problems.front()));
  CHECK(problems.empty());
  std::size_t left = limit < 0 ? run.rewrites : static_cast<std::size_t>(limit);
  for (const PassReport& report : run.reports) {
    INFO(report.name);
    CHECK(report.matched <= left);
    CHECK((report.matched > 0) == (report.changed && !is_required(report.name)));
    left -= std::min(left, report.matched);
  }
  return run;
}

// Somewhere within each pass, at its end, and at both ends of the run.
std::set<long> limits(const Run& whole) {
  std::set<long> out{0, 1, static_cast<long>(whole.rewrites), static_cast<long>(whole.rewrites) + 3};
  long before = 0;
  for (const PassReport& report : whole.reports) {
    out.insert({before + static_cast<long>(report.matched) / 2, before + static_cast<long>(report.matched)});
    before += static_cast<long>(report.matched);
  }
  return out;
}

// Each pass with no rewrites left, on what the passes before it made.
void check_untouched(const fs::path& path) {
  const auto model = read_pt2(path);
  const CompileOptions options;
  for (const PassStep& step : select_passes({})) {
    PassManagerOptions flags;
    flags.passes = {step.name()};
    if (!is_required(step.name())) {
      PassContext context(*model, options);
      flags.rewrite_limit = 0;
      const std::string before = ir::print(*model);
      run_passes(context, flags);
      INFO(step.name());
      CHECK(ir::print(*model) == before);
      CHECK(context.matches.empty());
    }
    PassContext context(*model, options);
    flags.rewrite_limit = -1;
    run_passes(context, flags);
  }
}

void check_models(std::uintmax_t most_bytes) {
  ttrt::install_torch_schemas();
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(TTC_MODELS)) {
    if (entry.path().extension() != ".pt2" || entry.file_size() > most_bytes) continue;
    ++count;
    INFO(entry.path().filename().string());
    const Run whole = run_limited(entry.path(), -1);
    for (const long limit : limits(whole)) {
      INFO("limit " << limit);
      CHECK(run_limited(entry.path(), limit).rewrites == std::min(static_cast<std::size_t>(limit), whole.rewrites));
    }
    check_untouched(entry.path());
  }
  CHECK(count > 0);
}

}  // namespace

TEST_CASE("the limit counts every rewrite of small models, and nothing else changes them") { check_models(150'000); }

TEST_CASE("the limit counts every rewrite of all models", "[.][long]") {
  check_models(std::numeric_limits<std::uintmax_t>::max());
}
