// ttc run: executes a rewritten or plain model, checks its outputs where the --io file has expected ones.
#include <algorithm>
#include <chrono>
#include <iostream>

#include "compatibility_report.h"
#include "formats/model_file.h"
#include "formats/safetensors.h"
#include "json_out.h"
#include "executor/kernel_choice.h"
#include "profile_report.h"
#include "run_modes.h"
#include "session/baseline.h"
#include "session/index_notes.h"
#include "session/memory_db.h"
#include "session/model_source.h"
#include "session/reproducer.h"
#include "session/steps.h"
#include "session/timings.h"
#include "session/values.h"
#include "support/atomic_file.h"
#include "support/check_hook.h"
#include "support/error.h"
#include "support/progress.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string model, save_outputs, trace, csv, timings, telemetry, ttnn_report;
  CompatibilityFlags compatibility;
  InputOptions inputs;
  ExecFlags exec;
  Thresholds thresholds;
  int loops = 1, warmup = 0;
  bool profile = false, memory_report = false, baseline = false;
  std::string baseline_model;
  std::optional<double> min_device_fraction;
} flags;

void options(FlagSet& app) {
  app.add_option("model", flags.model, "A .pt2 or TorchScript file").required();
  add_input_flags(app, flags.inputs);
  add_exec_flags(app, flags.exec);
  app.group("Execution");
  app.add_option("--mode", flags.exec.mode,
                 "device: ops that fall back to the CPU do so (normal: they fail the run; traced: too, and how often a "
                 "recorded run was replayed is told; lightweight: too, without times); cpu: everything in LibTorch; "
                 "sel, dpl, dpl-no-error-prop: as ttc compare; TT_SYMBIOTE_RUN_MODE wins")
      .among(run_modes());
  add_threshold_flags(app, flags.thresholds);
  app.add_option("--min-device-fraction", flags.min_device_fraction, "Fail where fewer compute nodes are on the device")
      .range(0.0, 1.0);
  app.add_flag("--baseline", flags.baseline,
               "LibTorch's own figures in bfloat16 beside the device's; an error at most twice as large passes");
  app.add_option("--baseline-model", flags.baseline_model, "The model for --baseline; a rewritten model needs it");
  app.group("Measuring");
  app.add_option("--loops", flags.loops, "Runs that are timed").range(1, 1000000);
  app.add_option("--warmup", flags.warmup, "Runs before these").range(0, 1000000);
  app.add_flag("--profile", flags.profile, "Time of every op");
  app.add_option("--trace", flags.trace, "Write a Chrome/Perfetto trace").result();
  app.add_option("--csv", flags.csv, "Write a table with the columns of device profiler reports")
      .result();
  app.add_option("--ttnn-report", flags.ttnn_report,
                 "Write a folder that ttnn-visualizer opens: operations, tensors, memory over time").result();
  app.add_option("--timings", flags.timings,
                 "Write a row for each call with TT-Symbiote's columns, and NAME_pivot.csv beside this NAME.csv")
      .result();
  app.add_option("--telemetry", flags.telemetry, "Write what dispatch counted: which kernel served each node (JSON)")
      .result();
  app.add_flag("--memory-report", flags.memory_report, "What held the device's memory at its peak");
  add_compatibility_flags(app, flags.compatibility);
  app.group("Measuring");
  add_reproducer_flag(app, flags.exec);
  app.group("Options");
  app.add_option("--save-outputs", flags.save_outputs,
                 "Write out0, out1, ... (safetensors), numbers as tensors of rank 0")
      .result();
}

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

struct Outcome {
  std::vector<std::string> names;
  std::vector<ttrt::RtValue> outputs;  // of the last case
  std::vector<Check> checks;
  RunLedger ledger;
  std::optional<Compatibility> compatibility;
  std::size_t runs = 0;
  double wall_ms = 0, load_ms = 0;
};

void save(const Outcome& outcome) {
  SafeTensors file;
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i) {
    if (const auto tensor = as_tensor(outcome.outputs[i])) file.tensors[outcome.names[i]] = own_weight(*tensor);
  }
  write_safetensors(flags.save_outputs, file);
}

