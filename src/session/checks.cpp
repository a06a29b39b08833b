// Which thresholds hold where none are given, and what a wrong shape is called.
#include "session/checks.h"

#include <algorithm>

#include "session/model_source.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/error.h"

namespace ttc {

using ttrt::RtValue;

namespace {

// An error at most twice as large, which is 20 log10(2) = 6.02 dB of signal over noise.
bool as_good_as(const ttrt::Metrics& metrics, const std::optional<ttrt::Metrics>& baseline) {
  return baseline && baseline->nan >= metrics.nan && metrics.snr_db >= baseline->snr_db - 6.02;
}

constexpr double default_tolerance = 1e-4;

}  // namespace

Thresholds thresholds_in_force(const Thresholds& thresholds, bool approximate) {
  if (thresholds.any()) return thresholds;
  if (approximate) return {.pcc = 0.99};
  return {.atol = default_tolerance, .rtol = default_tolerance};
}

bool is_approximate(const ttrt::Executor& executor) {
  return executor.options().mode == ttrt::Mode::device || is_rewritten(executor.model());
}

std::string output_name(const Case& one, std::size_t output) {
  return (one.name.empty() ? "" : one.name + ".") + "out" + std::to_string(output);
}

std::vector<Check> check_outputs(const Case& expected, const std::vector<RtValue>& given, const Thresholds& thresholds,
                                 bool approximate) {
  const std::vector<RtValue> outputs = flat_outputs(given);
  const Thresholds wanted = thresholds_in_force(thresholds, approximate);
  const bool need_close = wanted.atol || wanted.rtol;
  const double atol = wanted.atol.value_or(wanted.rtol ? 0 : default_tolerance),
               rtol = wanted.rtol.value_or(wanted.atol ? 0 : default_tolerance);
  std::vector<Check> checks;
  for (std::size_t i = 0; i < expected.expected.size(); ++i) {
    if (!expected.expected[i]) continue;
    Check check{.output = output_name(expected, i),
                .metrics = {},
                .problem = {}};
    if (i < expected.baseline.size()) check.baseline = expected.baseline[i];
    const auto actual = i < outputs.size() ? as_tensor(outputs[i]) : std::nullopt;
    if (!actual) {
      check.problem = "the model has no such tensor output";
    } else if (actual->sizes != expected.expected[i]->sizes) {
      check.problem = "is " + value_text(*actual) + " where " + value_text(*expected.expected[i]) + " is expected";
    } else {
      check.metrics = ttrt::compare(*actual, *expected.expected[i]);
      check.allclose = ttrt::all_close(*actual, *expected.expected[i], atol, rtol);
      // Equal NaN and infinities count as right; a PCC over what is left decides.
      const bool correlates =
          !wanted.pcc || check.metrics.correlates(*wanted.pcc) || as_good_as(check.metrics, check.baseline);
      check.pass = (!need_close || check.allclose) && correlates && (check.metrics.nan == 0 || check.allclose);
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

void expect_cpu(const std::shared_ptr<const ir::Model>& plain, std::vector<Case>& cases) {
  if (std::ranges::none_of(cases, [](const Case& one) { return one.expected.empty(); })) return;
  ttrt::Executor executor(plain, {.mode = ttrt::Mode::cpu});
  StepRunner steps(executor, cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto outputs = flat_outputs(steps.run(i));
    if (!cases[i].expected.empty()) continue;
    for (const RtValue& value : outputs) {
      const auto tensor = as_tensor(value);
      cases[i].expected.push_back(tensor ? std::optional(ttrt::contiguous(*tensor)) : std::nullopt);
    }
  }
}

void require_expected(const std::vector<Case>& cases, const std::string& asked) {
  for (const Case& one : cases)
    for (const auto& tensor : one.expected)
      if (tensor) return;
  throw usage_error(asked + " is asked for, but there are no outputs to compare with",
                    "--io FILE with out0, out1, ... has them; ttc compare takes LibTorch's");
}

}  // namespace ttc
