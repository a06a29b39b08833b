// Modules as one: fused projections, and whole modules as one operator of the file, give the bits of the operators one
// by one, in fast and exact numerics.
#include <cstring>
#include <filesystem>
#include <map>

#include <unistd.h>

#include "executor/executor.h"
#include "formats/model_file.h"
#include "formats/safetensors.h"
#include "ir/body.h"
#include "pass/compile.h"
#include "session/cases.h"
#include "session/model_source.h"
#include "session/steps.h"
#include "session/values.h"
#include "tests/catch.h"

namespace {

using namespace ttc;

const std::string folder = std::string(TTC_SOURCE_ROOT) + "/models/";

using Ops = std::map<std::string, int>;

Ops ops_of(const ir::Model& model) {
  Ops out;
  ir::walk(*model.graph, [&](const ir::Node* node) { ++out[node->op()]; });
  return out;
}

struct Made {
  std::shared_ptr<ir::Model> model;
  CompileResult result;
};

Made make(const std::string& name, const CompileOptions& options, const PassManagerOptions& passes = {}) {
  Made out{.model = load(folder + name + ".pt2"), .result = {}};
  out.result = compile(*out.model, options, passes);
  return out;
}

std::vector<ttrt::HostTensor> outputs(const std::shared_ptr<const ir::Model>& model, const std::string& name,
                                   ttrt::Numerics numerics) {
  const std::string io = folder + name + ".io.safetensors";
  InputOptions given = ways_to_call(read_safetensors(io)).front();
  given.io = io;
  const std::vector<Case> cases = load_cases(*model, given);
  ttrt::Executor executor(model, {.numerics = numerics});
  StepRunner steps(executor, cases);
  std::vector<ttrt::HostTensor> out;
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (const ttrt::RtValue& value : flat_outputs(steps.run(i))) {
      const auto tensor = as_tensor(value);
      REQUIRE(tensor.has_value());
      out.push_back(contiguous(*tensor));
    }
  CHECK(executor.fallback_failures().empty());
  return out;
}

void expect_same_bits(const std::vector<ttrt::HostTensor>& a, const std::vector<ttrt::HostTensor>& b) {
  REQUIRE(a.size() == b.size());
  REQUIRE(!a.empty());
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].nbytes() == b[i].nbytes());
    CHECK(std::memcmp(a[i].data, b[i].data, static_cast<std::size_t>(a[i].nbytes())) == 0);
  }
}

constexpr const char* qkv = "tt.split_query_key_value_and_heads";

}  // namespace

TEST_CASE("fused projections give the bits of the layers one by one") {
  const auto [name, fused, saved] = GENERATE(std::tuple("vit_small", 2, 4), std::tuple("llama_small_kv", 2, 4),
                                             std::tuple("owlvit_small", 4, 8), std::tuple("speecht5_tts", 6, 10));
  const auto format = GENERATE(ttrt::DataType::bfloat16, ttrt::DataType::bfloat8_b);
  INFO(name << " " << ttrt::to_string(format));
  CompileOptions options;
  options.weight_format = {{"*", format}};
  PassManagerOptions one_by_one;
  one_by_one.disable = {"fuse-projections"};
  const Made as_one = make(name, options), apart = make(name, options, one_by_one);
  CHECK(ops_of(*as_one.model)[qkv] == fused);
  CHECK(ops_of(*as_one.model)["tt.linear"] == ops_of(*apart.model)["tt.linear"] - saved);
  CHECK(as_one.result.modules.size() == apart.result.modules.size());  // each layer under its own name
  CHECK(as_one.result.nodes == apart.result.nodes);
  for (const ttrt::Numerics numerics : {ttrt::Numerics::fast, ttrt::Numerics::exact})
    expect_same_bits(outputs(as_one.model, name, numerics), outputs(apart.model, name, numerics));
}

TEST_CASE("whole modules are one operator of the file, and give the bits of their parts") {
  const auto [name, whole] =
      GENERATE(std::pair("vit_small", Ops{{"tt.self_attention", 2}, {"tt.mlp", 2}}),
               std::pair("llama_small_kv", Ops{{"tt.self_attention", 2}, {"tt.mlp", 2}}),
               std::pair("speecht5_tts", Ops{{"tt.self_attention", 4}, {"tt.cross_attention", 2}, {"tt.mlp", 4}}));
  INFO(name);
  CompileOptions options;
  options.replace = {{map_entry("*Attention", "TTNNWhisperAttention"), map_entry("*MLP", "TTNNMLP"),
                      map_entry("*FeedForward", "TTNNMLP")},
                     {map_entry("torch.nn.Linear", "TTNNLinear"), map_entry("torch.nn.LayerNorm", "TTNNLayerNorm")}};
  const Made made = make(name, options);
  for (const auto& miss : made.result.near_misses()) UNSCOPED_INFO(miss.pass << " " << miss.reason.detail);
  for (const auto& [op, count] : whole) CHECK(ops_of(*made.model)[op] == count);
  const auto file = std::filesystem::temp_directory_path() / ("modules_" + std::to_string(getpid()) + ".pt2");
  save_model(*made.model, file);
  const std::shared_ptr<const ir::Model> loaded = load(file.string());
  std::filesystem::remove(file);  // its pages stay mapped
  CHECK(ops_of(*loaded) == ops_of(*made.model));
  PassManagerOptions one_by_one;
  one_by_one.disable = {"whole-modules"};
  const Made apart = make(name, options, one_by_one);
  CHECK(made.result.nodes == apart.result.nodes);
  const auto expected = outputs(apart.model, name, ttrt::Numerics::fast);
  expect_same_bits(outputs(made.model, name, ttrt::Numerics::fast), expected);
  expect_same_bits(outputs(loaded, name, ttrt::Numerics::fast), expected);
}
