// ttc bench: wall time of a model, warm, and of the same model in LibTorch in the same process, alternating.
#include <algorithm>
#include <chrono>
#include <iostream>

#include "json_out.h"
#include "executor/kernel_choice.h"
#include "profile_report.h"
#include "run_flags.h"
#include "session/model_source.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/error.h"
#include "support/progress.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string model, reference_model;
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
  app.add_flag("--profile", flags.profile, "Time of every op");
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
  OrderedJson json() const { return {{"min", at(0)}, {"p50", at(0.5)}, {"p90", at(0.9)}, {"mean", mean()}}; }
};

double timed(ttrt::Executor& executor, const std::vector<Case>& cases) {
  const auto start = std::chrono::steady_clock::now();
  StepRunner steps(executor, cases);
  for (std::size_t i = 0; i < cases.size(); ++i) steps.run(i);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::unique_ptr<ttrt::Executor> reference_executor(const std::shared_ptr<const ir::Model>& model) {
  ttrt::ExecutorOptions options;
  options.mode = ttrt::Mode::cpu;
  if (!flags.reference_model.empty()) return std::make_unique<ttrt::Executor>(load(flags.reference_model), options);
  if (is_rewritten(*model) && !is_rewritten(*load(flags.model)))
    return std::make_unique<ttrt::Executor>(load(flags.model), options);
  return std::make_unique<ttrt::Executor>(model, options);
}

void print_text(const Times& times, const Times& cpu) {
  Table table({"", ">min ms", ">p50 ms", ">p90 ms", ">mean ms"});
  const auto row = [&](const std::string& name, const Times& t) {
    table.row({name, number_text(t.at(0)), number_text(t.at(0.5)), number_text(t.at(0.9)), number_text(t.mean())});
  };
  row(flags.exec.mode, times);
  if (!cpu.ms.empty()) row("LibTorch", cpu);
  std::cout << table.text();
  if (!cpu.ms.empty())
    std::cout << "ratio: min " << number_text(times.at(0) / cpu.at(0), 3) << ", p50 "
              << number_text(times.at(0.5) / cpu.at(0.5), 3) << " (" << ttrt::threads() << " threads)\n";
}

int run(const Globals& globals) {
  const auto model = load_for(globals, flags.model, flags.inputs, flags.exec);
  const std::vector<Case> cases = load_cases(*model, flags.inputs);
  for (const std::string& line : cases[0].notes) note(globals, "note: " + line);
  ttrt::Executor executor(model, executor_options(globals, flags.exec, *model));
  const std::unique_ptr<ttrt::Executor> reference =
      flags.reference || !flags.reference_model.empty() ? reference_executor(model) : nullptr;
  Phase phase("timing " + flags.model, static_cast<std::uint64_t>(flags.warmup + flags.loops));
  for (int i = 0; i < flags.warmup; ++i) {
    phase.advance();
    timed(executor, cases);
    if (reference != nullptr) timed(*reference, cases);
  }
  executor.set_profiling(flags.profile);
  Times times, cpu;
  for (int i = 0; i < flags.loops; ++i) {
    times.ms.push_back(timed(executor, cases));
    if (reference != nullptr) cpu.ms.push_back(timed(*reference, cases));
    phase.advance();
  }
  warn_of_idle_kernels(globals, flags.exec.dispatch, executor);
  if (globals.json) {
    OrderedJson out{{"mode", flags.exec.mode},
                    {"numerics", flags.exec.numerics},
                    {"loops", flags.loops},
                    {"wall_ms", times.json()}};
    if (reference != nullptr) {
      out["cpu_ms"] = cpu.json();
      out["ratio"] = {{"min", times.at(0) / cpu.at(0)}, {"p50", times.at(0.5) / cpu.at(0.5)}};
    }
    out["threads"] = ttrt::threads();
    if (flags.profile) out["ops"] = profile_json(executor);
    if (flags.exec.dispatch.any()) out["dispatch"] = executor.chooser().telemetry();
    print_json(out);
    return 0;
  }
  print_text(times, cpu);
  if (flags.profile) std::cout << profile_text(executor);
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"bench", "Time a model, and LibTorch beside it", ttc::options, ttc::run,
                      "ttc bench models/vit_small.pt2 --loops 50 --reference"})
