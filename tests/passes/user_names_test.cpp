// What users' names match, and which of them match nothing.
#include "pass/user_names.h"

#include "ir/model.h"
#include "tests/catch.h"

using namespace ttc;

namespace {

ir::Provenance in_module(const char* path, const char* klass) {
  ir::Provenance out;
  out.module_path = path;
  out.module_class = klass;
  out.stack = {{"", "my.Model"}, {"layer.0", "my.Layer"}, {path, klass}};
  return out;
}

// A graph of a linear layer and its activation, not compiled.
std::unique_ptr<ir::Model> model() {
  return ir::parse(R"(model {}
graph main(%x: f32[2, 64] user, $w: f32[64, 64] parameter "w" = splat(0.5)) {
  %y: f32[2, 64] = aten.linear.default(%x, $w)  @layer.0.dense : torch.nn.modules.linear.Linear
  %z: f32[2, 64] = aten.gelu.default(%y)  @act : torch.nn.modules.activation.GELU
  return %z
}
)",
                   "test");
}

std::vector<std::string> texts(const std::vector<UserNames::Idle>& idle) {
  std::vector<std::string> out;
  for (const UserNames::Idle& one : idle) out.push_back(one.text() + "; " + one.hint);
  return out;
}

}  // namespace

TEST_CASE("a class is named in full, by torch.nn, or by its last part") {
  const ir::Provenance where = in_module("layer.0.dense", "torch.nn.modules.linear.Linear");
  for (const char* key : {"torch.nn.modules.linear.Linear", "torch.nn.Linear", "Linear", "*.Linear", "torch.*"})
    CHECK(names_module(key, where));
  for (const char* key : {"other.Linear", "Linea", "torch.nn.GELU", "linear.Linear"})
    CHECK_FALSE(names_module(key, where));
}

TEST_CASE("a module is named by its path, and by those it is in") {
  const ir::Provenance where = in_module("layer.0.dense", "torch.nn.modules.linear.Linear");
  for (const char* key : {"module:layer.0.dense", "module:layer.*", "module:layer.0", "my.Layer"})
    CHECK(names_module(key, where));
  CHECK_FALSE(names_module("module:layer.1*", where));
  CHECK_FALSE(names_module("layer.0.dense", where));  // no path without "module:"
  CHECK(inside("layer.0", where));
  CHECK_FALSE(inside("layer", where));
}

TEST_CASE("an operator is named in full, by its middle, or by what serves it") {
  CHECK(names_op("aten.gelu.default", "aten.gelu.default", ""));
  CHECK(names_op("gelu", "aten.gelu.default", ""));
  CHECK(names_op("tt.gelu", "aten.gelu.default", "tt.gelu"));
  CHECK(names_op("ge*", "aten.gelu.default", ""));
  CHECK_FALSE(names_op("tt.gelu", "aten.gelu.default", ""));
  CHECK_FALSE(names_op("default", "aten.gelu.default", ""));
  CHECK_FALSE(names_op("", "aten.gelu.default", ""));
}

TEST_CASE("names that match nothing are told with what is near") {
  const auto given = model();
  UserNames names;
  names.collect(*given->graph, true);
  CompileOptions options;
  options.exclude = {"layer.0.dense", "layer.0.dnese", "zzzzzzzz"};
  options.fallback_ops = {"gelu", "tt.linear", "aten.gleu.default"};
  options.fallback_nodes = {"z", "nonesuch*"};
  CHECK(
      texts(names.idle(options, *given, {})) ==
      std::vector<std::string>{"--exclude layer.0.dnese matches no module of the model; did you mean 'layer.0.dense'?",
                               "--exclude zzzzzzzz matches no module of the model; there are act, layer.0.dense",
                               "--fallback-op aten.gleu.default matches no operator of the model; did you mean "
                               "'aten.gelu.default'?",
                               "--fallback-node nonesuch* matches no node of the model; there are y, z"});
}

TEST_CASE("a replacement that replaces nothing, and choices for modules without a device operator") {
  const auto given = model();  // nothing of it is on the device
  UserNames names;
  names.collect(*given->graph, true);
  CompileOptions options;
  options.replace = {{map_entry("Linear", "tt.linear"), map_entry("Linaer", "TTNNLinear")}};
  options.weight_format = {{"layer.*", ttrt::DataType::bfloat8_b}};
  const std::vector<std::string> idle = texts(names.idle(options, *given, {}));
  REQUIRE(idle.size() == 3);
  CHECK(idle[0] ==
        "--replace Linear=tt.linear replaces nothing: no operator there becomes tt.linear; ttc check says why");
  CHECK(idle[1] == "--replace Linaer=TTNNLinear matches no class of the model's modules; did you mean 'Linear'?");
  CHECK(idle[2].starts_with("--weight-dtype layer.* matches no module on the device that has packed weights"));
}