OrderedJson check_json(const Check& check) {
  OrderedJson out{{"output", check.output},
                  {"pcc", json_number(check.metrics.pcc)},
                  {"max_abs", json_number(check.metrics.max_abs)},
                  {"max_rel", json_number(check.metrics.max_rel)},
                  {"snr_db", json_number(check.metrics.snr_db)},
                  {"allclose", check.allclose},
                  {"nan", check.metrics.nan},
                  {"pass", check.pass}};
  if (check.baseline)
    out["baseline"] = {{"pcc", json_number(check.baseline->pcc)},
                       {"max_abs", json_number(check.baseline->max_abs)},
                       {"max_rel", json_number(check.baseline->max_rel)},
                       {"snr_db", json_number(check.baseline->snr_db)}};
  if (!check.problem.empty()) out["problem"] = check.problem;
  if (!check.note.empty()) out["note"] = check.note;
  return out;
}

OrderedJson memory_json(const ttrt::MemoryUsage& usage) {
  OrderedJson held = OrderedJson::array();
  for (const auto& buffer : usage.at_peak)
    held.push_back({{"label", buffer.label}, {"bytes", buffer.bytes}, {"bytes_per_bank", buffer.bytes_per_bank}});
  return {{"banks", usage.banks},
          {"bank_bytes", usage.bank_bytes},
          {"peak_per_bank", usage.peak_per_bank},
          {"allocated_per_bank", usage.allocated_per_bank},
          {"at_peak", held}};
}

std::int64_t failures_of(const ttrt::Executor& executor) {
  std::int64_t count = 0;
  for (const auto& failure : executor.fallback_failures()) count += failure.count;
  return count;
}

void report_json(const ttrt::Executor& executor, const Outcome& outcome) {
  const auto counts = executor.counts();
  OrderedJson out{
      {"mode", flags.exec.mode}, {"numerics", flags.exec.numerics}, {"arch", executor.options().profile.name}};
  out["outputs"] = OrderedJson::array();
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i) {
    OrderedJson entry{{"name", outcome.names[i]}};
    if (const auto* tensor = outcome.outputs[i].get_if<ttrt::HostTensor>()) {
      entry["dtype"] = std::string(torch_name(tensor->dtype));
      entry["shape"] = tensor->sizes;
    } else {
      entry["dtype"] = nullptr;
      entry["value"] = value_text(outcome.outputs[i]);
    }
    out["outputs"].push_back(std::move(entry));
  }
  out["checks"] = OrderedJson::array();
  for (const Check& check : outcome.checks) out["checks"].push_back(check_json(check));
  out["nodes"] = {{"total", counts.total},
                  {"device", counts.device},
                  {"cpu", counts.cpu},
                  {"fallback_failures", failures_of(executor)}};
  out["wall_ms"] = outcome.wall_ms;
  out["load_ms"] = outcome.load_ms;
  const ttrt::RunWork& work = executor.work();
  const double clock = executor.options().profile.clock_mhz;
  out["device"] = {{"cycles", work.device_cycles}, {"us", work.device_cycles / clock}};
  out["transfers"] = {{"to_device", work.transfers.to_device},
                      {"to_device_bytes", work.transfers.to_device_bytes},
                      {"to_host", work.transfers.to_host},
                      {"to_host_bytes", work.transfers.to_host_bytes},
                      {"us", work.transfer_cycles() / clock}};
  out["weights"] = {{"total", work.weights.weights},
                    {"streamed", work.weights.streamed},
                    {"moves", work.weights.moves},
                    {"bytes", work.weights.bytes},
                    {"us", work.weights.cycles / clock}};
  if (flags.exec.mode == "traced")
    out["traces"] = {{"recorded", executor.cached_plans()}, {"replayed", outcome.runs - executor.cached_plans()}};
  out["peak_rss"] = peak_rss();
  if (flags.profile) out["ops"] = profile_json(executor);
  if (flags.exec.dispatch.any()) out["dispatch"] = executor.chooser().telemetry();
  if (outcome.compatibility) out["compatibility"] = OrderedJson::parse(outcome.compatibility->json());
  if (flags.memory_report && executor.device() != nullptr) {
    const auto report = executor.device()->memory_report();
    out["memory"] = {{"dram", memory_json(report.dram)}, {"l1", memory_json(report.l1)}};
  }
  print_json(out);
}

void report_memory(const ttrt::MemoryUsage& usage) {
  std::cout << to_string(usage.type) << ": peak " << bytes_text(static_cast<double>(usage.peak_per_bank)) << " of "
            << bytes_text(static_cast<double>(usage.bank_bytes)) << " in each of " << usage.banks << " banks\n";
  Table table({">bytes", ">per bank", "held by"});
  for (std::size_t i = 0; i < usage.at_peak.size() && i < 20; ++i)
    table.row({bytes_text(static_cast<double>(usage.at_peak[i].bytes)),
               bytes_text(static_cast<double>(usage.at_peak[i].bytes_per_bank)), usage.at_peak[i].label});
  if (!table.empty()) std::cout << table.text(2);
}

