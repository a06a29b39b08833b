// What a model would cost and hold on a device, from its structure alone.
#include "session/device_profile.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "session/fit_options.h"
#include "tests/catch.h"

namespace {

using namespace ttc;

// Three layers of 8 GB in bfloat16 and no byte of them.
const char* const giant = R"(graph main(%x: bf16[64, 32768] user,
    $a.weight: bf16[131072, 32768] parameter "a.weight", $b.weight: bf16[32768, 131072] parameter "b.weight") {
  %1: bf16[64, 131072] = aten.linear.default(%x, $a.weight)  @a : Linear
  %2: bf16[64, 131072] = aten.relu.default(%1)  @act : ReLU
  %3: bf16[64, 32768] = aten.linear.default(%2, $b.weight)  @b : Linear
  return %3
}
)";

struct File {
  std::string path =
      std::filesystem::temp_directory_path() / ("device_profile_test." + std::to_string(getpid()) + ".ir");
  explicit File(const std::string& text) { std::ofstream(path) << text; }
  ~File() { std::filesystem::remove(path); }
};

DeviceProfile profile_of(const std::string& path, const CompileSettings& settings) {
  const Compiled made = compile_source(ModelSource(path), settings);
  return profile_device(*made.model, made.profile, made.shapes);
}

}  // namespace

TEST_CASE("a profile's parts add up, and its memory is what lives at a time", "[profile]") {
  const File file(giant);
  const DeviceProfile p = profile_of(file.path, {});
  double us = 0, by_bound = 0;
  for (const NodeCost& op : p.ops) us += op.time.us;
  for (const double one : p.us_by_bound) by_bound += one;
  CHECK(p.us == Approx(us));
  CHECK(p.us == Approx(by_bound));
  REQUIRE(!p.modules.empty());
  CHECK(p.modules.front().path.empty());
  CHECK(p.modules.front().us == Approx(us));
  CHECK(p.modules.front().peak_us < us);
  CHECK(p.modules.front().peak_us ==
        Approx(p.flops / p.arch.peak_tflops(*ttrt::math_fidelity_from_string(p.ops.at(1).fidelity)) * 1e-6));
  std::int64_t moved = 0;
  for (const NodeCost& op : p.ops) moved += op.dram_bytes;
  CHECK(p.modules.front().dram_bytes == moved);
  CHECK(p.samples == 64);
  const std::int64_t weight = 131072ll * 32768 * 2;
  CHECK(p.weight_bytes == 2 * weight);
  CHECK(p.dram.over_time.size() == p.ops.size());
  CHECK(p.dram.peak == *std::max_element(p.dram.over_time.begin(), p.dram.over_time.end()));  // no gaps here
  CHECK(p.dram.streamed < p.dram.peak - weight / 2);
  CHECK(p.dram.streamed > weight);
  CHECK(p.dram.held.at(0).kind == "weight");
  CHECK(p.dram.held.at(0).bytes == (weight / 2048 + 11) / 12 * 2048 * 12);  // tiles go round the banks
  // The input and its product, which is as wide as the first layer.
  CHECK(p.dram.peak >= 2 * weight + 64 * (32768 + 131072) * 2);
  CHECK(p.dram.peak < 2 * weight + 64 * (32768 + 2 * 131072) * 2 + 4096);
  CHECK(!p.dram.fits());
  for (const NodeCost& op : p.ops) {
    INFO(op.name);
    CHECK(op.useful_bytes <= op.padded_bytes);
    CHECK((op.program.empty() == (op.op != "tt.linear")));
    if (op.split.product)
      CHECK(op.l1_bytes == ttrt::circular_buffers(op.split.product->shape, op.split.product->program));
  }
}

