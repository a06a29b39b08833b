// What nobody exports on purpose. Every graph of tests/data/aten_ops.ir again with a dim of 0 or 1, with all of them 0,
// without dims, and with NaN, infinities and denormals among the values; and graphs with sizes that no memory holds.
// What LibTorch computes the device computes too, or it stays on the host, or the op's record says what the device
// makes of such values; what LibTorch refuses may be refused. Nothing ends the process: the graphs run in a child, and
// where that dies the graph it died of is a failure and the next child goes on behind it.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <limits>
#include <new>
#include <set>

#include "device/metrics.h"
#include "pipeline.h"
#include "shapes/shape_prop.h"
#include "support/error.h"
#include "tests/catch.h"
#include "torch/cpu_op.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

std::vector<std::string> graphs() {
  std::ifstream file(std::string(TTC_SOURCE_ROOT) + "/tests/data/aten_ops.ir");
  std::vector<std::string> out;
  std::string line, graph;
  while (std::getline(file, line)) {
    if (line.starts_with("// EXPECT ")) {
      out.push_back(graph);
      graph.clear();
    } else if (!line.starts_with("//")) {
      graph += line + "\n";
    }
  }
  return out;
}

// The sizes that the user's inputs have.
std::set<std::int64_t> extents(const ttc::ir::Model& model) {
  std::set<std::int64_t> out;
  for (const auto& input : model.graph->inputs())
    if (model.weight_of(input.value.get()) == nullptr)
      for (const std::int64_t size : input.value->type.static_sizes()) out.insert(size);
  return out;
}

// The graph with the types of its results found anew; "" where the operators do not take its inputs.
std::string retyped(ttc::ir::Model& model) {
  ttc::ir::walk(*model.graph, [](ttc::ir::Node* node) {
    for (const auto& result : node->results())
      if (result->type.is_tensor()) result->type.has_shape = false;
  });
  try {
    static_cast<void>(ttc::propagate_shapes(model, {}, false));
  } catch (const ttc::Error&) {
    return "";
  }
  bool known = true;
  ttc::ir::walk(*model.graph, [&](ttc::ir::Node* node) {
    for (const auto& result : node->results()) known &= !result->type.is_tensor() || result->type.has_shape;
  });
  return known ? ttc::ir::print(model) : "";
}

// The graph with every user's dim that `resize` changes changed; "" where there is none.
template <typename F>
std::string resized(const std::string& text, const F& resize) {
  auto model = parse_text(text);
  bool changed = false;
  for (const auto& input : model->graph->inputs()) {
    if (model->weight_of(input.value.get()) != nullptr) continue;
    for (ttc::ir::SymExpr& size : input.value->type.sizes) {
      const std::int64_t now = size.number(), then = resize(now);
      changed |= now != then;
      size = ttc::ir::SymExpr(then);
    }
  }
  return changed ? retyped(*model) : "";
}

// Every user's tensor without dims.
std::string without_dims(const std::string& text) {
  auto model = parse_text(text);
  bool changed = false;
  for (const auto& input : model->graph->inputs()) {
    if (model->weight_of(input.value.get()) != nullptr) continue;
    changed |= !input.value->type.sizes.empty();
    input.value->type.sizes.clear();
    input.value->type.strides.clear();
  }
  return changed ? retyped(*model) : "";
}
// A graph and what some of its inputs' values are.
enum class Values : std::uint8_t { ordinary, nan, infinite, denormal };
struct Try {
  std::string graph;
  Values values = Values::ordinary;
};

constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

std::string_view to_string(Values values) {
  constexpr std::string_view names[] = {"", "NaN", "infinities", "denormals"};
  return names[static_cast<int>(values)];
}

std::vector<float> special(Values values) {
  if (values == Values::nan) return {nan};
  if (values == Values::infinite) return {inf, -inf};
  if (values == Values::denormal) return {1e-40F, -1e-40F, -0.0F};
  return {};
}

// The graph in other sizes: one extent at a time, then all; no dims at all; and with other values.
std::vector<Try> variants(const std::string& text) {
  std::vector<Try> out;
  const auto add = [&](std::string graph) {
    if (!graph.empty()) out.push_back({std::move(graph)});
  };
  for (const std::int64_t extent : extents(*parse_text(text)))
    for (const std::int64_t other : {0, 1})
      add(resized(text, [&](std::int64_t size) { return size == extent ? other : size; }));
  add(resized(text, [](std::int64_t) { return 0; }));
  add(resized(text, [](std::int64_t) { return 1; }));
  add(without_dims(text));
  for (const Values values : {Values::nan, Values::infinite, Values::denormal}) out.push_back({text, values});
  return out;
}

std::string difference(const HostTensor& a, const HostTensor& e) {
  if (a.sizes != e.sizes) return "other sizes";
  if (a.dtype != e.dtype) return "another dtype";
  const Metrics metrics = compare(a, e);
  if (metrics.nan > 0) return std::to_string(metrics.nan) + " elements are NaN or infinite on one side only";
  if (ttc::is_floating(e.dtype) ? metrics.max_rel > 0.01 : !metrics.equal)
    return "max_rel " + std::to_string(metrics.max_rel);
  return "";
}

