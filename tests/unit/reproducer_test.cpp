// What failed is replayed by one file alone: a pass with the graph before it, a node with what it was given.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/wait.h>
#include <unistd.h>

#include "executor/buffers.h"
#include "formats/model_file.h"
#include "session/compare.h"
#include "session/compile.h"
#include "session/kept.h"
#include "session/reproducer.h"
#include "support/check_hook.h"
#include "support/error.h"
#include "tests/catch.h"
#include "tests/unit/session_test_util.h"

namespace {

namespace fs = std::filesystem;
using namespace ttc;
using ttc::test::models;

ir::Node* find_node(const ir::Graph& graph, std::string_view op) {
  ir::Node* found = nullptr;
  ir::walk(graph, [&](ir::Node* node) {
    if (node->op() == op) found = node;
  });
  return found;
}

// Needs what only the whole graph has: weights, the stack of modules, the values of free dims, the user's flags.
void throw_in_linear(PassContext& context) {
  const ir::Node* node = find_node(*context.model.graph, "aten.linear.default");
  if (node == nullptr || context.options.weight_format.empty()) return;
  const ir::Weight* weight = context.model.weight_of(node->operand(1));
  float first = 0;
  std::memcpy(&first, weight->data(), sizeof first);
  throw std::runtime_error("linear " + node_name(*node) + " " + std::to_string(first) + " " +
                           node->provenance->stack.front().second + " " + std::to_string(context.shapes.size()));
}

// A tensor where an integer has to be.
void break_softmax(PassContext& context) {
  if (ir::Node* node = find_node(*context.model.graph, "aten.linear.default")) node->set_op("aten.softmax.int");
}

void check_in_linear(PassContext& context) {
  const ir::Node* node = find_node(*context.model.graph, "aten.linear.default");
  TTC_CHECK(node == nullptr, "linear " + node_name(*node));
}

// The exit code of a process that does it.
template <typename F>
int exit_code_of(F&& f) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) std::_Exit(1);
    f();
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct TemporaryFile {
  std::string path;
  explicit TemporaryFile(const std::string& name)
      : path((fs::temp_directory_path() / ("ttc_" + std::to_string(::getpid()) + "_" + name)).string()) {}
  ~TemporaryFile() { fs::remove(path); }
};