bool all_pass(const Outcome& outcome) {
  return std::all_of(outcome.checks.begin(), outcome.checks.end(), [](const Check& check) { return check.pass; });
}

// "each output needs PCC >= 0.99"
std::string wanted_text(const ttrt::Executor& executor) {
  const Thresholds t = thresholds_in_force(flags.thresholds, is_approximate(executor));
  std::string out;
  const auto add = [&](const std::optional<double>& limit, const char* text) {
    if (limit) out += (out.empty() ? "each output needs " : ", ") + (text + number_text(*limit, 6));
  };
  add(t.pcc, "PCC >= ");
  if (t.atol || t.rtol)
    out += (out.empty() ? "each output needs " : ", ") + ("|a - e| <= " + number_text(t.atol.value_or(0), 6)) + " + " +
           number_text(t.rtol.value_or(0), 6) + " |e|";
  return out;
}

void report_text(const ttrt::Executor& executor, const Outcome& outcome) {
  const auto counts = executor.counts();
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i)
    std::cout << outcome.names[i] << ": " << value_text(outcome.outputs[i]) << '\n';
  if (!outcome.checks.empty()) {
    Table table({"output", "result", ">pcc", ">max_abs", ">max_rel", ">snr_db", ">nan"});
    const auto row = [&](std::vector<std::string> cells, const ttrt::Metrics& m) {
      for (std::string cell : {number_text(m.pcc, 7), number_text(m.max_abs, 3), number_text(m.max_rel, 3),
                               number_text(m.snr_db, 4), std::to_string(m.nan)})
        cells.push_back(std::move(cell));
      table.row(std::move(cells));
    };
    for (const Check& c : outcome.checks) {
      if (!c.problem.empty()) {
        table.row({c.output, "FAIL: " + c.problem});
        continue;
      }
      row({c.output, c.pass ? "ok" : "FAIL"}, c.metrics);
      if (c.baseline) row({"", "LibTorch bfloat16"}, *c.baseline);
    }
    std::cout << table.text();
    for (const Check& c : outcome.checks)
      if (!c.note.empty()) std::cout << c.output << ": " << c.note << '\n';
    if (!all_pass(outcome)) std::cout << "FAIL: " << wanted_text(executor) << '\n';
  }
  if (executor.options().mode == ttrt::Mode::device) {
    const ttrt::RunWork& work = executor.work();
    const double clock = executor.options().profile.clock_mhz;
    std::cout << counts.device << "/" << counts.total << " nodes on device (" << flags.exec.numerics << " numerics, "
              << arch_text(executor.options().profile) << "), " << counts.cpu << " on CPU; by its time model "
              << number_text(work.device_cycles / clock, 4) << " us of kernels, "
              << number_text(work.transfer_cycles() / clock, 4) << " us of transfers\n";
    if (work.weights.streamed > 0)
      std::cout << work.weights.streamed << " of " << work.weights.weights << " weights streamed, "
                << bytes_text(static_cast<double>(work.weights.bytes)) << " moved per run in "
                << number_text(work.weights.cycles / clock, 4) << " us of the transfers\n";
    for (const auto& failure : executor.fallback_failures())
      std::cout << "  fell back: " << failure.node << " (" << failure.op << ") " << failure.count
                << "x: " << failure.reason << '\n';
  }
  if (flags.exec.mode == "traced") {
    const std::size_t recorded = executor.cached_plans();
    std::cout << recorded << " recorded, " << outcome.runs - recorded << " replayed\n";
  }
  std::cout << number_text(outcome.wall_ms, 4) << " ms a run, loaded in " << number_text(outcome.load_ms, 4) << " ms\n";
  if (flags.profile) std::cout << profile_text(executor);
  if (flags.memory_report && executor.device() != nullptr) {
    const auto report = executor.device()->memory_report();
    report_memory(report.dram);
    report_memory(report.l1);
  }
}