// Whether a record among these says what the device makes of special values.
bool stated(const std::set<std::string>& ops) {
  return std::any_of(ops.begin(), ops.end(),
                     [](const std::string& op) { return !find_op(op)->special_values.empty(); });
}

bool draws(const ttc::ir::Model& model) {
  bool random = false;
  ttc::ir::walk(*model.graph, [&](ttc::ir::Node* node) { random |= node->schema() && node->schema()->random; });
  return random;
}

// "" where the device agrees with LibTorch or its records say why not, or LibTorch refuses.
std::string problem_of(const Try& one) {
  const auto model = parse_text(one.graph);
  if (draws(*model)) return "";
  const auto inputs = inputs_of(*model, {.first = 0, .last = 1, .scale = 0, .every_third = special(one.values)});
  std::vector<RtValue> expected, again;
  try {
    expected = in_torch(one.graph)->run(inputs);
    again = in_torch(one.graph)->run(inputs);
  } catch (const ttc::Error&) {
    return "";
  }
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!difference(tensor(again[i]), tensor(expected[i])).empty()) return "";  // memory that nobody wrote
  const auto device = on_device(one.graph, DataType::float32);
  const auto actual = device.executor->run(inputs);
  if (actual.size() != expected.size()) return "other outputs";
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const std::string what = difference(tensor(actual[i]), tensor(expected[i]));
    if (!what.empty() && (one.values == Values::ordinary || !stated(device.ops)))
      return "output " + std::to_string(i) + ": " + what;
  }
  return "";
}

std::string problem_or_exception(const Try& one) {
  try {
    return problem_of(one);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// ---- the child and what it says ------------------------------------------------------------------------------------

// A message: what it is about ('g': the graph it goes on to, 'r': what came of it), and a text.
void send(int to, char kind, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  const std::string head(reinterpret_cast<const char*>(&size), sizeof size);
  const std::string all = kind + head + text;
  if (write(to, all.data(), all.size()) != static_cast<ssize_t>(all.size())) _exit(3);
}

bool read_all(int from, char* to, std::size_t size) {
  for (std::size_t at = 0; at < size;) {
    const ssize_t n = read(from, to + at, size - at);
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

bool receive(int from, char& kind, std::string& text) {
  std::uint32_t size = 0;
  if (!read_all(from, &kind, 1) || !read_all(from, reinterpret_cast<char*>(&size), sizeof size)) return false;
  text.resize(size);
  return read_all(from, text.data(), size);
}

// Runs the variants of every `step`-th graph from `graph` on, of that one from variant `variant` on.
[[noreturn]] void run_child(int to, const std::vector<std::string>& all, std::size_t step, std::size_t graph,
                            std::size_t variant) {
  for (const int signal : {SIGABRT, SIGFPE, SIGSEGV, SIGBUS, SIGILL}) std::signal(signal, SIG_DFL);  // not the test's
  set_threads(1);
  for (; graph < all.size(); graph += step, variant = 0) {
    send(to, 'g', all[graph]);
    const std::vector<Try> tries = variants(all[graph]);
    for (std::size_t i = variant; i < tries.size(); ++i) {
      send(to, 'g', std::string(to_string(tries[i].values)) + "\n" + tries[i].graph);
      send(to, 'r', problem_or_exception(tries[i]));
    }
  }
  _exit(0);
}

struct Sweep {
  int tried = 0;
  std::vector<std::string> failures;  // each with its graph
};

// Every `step`-th graph, in children: this process itself never starts LibTorch.
Sweep sweep(const std::vector<std::string>& all, std::size_t step) {
  Sweep out;
  std::size_t graph = 0, variant = 0;
  for (bool done = false; !done;) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) run_child(ends[1], all, step, graph, variant);
    close(ends[1]);
    char kind = 0;
    bool fresh = true;  // the child begins by naming the graph it was sent to
    for (std::string text, current; receive(ends[0], kind, text);) {
      if (kind == 'r') {
        ++out.tried;
        if (!text.empty()) out.failures.push_back(text + "\n" + current);
        continue;
      }
      if (fresh || graph + step >= all.size() || text != all[graph + step]) {
        variant += fresh ? 0 : 1;
      } else {
        graph += step;
        variant = 0;
      }
      fresh = false;
      current = std::move(text);
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (done) break;
    out.failures.push_back("the process ended with signal " +
                           std::to_string(WIFSIGNALED(status) ? WTERMSIG(status) : 0) + " in variant " +
                           std::to_string(variant) + " of\n" + all[graph]);
    REQUIRE(out.failures.size() < all.size());
    if (variant == 0) {  // no variant could be made
      graph += step;
      done = graph >= all.size();
    }
  }
  return out;
}

void check_sweep(std::size_t step, int at_least) {
  const Sweep done = sweep(graphs(), step);
  for (const std::string& failure : done.failures) {
    INFO(failure);
    CHECK(failure.empty());
  }
  CHECK(done.tried >= at_least);
}

// In a child with little more address space than the device's memory takes: "" where the graph ends in a message, or
// gives what LibTorch gives where that takes it.
std::string run_huge(const std::string& graph) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGABRT, SIGFPE, SIGSEGV, SIGBUS, SIGILL}) std::signal(signal, SIG_DFL);
    const rlimit space{.rlim_cur = rlim_t{24} << 30, .rlim_max = rlim_t{24} << 30};
    setrlimit(RLIMIT_AS, &space);
    set_threads(1);
    std::string problem = "it gave a result, LibTorch none";
    try {
      const auto inputs = inputs_of(*parse_text(graph), {.first = 0, .last = 1, .scale = 0});
      const auto actual = on_device(graph, DataType::float32).executor->run(inputs);
      problem = difference(tensor(actual.at(0)), tensor(in_torch(graph)->run(inputs).at(0)));
    } catch (const ttc::Error& error) {
      problem = *error.what() == '\0' ? "an error without a message" : "";
    } catch (const std::bad_alloc&) {
      problem = "";
    } catch (const std::exception& error) {
      problem = error.what();
    }
    send(ends[1], 'r', problem);
    _exit(0);
  }
  close(ends[1]);
  char kind = 0;
  std::string problem;
  if (!receive(ends[0], kind, problem)) problem = "the process died";
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return problem;
}

}  // namespace

