// An engine's bar begins with its op: engines run side by side, and none takes longer than the op.
#include "session/device_trace.h"

#include <algorithm>

#include "ir/node_name.h"

namespace ttc {
namespace {

constexpr int process = 2, ops_track = 1, host_track = 2, first_engine = 3;
constexpr const char* engines[ttrt::bounds] = {"math", "unpack", "pack", "NoC", "DRAM", "dispatch", "PCIe"};

struct Event {
  std::string name, category;
  int track = ops_track;
  double start = 0, end = 0;
  int depth = 0;  // around what begins at the same time
  OrderedJson args = OrderedJson::object();
};

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from < path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    out.push_back(path.substr(from, dot - from));
    from = dot + 1;
  }
  return out;
}

class Trace {
 public:
  void add(const OpRow& row) {
    const bool host = row.place == ttrt::OpPlace::cpu;
    const double us = host ? row.wall_us : row.time.us;
    enter(parts_of(row.node->provenance->module_path));
    Event op{.name = row.node->op(),
             .category = std::string(to_string(row.place)),
             .track = host ? host_track : ops_track,
             .start = now_,
             .end = now_ + us,
             .depth = static_cast<int>(open_.size()),
             .args = {{"node", ir::node_name(*row.node)}, {"source", row.node->provenance->source}}};
    if (!host) {
      op.args["bound"] = to_string(row.time.bound);
      op.args["cycles"] = row.time.cycles;
      if (!row.kernel.empty()) op.args["kernel"] = row.kernel;
      add_engines(row, op);
    }
    events_.push_back(std::move(op));
    now_ += us;
  }

  OrderedJson finish() {
    enter({});
    std::ranges::stable_sort(events_, [](const Event& a, const Event& b) {
      return std::tuple(a.start, a.depth) < std::tuple(b.start, b.depth);
    });
    OrderedJson out = OrderedJson::array();
    const auto name = [&](const char* what, int track, std::string_view text) {
      out.push_back({{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", text}}}});
      out.push_back({{"name", "thread_sort_index"},
                     {"ph", "M"},
                     {"pid", process},
                     {"tid", track},
                     {"args", {{"sort_index", track}}}});
    };
    out.push_back({{"name", "process_name"},
                   {"ph", "M"},
                   {"pid", process},
                   {"tid", 0},
                   {"args", {{"name", "device, by the time model"}}}});
    name("thread_name", ops_track, "modules and ops");
    name("thread_name", host_track, "host");
    for (std::size_t i = 0; i < ttrt::bounds; ++i) name("thread_name", first_engine + static_cast<int>(i), engines[i]);
    for (Event& event : events_)
      out.push_back({{"name", event.name},
                     {"cat", event.category},
                     {"ph", "X"},
                     {"pid", process},
                     {"tid", event.track},
                     {"ts", event.start},
                     {"dur", event.end - event.start},
                     {"args", std::move(event.args)}});
    return out;
  }

 private:
  void add_engines(const OpRow& row, const Event& op) {
    const double us_per_cycle = row.time.cycles > 0 ? row.time.us / row.time.cycles : 0;
    for (std::size_t i = 0; i < ttrt::bounds; ++i) {
      const double busy = std::min(row.time.terms[i] * us_per_cycle, row.time.us);
      if (busy <= 0) continue;
      events_.push_back({.name = op.name,
                         .category = engines[i],
                         .track = first_engine + static_cast<int>(i),
                         .start = now_,
                         .end = now_ + busy,
                         .depth = 0,
                         .args = {{"node", op.args["node"]}, {"share", busy / row.time.us}}});
    }
  }

  // Closes the modules that `path` is not in and opens those that it is in.
  void enter(const std::vector<std::string>& path) {
    std::size_t same = 0;
    while (same < open_.size() && same < path.size() && open_[same].name == path[same]) ++same;
    while (open_.size() > same) {
      open_.back().end = now_;
      if (open_.back().end > open_.back().start) events_.push_back(std::move(open_.back()));
      open_.pop_back();
    }
    while (open_.size() < path.size())
      open_.push_back({.name = path[open_.size()],
                       .category = "module",
                       .track = ops_track,
                       .start = now_,
                       .end = now_,
                       .depth = static_cast<int>(open_.size()),
                       .args = OrderedJson::object()});
  }

  double now_ = 0;
  std::vector<Event> events_, open_;
};

}  // namespace

OrderedJson device_trace(std::span<const OpRow> rows) {
  Trace trace;
  for (const OpRow& row : rows) trace.add(row);
  return trace.finish();
}

std::string trace_text(OrderedJson events) {
  return OrderedJson{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump(
             1, ' ', false, OrderedJson::error_handler_t::replace) +
         "\n";
}

}  // namespace ttc
