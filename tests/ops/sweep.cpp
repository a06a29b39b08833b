// The children that run altered graphs, and what they say of them.
#include "sweep.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <limits>

#include "device/metrics.h"
#include "shapes/shape_prop.h"
#include "support/error.h"
#include "tests/outputs.h"
#include "torch/cpu_op.h"

namespace ttrt::test {
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
std::string problem_of(const Try& one, const std::vector<RtValue>& inputs) {
  if (draws(*parse_text(one.graph))) return "";
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

// The variant's inputs, with the sizes and dtypes of the graph it was made of where it has none.
std::vector<RtValue> inputs_as_in(const std::string& graph, const Try& one, std::int64_t last) {
  const auto from = parse_text(graph), to = parse_text(one.graph);
  for (std::size_t i = 0; i < to->graph->inputs().size() && i < from->graph->inputs().size(); ++i) {
    ttc::ir::Type& type = to->graph->inputs()[i].value->type;
    const ttc::ir::Type& known = from->graph->inputs()[i].value->type;
    if (!type.is_tensor()) continue;
    if (!type.has_shape || !type.is_static()) type.sizes = known.sizes;
    if (!type.has_dtype) type.dtype = known.dtype;
    type.has_shape = type.has_dtype = true;
  }
  return inputs_of(*to, {.first = 0, .last = last, .scale = 0, .every_third = special(one.values)});
}

// What is tried: variants of graphs.
struct Trials {
  Variants variants;
  std::int64_t last;
  std::size_t step, each;  // every `step`-th graph, of those every `each`-th variant
  std::vector<std::string> graphs;

  std::vector<Try> of(std::size_t graph) const {
    const auto all = variants(graphs[graph]);
    std::vector<Try> out;
    for (std::size_t i = graph / step % each; i < all.size(); i += each)
      if (Try made = all[i](); !made.graph.empty()) out.push_back(std::move(made));
    return out;
  }

  // What is wrong with a variant of the graph; "" for nothing.
  std::string problem(std::size_t graph, const Try& one) const {
    try {
      return problem_of(one, inputs_as_in(graphs[graph], one, last));
    } catch (const std::exception& error) {
      return error.what();
    }
  }
};

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

// Signals end the child instead of being reported by the test's handlers.
void own_signals() {
  for (const int signal : {SIGABRT, SIGFPE, SIGSEGV, SIGBUS, SIGILL}) std::signal(signal, SIG_DFL);
}

// Runs the trials from `graph` on, of that one from `variant` on.
[[noreturn]] void run_child(int to, const Trials& trials, std::size_t graph, std::size_t variant) {
  own_signals();
  set_threads(1);
  for (; graph < trials.graphs.size(); graph += trials.step, variant = 0) {
    send(to, 'g', trials.graphs[graph]);
    const std::vector<Try> tries = trials.of(graph);
    for (std::size_t i = variant; i < tries.size(); ++i) {
      send(to, 'g', std::string(to_string(tries[i].values)) + "\n" + tries[i].graph);
      send(to, 'r', trials.problem(graph, tries[i]));
    }
  }
  _exit(0);
}

struct Sweep {
  int tried = 0;
  std::vector<std::string> failures;  // each with its graph
};

// All trials, in children: this process itself never starts LibTorch.
Sweep sweep(const Trials& trials) {
  const std::vector<std::string>& all = trials.graphs;
  const std::size_t step = trials.step;
  Sweep out;
  std::size_t graph = 0, variant = 0;
  for (bool done = false; !done;) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) run_child(ends[1], trials, graph, variant);
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

}  // namespace

std::string altered(const std::string& text, const std::function<bool(ttc::ir::Model&)>& change, bool dynamic) {
  auto model = parse_text(text);
  if (!change(*model)) return "";
  ttc::ir::walk(*model->graph, [](ttc::ir::Node* node) {
    for (const auto& result : node->results())
      if (result->type.is_tensor()) result->type.has_shape = result->type.has_dtype = false;
  });
  try {
    static_cast<void>(ttc::propagate_shapes(*model, {}, dynamic));
  } catch (const ttc::Error&) {
    return "";
  }
  bool known = true;
  ttc::ir::walk(*model->graph, [&](ttc::ir::Node* node) {
    for (const auto& result : node->results())
      known &= !result->type.is_tensor() || (result->type.has_shape && result->type.has_dtype);
  });
  return known ? ttc::ir::print(*model) : "";
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

void check_sweep(Variants variants, std::int64_t last, std::size_t step, std::size_t each, int at_least) {
  const Sweep done = sweep({.variants = variants, .last = last, .step = step, .each = each, .graphs = graphs()});
  for (const std::string& failure : done.failures) {
    INFO(failure);
    CHECK(failure.empty());
  }
  CHECK(done.tried >= at_least);
}

std::string in_child(const std::function<std::string()>& f) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    own_signals();
    set_threads(1);
    send(ends[1], 'r', f());
    _exit(0);
  }
  close(ends[1]);
  char kind = 0;
  std::string said;
  if (!receive(ends[0], kind, said)) said = "the process died";
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return said;
}

}  // namespace ttrt::test
