// ttc profile: what a model costs on a device by its time model, without running it.
#include <algorithm>
#include <iostream>
#include <map>

#include "compile_flags.h"
#include "dispatch/dispatchers.h"
#include "fit_note.h"
#include "json_out.h"
#include "session/device_profile.h"
#include "session/device_trace.h"
#include "session/explorer_graph.h"
#include "session/memory_db.h"
#include "session/perf_csv.h"
#include "session/what_if.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags : CompileFlags {
  std::string by = "node";
  int top = 20;
  bool markdown = false;
  bool what_if = false;
  std::string dispatcher, prefill;
  std::string csv, trace, explorer, ttnn_report;
} flags;

void options(FlagSet& app) {
  add_compile_flags(app, flags);
  app.group("What is shown");
  app.add_option("--by", flags.by, "A row for each").one_of({"node", "op", "module"}).of_text();
  app.add_option("--top", flags.top, "At most so many rows, the slowest; 0: all").not_negative().of_text();
  app.add_flag("--md", flags.markdown, "As Markdown tables").of_text();
  app.add_flag(
      "--what-if", flags.what_if,
      "What a call would take on other boards, in other formats and fidelities, ...; and advice, what each saves");
  app.add_option("--prefill", flags.prefill,
                 "Of a decode step (one token a call out of a cache): the model that takes the prompt and makes the "
                 "first token");
  app.add_option("--dispatcher", flags.dispatcher, "Which kernels serve device ops (ttc dispatchers)")
      .among(ttrt::dispatch::list_available_dispatchers());
  app.group("Files for other tools");
  app.add_option("--csv", flags.csv, "Write a table with the columns of device profiler reports (tt-perf-report)")
      .result();
  app.add_option("--trace", flags.trace, "Write a Chrome/Perfetto trace with a track for each engine").result();
  app.add_option("--explorer", flags.explorer, "Write the graph as Model Explorer opens it (JSON)").result();
  app.add_option("--ttnn-report", flags.ttnn_report,
                 "Write a folder that ttnn-visualizer opens: operations, tensors, memory over time").result();
}

void print(const Table& table) { std::cout << (flags.markdown ? table.markdown() : table.text()); }
std::string percent(double share) { return number_text(100 * share, 3) + "%"; }

// A row of the table: of a node, of all nodes of an op, or of a module.
struct Row {
  std::string name, kernel;
  double us = 0, flops = 0, peak_us = 0;  // peak_us: what its products would take at the chip's peak
  std::int64_t nodes = 0, dram_bytes = 0, useful = 0, padded = 0;
  std::array<double, ttrt::bounds> by_bound{};

  std::string_view bound() const {
    const auto most = std::max_element(by_bound.begin(), by_bound.end());
    return to_string(static_cast<ttrt::Bound>(most - by_bound.begin()));
  }
  void add(const NodeCost& op, const ttrt::ArchProfile& arch) {
    us += op.time.us, flops += op.flops, ++nodes;
    dram_bytes += op.dram_bytes, useful += op.useful_bytes, padded += op.padded_bytes;
    by_bound[static_cast<std::size_t>(op.time.bound)] += op.time.us;
    if (const auto fidelity = ttrt::math_fidelity_from_string(op.fidelity))
      peak_us += op.flops / arch.peak_tflops(*fidelity) * 1e-6;
  }
};

std::vector<Row> rows_of(const DeviceProfile& profile) {
  std::vector<Row> out;
  std::map<std::string, std::size_t> known;
  for (const NodeCost& op : profile.ops) {
    const std::string key = flags.by == "op" ? op.op : flags.by == "module" ? op.module : op.name;
    const auto [at, added] = known.emplace(key, out.size());
    if (added) out.emplace_back().name = flags.by == "node" ? op.name + " " + op.op : key.empty() ? "(no module)" : key;
    out[at->second].add(op, profile.arch);
    if (flags.by == "node") out[at->second].kernel = op.program.empty() ? op.kernel : op.program;
  }
  std::stable_sort(out.begin(), out.end(), [](const Row& a, const Row& b) { return a.us > b.us; });
  return out;
}