Outcome execute(ttrt::Executor& executor, const std::shared_ptr<const ir::Model>& model,
                const std::vector<Case>& cases) {
  Outcome outcome;
  // The first run finds out what lies where in those after it, which is what the report is about.
  const int warmup = std::max(flags.warmup, flags.ttnn_report.empty() ? 0 : 1);
  Phase phase("running " + flags.model,
              static_cast<std::uint64_t>(flags.loops + warmup) * static_cast<std::uint64_t>(cases.size()));
  StepRunner steps(executor, cases);
  IndexNotes notes(model, executor, cases);
  const auto run_all = [&](bool last) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      outcome.outputs = flat_outputs(steps.run(i));
      ++outcome.runs;
      if (flags.compatibility.any()) outcome.ledger.observe(executor);
      phase.advance();
      if (!last) continue;
      for (Check& check : check_outputs(cases[i], outcome.outputs, flags.thresholds, is_approximate(executor)))
        outcome.checks.push_back(std::move(check));
      notes.keep(i, outcome.outputs);
    }
  };
  for (int i = 0; i < warmup; ++i) {
    run_all(false);
    executor.reset_state();
  }
  const bool traced = !flags.trace.empty() || !flags.timings.empty();
  executor.set_profiling(flags.profile || traced || !flags.csv.empty() || !flags.ttnn_report.empty(), traced);
  double total = 0;
  for (int i = 0; i < flags.loops; ++i) {
    if (i > 0) executor.reset_state();
    const auto start = std::chrono::steady_clock::now();
    run_all(i + 1 == flags.loops);
    total += ms_since(start);
  }
  outcome.wall_ms = total / flags.loops / static_cast<double>(cases.size());
  notes.add(outcome.checks);
  for (std::size_t i = 0; i < outcome.outputs.size(); ++i) outcome.names.push_back("out" + std::to_string(i));
  return outcome;
}

bool passed(const ttrt::Executor& executor, const Outcome& outcome) {
  bool pass = all_pass(outcome);
  if (flags.min_device_fraction) {
    const double fraction = executor.counts().device_fraction();
    if (fraction < *flags.min_device_fraction) {
      std::cerr << "error: " << flags.model << ": " << number_text(fraction, 4)
                << " of the compute nodes ran on the device, " << *flags.min_device_fraction << " are asked for\n";
      pass = false;
    }
  }
  return pass;
}

// A node of which the device's kernel failed, so that the host served it.
void reproduce_fallback(const Globals& globals, const ttrt::Executor& executor,
                        const std::shared_ptr<const ir::Model>& model, const std::vector<Case>& cases) {
  for (const ttrt::FallbackFailure& failure : executor.fallback_failures()) {
    if (failure.node.empty()) continue;
    ttrt::Executor again(model, executor.options());
    const auto node = falling_node(again, cases).value_or(NodeOfStep{.node = failure.node});
    return write_node_reproducer(globals, flags.exec, node, model, cases, executor.options());
  }
  nothing_failed(globals, flags.exec);
}

// The run, and where that ends in an error, or the process in a failed check, the reproducer.
Outcome execute_reproducing(const Globals& globals, ttrt::Executor& executor,
                            const std::shared_ptr<const ir::Model>& model, const std::vector<Case>& cases) {
  if (flags.exec.reproducer.empty()) return execute(executor, model, cases);
  const RunWatch watch(executor, cases.size());
  const auto write = [&](const std::optional<NodeOfStep>& node) {
    if (node) write_node_reproducer(globals, flags.exec, *node, model, cases, executor.options());
  };
  const AtCheckFailure at_check([&](const std::string&) { write(watch.next()); });
  try {
    return execute(executor, model, cases);
  } catch (const Error&) {
    write(failing_node(executor, cases));
    throw;
  }
}

std::vector<std::pair<std::string, std::string>> files_to_write() {
  std::vector<std::pair<std::string, std::string>> out = {
      {"--save-outputs", flags.save_outputs}, {"--trace", flags.trace},     {"--csv", flags.csv},
      {"--telemetry", flags.telemetry},       {"--timings", flags.timings}, {"--reproducer", flags.exec.reproducer}};
  if (!flags.timings.empty()) out.emplace_back("--timings", pivot_path(flags.timings));
  return out;
}

// TT-Symbiote's LIGHTWEIGHT is NORMAL without times.
void leave_out_times(const Globals& globals) {
  using Flag = std::pair<const char*, std::string*>;
  for (const auto& [flag, path] : {Flag{"--trace", &flags.trace}, {"--csv", &flags.csv}, {"--timings", &flags.timings}})
    if (!path->empty()) {
      warn(globals, std::string(flag) + " has no effect: --mode lightweight takes no times");
      path->clear();
    }
  if (flags.profile) warn(globals, "--profile has no effect: --mode lightweight takes no times");
  flags.profile = false;
}

