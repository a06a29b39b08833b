// The ATen operators that exports of models contain, one graph each, in tests/data/aten_ops.ir. Each runs on the device
// and gives what LibTorch gives, or stays on the host for a reason that says more than that there is no kernel. The
// file says which of the two: "// EXPECT device" or "// EXPECT host". TTC_UPDATE=1 writes there what is so now.
#include <fstream>

#include "pipeline.h"
#include "support/error.h"
#include "tests/golden.h"
#include "tests/outputs.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

struct Entry {
  std::string graph, place;
};

std::string data_file() { return std::string(TTC_SOURCE_ROOT) + "/tests/data/aten_ops.ir"; }

std::vector<Entry> entries() {
  std::ifstream file(data_file());
  REQUIRE(file);
  std::vector<Entry> out;
  std::string line, graph;
  const std::string mark = "// EXPECT ";
  while (std::getline(file, line)) {
    if (line.starts_with(mark)) {
      out.push_back({graph, line.substr(mark.size())});
      graph.clear();
    } else if (!line.starts_with("//")) {
      graph += line + "\n";
    }
  }
  return out;
}

std::string place_of(const OnDevice& device) { return device.result.fallbacks.empty() ? "device" : "host"; }

void update() {
  std::string text;
  for (const Entry& entry : entries())
    text += entry.graph + "// EXPECT " + place_of(on_device(entry.graph, DataType::float32)) + "\n";
  std::ofstream(data_file()) << text;
}

bool says_why(const ttc::Fallback& fallback) {
  const std::string& detail = fallback.reason.detail;
  return !detail.empty() && detail != "no device kernel for " + fallback.op;
}

void check(const Entry& entry) {
  const OnDevice device = on_device(entry.graph, DataType::float32);
  INFO(device.result.summary());
  for (const ttc::Fallback& fallback : device.result.fallbacks) {
    INFO(fallback.op << ": " << fallback.reason.text());
    CHECK(says_why(fallback));
  }
  CHECK(device.result.nodes.device + device.result.nodes.cpu == device.result.nodes.total);
  CHECK(place_of(device) == entry.place);
  if (entry.place != "device") return;
  const auto inputs = inputs_of(*parse_text(entry.graph), {.first = 0, .last = 3, .scale = 0});
  const auto expected = in_torch(entry.graph)->run(inputs), actual = device.executor->run(inputs);
  CHECK(device.executor->fallback_failures().empty());
  expect_close(actual, expected, 0.01);
}

}  // namespace

TEST_CASE("every ATen operator of exported models runs on the device or says why not", "[audit]") {
  if (update_expected()) update();
  const std::vector<Entry> all = entries();
  CHECK(all.size() > 450);
  for (const Entry& entry : all) {
    INFO(entry.graph);
    REQUIRE_NOTHROW(check(entry));
  }
}

TEST_CASE("an operator that nobody thought of is not explained", "[audit]") {
  const OnDevice device = on_device(R"(graph main(%a: f32[4, 4] user) {
  %y: f32[4, 6] = aten.fft_hfft.default(%a)
  %z: f32[4, 6] = aten._adaptive_avg_pool2d_backward.default(%a, %y)
  return %z
})",
                                    DataType::float32);
  REQUIRE(device.result.fallbacks.size() == 2);
  CHECK(says_why(device.result.fallbacks[0]));
  CHECK_FALSE(says_why(device.result.fallbacks[1]));
}