void print_rows(const DeviceProfile& profile) {
  const std::vector<Row> rows = rows_of(profile);
  std::vector<std::string> header{flags.by, ">us", ">share", "bound", ">of peak", ">DRAM", ">padding"};
  header.push_back(flags.by == "node" ? "program" : ">nodes");
  Table table(header);
  const std::size_t shown = flags.top > 0 ? std::min(rows.size(), static_cast<std::size_t>(flags.top)) : rows.size();
  for (std::size_t i = 0; i < shown; ++i) {
    const Row& r = rows[i];
    const double waste = r.padded > 0 ? 1 - static_cast<double>(r.useful) / static_cast<double>(r.padded) : 0;
    table.row({r.name, number_text(r.us, 4), percent(profile.us > 0 ? r.us / profile.us : 0), std::string(r.bound()),
               r.peak_us > 0 ? percent(r.peak_us / r.us) : "", bytes_text(static_cast<double>(r.dram_bytes)),
               waste > 0.0005 ? percent(waste) : "", flags.by == "node" ? r.kernel : std::to_string(r.nodes)});
  }
  print(table);
  if (shown < rows.size() && !flags.markdown)
    std::cout << "and " << rows.size() - shown << " more; --top 0 shows all\n";
}

std::string memory_text(const char* name, const MemoryUse& use, const DeviceProfile& profile) {
  const auto text = [](std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  if (use.over_time.empty()) return "";
  std::string out = std::string(name) + (use.fits() ? ": at most " : " does not fit: ") + text(use.peak) + " of " +
                    text(use.bytes) + ", at " + profile.ops[use.peak_at].name;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, use.held.size()); ++i)
    out += (i == 0 ? "; " : ", ") + use.held[i].kind + " " + use.held[i].name + " " + text(use.held[i].bytes);
  return out + "\n";
}

