// Names are those that TT-Symbiote's own entries have.
#include "session/timings.h"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/node_name.h"
#include "support/atomic_file.h"
#include "support/csv.h"
#include "support/error.h"

namespace ttc {
namespace {

constexpr std::string_view csv_ending = ".csv";

// "aten.add.Tensor" -> "aten::add.Tensor", "aten.topk.default" -> "aten::topk"; "tt.linear" -> "TTNN::linear" where the
// device served it, "tt::linear" where the host did.
std::string func_name(const ttrt::Instruction& instruction, bool on_device) {
  if (instruction.kind == ttrt::InstrKind::to_device) return "torch_to_ttnn";
  if (instruction.kind == ttrt::InstrKind::to_host) return "ttnn_to_torch";
  std::string name = instruction.node->op();
  if (name.ends_with(".default")) name.resize(name.size() - std::string_view(".default").size());
  const auto dot = name.find('.');
  if (dot == std::string::npos) return name;
  return (on_device ? "TTNN" : name.substr(0, dot)) + "::" + name.substr(dot + 1);
}

bool by_device(ttrt::OpPlace place) { return place != ttrt::OpPlace::cpu; }

// The shortest text that reads back as the same number.
std::string exact(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

}  // namespace

std::vector<TimingEntry> timing_entries(const ttrt::Executor& executor) {
  std::vector<TimingEntry> out;
  for (const ttrt::TraceEvent& event : executor.profiler().trace()) {
    const ir::Node& node = *event.instruction->node;
    nlohmann::ordered_json attrs{{"node", ir::node_name(node)}};
    if (!event.kernel.empty()) attrs["kernel"] = event.kernel;
    out.push_back({.attrs = attrs.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
                   .module_name = node.provenance->module_path,
                   .func_name = func_name(*event.instruction, by_device(event.place)),
                   .duration = event.wall_us / 1e6,
                   .backend = by_device(event.place) ? "TTNN" : "Torch",
                   .device_cycles = event.cycles});
  }
  return out;
}

std::vector<TimingSum> timing_sums(const ttrt::Executor& executor) {
  std::map<std::pair<std::string, std::string>, TimingSum> sums;
  for (const ttrt::InstructionProfile& one : executor.profiler().profile()) {
    const std::string func = func_name(*one.instruction, by_device(one.place)),
                      module = one.instruction->node->provenance->module_path;
    TimingSum& sum = sums[{func, module}];
    if (sum.rows == 0) sum = {.func_name = func, .module_name = module, .min = one.min_us / 1e6};
    (by_device(one.place) ? sum.ttnn : sum.torch) += one.wall_us / 1e6;
    sum.min = std::min(sum.min, one.min_us / 1e6);
    sum.max = std::max(sum.max, one.max_us / 1e6);
    sum.rows += one.calls;
    sum.device_cycles += one.cycles;
  }
  std::vector<TimingSum> out;
  for (auto& [key, sum] : sums) out.push_back(std::move(sum));
  return out;
}

std::string pivot_path(const std::string& path) {
  if (!path.ends_with(csv_ending)) throw usage_error("--timings " + path + ": the name has to end in .csv");
  return path.substr(0, path.size() - csv_ending.size()) + "_pivot.csv";
}

void write_timings(const std::string& path, const ttrt::Executor& executor) {
  Csv calls, pivot;
  calls.row({"", "attrs", "module_name", "func_name", "duration", "backend", "device_cycles"});
  std::size_t index = 0;
  for (const TimingEntry& one : timing_entries(executor))
    calls.row({std::to_string(index++), one.attrs, one.module_name, one.func_name, exact(one.duration), one.backend,
               exact(one.device_cycles)});
  pivot.row({"func_name", "module_name", "TTNN", "Torch", "Total_Duration", "Min_Duration", "Max_Duration", "Row_Count",
             "Device_Cycles"});
  for (const TimingSum& one : timing_sums(executor))
    pivot.row({one.func_name, one.module_name, exact(one.ttnn), exact(one.torch), exact(one.total()), exact(one.min),
               exact(one.max), std::to_string(one.rows), exact(one.device_cycles)});
  write_file(path, calls.text());
  write_file(pivot_path(path), pivot.text());
}

}  // namespace ttc
