// A case of what goes wrong without a word: a graph, the inputs it gets, and why it may stay on the host.
#pragma once

#include "pipeline.h"
#include "support/error.h"
#include "tests/outputs.h"

namespace ttrt::test {

struct Hazard {
  const char* name;
  const char* graph;
  // Part of the reason for which a node stays on the host; "": all nodes run on the device.
  const char* reason = "";
  std::int64_t first = 0, last = 50;  // integers are drawn from [first, last)
  float scale = 1;                    // of floats
  Draw values() const { return {.first = first, .last = last, .scale = scale}; }
};

// How far results may be off in an activation format.
inline double noise(DataType activation) { return activation == DataType::float32 ? 2e-3 : 0.03; }

inline void check_reason(const Hazard& hazard, const ttc::CompileResult& result) {
  const std::string_view reason = hazard.reason;
  INFO(result.summary());
  if (reason.empty()) {
    for (const ttc::Fallback& fallback : result.fallbacks) UNSCOPED_INFO(fallback.op << ": " << fallback.reason.text());
    CHECK(result.nodes.device == result.nodes.total);
    return;
  }
  bool found = false;
  for (const ttc::Fallback& fallback : result.fallbacks) {
    UNSCOPED_INFO(fallback.op << ": " << fallback.reason.text());
    found = found || fallback.reason.text().find(reason) != std::string::npos;
  }
  CHECK(found);
}

inline void check(const Hazard& hazard) {
  const std::string text(hazard.graph);
  const auto reference = in_torch(text);
  const std::vector<RtValue> inputs = inputs_of(*parse_text(text), hazard.values());
  const auto expected = reference->run(inputs);
  for (const DataType activation : {DataType::float32, DataType::bfloat16}) {
    INFO(to_string(activation));
    const OnDevice device = on_device(text, activation);
    check_reason(hazard, device.result);
    expect_close(device.executor->run(inputs), expected, noise(activation));
    CHECK(device.executor->fallback_failures().empty());
  }
}

inline void check(std::span<const Hazard> hazards) {
  for (const Hazard& hazard : hazards) {
    INFO(hazard.name);
    REQUIRE_NOTHROW(check(hazard));
  }
}

}  // namespace ttrt::test
