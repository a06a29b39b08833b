// Sizes nobody exports on purpose: every graph of tests/data/aten_ops.ir again with a dim of 0 or 1, with all of them
// 0, and with numbers that are no ordinary ones. What LibTorch computes the device computes too, or it stays on the
// host; what LibTorch refuses may be refused. Nothing ends the process: the graphs run in a child, and where that dies
// the graph it died of is a failure and the next child goes on behind it.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
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

// The graph with every user's dim that `resize` changes changed, and its other types found anew; "" where the
// operators do not take these sizes.
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
  if (!changed) return "";
  ttc::ir::walk(*model->graph, [](ttc::ir::Node* node) {
    for (const auto& result : node->results())
      if (result->type.is_tensor()) result->type.has_shape = false;
  });
  try {
    static_cast<void>(ttc::propagate_shapes(*model, {}, false));
  } catch (const ttc::Error&) {
    return "";
  }
  bool known = true;
  ttc::ir::walk(*model->graph, [&](ttc::ir::Node* node) {
    for (const auto& result : node->results()) known &= !result->type.is_tensor() || result->type.has_shape;
  });
  return known ? ttc::ir::print(*model) : "";
}

// The graph in other sizes: one extent at a time, then all.
std::vector<std::string> variants(const std::string& text) {
  std::vector<std::string> out;
  const auto add = [&](std::string graph) {
    if (!graph.empty()) out.push_back(std::move(graph));
  };
  for (const std::int64_t extent : extents(*parse_text(text)))
    for (const std::int64_t other : {0, 1})
      add(resized(text, [&](std::int64_t size) { return size == extent ? other : size; }));
  add(resized(text, [](std::int64_t) { return 0; }));
  add(resized(text, [](std::int64_t) { return 1; }));
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

// "" where the device agrees with LibTorch, or LibTorch refuses.
std::string problem_of(const std::string& graph, const std::vector<RtValue>& inputs) {
  std::vector<RtValue> expected, again;
  try {
    expected = in_torch(graph)->run(inputs);
    again = in_torch(graph)->run(inputs);
  } catch (const ttc::Error&) {
    return "";
  }
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!difference(tensor(again[i]), tensor(expected[i])).empty()) return "";  // drawn at random
  const auto device = on_device(graph, DataType::float32);
  const auto actual = device.executor->run(inputs);
  if (actual.size() != expected.size()) return "other outputs";
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const std::string what = difference(tensor(actual[i]), tensor(expected[i]));
    if (!what.empty()) return "output " + std::to_string(i) + ": " + what;
  }
  return "";
}

std::string problem_or_exception(const std::string& graph) {
  try {
    return problem_of(graph, inputs_of(*parse_text(graph), {.first = 0, .last = 1, .scale = 0}));
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
    const std::vector<std::string> tries = variants(all[graph]);
    for (std::size_t i = variant; i < tries.size(); ++i) {
      send(to, 'g', tries[i]);
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
      } else if (fresh || graph + step >= all.size() || text != all[graph + step]) {
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

}  // namespace

TEST_CASE("dims of 0 and 1 give what LibTorch gives", "[edges]") { check_sweep(8, 150); }

// Behind the suite `long`.
TEST_CASE("dims of 0 and 1 give what LibTorch gives, every graph", "[.long]") { check_sweep(1, 1500); }
