// The library under tools and public interfaces: files, inputs, settings, compiles, checks, comparisons, folders.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "executor/signature.h"
#include "formats/pt2_write.h"
#include "session/baseline.h"
#include "session/checks.h"
#include "session/compare.h"
#include "session/compile.h"
#include "session/steps.h"
#include "session/support_table.h"
#include "session/values.h"
#include "support/error.h"
#include "support/sha256.h"
#include "tests/catch.h"
#include "tests/unit/host_values.h"
#include "tests/unit/session_test_util.h"

namespace {

namespace fs = std::filesystem;
using namespace ttc;
using ttc::test::models;
using ttc::test::recorded;
using ttrt::HostTensor;
using ttrt::test::floats;
using ttrt::test::tensor;

std::vector<std::byte> bytes_of(const std::string& path) {
  const auto file = MappedFile::open(path);
  return {file->bytes().begin(), file->bytes().end()};
}

Exit code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  return Exit::ok;
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("ttc_session_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("a source is hashed once and gives each reader a graph of its own") {
  const ModelSource source(models + "tiny.pt2");
  CHECK(source.sha256() == sha256_hex(MappedFile::open(models + "tiny.pt2")->bytes()));
  CHECK(&source.sha256() == &source.sha256());
  const auto first = source.read(), second = source.read();
  REQUIRE(ir::print(*first) == ir::print(*second));
  CompileOptions options;
  compile(*first, options);
  CHECK(is_rewritten(*first));
  CHECK_FALSE(is_rewritten(*second));
  CHECK(code_of([] { ModelSource("no such file"); }) == Exit::bad_file);
}

TEST_CASE("a model from memory is the model of the file") {
  for (const char* name : {"vit_small.pt2", "vit_small.pt"}) {
    INFO(name);
    const ModelSource file(models + name), memory("given.model", bytes_of(models + name));
    CHECK(memory.path() == "given.model");
    CHECK(memory.sha256() == file.sha256());
    std::vector<float> outputs[2];
    for (const ModelSource* source : {&file, &memory}) {
      ttrt::Executor executor(source->read(), {.mode = ttrt::Mode::cpu});
      const auto cases = load_cases(executor.model(), recorded("vit_small"));
      outputs[source == &memory] = floats(executor.run(cases[0].inputs).at(0));
    }
    CHECK(outputs[0] == outputs[1]);
  }
  CHECK(code_of([] { ModelSource("nothing", {}); }) == Exit::bad_file);
  CHECK(code_of([] { ModelSource("half", {std::byte{'P'}, std::byte{'K'}}).read(); }) == Exit::bad_file);
}

TEST_CASE("inputs come from recipes, seeds and shapes") {
  const auto model = load(models + "bert_small_dyn.pt2");
  const auto inputs = [&](InputOptions options) { return load_cases(*model, options).at(0).inputs; };
  const std::string name = ttrt::user_inputs(*model).at(0).name;
  InputOptions options;
  options.shapes = {name + "=3x7"};
  options.inputs = {name + "=arange"};
  const auto made = inputs(options);
  CHECK(floats(made[0]) == [] {
    std::vector<float> out(21);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i);
    return out;
  }());
  // A free dim that inputs share has one size.
  CHECK(made[1].get_if<HostTensor>()->sizes.at(1) == 7);
  CHECK(floats(made[1]) == floats(inputs(options)[1]));
  options.seed = 1;
  CHECK(floats(made[1]) != floats(inputs(options)[1]));

  CHECK(code_of([&] { inputs({.inputs = {"nobody=ones"}}); }) == Exit::usage);
  CHECK(code_of([&] { inputs({.inputs = {name + "=twos"}}); }) == Exit::usage);
  CHECK(code_of([&] { inputs({.shapes = {name + "=3xx7"}, .carry = {}}); }) == Exit::usage);
  CHECK(code_of([&] { inputs({.io_prefix = "alt", .inputs = {}}); }) == Exit::usage);
}

