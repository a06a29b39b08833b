// One row for each kernel that served a node, in four forms.
#include "profile_report.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "ops/library.h"
#include "support/atomic_file.h"
#include "support/csv.h"
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
  for (const InstructionProfile& p : executor.profiler().profile()) {
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
  write_file(path, OrderedJson{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump(
                       1, ' ', false, OrderedJson::error_handler_t::replace) +
                       "\n");
}

namespace {

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// The four innermost dims as PADDED[LOGICAL], layout, format, memory; blank for no tensor.
void add_tensor(std::vector<std::string>& cells, const ttrt::TensorSpec* spec) {
  if (spec == nullptr) {
    cells.resize(cells.size() + 7);
    return;
  }
  const auto dim = [](const ttrt::Shape& shape, std::size_t from_last) {
    return std::to_string(from_last < shape.size() ? shape[shape.size() - 1 - from_last] : 1);
  };
  const ttrt::Shape padded = spec->padded();
  for (const std::size_t d : {3, 2, 1, 0}) cells.push_back(dim(padded, d) + "[" + dim(spec->logical, d) + "]");
  for (std::string text : {std::string(to_string(spec->layout)), upper(to_string(spec->dtype)),
                           "DEV_0_" + std::string(to_string(spec->memory.buffer_type)) + "_" +
                               std::string(to_string(spec->memory.layout))})
    cells.push_back(std::move(text));
}

constexpr std::size_t csv_operands = 3;

}  // namespace

void write_csv(const std::string& path, const ttrt::Executor& executor) {
  std::vector<std::string> header = {"OP CODE",
                                     "OP TYPE",
                                     "GLOBAL CALL COUNT",
                                     "DEVICE ID",
                                     "DEVICE ARCH",
                                     "ATTRIBUTES",
                                     "MATH FIDELITY",
                                     "CORE COUNT",
                                     "AVAILABLE WORKER CORE COUNT",
                                     "HOST DURATION [ns]",
                                     "DEVICE FW DURATION [ns]",
                                     "DEVICE KERNEL DURATION [ns]",
                                     "OP TO OP LATENCY [ns]",
                                     "PM IDEAL [ns]",
                                     "PM BOUND"};
  for (std::size_t i = 0; i <= csv_operands; ++i) {
    const std::string tensor = i < csv_operands ? "INPUT_" + std::to_string(i) : "OUTPUT_0";
    for (const char* column : {"_W_PAD[LOGICAL]", "_Z_PAD[LOGICAL]", "_Y_PAD[LOGICAL]", "_X_PAD[LOGICAL]", "_LAYOUT",
                               "_DATATYPE", "_MEMORY"})
      header.push_back(tensor + column);
  }
  Csv out;
  out.row(header);
  const auto& arch = executor.options().profile;
  int call = 0;
  for (const InstructionProfile& p : executor.profiler().profile()) {
    if (p.place == ttrt::OpPlace::transfer) continue;  // device profilers have no rows for them
    const ir::Node& node = *p.instruction->node;
    const bool on_device = p.place == ttrt::OpPlace::device;
    const auto calls = static_cast<double>(p.calls);
    const std::string device_ns = std::to_string(static_cast<std::int64_t>(p.cycles / calls / arch.clock_mhz * 1000));
    const std::string cores = on_device ? std::to_string(arch.cores()) : "";
    std::vector<std::string> cells = {
        on_device ? ttrt::ops::device_program(node.op()) + "DeviceOperation" : "(torch) " + node.op(),
        on_device ? "tt_dnn_device" : "tt_dnn_cpu",
        std::to_string(++call),
        on_device ? "0" : "",
        on_device ? std::string(to_string(arch.arch)) : "",
        ir::node_name(node) + " " + node.provenance->module_path,
        on_device ? p.fidelity : "",
        cores,
        cores,
        std::to_string(static_cast<std::int64_t>(p.wall_us / calls * 1000)),
        device_ns,
        device_ns,
        "0",
        device_ns,
        p.bound};
    for (std::size_t i = 0; i < csv_operands; ++i)
      add_tensor(cells, on_device && i < p.operands.size() ? &p.operands[i] : nullptr);
    add_tensor(cells, on_device && !p.results.empty() ? p.results.data() : nullptr);
    out.row(cells);
  }
  write_file(path, out.text());
}

}  // namespace ttc
