// What files prove, how models differ, and searches over src/session: plain structs in and out, errors as api::Error.
#include "api/bridge.h"
#include "api/model_impl.h"
#include "formats/safetensors.h"
#include "session/bisect.h"
#include "session/compare.h"
#include "session/diff.h"
#include "session/extract.h"
#include "session/precision_search.h"
#include "session/verify.h"
#include "support/atomic_file.h"

namespace ttc::api {
namespace {

static_assert(static_cast<int>(CompareMode::sel) == static_cast<int>(ttc::CompareMode::sel));

Trial trial_of(const std::string& what, const Score& score, bool met, bool pareto) {
  return {.what = what,
          .pcc = score.pcc,
          .snr_db = score.snr_db,
          .top1 = score.top1,
          .cycles = score.cycles,
          .weight_bytes = score.bytes,
          .met = met,
          .pareto = pareto};
}

Fidelity fidelity_named(const std::string& name) {
  const auto known = ttrt::math_fidelity_from_string(name);
  return known ? static_cast<Fidelity>(*known) : Fidelity::library;
}

void add_choice(const PrecisionChoice& one, CompileOptions& options) {
  if (!one.format.empty()) options.weight_dtype.emplace_back(one.module, format_named(one.format));
  if (!one.fidelity.empty()) options.fidelity.emplace_back(one.module, fidelity_named(one.fidelity));
  if (!one.fp32_acc.empty())
    options.fp32_acc.emplace_back(one.module,
                                  one.fp32_acc == "library" ? std::nullopt : std::optional(one.fp32_acc == "on"));
}

}  // namespace

Verification verify(const Model& model) {
  return guarded([&] {
    if (model.impl().source == nullptr)
      throw usage_error("the model is what a compile made", "save it, and load the file");
    const auto& graph = model.impl().model;
    const ttc::Verification found = verify_file(*model.impl().source, graph, {.profile = profile_for(*graph, "")});
    Verification out{.findings = {}, .pass = found.pass()};
    for (const ttc::Finding& one : found.findings)
      out.findings.push_back({.kind = one.kind, .name = one.name, .detail = one.detail, .pass = one.pass});
    for (const TestResult& test : found.tests) {
      if (!test.problem.empty())
        out.findings.push_back({.kind = "test", .name = test.name, .detail = test.problem, .pass = false});
      for (const Check& check : test.checks)
        out.findings.push_back(
            {.kind = "test",
             .name = check.output,
             .detail = check.problem.empty() ? "PCC " + std::to_string(check.metrics.pcc) : check.problem,
             .pass = check.pass});
    }
    return out;
  });
}

void undo(const Model& model, const std::string& path) {
  guarded([&] {
    const Original original = ttc::undo(*model.impl().model);
    write_file(path, {reinterpret_cast<const char*>(original.bytes.data()), original.bytes.size()});
  });
}

std::vector<Difference> diff(const Model& before, const Model& after) {
  return guarded([&] {
    std::vector<Difference> out;
    for (const ttc::Difference& one : diff_models(*before.impl().model, *after.impl().model))
      out.push_back({.kind = one.kind, .name = one.name, .before = one.before, .after = one.after});
    return out;
  });
}

Extracted extract(const Model& model, const std::string& module, const ExtractOptions& options) {
  return guarded([&] {
    if (!options.save_io.empty()) check_output(options.save_io);
    ttc::Extracted part = extract_module(plain_source(model), module, inputs_of(options));
    if (!options.save_io.empty()) write_safetensors(options.save_io, part.calls);
    auto source = std::make_shared<ModelSource>(*part.model, model.path() + ":" + module);
    return Extracted{.model = loaded(std::move(source)), .nodes = static_cast<std::int64_t>(part.nodes)};
  });
}

Bisection bisect(const Model& model, const CompileOptions& options, double pcc, bool by_rewrite) {
  return guarded([&] {
    const ModelSource& source = plain_source(model);
    const ttc::Bisection found = by_rewrite ? bisect_rewrites(source, settings_of(options), {.pcc = pcc})
                                            : bisect_modules(source, settings_of(options), {.pcc = pcc});
    Bisection out{.fails = found.fails,
                  .modules = found.modules,
                  .rewrite_number = static_cast<std::int64_t>(found.rewrite_number),
                  .runs = {}};
    if (found.rewrite) {
      out.pass = found.rewrite->pass;
      out.rule = found.rewrite->rule;
      out.result = found.rewrite->result;
    }
    for (const BisectRun& run : found.runs) out.runs.push_back({.what = run.what, .pcc = run.pcc, .pass = run.pass});
    return out;
  });
}

PrecisionSearch search_precision(const Model& model, const SearchGoal& goal, const CompileOptions& options) {
  return guarded([&] {
    const ttc::PrecisionSearch found = ttc::search_precision(
        plain_source(model), settings_of(options),
        {.min_pcc = goal.min_pcc, .min_snr_db = goal.min_snr_db, .max_top1_drop = goal.max_top1_drop});
    PrecisionSearch out{.options = options,
                        .trials = {},
                        .seen = trial_of("the choice", found.seen, true, true),
                        .held_back = trial_of("the choice, held back", found.held_back, true, true),
                        .text = options_text(found.choice)};
    for (const PrecisionChoice& one : found.choice) add_choice(one, out.options);
    for (const SearchTrial& one : found.trials)
      out.trials.push_back(trial_of(one.what, one.score, one.met, one.pareto));
    return out;
  });
}

Compatibility public_compatibility(const ttc::Compatibility& found) {
  Compatibility out{.swapped = found.swapped,
                    .successes = found.successes,
                    .fallbacks = {},
                    .regressions = found.regressions(),
                    .no_longer = found.no_longer,
                    .runs = found.runs,
                    .json = found.json()};
  for (const ttc::HostNode& one : found.host)
    out.fallbacks.push_back({.node = one.node,
                             .op = one.op,
                             .module = one.module,
                             .klass = one.klass,
                             .reason = one.reason,
                             .planned = one.planned,
                             .expected = one.expected});
  return out;
}

Compatibility compatibility(const Model& model, const std::optional<std::vector<std::string>>& expected) {
  return guarded([&] {
    ttc::Compatibility found = placement_of(*model.impl().model);
    if (expected) ExpectedFallbacks::of(*expected).judge(found);
    return public_compatibility(found);
  });
}

}  // namespace ttc::api
