// The replay engine: recorded cases bit-exact, its judgement, and what it does with cases it does not know.
#include "replay/replay.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "device/tile_formats.h"
#include "formats/safetensors.h"
#include "support/error.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::replay;
namespace fs = std::filesystem;

namespace {

const std::string golden = std::string(TTC_TEST_DATA) + "/golden";
struct TempDir {
  fs::path path = fs::temp_directory_path() / ("replay_test_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)));
  TempDir() { fs::create_directories(path); }
  ~TempDir() { fs::remove_all(path); }
};

ttc::ir::Weight f32_array(const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return ttc::ir::make_weight(DType::f32, shape, bytes);
}

ttc::Json tensor_json(const std::string& name, const std::string& dtype) {
  ttc::Json t = {{"shape", {1, 4}}, {"dtype", dtype}, {"layout", "TILE"}};
  if (!name.empty()) t["name"] = name;
  return t;
}

struct Recorded {
  std::string name;  // "" of a result
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

void write_case(const fs::path& file, const std::string& op, const ttc::Json& params,
                const std::vector<Recorded>& inputs, const Recorded& result) {
  ttc::SafeTensors content;
  ttc::Json described = {{"name", "made"}, {"op", op}, {"arch", "wh"}, {"params", params}};
  const auto tensor = [](const Recorded& t) {
    return ttc::Json{{"name", t.name}, {"shape", t.shape}, {"dtype", "bfloat16"}, {"layout", "TILE"}};
  };
  for (const Recorded& t : inputs) {
    content.tensors["in_" + t.name] = f32_array(t.shape, t.values);
    described["inputs"].push_back(tensor(t));
  }
  content.tensors["out0"] = f32_array(result.shape, result.values);
  described["outputs"] = {tensor(result)};
  content.metadata["case"] = described.dump();
  ttc::write_safetensors(file.string(), content);
}

// One file with a, b = 2 and the expected sum as given.
void write_case(const fs::path& file, const std::string& op, const ttc::Json& params,
                const std::vector<float>& expected) {
  ttc::SafeTensors content;
  content.tensors["in_a"] = f32_array({1, 4}, {1, 2, 3, 4});
  content.tensors["in_b"] = f32_array({1, 4}, {2, 2, 2, 2});
  content.tensors["out0"] = f32_array({1, 4}, expected);
  const ttc::Json described = {{"name", "made"},
                               {"op", op},
                               {"arch", "wh"},
                               {"params", params},
                               {"inputs", {tensor_json("a", "bfloat16"), tensor_json("b", "bfloat16")}},
                               {"outputs", {tensor_json("", "bfloat16")}}};
  content.metadata["case"] = described.dump();
  ttc::write_safetensors(file.string(), content);
}

}  // namespace

TEST_CASE("every recorded case is bit-exact") {
  const auto results = replay_directory(golden, {});
  CHECK(results.size() >= 62);
  for (const CaseResult& r : results) {
    INFO(r.id << ": " << r.mismatches << " of " << r.elements << " differ, " << r.reason);
    CHECK(r.status == Status::bit_exact);
  }
}

TEST_CASE("fast numerics stay within the correlation limit of every recorded case") {
  Options options;
  options.numerics = Numerics::fast;
  for (const CaseResult& r : replay_directory(golden, options)) {
    INFO(r.id << " pcc " << r.pcc << " " << r.reason);
    CHECK(r.status != Status::unsupported);
    CHECK(r.pcc >= 0.9995);
    CHECK(r.status != Status::failed);
  }
}

TEST_CASE("the distance between fast and exact numerics is measured on the recorded inputs, per op") {
  Options options;
  options.numerics = Numerics::fast;
  options.against = Numerics::exact;
  const auto results = replay_directory(golden, options);
  for (const CaseResult& r : results) {
    INFO(r.id << " pcc " << r.pcc << " " << r.reason);
    CHECK(r.status != Status::unsupported);
    CHECK(r.pcc >= 0.9995);
  }
  const auto ops = summarise(results);
  const auto of = [&](const std::string& op) {
    return *std::find_if(ops.begin(), ops.end(), [&](const OpSummary& s) { return s.op == op; });
  };
  CHECK(of("permute").bit_exact == of("permute").cases);
  CHECK(of("permute").max_ulp == 0);
  CHECK(of("matmul").mismatches > 0);
  CHECK(of("matmul").min_pcc < 1);
  CHECK(of("matmul").mean_ulp > 0);
  CHECK(of("add").max_ulp <= 1);
  CHECK(report(results)["ops"].size() == ops.size());

  options.numerics = Numerics::exact;
  for (const CaseResult& r : replay_directory(golden, options)) CHECK(r.bit_exact);
}

TEST_CASE("a result is judged by its distance") {
  TempDir dir;
  write_case(dir.path / "equal.safetensors", "add", ttc::Json::object(), {3, 4, 5, 6});
  write_case(dir.path / "near.safetensors", "add", ttc::Json::object(), {3, 4, 5, 6.03125F});
  write_case(dir.path / "wrong.safetensors", "add", ttc::Json::object(), {3, 4, 5, -6});
  const auto results = replay_directory(dir.path.string(), {});
  REQUIRE(results.size() == 3);
  CHECK(results[0].status == Status::bit_exact);
  CHECK(results[0].pcc == Approx(1.0));
  CHECK(results[1].status == Status::within_tolerance);
  CHECK(results[1].max_ulp == 1.0);
  CHECK(results[1].mismatches == 1);
  CHECK(results[1].max_abs == Approx(0.03125));
  CHECK(results[2].status == Status::failed);
  const ttc::Json json = report(results);
  CHECK(json["totals"]["cases"] == 3);
  CHECK(json["totals"]["failed"] == 1);
  CHECK(json["cases"][1]["id"] == "near");
}

TEST_CASE("what a case does not determine is counted apart, and hides nothing that it does") {
  TempDir dir;
  const Recorded x{"x", {1, 3}, {1, 2, -3}};
  const auto write = [&](const char* name, std::vector<float> recorded) {
    write_case(dir.path / name, "asin", ttc::Json::object(), {x}, {"", {1, 3}, std::move(recorded)});
  };
  write("a.safetensors", {1.5703125F, 0.25F, -0.5F});  // asin(1), and what lay there
  write("b.safetensors", {1.5F, 0.25F, -0.5F});
  const auto results = replay_directory(dir.path.string(), {});
  INFO(results[0].reason << ", " << results[0].max_ulp << " ulp");
  CHECK(results[0].status == Status::undetermined);
  CHECK((results[0].undetermined == 2 && results[0].mismatches == 0 && !results[0].bit_exact));
  CHECK(results[0].reason.starts_with("2 elements: out of the domain"));
  CHECK(results[1].status == Status::failed);
  CHECK(report(results)["totals"]["undetermined"] == 1);
  // Beside other numerics of our own, every element counts.
  Options options;
  options.against = Numerics::exact;
  for (const CaseResult& r : replay_directory(dir.path.string(), options)) CHECK(r.bit_exact);
}

TEST_CASE("rows without elements are computed, a result of nothing has its reason") {
  TempDir dir;
  write_case(dir.path / "a.safetensors", "softmax", {{"dim", -1}}, {{"x", {0, 5}, {}}}, {"", {0, 5}, {}});
  write_case(dir.path / "b.safetensors", "layer_norm", {{"epsilon", 1e-5}}, {{"x", {3, 0}, {}}}, {"", {3, 0}, {}});
  write_case(dir.path / "c.safetensors", "sum", {{"dim", 1}, {"keepdim", true}}, {{"x", {0, 5}, {}}}, {"", {0, 1}, {}});
  write_case(dir.path / "d.safetensors", "sum", {{"dim", 1}, {"keepdim", true}}, {{"x", {1, 0}, {}}},
             {"", {1, 1}, {0}});
  const auto results = replay_directory(dir.path.string(), {});
  REQUIRE(results.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) CHECK(results[i].status == Status::bit_exact);
  CHECK(results[3].status == Status::unsupported);
  CHECK(results[3].reason.find("a sum of nothing") != std::string::npos);
}

TEST_CASE("a bfloat16 NaN of a case came to the device without its sign") {
  TempDir dir;
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  write_case(dir.path / "neg.safetensors", "neg", ttc::Json::object(), {{"x", {1, 3}, {nan, -nan, 1}}},
             {"", {1, 3}, {-inf, -inf, -1}});
  CHECK(replay_directory(dir.path.string(), {}).at(0).status == Status::bit_exact);
}

TEST_CASE("an unknown op or parameter is unsupported with a reason, never passed") {
  TempDir dir;
  write_case(dir.path / "op.safetensors", "no_such_op", ttc::Json::object(), {3, 4, 5, 6});
  write_case(dir.path / "param.safetensors", "add", {{"no_such_parameter", 1}}, {3, 4, 5, 6});
  write_case(dir.path / "shape.safetensors", "matmul", ttc::Json::object(), {3, 4, 5, 6});
  for (const CaseResult& r : replay_directory(dir.path.string(), {})) {
    CHECK(r.status == Status::unsupported);
    CHECK_FALSE(r.reason.empty());
    CHECK_FALSE(r.bit_exact);
  }
  CHECK(find_runner("no_such_op") == nullptr);
  CHECK(find_runner("matmul") != nullptr);
}

TEST_CASE("an error of the op fails its case only") {
  TempDir dir;
  write_case(dir.path / "a.safetensors", "slice", {{"start", {0, 0}}, {"end", {1, 9}}}, {3, 4, 5, 6});
  write_case(dir.path / "b.safetensors", "add", ttc::Json::object(), {3, 4, 5, 6});
  const auto results = replay_directory(dir.path.string(), {});
  REQUIRE(results.size() == 2);
  CHECK(results[0].status == Status::failed);
  CHECK_FALSE(results[0].reason.empty());
  CHECK(results[1].status == Status::bit_exact);
}

TEST_CASE("a broken case file is a failed case, an unknown array type an unsupported one") {
  TempDir dir;
  CHECK_THROWS_AS(replay_directory(dir.path.string(), {}), ttc::Error);
  CHECK_THROWS_AS(replay_directory((dir.path / "absent").string(), {}), ttc::Error);
  const fs::path file = dir.path / "case.safetensors";
  write_case(file, "add", ttc::Json::object(), {3, 4, 5, 6});
  std::ifstream in(file, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  write_case(dir.path / "next.safetensors", "add", ttc::Json::object(), {3, 4, 5, 6});
  const auto status_of = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    const auto results = replay_directory(dir.path.string(), {});
    REQUIRE(results.size() == 2);
    CHECK(results[0].id == "case");
    CHECK(results[0].reason.empty() == results[0].bit_exact);
    CHECK(results[1].bit_exact);
    return results[0].status;
  };
  const auto fails_on = [&](const std::string& bytes) { return status_of(bytes) == Status::failed; };
  CHECK(fails_on(good.substr(0, good.size() - 3)));
  CHECK(fails_on(good.substr(0, 20)));
  std::string shape = good;
  shape.replace(shape.find("\\\"shape\\\":[1,4]"), 15, "\\\"shape\\\":[1,5]");
  CHECK(fails_on(shape));
  std::string dtype = good;
  dtype.replace(dtype.find("bfloat16"), 8, "bfloat17");
  CHECK(status_of(dtype) == Status::unsupported);
  CHECK(status_of(good) == Status::bit_exact);
}

TEST_CASE("operands that broadcast, and variances over any dims, are replayed") {
  const TempDir dir;
  const Recorded x{"x", {2, 1, 2}, {0, 2, 4, 6}};
  const ttc::Json population = {{"correction", false}};
  const auto over = [&](const ttc::Json& dims) {
    ttc::Json params = population;
    params["dim"] = dims;
    return params;
  };
  write_case(dir.path / "a.safetensors", "ldexp", ttc::Json::object(),
             {{"a", {2, 2}, {1, 2, 3, 4}}, {"b", {2}, {1, 2}}}, {"", {2, 2}, {2, 8, 6, 16}});
  write_case(dir.path / "b.safetensors", "addcmul", ttc::Json::object(),
             {{"a", {2, 1}, {1, 2}}, {"b", {2, 2}, {1, 2, 3, 4}}, {"c", {1, 2}, {1, 2}}}, {"", {2, 2}, {2, 5, 5, 10}});
  write_case(dir.path / "c.safetensors", "var", population, {x}, {"", {}, {5}});
  write_case(dir.path / "d.safetensors", "var", over({0, -1}), {x}, {"", {1}, {5}});
  write_case(dir.path / "e.safetensors", "var", over({0}), {x}, {"", {1, 2}, {4, 4}});
  write_case(dir.path / "f.safetensors", "std", over(2), {x}, {"", {2, 1}, {1, 1}});
  write_case(dir.path / "g.safetensors", "var", over({3}), {x}, {"", {2, 1}, {1, 1}});
  write_case(dir.path / "h.safetensors", "ldexp", ttc::Json::object(), {{"a", {3}, {1, 2, 3}}, {"b", {2}, {1, 2}}},
             {"", {3}, {1, 2, 3}});
  for (const CaseResult& r : replay_directory(dir.path.string(), {})) {
    INFO(r.id << " " << r.reason);
    const bool fits = !r.id.starts_with("g") && !r.id.starts_with("h");
    CHECK((r.status == Status::bit_exact) == fits);
    CHECK((r.status == Status::unsupported) == !fits);
  }
}