// In the modes that do what ttc compare does.
int compare(const Globals& globals, const std::shared_ptr<const ir::Model>& model) {
  const std::string why = "--mode " + flags.exec.mode + " compares";
  refuse_unchecked({"--atol", "--rtol", "--min-device-fraction", "--baseline", "--baseline-model", "--expected-fallbacks"},
                   why + " node by node");
  warn_of_idle(globals,
               {"--loops", "--warmup", "--profile", "--trace", "--csv", "--ttnn-report", "--timings", "--telemetry",
                "--memory-report", "--compatibility", "--save-outputs"},
               why);
  return compare_and_report(globals, flags.model, model, cases_for(globals, *model, flags.inputs), flags.exec, "cpu",
                            {.mode = compare_mode(flags.exec.mode), .pcc = flags.thresholds.pcc});
}

int run(const Globals& globals) {
  const auto start = std::chrono::steady_clock::now();
  flags.exec.mode = mode_in_force(globals, flags.exec.mode, run_modes());
  if (flags.exec.mode == "lightweight") leave_out_times(globals);
  const auto model = load_for(globals, flags.model, flags.inputs, flags.exec);
  if (compares(flags.exec.mode)) return compare(globals, model);
  ttrt::Executor executor(model, executor_options(globals, flags.exec, *model));
  const double load_ms = ms_since(start);
  std::vector<Case> cases = cases_for(globals, *model, flags.inputs);
  if (flags.baseline || !flags.baseline_model.empty())
    add_baseline(ModelSource(flags.baseline_model.empty() ? flags.model : flags.baseline_model), cases);
  if (flags.thresholds.any()) require_expected(cases, "a threshold");
  if (flags.min_device_fraction && executor.counts().total == 0)
    throw usage_error("--min-device-fraction: " + flags.model + " computes nothing");
  if (flags.exec.mode == "cpu") {
    refuse_unchecked({"--expected-fallbacks"}, "--mode cpu leaves everything to the host");
    warn_of_idle(globals, {"--memory-report", "--telemetry"}, "--mode cpu uses no device");
    if (flags.compatibility.any())
      warn(globals, "--mode cpu leaves everything to the host, which is all that the compatibility report tells");
  }
  for (const auto& [flag, path] : files_to_write())
    if (!path.empty()) check_output(path);
  if (!flags.exec.reproducer.empty()) output_format(flags.exec.reproducer);
  const std::optional<ExpectedFallbacks> expected = expected_fallbacks(flags.compatibility);
  Outcome outcome = [&] {
    const Timed timed(globals, "running");
    return execute_reproducing(globals, executor, model, cases);
  }();
  if (!flags.exec.reproducer.empty()) reproduce_fallback(globals, executor, model, cases);
  outcome.load_ms = load_ms;
  if (const auto fell_back = executor.fallback_failures(); fails_on_fallback(flags.exec.mode) && !fell_back.empty())
    throw Error(
        Exit::check_failed, flags.model,
        "node '" + fell_back[0].node + "' (" + fell_back[0].op + ") fell back to the CPU: " + fell_back[0].reason,
        "--mode normal-with-fallback lets it");
  check_warnings(globals);
  if (!flags.save_outputs.empty()) save(outcome);
  if (!flags.trace.empty()) write_trace(flags.trace, executor);
  if (!flags.csv.empty()) write_csv(flags.csv, executor);
  if (!flags.ttnn_report.empty())
    write_memory_db(flags.ttnn_report, flags.model, op_rows(executor), executor.options().profile);
  if (!flags.timings.empty()) write_timings(flags.timings, executor);
  if (!flags.telemetry.empty()) write_file(flags.telemetry, executor.chooser().telemetry().dump(2) + "\n");
  bool as_expected = true;
  if (flags.compatibility.any()) {
    outcome.compatibility = outcome.ledger.report(executor);
    as_expected = report_compatibility(globals, flags.compatibility, *outcome.compatibility, expected, flags.model);
  }
  globals.json ? report_json(executor, outcome) : report_text(executor, outcome);
  return static_cast<int>(passed(executor, outcome) && as_expected ? Exit::ok : Exit::check_failed);
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"run", "Execute a rewritten or plain model", ttc::options, ttc::run,
                      "ttc run bert.pt2 --io models/bert_small.io.safetensors --pcc 0.99"})