std::string error_of(const ModelSource& source, const CompileSettings& settings) {
  try {
    compile_source(source, settings);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TTC_REGISTER_PASS({"throw-in-linear", "Throws at a linear", throw_in_linear})
TTC_REGISTER_PASS({"break-softmax", "Leaves a graph that is wrong", break_softmax})
TTC_REGISTER_PASS({"check-in-linear", "Fails a check at a linear", check_in_linear})

TEST_CASE("a pass that fails is replayed from one file, with the same error") {
  const ModelSource source(models + "bert_small_dyn.pt2");
  for (const std::string& pass : std::vector<std::string>{"throw-in-linear", "break-softmax"}) {
    INFO(pass);
    const TemporaryFile file("reproducer");  // found by its content
    CompileSettings settings;
    settings.weight_dtype = {"*=bfloat8_b"};
    settings.reproducer = file.path;
    settings.passes.passes = {"canonicalize", pass, "pack"};
    settings.passes.verify_each = true;
    const std::string error = error_of(source, settings);
    REQUIRE_FALSE(error.empty());
    REQUIRE(fs::exists(file.path));
    CHECK(error_of(ModelSource(file.path), {}) == error);
    const auto replayed = replayed_pass(*load(file.path));
    REQUIRE(replayed);
    CHECK(replayed->pass == pass);
    CHECK(replayed->settings.weight_dtype == settings.weight_dtype);
    CompileSettings other;
    other.passes.passes = {"canonicalize"};
    CHECK(error_of(ModelSource(file.path), other).empty());
  }
}

TEST_CASE("a check that fails in a pass leaves its reproducer, which fails it again") {
  const TemporaryFile file("check");
  CompileSettings settings;
  settings.reproducer = file.path;
  settings.passes.passes = {"canonicalize", "check-in-linear", "pack"};
  const ModelSource source(models + "bert_small_dyn.pt2");
  CHECK(exit_code_of([&] { compile_source(source, settings); }) == static_cast<int>(Exit::bug));
  REQUIRE(fs::exists(file.path));
  const auto replayed = replayed_pass(*load(file.path));
  REQUIRE(replayed);
  CHECK(replayed->pass == "check-in-linear");
  CHECK(replayed->error.find("check failed: node == nullptr: linear ") != std::string::npos);
  CHECK(exit_code_of([&] { compile_source(ModelSource(file.path), {}); }) == static_cast<int>(Exit::bug));
}

TEST_CASE("what is done where a check fails is done once, by the latest, and not for ever") {
  const TemporaryFile file("checks");
  const auto write = [&](const std::string& text) { std::ofstream(file.path, std::ios::app) << text; };
  const AtCheckFailure first([&](const std::string&) { write("first "); });
  {
    const AtCheckFailure second([&](const std::string&) {
      write("second ");
      TTC_CHECK(false, "again");
    });
    CHECK(exit_code_of([] { TTC_CHECK(false, "once"); }) == static_cast<int>(Exit::bug));
  }
  CHECK(exit_code_of([] { TTC_CHECK(false, "once"); }) == static_cast<int>(Exit::bug));
  std::stringstream said;
  said << std::ifstream(file.path).rdbuf();
  CHECK(said.str() == "second first ");
}

TEST_CASE("a reproducer of a pass that a plug-in brought says so where that is missing") {
  FailedPass failed{.pass = "nonesuch", .error = "it fails", .settings = {}, .plugins = {"/there/it.so"}};
  try {
    replaying(failed, {});
    FAIL("there is no such pass");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    CHECK(error.hint() == "--plugin /there/it.so");
  }
  const TemporaryFile file("plugin");
  failed.pass = "dce";
  failed.profile = profile_for(*load(models + "tiny.pt2"), "n150");
  write_pass_reproducer(file.path, *load(models + "tiny.pt2"), failed);
  const auto replayed = replayed_pass(*load(file.path));
  REQUIRE(replayed);
  CHECK(replayed->plugins == failed.plugins);
}

TEST_CASE("where no pass fails there is no reproducer") {
  const TemporaryFile file("none");
  CompileSettings settings;
  settings.reproducer = file.path;
  CHECK(error_of(ModelSource(models + "tiny.pt2"), settings).empty());
  CHECK_FALSE(fs::exists(file.path));
}

TEST_CASE("a node is a model of its own, and gives what it gave in the whole") {
  const ModelSource source(models + "vit_small.pt2");
  const std::shared_ptr<const ir::Model> model = compile_source(source, {}).model;
  const std::vector<Case> cases = load_cases(*model, {.io = models + "vit_small.io.safetensors"});
  const ttrt::ExecutorOptions device, cpu{.mode = ttrt::Mode::cpu};
  const Comparison whole = compare_runs(model, cases, device, cpu, {.mode = CompareMode::sel});
  const auto of_layer = [](const CompareRow& row) { return row.module == "model.vit.layers.1.mlp.fc1"; };
  const auto found = std::ranges::find_if(whole.rows, of_layer);
  REQUIRE(found != whole.rows.end());
  const CompareRow& failed = *found;

  const TemporaryFile file("node.pt2");
  save_model(*node_reproducer(model, {.node = failed.node}, cases, device, 1), file.path);
  const std::shared_ptr<const ir::Model> node = load(file.path);
  const std::vector<Case> carried = load_cases(*node, {});
  const Comparison alone = compare_runs(node, carried, device, cpu, {.mode = CompareMode::sel});
  REQUIRE(alone.rows.size() == 2);  // the node, and the output
  CHECK(alone.rows[0].metrics.pcc == failed.metrics.pcc);
  CHECK(alone.rows[0].metrics.max_abs == failed.metrics.max_abs);
  CHECK_FALSE(run_embedded(node, device).at(0).pass());

  try {
    node_reproducer(model, {.node = "nonesuch"}, cases, device);
    FAIL("there is no such node");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
  }
}

TEST_CASE("the node that ends a run is found") {
  const std::string text =
      "model {}\ngraph main(%x: f32[4] user, %i: i64[2] user) {\n"
      "  %a: f32[4] = aten.relu.default(%x)\n"
      "  %b: f32[2] = aten.index_select.default(%a, 0, %i)\n"
      "  return %b\n}\n";
  const auto bytes = std::as_bytes(std::span(text));
  const std::shared_ptr<const ir::Model> model = ModelSource("x.ir", {bytes.begin(), bytes.end()}).read();
  std::vector<Case> cases = load_cases(*model, {.inputs = {"x=ones", "i=arange"}});
  ttrt::Executor executor(model, {.mode = ttrt::Mode::cpu});
  CHECK_FALSE(failing_node(executor, cases));
  cases[0].inputs[1].get_if<ttrt::HostTensor>()->as<std::int64_t>()[0] = 9;
  CHECK(failing_node(executor, cases).value().node == "b");
  const std::unique_ptr<ir::Model> node = node_reproducer(model, {.node = "b"}, cases, executor.options());
  CHECK(node->graph->nodes().size() == 1);
  ttrt::Executor alone(std::shared_ptr<const ir::Model>(ir::parse(ir::print(*node))), executor.options());
  CHECK(failing_node(alone, load_cases(*node, {})).value().node == "b");
}

TEST_CASE("a node of a later step is given what it was given there") {
  const std::string text =
      "model {}\ngraph main(%x: f32[4] user, %i: i64[2] user, $c: f32[4] buffer \"c\" = splat(1)) {\n"
      "  %n: f32[4] = aten.add.Tensor($c, %x)\n"
      "  %m: f32[4] = aten.mul.Tensor(%n, $c)\n"
      "  %y: f32[2] = aten.index_select.default(%m, 0, %i)\n"
      "  return %y, mutation buffer \"c\" = %n\n}\n";
  const auto bytes = std::as_bytes(std::span(text));
  const std::shared_ptr<const ir::Model> model = ModelSource("x.ir", {bytes.begin(), bytes.end()}).read();
  std::vector<Case> cases(3, load_cases(*model, {.inputs = {"x=ones", "i=arange"}}).at(0));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].name = "step" + std::to_string(i);
    cases[i].inputs[1] = ttrt::copy_of(*cases[i].inputs[1].get_if<ttrt::HostTensor>());
  }
  ttrt::Executor executor(model, {.mode = ttrt::Mode::cpu});
  CHECK_FALSE(failing_node(executor, cases));
  cases[2].inputs[1].get_if<ttrt::HostTensor>()->as<std::int64_t>()[0] = 9;
  const NodeOfStep failed = failing_node(executor, cases).value();
  CHECK(failed.node == "y");
  CHECK(failed.step == 2);
  const auto given = [](const ir::Model& node, std::size_t input) {
    const auto inputs = load_cases(node, {}).at(0).inputs;
    const ttrt::HostTensor& tensor = *inputs.at(input).get_if<ttrt::HostTensor>();
    return tensor.as<float>()[0];
  };
  const std::unique_ptr<ir::Model> index = node_reproducer(model, failed, cases, executor.options());
  CHECK(given(*index, 0) == 12);  // (3 + 1) * 3
  ttrt::Executor alone(std::shared_ptr<const ir::Model>(ir::parse(ir::print(*index))), executor.options());
  CHECK(failing_node(alone, load_cases(*index, {})));
  // The first node of the graph, of which the buffer is an operand.
  const std::unique_ptr<ir::Model> add = node_reproducer(model, {.node = "n", .step = 1}, cases, executor.options());
  CHECK(given(*add, 0) == 1);
  CHECK(given(*add, 1) == 2);
}
