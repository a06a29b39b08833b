// ttc bench: wall time of a model, warm, and of the same model in LibTorch in the same process, alternating.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include "device/cpu.h"
#include "device/host_peak.h"
#include "json_out.h"
#include "executor/kernel_choice.h"
#include "profile_report.h"
#include "run_flags.h"
#include "session/model_source.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/atomic_file.h"
#include "support/csv.h"
#include "support/error.h"
#include "support/progress.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string model, reference_model, csv;
  InputOptions inputs;
  ExecFlags exec;
  int loops = 20, warmup = 3;
  bool reference = false, profile = false;
} flags;

void options(FlagSet& app) {
  app.add_option("model", flags.model, "A .pt2 or TorchScript file").required();
  add_input_flags(app, flags.inputs);
  add_exec_flags(app, flags.exec);
  app.group("Execution");
  app.add_option("--mode", flags.exec.mode, "On the device, or everything in LibTorch").one_of({"device", "cpu"});
  app.group("Measuring");
  app.add_option("--loops", flags.loops, "Timed runs").range(1, 1000000);
  app.add_option("--warmup", flags.warmup, "Runs before these").range(0, 1000000);
  app.add_flag("--reference", flags.reference, "Time LibTorch in the same process too, alternating");
  app.add_option("--reference-model", flags.reference_model,
                 "The model LibTorch runs: the source of a rewritten file; without it the file itself in cpu mode");
  app.add_flag("--profile", flags.profile,
               "Each op's time, GFLOP/s and GB/s, and their share of what the machine does at most, measured first");
  app.add_option("--csv", flags.csv, "Write all of it as a table: load, first run, steady state, each op").result();
}

struct Times {
  std::vector<double> ms;
  double at(double quantile) const {
    std::vector<double> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(quantile * static_cast<double>(sorted.size())))];
  }
  double mean() const {
    double sum = 0;
    for (const double v : ms) sum += v;
    return sum / static_cast<double>(ms.size());
  }
  OrderedJson json() const {
    return {{"min", at(0)}, {"p50", at(0.5)}, {"p90", at(0.9)}, {"p99", at(0.99)}, {"mean", mean()}};
  }
};

