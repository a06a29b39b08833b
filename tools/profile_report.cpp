// See profile_report.h.
#include "profile_report.h"

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

#include "support/atomic_file.h"
#include "table.h"

namespace ttc {
namespace {

using ttrt::InstrKind;
using ttrt::Instruction;
using ttrt::InstructionProfile;

std::string name_of(const Instruction& i) { return i.node->results().empty() ? i.node->op() : i.node->result(0)->name; }

// `kernel` served the op; one of the host leaves it on the CPU.
std::string place_of(const ttrt::Executor& executor, const Instruction& i, const std::string& kernel = {}) {
  const bool device = executor.options().mode == ttrt::Mode::device && !kernel.ends_with(".host");
  if (i.kind == InstrKind::to_device || i.kind == InstrKind::to_host) return device ? "transfer" : "cpu";
  return i.kind == InstrKind::device && device ? "device" : "cpu";
}

void visit(const ttrt::Region& region, const std::function<void(const Instruction&)>& f) {
  for (const Instruction& i : region.instructions) {
    f(i);
    for (const ttrt::Region& inner : i.regions) visit(inner, f);
  }
}

// Instructions that ran, in order.
std::vector<std::pair<const Instruction*, const InstructionProfile*>> entries(const ttrt::Executor& executor) {
  std::vector<std::pair<const Instruction*, const InstructionProfile*>> out;
  visit(executor.program().main, [&](const Instruction& i) {
    const auto& profile = executor.profile();
    if (static_cast<std::size_t>(i.index) < profile.size() && profile[static_cast<std::size_t>(i.index)].calls > 0)
      out.emplace_back(&i, &profile[static_cast<std::size_t>(i.index)]);
  });
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

OrderedJson profile_json(const ttrt::Executor& executor) {
  OrderedJson ops = OrderedJson::array();
  for (const auto& [i, p] : entries(executor))
    ops.push_back({{"node", name_of(*i)},
                   {"op", i->node->op()},
                   {"module", i->node->provenance->module_path},
                   {"place", place_of(executor, *i, p->kernel)},
                   {"calls", p->calls},
                   {"wall_us", p->wall_us},
                   {"cycles", p->cycles},
                   {"bound", p->bound},
                   {"bytes", p->bytes},
                   {"kernel", p->kernel}});
  return ops;
}

std::string profile_text(const ttrt::Executor& executor) {
  struct Sum {
    std::int64_t calls = 0, bytes = 0;
    double wall_us = 0, cycles = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> by_op;  // by kernel, where one of dispatch served it
  double total = 0;
  for (const auto& [i, p] : entries(executor)) {
    Sum& sum = by_op[{p->kernel.empty() ? i->node->op() : p->kernel, place_of(executor, *i, p->kernel)}];
    sum.calls += p->calls;
    sum.bytes += p->bytes;
    sum.wall_us += p->wall_us;
    sum.cycles += p->cycles;
    total += p->wall_us;
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Sum>> sorted(by_op.begin(), by_op.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.wall_us > b.second.wall_us; });
  Table table({"kernel", "place", ">calls", ">wall_ms", ">share", ">cycles", ">MiB"});
  for (const auto& [key, sum] : sorted)
    table.row({key.first, key.second, std::to_string(sum.calls), number_text(sum.wall_us / 1000, 4),
               number_text(total > 0 ? 100 * sum.wall_us / total : 0, 3) + "%", number_text(sum.cycles, 6),
               number_text(static_cast<double>(sum.bytes) / 1048576, 4)});
  return table.text();
}

void write_trace(const std::string& path, const ttrt::Executor& executor) {
  OrderedJson events = OrderedJson::array();
  int id = 0;
  for (const auto& [name, tid] : {std::pair{"cpu", 1}, {"device", 2}, {"transfer", 3}})
    events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", tid}, {"args", {{"name", name}}}});
  for (const ttrt::TraceEvent& event : executor.trace()) {
    const Instruction& i = *event.instruction;
    const std::string place = place_of(executor, i);
    events.push_back({{"name", i.node->op()},
                      {"cat", place},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", place == "cpu"      ? 1
                              : place == "device" ? 2
                                                  : 3},
                      {"ts", event.start_us},
                      {"dur", event.wall_us},
                      {"args",
                       {{"node", name_of(i)},
                        {"module", i.node->provenance->module_path},
                        {"source", i.node->provenance->source},
                        {"id", id++}}}});
  }
  write_file(path, OrderedJson{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump(
                       1, ' ', false, OrderedJson::error_handler_t::replace) +
                       "\n");
}

void write_csv(const std::string& path, const ttrt::Executor& executor) {
  std::ostringstream out;
  out << "OP CODE,OP TYPE,GLOBAL CALL COUNT,DEVICE ID,ATTRIBUTES,HOST DURATION [ns],DEVICE FW DURATION [ns],DEVICE "
         "KERNEL DURATION [ns],OP TO OP LATENCY [ns],CORE COUNT,MATH FIDELITY,PM BOUND,PM IDEAL [ns]\n";
  const auto& arch = executor.options().profile;
  int call = 0;
  for (const auto& [i, p] : entries(executor)) {
    const std::string place = place_of(executor, *i, p->kernel);
    const auto calls = static_cast<double>(p->calls);
    const double device_ns = p->cycles / calls / arch.clock_mhz * 1000;
    const ir::Arg* fidelity = i->node->arg("fidelity");
    const std::string* level = fidelity != nullptr ? fidelity->get_if<std::string>() : nullptr;
    out << i->node->op() << ','
        << (place == "device" ? "tt_dnn_device"
            : place == "cpu"  ? "tt_dnn_cpu"
                              : "signpost")
        << ',' << ++call << ",0," << quoted(name_of(*i) + " " + i->node->provenance->module_path) << ','
        << static_cast<std::int64_t>(p->wall_us / calls * 1000) << ',' << static_cast<std::int64_t>(device_ns) << ','
        << static_cast<std::int64_t>(device_ns) << ",0," << (place == "device" ? arch.cores() : 0) << ','
        << (level != nullptr ? *level : std::string()) << ',' << p->bound << ',' << static_cast<std::int64_t>(device_ns)
        << '\n';
  }
  write_file(path, out.str());
}

}  // namespace ttc