TEST_CASE("dims of 0 and 1, no dims, and special values give what LibTorch gives", "[edges]") { check_sweep(8, 300); }

// Behind the suite `long`.
TEST_CASE("the same of every graph", "[.long]") { check_sweep(1, 2500); }

TEST_CASE("sizes that no memory holds end in a message, or in what LibTorch gives", "[edges]") {
  const std::vector<std::string> huge = {
      R"(  %b: f32[1] = aten.slice.Tensor(%x, 0, 0, 1)
  %e: f32[1099511627776] = aten.expand.default(%b, [1099511627776])
  %y: f32[4] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %e: f32[1099511627776] = aten.full.default([1099511627776], 1.5)
  %y: f32[4] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %e: f32[4294967296, 4294967296] = aten.full.default([4294967296, 4294967296], 1.5)
  %y: f32[4, 4294967296] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %y: f32[0, 4611686018427387904] = aten.full.default([0, 4611686018427387904], 1.5)
  return %y)",
      R"(  %e: f32[4398046511104] = aten.repeat.default(%x, [1099511627776])
  %y: f32[4] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %e: f32[2199023255556] = aten.constant_pad_nd.default(%x, [1099511627776, 1099511627776])
  %y: f32[4] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %y: f32[0] = aten.constant_pad_nd.default(%x, [-9223372036854775807, 2])
  return %y)",
      R"(  %y: f32[4] = aten.slice.Tensor(%x, 0, 0, 9223372036854775807)
  return %y)",
      R"(  %y: f32[4] = aten.slice.Tensor(%x, 0, -9223372036854775808, 9223372036854775807)
  return %y)",
      R"(  %y: f32[1] = aten.slice.Tensor(%x, 0, 1, 9223372036854775807, 4611686018427387904)
  return %y)",
      R"(  %y: f32[] = aten.select.int(%x, 0, 4611686018427387904)
  return %y)",
      R"(  %e: i64[1152921504606846976] = aten.arange.start_step(0, 1152921504606846976, 1)
  %y: i64[4] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %y: f32[1, 2, 1] = aten.avg_pool1d.default(%m, [8], [1099511627776], [0])
  return %y)",
      R"(  %e: f32[1, 2, 1099511627776] = aten.upsample_nearest1d.default(%m, [1099511627776])
  %y: f32[1, 2, 4] = aten.slice.Tensor(%e, 2, 0, 4)
  return %y)",
      R"(  %y: f32[4], %j: i64[4] = aten.topk.default(%x, 1099511627776)
  return %y)",
      R"(  %y: f32[4] = aten.roll.default(%x, [4611686018427387905])
  return %y)",
      R"(  %j: i64[3] = aten.add.Tensor(%i, 1099511627776)
  %y: f32[3] = aten.index_select.default(%x, 0, %j)
  return %y)",
      R"(  %j: i64[3] = aten.add.Tensor(%i, 4611686018427387904)
  %y: i64[3] = aten.mul.Tensor(%j, 4)
  return %y)",
      R"(  %w: f32[2, 2, 3] = aten.full.default([2, 2, 3], 0.5)
  %y: f32[1, 2, 1] = aten.conv1d.default(%m, %w, none, [1], [1099511627776], [1099511627776])
  return %y)",
      R"(  %e: i64[3, 1099511627776] = aten.one_hot.default(%i, 1099511627776)
  %y: i64[3, 4] = aten.slice.Tensor(%e, 1, 0, 4)
  return %y)",
      R"(  %y: f32[4611686018427387904, 4] = aten.reshape.default(%x, [4611686018427387904, 4])
  return %y)"};
  for (const std::string& lines : huge) {
    INFO(lines);
    CHECK(run_huge("graph main(%x: f32[4] user, %m: f32[1, 2, 8] user, %i: i64[3] user) {\n" + lines + "\n}\n") == "");
  }
}