class Clock {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double timed(ttrt::Executor& executor, const std::vector<Case>& cases) {
  const Clock clock;
  StepRunner steps(executor, cases);
  for (std::size_t i = 0; i < cases.size(); ++i) steps.run(i);
  return clock.ms();
}

// What comes before the steady state.
struct Start {
  double load_ms = 0, first_ms = 0;
  std::optional<ttrt::HostPeak> peak;  // where ops are timed
};

std::unique_ptr<ttrt::Executor> reference_executor(const std::shared_ptr<const ir::Model>& model) {
  ttrt::ExecutorOptions options;
  options.mode = ttrt::Mode::cpu;
  if (!flags.reference_model.empty()) return std::make_unique<ttrt::Executor>(load(flags.reference_model), options);
  if (is_rewritten(*model) && !is_rewritten(*load(flags.model)))
    return std::make_unique<ttrt::Executor>(load(flags.model), options);
  return std::make_unique<ttrt::Executor>(model, options);
}

// Of the median run; 0 where a run is one step.
double steps_per_second(const Times& times, std::size_t steps) {
  return steps > 1 ? 1000.0 * static_cast<double>(steps) / times.at(0.5) : 0.0;
}

// One result or op a row: `name` is the figure's or the node's; an op's `value` is its time in one run, calls, bytes
// and flops are of all the profiled ones.
void write_result(const Start& start, const Times& times, const Times& cpu, std::size_t steps,
                  const ttrt::Executor& executor, int profiled) {
  Csv out;
  out.row({"kind", "name", "value", "unit", "op", "module", "place", "kernel", "calls", "bytes", "flops", "gflop_s",
           "gb_s", "peak_share", "peak"});
  const auto text = [](double value) { return number_text(value, 6); };
  const auto figure = [&](const std::string& name, double value, const char* unit) {
    out.row({"result", name, text(value), unit, "", "", "", "", "", "", "", "", "", "", ""});
  };
  figure("load", start.load_ms, "ms");
  figure("first", start.first_ms, "ms");
  for (const auto& [whose, all] : {std::pair{"", &times}, {"cpu_", &cpu}}) {
    if (all->ms.empty()) continue;
    const OrderedJson figures = all->json();
    for (const auto& [name, value] : figures.items()) figure(whose + name, value.get<double>(), "ms");
  }
  if (const double rate = steps_per_second(times, steps); rate > 0) figure("steps_per_second", rate, "1/s");
  figure("threads", ttrt::threads(), "");
  figure("peak_memory", start.peak->read_gb_s, "GB/s");
  figure("peak_products", start.peak->gflop_s, "GFLOP/s");
  for (const OrderedJson& op : profile_json(executor, &*start.peak)) {
    const auto word = [&](const char* key) { return op[key].get<std::string>(); };
    const auto count = [&](const char* key) { return std::to_string(op[key].get<std::int64_t>()); };
    const auto number = [&](const char* key) { return text(op[key].get<double>()); };
    out.row({"op", word("node"), text(op["wall_us"].get<double>() / 1000 / profiled), "ms", word("op"), word("module"),
             word("place"), word("kernel"), count("calls"), count("bytes"), count("flops"), number("gflop_s"),
             number("gb_s"), number("peak_share"), word("peak")});
  }
  write_file(flags.csv, out.text());
}

void print_text(const Start& start, const Times& times, const Times& cpu, std::size_t steps,
                const ttrt::Executor& executor) {
  Table table({"", ">min ms", ">p50 ms", ">p90 ms", ">p99 ms", ">mean ms"});
  const auto row = [&](const std::string& name, const Times& t) {
    table.row({name, number_text(t.at(0)), number_text(t.at(0.5)), number_text(t.at(0.9)), number_text(t.at(0.99)),
               number_text(t.mean())});
  };
  row(flags.exec.mode, times);
  if (!cpu.ms.empty()) row("LibTorch", cpu);
  std::cout << table.text();
  if (executor.options().mode == ttrt::Mode::device && executor.counts().cpu > 0)
    std::cout << executor.counts().device << "/" << executor.counts().total << " nodes on device, the host served "
              << executor.counts().cpu << '\n';
  std::cout << "loaded in " << number_text(start.load_ms) << " ms, the first run took "
            << number_text(start.first_ms) << " ms\n";
  if (const double rate = steps_per_second(times, steps); rate > 0)
    std::cout << number_text(rate) << " steps a second (" << steps << " a run)\n";
  if (!cpu.ms.empty())
    std::cout << "ratio: min " << number_text(times.at(0) / cpu.at(0), 3) << ", p50 "
              << number_text(times.at(0.5) / cpu.at(0.5), 3) << " (" << ttrt::threads() << " threads)\n";
  if (start.peak)
    std::cout << "peak: memory " << number_text(start.peak->read_gb_s, 3) << " GB/s, bfloat16 products "
              << number_text(start.peak->gflop_s, 4) << " GFLOP/s (the device's own, " << ttrt::to_string(ttrt::isa())
              << ", " << ttrt::threads() << " threads)\n";
}

// The ops' times are of runs of their own: with a profiler every op takes longer.
int profiled_runs(ttrt::Executor& executor, const std::vector<Case>& cases) {
  const int runs = std::min(flags.loops, 20);
  executor.set_profiling(true);
  for (int i = 0; i < runs; ++i) timed(executor, cases);
  return runs;
}

OrderedJson result_json(const Start& start, const Times& times, const Times& cpu, std::size_t steps,
                        const ttrt::Executor& executor) {
  OrderedJson out{{"mode", flags.exec.mode},  {"numerics", flags.exec.numerics}, {"loops", flags.loops},
                  {"load_ms", start.load_ms}, {"first_ms", start.first_ms},      {"wall_ms", times.json()}};
  if (const double rate = steps_per_second(times, steps); rate > 0) out["steps_per_second"] = rate;
  if (!cpu.ms.empty()) {
    out["cpu_ms"] = cpu.json();
    out["ratio"] = {{"min", times.at(0) / cpu.at(0)}, {"p50", times.at(0.5) / cpu.at(0.5)}};
  }
  const auto nodes = executor.counts();
  out["nodes"] = {{"total", nodes.total}, {"device", nodes.device}, {"cpu", nodes.cpu}};
  out["threads"] = ttrt::threads();
  if (start.peak)
    out["peak"] = {{"memory_gb_s", start.peak->read_gb_s},
                   {"products_gflop_s", start.peak->gflop_s},
                   {"isa", ttrt::to_string(ttrt::isa())}};
  if (flags.profile) out["ops"] = profile_json(executor, &*start.peak);
  if (flags.exec.dispatch.any()) out["dispatch"] = executor.chooser().telemetry();
  return out;
}

int run(const Globals& globals) {
  Start start;
  const bool ops = flags.profile || !flags.csv.empty();
  if (!flags.csv.empty()) check_output(flags.csv);
  const Clock loading;
  const auto model = load_for(globals, flags.model, flags.inputs, flags.exec);
  start.load_ms = loading.ms();
  const std::vector<Case> cases = cases_for(globals, *model, flags.inputs);
  if (ops) start.peak = ttrt::measure_host_peak();
  ttrt::Executor executor(model, executor_options(globals, flags.exec, *model));
  const std::unique_ptr<ttrt::Executor> reference =
      flags.reference || !flags.reference_model.empty() ? reference_executor(model) : nullptr;
  Phase phase("timing " + flags.model, static_cast<std::uint64_t>(flags.warmup + flags.loops));
  for (int i = 0; i < flags.warmup; ++i) {
    phase.advance();
    const double ms = timed(executor, cases);
    if (i == 0) start.first_ms = ms;
    if (reference != nullptr) timed(*reference, cases);
  }
  Times times, cpu;
  for (int i = 0; i < flags.loops; ++i) {
    times.ms.push_back(timed(executor, cases));
    if (reference != nullptr) cpu.ms.push_back(timed(*reference, cases));
    phase.advance();
  }
  if (flags.warmup == 0) start.first_ms = times.ms.front();
  const int profiled = ops ? profiled_runs(executor, cases) : 0;
  if (!flags.csv.empty()) write_result(start, times, cpu, cases.size(), executor, profiled);
  if (globals.json) {
    print_json(result_json(start, times, cpu, cases.size(), executor));
    return 0;
  }
  print_text(start, times, cpu, cases.size(), executor);
  if (flags.profile) std::cout << profile_text(executor, &*start.peak);
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"bench", "Time a model, and LibTorch beside it", ttc::options, ttc::run,
                      "ttc bench models/vit_small.pt2 --loops 50 --reference"})