void print_decode(const DecodeLoop& loop) {
  const auto counted = [](std::int64_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  std::cout << "in a loop: " << number_text(loop.token_us, 4) << " us a token, " << number_text(loop.tokens_per_s(), 4)
            << " tokens/s for " << counted(loop.users, "user") << "; " << counted(loop.caches, "cache")
            << " stay on the device\nfirst token: ";
  if (loop.first)
    std::cout << number_text(loop.first->us, 4) << " us for " << counted(loop.first->users, "prompt") << " of "
              << counted(loop.first->tokens, "token") << ", by " << loop.first->model << '\n';
  else
    std::cout << "as many calls as the prompt has tokens; --prefill prices a model that takes it at once\n";
}

void print_totals(const DeviceProfile& p) {
  std::cout << p.arch.name << ": " << number_text(p.us, 4) << " us a call";
  if (p.transfer_us > 0) std::cout << ", " << number_text(p.transfer_us, 3) << " of them to and from the host";
  const auto rate = [&](std::int64_t n) { return number_text(static_cast<double>(n) / p.us * 1e6, 4); };
  if (p.us > 0 && p.samples > 0) std::cout << "; " << rate(p.samples) << " samples/s";
  if (p.us > 0 && p.tokens > 0) std::cout << ", " << rate(p.tokens) << " tokens/s";
  std::cout << '\n';
  if (p.decode) print_decode(*p.decode);
  std::cout << "bound by";
  std::vector<std::pair<double, std::string_view>> bounds;
  for (std::size_t i = 0; i < ttrt::bounds; ++i)
    if (p.us_by_bound[i] > 0) bounds.emplace_back(p.us_by_bound[i], to_string(static_cast<ttrt::Bound>(i)));
  std::sort(bounds.rbegin(), bounds.rend());
  for (const auto& [us, name] : bounds) std::cout << ' ' << name << ' ' << percent(us / p.us);
  std::cout << '\n' << memory_text("DRAM", p.dram, p) << memory_text("L1 of a core", p.l1, p);
  if (p.host_nodes > 0) std::cout << p.host_nodes << " nodes run on the host, whose time is not in here\n";
  if (p.unpriced > 0) std::cout << p.unpriced << " device nodes have shapes that only a run knows; give --shape\n";
}

void write_files(const Compiled& made, const DeviceProfile& profile) {
  const std::vector<OpRow> rows = op_rows(profile);
  if (!flags.csv.empty()) write_file(flags.csv, perf_csv(rows, profile.arch));
  if (!flags.explorer.empty())
    write_file(flags.explorer, explorer_graph(*made.model, made.result, profile, flags.model)
                                   .dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  if (!flags.trace.empty()) write_file(flags.trace, trace_text(device_trace(rows)));
  if (!flags.ttnn_report.empty()) write_memory_db(flags.ttnn_report, flags.model, rows, profile.arch);
}

void print_ways(const std::vector<WhatIf>& ways, const DeviceProfile& profile) {
  Table table({"what if", ">us", ">saves us", ">samples/s", ">DRAM", "", "with"});
  for (const WhatIf& way : ways)
    table.row({way.what, number_text(way.us, 4), number_text(profile.us - way.us, 3), number_text(way.samples_per_s, 4),
               bytes_text(static_cast<double>(way.dram_peak)), way.fits ? "" : "does not fit", way.flags});
  std::cout << '\n';
  print(table);
  std::vector<const WhatIf*> advice;
  for (const WhatIf& way : ways)
    if (way.advice) advice.push_back(&way);
  std::stable_sort(advice.begin(), advice.end(), [](const WhatIf* a, const WhatIf* b) { return a->us < b->us; });
  std::cout << '\n';
  for (const WhatIf* way : advice)
    std::cout << "advice: " << way->what << " save " << number_text(profile.us - way->us, 4) << " us ("
              << percent(1 - way->us / profile.us) << "): " << way->flags << '\n';
  if (std::ranges::any_of(advice, [](const WhatIf* way) { return way->flags.starts_with("--weight-dtype"); }))
    std::cout << "narrower formats cost accuracy; ttc compile --min-pcc X --io F finds where a model bears them\n";
  if (advice.empty()) std::cout << "no choice of these saves a hundredth of it\n";
}

// The prompt is of the size that its model was exported with; --shape is about the step.
FirstToken first_token(const Globals& globals, const DeviceProfile& step) {
  if (!step.decode)
    throw usage_error("--prefill: " + flags.model + " is no decode step: one token a call, and a cache for the next",
                      "without it the profile is that of one call");
  const ModelSource source(flags.prefill);
  CompileFlags settings = flags;
  settings.shapes.clear(), settings.inputs.clear(), settings.io.clear();
  const Compiled made = compiled(globals, source, settings, false);
  const DeviceProfile profile = profile_device(*made.model, made.profile, made.shapes, flags.dispatcher);
  if (profile.tokens == 0 || profile.samples == 0)
    throw usage_error("--prefill: " + flags.prefill + " takes no tokens, integers of two dims");
  return {
      .model = flags.prefill, .us = profile.us, .tokens = profile.tokens / profile.samples, .users = profile.samples};
}

int run(const Globals& globals) {
  for (const std::string* path : {&flags.csv, &flags.trace, &flags.explorer})
    if (!path->empty()) check_output(*path);
  const ModelSource source(flags.model);
  const Compiled made = compiled(globals, source, flags, false);
  DeviceProfile profile = profile_device(*made.model, made.profile, made.shapes, flags.dispatcher);
  if (!flags.prefill.empty()) {
    const FirstToken first = first_token(globals, profile);
    profile.decode->first = first;
  }
  const std::vector<FitOption> options = options_where_needed(globals, source, flags, profile.dram.fits());
  if (profile.ops.empty()) warn(globals, flags.model + " has nothing on the device", "ttc check says why");
  write_files(made, profile);
  std::vector<WhatIf> ways;
  if (flags.what_if) {
    const Timed timed(globals, "trying what else there is");
    ways = what_ifs(source, flags, flags.dispatcher, profile);
  }
  if (globals.json) {
    OrderedJson out = to_json(profile);
    out["model"] = flags.model;
    if (!options.empty()) out["memory"]["options"] = to_json(options);
    if (flags.what_if) out["what_if"] = to_json(ways, profile);
    print_json(out);
    return 0;
  }
  print_totals(profile);
  print_fit_options(options);
  std::cout << '\n';
  print_rows(profile);
  if (flags.what_if) print_ways(ways, profile);
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"profile", "Device time and memory by the time model, without running", ttc::options, ttc::run,
                      "ttc profile models/vit_small.pt2 --arch p150"})
