// Outputs of two runs of a model, compared.
#pragma once

#include <vector>

#include "device/metrics.h"
#include "ops/value.h"
#include "support/error.h"
#include "tests/catch.h"

namespace ttrt::test {

// Throws ttc::Error where the value is no tensor of the host.
inline const HostTensor& tensor(const RtValue& value) {
  const auto* host = value.get_if<HostTensor>();
  if (host == nullptr) throw ttc::usage_error("the value is no tensor of the host");
  return *host;
}

// Sizes and dtypes are alike, NaN and infinities where they are expected, integers and masks equal, and no float is
// further off than `tolerance` times the largest.
inline void expect_close(const std::vector<RtValue>& actual, const std::vector<RtValue>& expected, double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const HostTensor &a = tensor(actual[i]), &e = tensor(expected[i]);
    INFO("output " << i);
    REQUIRE(a.sizes == e.sizes);
    CHECK(a.dtype == e.dtype);
    const Metrics metrics = compare(a, e);
    INFO("pcc " << metrics.pcc << " max_abs " << metrics.max_abs << " max_rel " << metrics.max_rel);
    CHECK(metrics.nan == 0);
    if (ttc::is_floating(e.dtype))
      CHECK(metrics.max_rel <= tolerance);
    else
      CHECK(metrics.equal);
  }
}

}  // namespace ttrt::test