TEST_CASE("settings that mean nothing are refused by name") {
  const auto refused = [](auto change) {
    CompileSettings settings;
    change(settings);
    try {
      compile_options(settings);
    } catch (const Error& error) {
      CHECK(error.code() == Exit::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused([](CompileSettings&) {}).empty());
  CHECK(refused([](CompileSettings& s) { s.weight_dtype = {"*=bfloat9"}; }).find("--weight-dtype *=bfloat9") == 0);
  CHECK(refused([](CompileSettings& s) { s.fidelity = {"HiFi5"}; }).find("--fidelity HiFi5") == 0);
  CHECK(refused([](CompileSettings& s) { s.fp32_acc = {"*=maybe"}; }).find("--fp32-acc") == 0);
  CHECK(refused([](CompileSettings& s) { s.replace = {"torch.nn.Linear=tt.linaer"}; }).find("--replace") == 0);
  CHECK_FALSE(refused([](CompileSettings& s) { s.activation_dtype = "bfloat8_b"; }).empty());
  CHECK_FALSE(refused([](CompileSettings& s) { s.arch = "n151"; }).empty());

  CompileSettings settings;
  settings.weight_dtype = {"bfloat8_b", "*head=bfloat4_b"};
  const CompileOptions options = compile_options(settings);
  REQUIRE(options.weight_format.size() == 2);
  CHECK(options.weight_format[0] == std::pair<std::string, ttrt::DataType>{"*", ttrt::DataType::bfloat8_b});
  CHECK(options.weight_format[1].first == "*head");
}

TEST_CASE("a file without shapes is compiled for those that are given, and says so where none are") {
  const ModelSource source(models + "bert_small.pt");
  std::vector<std::string> said;
  const Notes notes{.say = [&](const std::string& line) { said.push_back(line); }, .detail = {}};
  const Compiled without = compile_source(source, {}, notes);
  CHECK(without.result.nodes.device == 0);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("carries no shapes") != std::string::npos);
  CompileSettings settings;
  settings.io = models + "bert_small.io.safetensors";
  const Compiled with = compile_source(source, settings, notes, true);
  CHECK(with.result.nodes.device == with.result.nodes.total);
  CHECK(said.size() == 1);
  CHECK(with.model->extra.at(std::string(manifest_name)).str().find(source.sha256()) != std::string::npos);
}

TEST_CASE("outputs are checked by shape, distance and correlation") {
  Case one;
  one.expected = {tensor({4}, {1, 2, 3, 4})};
  const auto check = [&](const HostTensor& actual, const Thresholds& thresholds, bool approximate) {
    return check_outputs(one, {actual}, thresholds, approximate).at(0);
  };
  const HostTensor near = tensor({4}, {1.01F, 2, 3, 4}), doubled = tensor({4}, {2, 4, 6, 8});
  CHECK(check(tensor({4}, {1, 2, 3, 4}), {}, false).pass);
  CHECK_FALSE(check(near, {}, false).pass);
  CHECK(check(near, {}, true).pass);
  CHECK(check(doubled, {.pcc = 0.9999}, true).pass);  // what a correlation cannot see
  CHECK_FALSE(check(doubled, {.pcc = 0.9999, .atol = 0.1}, true).pass);
  const Check other = check(tensor({2, 2}, {1, 2, 3, 4}), {}, true);
  CHECK_FALSE(other.pass);
  CHECK(other.problem == "is f32[2, 2] where f32[4] is expected");
  CHECK(check_outputs(one, {}, {}, true).at(0).problem == "the model has no such tensor output");
  one.name = "step1";
  CHECK(check_outputs(one, {near}, {}, true).at(0).output == "step1.out0");
}

TEST_CASE("two runs are compared node by node, and the first below a threshold is named") {
  const auto model = compiled_for(ModelSource(models + "vit_small.pt2"), recorded("vit_small"), "n150");
  const auto cases = load_cases(*model, recorded("vit_small"));
  const ttrt::ExecutorOptions subject;
  const ttrt::ExecutorOptions reference{.mode = ttrt::Mode::cpu};
  const Comparison nodes = compare_runs(model, cases, subject, reference);
  REQUIRE(nodes.rows.size() > 20);
  CHECK_FALSE(nodes.first_failure.has_value());
  CHECK(nodes.rows.back().op == "output");
  REQUIRE(nodes.worst.has_value());
  for (const CompareRow& row : nodes.rows) CHECK(nodes.rows[*nodes.worst].metrics.pcc <= row.metrics.pcc);
  const Comparison by_module = compare_runs(model, cases, subject, reference, {.by_module = true, .max_rel = 0.0});
  CHECK(by_module.rows.size() < nodes.rows.size());
  REQUIRE(by_module.first_failure.has_value());
  for (std::size_t i = 0; i < *by_module.first_failure; ++i) CHECK(by_module.rows[i].pass);
  CHECK_FALSE(by_module.rows[*by_module.first_failure].pass);
  const Comparison same = compare_runs(model, cases, subject, subject, {.pcc = 1, .max_rel = 0.0});
  CHECK_FALSE(same.first_failure.has_value());
}

TEST_CASE("a folder's table has a row for each file, whatever is in it") {
  Folder folder;
  for (const char* name : {"tiny.pt2", "vit_small.pt2", "vit_small.io.safetensors"})
    fs::copy_file(models + name, folder.path / name);
  std::ofstream(folder.path / "broken.pt2") << "no archive";
  std::vector<SupportRow> rows;
  for (const std::string& file : model_files(folder.path.string())) rows.push_back(support_row(file, {}, 0.99, true));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].file == "broken.pt2");
  CHECK(rows[0].status == "refused");
  CHECK_FALSE(rows[0].detail.empty());
  CHECK(rows[2].status == "ok");
  CHECK(rows[2].runs == 1);
  CHECK(rows[2].device == rows[2].nodes);
  REQUIRE(rows[2].baseline.has_value());
  CHECK((*rows[2].baseline > 0.999 && *rows[2].baseline < 1));
  CHECK(code_of([&] { model_files((folder.path / "none").string()); }) == Exit::usage);
}

