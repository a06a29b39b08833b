// Which thresholds hold where none are given, and what a wrong shape is called.
#include "session/checks.h"

#include "session/values.h"

namespace ttc {

using ttrt::RtValue;

namespace {

// An error at most twice as large, which is 20 log10(2) = 6.02 dB of signal over noise.
bool as_good_as(const ttrt::Metrics& metrics, const std::optional<ttrt::Metrics>& baseline) {
  return baseline && baseline->nan >= metrics.nan && metrics.snr_db >= baseline->snr_db - 6.02;
}

}  // namespace

std::vector<Check> check_outputs(const Case& expected, const std::vector<RtValue>& given, const Thresholds& thresholds,
                                 bool approximate) {
  const std::vector<RtValue> outputs = flat_outputs(given);
  const bool defaults = !thresholds.pcc && !thresholds.atol && !thresholds.rtol;
  const double atol = thresholds.atol.value_or(thresholds.rtol ? 0 : 1e-4),
               rtol = thresholds.rtol.value_or(thresholds.atol ? 0 : 1e-4);
  const double pcc = thresholds.pcc.value_or(0.99);
  const bool need_close = thresholds.atol || thresholds.rtol || (defaults && !approximate);
  const bool need_pcc = thresholds.pcc || (defaults && approximate);
  std::vector<Check> checks;
  for (std::size_t i = 0; i < expected.expected.size(); ++i) {
    if (!expected.expected[i]) continue;
    Check check{.output = (expected.name.empty() ? "" : expected.name + ".") + "out" + std::to_string(i),
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
      const bool correlates = check.metrics.correlates(pcc) || as_good_as(check.metrics, check.baseline);
      check.pass =
          (!need_close || check.allclose) && (!need_pcc || correlates) && (check.metrics.nan == 0 || check.allclose);
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace ttc
