// One row for each kernel that served a node, in four forms.
#include "profile_report.h"

#include <algorithm>
#include <map>

#include "session/device_trace.h"
#include "session/perf_csv.h"
#include "support/atomic_file.h"
#include "table.h"

namespace ttc {
namespace {

using ttrt::Instruction;
using ttrt::InstructionProfile;

}  // namespace

Rate rate_of(double flops, double bytes, double wall_us, const ttrt::HostPeak& peak) {
  if (wall_us <= 0) return {.of = "memory"};
  Rate out{.gflop_s = flops / wall_us * 1e-3, .gb_s = bytes / wall_us * 1e-3, .of = {}};
  const double products = peak.gflop_s > 0 ? out.gflop_s / peak.gflop_s : 0,
               memory = peak.read_gb_s > 0 ? out.gb_s / peak.read_gb_s : 0;
  out.share = std::max(products, memory);
  out.of = products > memory ? "products" : "memory";
  return out;
}

OrderedJson profile_json(const ttrt::Executor& executor, const ttrt::HostPeak* peak) {
  OrderedJson ops = OrderedJson::array();
  const ttrt::ArchProfile& arch = executor.options().profile;
  std::size_t at = 0;
  const std::vector<OpRow> rows = op_rows(executor);
  for (const InstructionProfile& p : executor.profiler().profile()) {
    const OpRow& of_call = rows.at(at++);
    OrderedJson& row = ops.emplace_back(OrderedJson{{"node", ir::node_name(*p.instruction->node)},
                                                    {"op", p.instruction->node->op()},
                                                    {"module", p.instruction->node->provenance->module_path},
                                                    {"place", to_string(p.place)},
                                                    {"calls", p.calls},
                                                    {"wall_us", p.wall_us},
                                                    {"cycles", p.cycles},
                                                    {"bound", p.bound},
                                                    {"bytes", p.bytes},
                                                    {"flops", p.flops},
                                                    {"kernel", p.kernel}});
    if (of_call.on_device()) {
      row["device_us"] = of_call.time.us;  // of one call, like what follows
      row["cores"] = of_call.split.cores;
      row["peak_flops_share"] = peak_share(of_call, arch);
      row["peak_dram_share"] = dram_share(of_call, arch);
    }
    if (peak == nullptr) continue;
    const Rate rate = rate_of(p.flops, static_cast<double>(p.bytes), p.wall_us, *peak);
    row["gflop_s"] = rate.gflop_s;
    row["gb_s"] = rate.gb_s;
    row["peak_share"] = rate.share;
    row["peak"] = rate.of;
  }
  return ops;
}

std::string profile_text(const ttrt::Executor& executor, const ttrt::HostPeak* peak) {
  struct Sum {
    std::int64_t calls = 0, bytes = 0;
    double wall_us = 0, cycles = 0, flops = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> by_op;  // by kernel, where one of dispatch served it
  double total = 0;
  for (const InstructionProfile& p : executor.profiler().profile()) {
    Sum& sum = by_op[{p.kernel.empty() ? p.instruction->node->op() : p.kernel, std::string(to_string(p.place))}];
    sum.calls += p.calls;
    sum.bytes += p.bytes;
    sum.wall_us += p.wall_us;
    sum.cycles += p.cycles;
    sum.flops += p.flops;
    total += p.wall_us;
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Sum>> sorted(by_op.begin(), by_op.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.wall_us > b.second.wall_us; });
  std::vector<std::string> header = {"kernel", "place", ">calls", ">wall_ms", ">share", ">cycles", ">MiB"};
  if (peak != nullptr) header.insert(header.end(), {">GFLOP/s", ">GB/s", ">of peak", ""});
  Table table(header);
  for (const auto& [key, sum] : sorted) {
    std::vector<std::string> cells = {key.first,
                                      key.second,
                                      std::to_string(sum.calls),
                                      number_text(sum.wall_us / 1000, 4),
                                      number_text(total > 0 ? 100 * sum.wall_us / total : 0, 3) + "%",
                                      number_text(sum.cycles, 6),
                                      number_text(static_cast<double>(sum.bytes) / 1048576, 4)};
    if (peak != nullptr) {
      const Rate rate = rate_of(sum.flops, static_cast<double>(sum.bytes), sum.wall_us, *peak);
      cells.insert(cells.end(), {rate.gflop_s > 0 ? number_text(rate.gflop_s, 3) : "", number_text(rate.gb_s, 3),
                                 number_text(100 * rate.share, 2) + "%", std::string(rate.of)});
    }
    table.row(std::move(cells));
  }
  return table.text();
}

void write_trace(const std::string& path, const ttrt::Executor& executor) {
  OrderedJson events = OrderedJson::array();
  int id = 0;
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"tid", 0}, {"args", {{"name", "this run"}}}});
  for (const auto& [name, tid] : {std::pair{"cpu", 1}, {"device", 2}, {"transfer", 3}})
    events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", tid}, {"args", {{"name", name}}}});
  for (const ttrt::TraceEvent& event : executor.profiler().trace()) {
    const Instruction& i = *event.instruction;
    events.push_back({{"name", i.node->op()},
                      {"cat", to_string(event.place)},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", event.place == ttrt::OpPlace::cpu      ? 1
                              : event.place == ttrt::OpPlace::device ? 2
                                                                     : 3},
                      {"ts", event.start_us},
                      {"dur", event.wall_us},
                      {"args",
                       {{"node", ir::node_name(*i.node)},
                        {"module", i.node->provenance->module_path},
                        {"source", i.node->provenance->source},
                        {"id", id++}}}});
  }
  // Beside the host's view the device's own, which it would have on a chip.
  std::vector<OpRow> rows;
  for (const ttrt::TraceEvent& event : executor.profiler().trace()) {
    OpRow& row = rows.emplace_back();
    row.node = event.instruction->node, row.place = event.place, row.kernel = event.kernel;
    row.wall_us = event.wall_us, row.time = event.time;
  }
  for (OrderedJson& event : device_trace(rows)) events.push_back(std::move(event));
  write_file(path, trace_text(std::move(events)));
}

void write_csv(const std::string& path, const ttrt::Executor& executor) {
  write_file(path, perf_csv(op_rows(executor), executor.options().profile));
}

}  // namespace ttc