TEST_CASE("compile and profile have one figure of memory", "[profile]") {
  const File file(giant);
  const Compiled made = compile_source(ModelSource(file.path), {});
  const DeviceProfile p = profile_device(*made.model, made.profile, made.shapes);
  CHECK(made.result.memory.dram_peak == p.dram.peak);
  CHECK(made.result.memory.dram_streamed == p.dram.streamed);
  CHECK(made.result.memory.l1_peak == p.l1.peak);
  CHECK(made.result.memory.dram == p.dram.bytes);
  CHECK(made.result.memory.l1 == p.l1.bytes);
  CHECK(p.l1.peak == *std::max_element(p.l1.over_time.begin(), p.l1.over_time.end()));
}

TEST_CASE("what would make a model fit is what makes it fit", "[profile]") {
  const File file(giant);
  const ModelSource source(file.path);
  const std::vector<FitOption> options = fit_options(source, {});
  const auto find = [&](const std::string& flags) {
    const auto at = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.flags == flags; });
    return at == options.end() ? nullptr : &*at;
  };
  const FitOption *format = find("--weight-dtype '*=bfloat8_b'"), *board = find("--arch p150");
  REQUIRE(format != nullptr);
  REQUIRE(board != nullptr);
  CHECK(format->fits());
  CHECK(board->fits());
  CHECK(find("--weight-dtype '*=bfloat4_b'") == nullptr);  // more than is needed
  CHECK(find("--arch e150") == nullptr);                   // has less
  for (const FitOption& option : options) {
    CompileSettings settings;
    if (option.flags.find("bfloat8_b") != std::string::npos) settings.weight_dtype = {"*=bfloat8_b"};
    if (const std::size_t at = option.flags.find("--arch "); at != std::string::npos)
      settings.arch = option.flags.substr(at + 7);
    const DeviceProfile followed = profile_of(file.path, settings);
    INFO(option.flags);
    CHECK(followed.dram.peak == option.needed);
    CHECK(followed.dram.fits() == option.fits());
    CHECK(followed.us == Approx(option.us));
  }
  CompileSettings narrow;
  narrow.weight_dtype = {"*=bfloat8_b"};
  CHECK(profile_of(file.path, narrow).weight_bytes == 2 * 131072ll * 32768 * 1088 / 1024);
}

// A step of a loop whose two caches are handed on: one grows, the model writes the other.
TEST_CASE("a decode step is priced as it is within a loop", "[profile]") {
  const char* const step = R"(graph main(%ids: i64[3, 1] user, %keys: f32[3, 2, 40, 64] user,
    %values: f32[3, 2, 64, 64] user "values", %count: f32[3] user, $e.weight: f32[32, 64] parameter "e.weight") {
  %e: f32[3, 1, 64] = aten.embedding.default($e.weight, %ids)
  %k: f32[3, 1, 1, 64] = aten.unsqueeze.default(%e, 1)
  %k2: f32[3, 2, 1, 64] = aten.cat.default([%k, %k], 1)
  %all: f32[3, 2, 41, 64] = aten.cat.default([%keys, %k2], 2)
  %v: f32[3, 2, 64, 64] = aten.mul.Tensor(%values, %k2)
  %n: f32[3] = aten.add.Tensor(%count, %count)
  return %e, %all, %n, mutation input "values" = %v
}
)";
  const File file(step);
  const DeviceProfile p = profile_of(file.path, {});
  REQUIRE(p.decode);
  CHECK(p.decode->users == 3);
  CHECK(p.decode->caches == 2);  // the count has one dim
  double handed_on = 0;
  int ways = 0;
  for (const NodeCost& op : p.ops)
    if (op.transfer && (op.name.starts_with("keys") || op.name.starts_with("values") || op.name.starts_with("all") ||
                        op.name.starts_with("v_")))
      handed_on += op.time.us, ++ways;
  CHECK(ways == 4);
  CHECK(p.decode->token_us == Approx(p.us - handed_on));
  CHECK(p.decode->tokens_per_s() == Approx(3e6 / p.decode->token_us));
  CHECK(!profile_of(File(giant).path, {}).decode);
}
