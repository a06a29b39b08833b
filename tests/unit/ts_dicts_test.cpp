// Dicts of TorchScript: as inputs and outputs, iterated over, changed in loops and branches; values that may be None.
// Each module is run as it is, as it is written again, and as that is read and written once more. The files are made by
// tests/data/ts/make.py.
#include <filesystem>
#include <unistd.h>

#include "torch/cpu_op.h"
#include "executor/executor.h"
#include "formats/model_file.h"
#include "formats/seal.h"
#include "ir/manifest_name.h"
#include "session/input_places.h"
#include "support/error.h"
#include "tests/catch.h"
#include "tests/unit/host_values.h"
#include "torchscript/read.h"
#include "torchscript/write.h"

using namespace ttc;
using ttrt::RtValue;
using ttrt::test::floats;
using ttrt::test::tensor;

namespace {

struct WrittenFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("ttc_dicts_" + std::to_string(::getpid()) + ".pt")).string();
  ~WrittenFile() { std::filesystem::remove(path); }
};

std::unique_ptr<ir::Model> load(const std::string& path) {
  ttrt::install_torch_schemas();
  auto model = load_model(path);
  CHECK(ir::verify(*model) == std::vector<std::string>{});
  return model;
}

// The tensors of a value in order, texts and numbers of pairs left out.
void collect(const RtValue& value, std::vector<std::vector<float>>& out) {
  if (value.get_if<ttrt::HostTensor>()) out.push_back(floats(value));
  if (const auto* items = value.get_if<RtValue::List>())
    for (const RtValue& item : *items) collect(item, out);
}

using Given = std::vector<std::pair<std::string, std::vector<float>>>;
using Tensors = std::vector<std::vector<float>>;

Tensors outputs_of(const std::string& path, const Given& given, const std::vector<std::int64_t>& numbers) {
  auto model = load(path);
  std::vector<std::string> names;
  for (const auto& [name, values] : given) names.push_back(name);
  std::vector<RtValue> inputs(ttrt::user_inputs(*model).size());
  const InputPlaces places(*model, names);
  for (const auto& [name, values] : given) {
    INFO(name);
    const auto place = places.find(name);
    REQUIRE(place);
    places.put(inputs, *place, tensor({static_cast<std::int64_t>(values.size())}, values));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) inputs[inputs.size() - numbers.size() + i] = numbers[i];
  ttrt::Executor executor(std::move(model), {.mode = ttrt::Mode::cpu});
  Tensors out;
  for (const RtValue& value : executor.run(std::move(inputs))) collect(value, out);
  return out;
}

void expect(const std::string& name, const Given& given, const Tensors& wanted,
            const std::vector<std::int64_t>& numbers = {}) {
  INFO(name);
  WrittenFile once, twice;
  twice.path += ".again";
  write_torchscript(*load("tests/data/ts/" + name), once.path);
  write_torchscript(*load(once.path), twice.path);
  for (const std::string& path : {"tests/data/ts/" + name, once.path, twice.path}) {
    INFO(path);
    CHECK(outputs_of(path, given, numbers) == wanted);
  }
}

}  // namespace

TEST_CASE("torchscript: a dict whose keys only the caller knows goes in and comes out") {
  expect("iterated.pt", {{"given.x", {1, 2}}, {"given.y", {3, 4}}, {"by_number.7", {5, 6}}, {"by_number.9", {2, 2}}},
         {{5, 6}, {10, 20}, {30, 40}, {240, 272}});
  expect("iterated.pt", {{"given.nothing", {1, 2}}, {"by_number.7", {5, 6}}}, {{5, 6}, {10, 20}, {1, 2}});
  const auto model = load("tests/data/ts/iterated.pt");
  CHECK(model->graph->inputs()[0].value->type.str() == "dict<str, tensor>");
  CHECK(model->graph->inputs()[1].value->type.str() == "dict<int, tensor>");
  CHECK_THROWS_AS(outputs_of("tests/data/ts/iterated.pt", {{"given.x", {1, 2}}, {"by_number.9", {5, 6}}}, {}), Error);
  CHECK_THROWS_AS(outputs_of("tests/data/ts/iterated.pt", {{"by_number.nine", {5, 6}}}, {}), Error);
}

TEST_CASE("torchscript: dicts in a list, lists and tuples in dicts") {
  expect("pages.pt", {{"pages.0.a", {1}}, {"pages.0.b", {2}}, {"pages.1.a", {3}}, {"pages.1.b", {4}}},
         {{3}, {1}, {7}, {3}, {0}, {1}, {4}, {1}, {2}});
}

TEST_CASE("torchscript: dicts that loops and branches change") {
  expect("kept.pt", {{"x", {1, 2}}}, {{6, 12}, {21, 33}, {2, 4}, {3, 6}, {1, 2}}, {2});
  expect("kept.pt", {{"x", {-1, -2}}}, {{-1, -2}, {-3, -15}, {-2, -4}, {-3, -6}}, {0});
}

TEST_CASE("torchscript: items of dicts that may be None") {
  expect("perhaps.pt", {{"x", {1, 2}}, {"given.a.b", {3, 4}}}, {{38, 54}, {2, 4}, {2, 3}, {4, 6}}, {2});
  expect("perhaps.pt", {{"x", {1, 2}}, {"given.a.c", {5, 6}}}, {{21, 27}, {2, 4}}, {1});
  WrittenFile written;
  write_torchscript(*load("tests/data/ts/perhaps.pt"), written.path);
  for (const std::string& path : {std::string("tests/data/ts/perhaps.pt"), written.path}) {
    const auto model = load(path);
    CHECK(model->graph->inputs()[1].value->type.str() == "dict<str, dict<str, tensor?>>");
    CHECK(ir::parse(ir::print(*model))->graph->inputs()[1].value->type.elements[1].elements[1].optional);
  }
}

TEST_CASE("torchscript: what is None until a branch or a loop has made it") {
  expect("absent.pt", {{"x", {1, 2}}}, {{3, 5}, {7, 14}, {2, 4}}, {3});
  expect("absent.pt", {{"x", {-1, -2}}}, {{-1, -2}, {-101, -102}}, {0});
  expect("absent.pt", {{"x", {1, 2}}}, {{3, 5}, {1, 2}, {2, 4}}, {1});
}

TEST_CASE("torchscript: what is sealed as it is written reads back the same, branches and loops too") {
  WrittenFile file;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/ts")) {
    if (entry.path().extension() != ".pt") continue;
    INFO(entry.path().string());
    auto model = load(entry.path().string());
    model->extra[std::string(manifest_name)] = "{}";
    write_torchscript(*model, file.path);
    const auto again = load(file.path);
    const auto stated = seal_in_manifest(*again);
    REQUIRE(stated);
    CHECK(stated->graph == seal_of(*again).graph);
  }
}