TEST_CASE("LibTorch in bfloat16 says what an output may be off by") {
  const ModelSource source(models + "llama_small_decode.pt2");  // writes its caches in place, step by step
  const auto model = source.read();
  std::vector<Case> cases = load_cases(*model, {.io = models + "llama_small_decode.io.safetensors", .io_steps = true});
  add_baseline(source, cases);
  for (const Case& one : cases) {
    REQUIRE(one.baseline.size() == one.expected.size());
    REQUIRE(one.baseline[0].has_value());
    CHECK(one.baseline[0]->snr_db > 30);
    CHECK(one.baseline[0]->snr_db < 60);  // it was not float32
  }
  // Twice its error passes where the PCC alone would not, three times does not.
  const auto off_by = [&](double factor) {
    const ttrt::HostTensor& expected = *cases[0].expected[0];
    ttrt::HostTensor actual = ttrt::empty_host(DType::f32, expected.sizes);
    double power = 0;
    for (std::int64_t i = 0; i < expected.numel(); ++i) power += std::pow(expected.as<float>()[i], 2.0);
    const double noise = std::sqrt(power / static_cast<double>(expected.numel())) *
                         std::pow(10, -cases[0].baseline[0]->snr_db / 20) * factor;
    for (std::int64_t i = 0; i < expected.numel(); ++i)
      actual.as<float>()[i] = expected.as<float>()[i] + static_cast<float>(i % 2 == 0 ? noise : -noise);
    return check_outputs(cases[0], {actual}, {.pcc = 1.0}, true).at(0).pass;
  };
  CHECK(off_by(1.9));
  CHECK_FALSE(off_by(3));
  // A rewritten model is the device's already.
  Folder folder;
  const Compiled compiled = compile_source(source, {});
  write_pt2(*compiled.model, folder.path / "rewritten.pt2");
  CHECK(code_of([&] { add_baseline(ModelSource((folder.path / "rewritten.pt2").string()), cases); }) == Exit::usage);
}

TEST_CASE("operators that only Python has are written out when a model is to be run") {
  Folder folder;
  const auto read = [&](const std::string& call, bool to_run) {
    std::ofstream(folder.path / "model.ir")
        << "graph main(%x: f32[2, 0] user, %s: f32[2] user, %z: i64[2] user) {\n  %y: i8[2, 0] = " << call
        << "\n  return %y\n}\n";
    return ModelSource((folder.path / "model.ir").string()).read(to_run);
  };
  const std::string quantize = "quantized_decomposed.quantize_per_channel.default(%x, %s, %z, AXIS, -128, 127, i8)";
  const auto on_axis = [&](const char* axis) { return std::string(quantize).replace(quantize.find("AXIS"), 4, axis); };
  const auto model = read(on_axis("0"), true);  // of no elements
  ir::walk(*model->graph, [](ir::Node* node) { CHECK(node->op().starts_with("aten.")); });
  CHECK(read(on_axis("0"), false)->graph->nodes().size() == 1);
  CHECK(code_of([&] { read(on_axis("2"), true); }) == Exit::bad_file);
  CHECK(code_of([&] { read("prims.inductor_seed.default(%x)", true); }) == Exit::bad_file);
}

TEST_CASE("a cast to integers stays where it loses something") {
  Folder folder;
  const auto casts = [&](const std::string& bounds) {
    std::ofstream(folder.path / "model.ir")
        << "graph main(%x: f32[4] user) {\n  %r: f32[4] = aten.round.default(%x)\n"
        << (bounds.empty() ? "" : "  %c: f32[4] = aten.clamp.default(%r, " + bounds + ")\n")
        << "  %q: i8[4] = aten.to.dtype(" << (bounds.empty() ? "%r" : "%c") << ", i8)\n"
        << "  %y: f32[4] = quantized_decomposed.dequantize_per_tensor.default(%q, 0.5, 3, -128, 127, i8)\n  return "
           "%y\n}\n";
    const auto model = ModelSource((folder.path / "model.ir").string()).read();
    const ir::Value* given = model->graph->nodes().back()->operand(0)->def()->operand(0);
    return given->name == (bounds.empty() ? "r" : "c") ? 0 : 1;
  };
  CHECK(casts("-128, 127") == 0);
  CHECK(casts("-128, 128") == 1);  // int8 has no 128
  CHECK(casts("-1.5, 127") == 1);  // the bound is no whole number
  CHECK(casts("") == 1);           // nor is there one
}
