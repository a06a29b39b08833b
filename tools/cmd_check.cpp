// ttc check: a dry run of compile. What goes to the device and what does not, each refusal with its reason; with --all
// the same for a whole folder, and whether what comes out is right.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <tuple>

#include "child.h"
#include "compatibility_report.h"
#include "compile_flags.h"
#include "json_out.h"
#include "pass/conversions.h"
#include "pass/manifest.h"
#include "session/compile.h"
#include "session/rank.h"
#include "session/support_table.h"
#include "support/error.h"
#include "support/progress.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags : CompileFlags {
  std::string why;
  std::vector<std::string> what_if;
  std::string all;
  bool markdown = false, baseline = false, rank = false;
  std::optional<double> pcc;
  double time_limit = 600;
  CompatibilityFlags compatibility;
} flags;

void options(FlagSet& app) {
  add_compile_flags(app, flags);
  app.get_option("model").required(false);
  app.group("Folders");
  app.add_option("--all", flags.all, "A folder: compile, run and compare every model file in it");
  app.add_flag("--md", flags.markdown, "With --all: a Markdown table").of_text();
  app.add_option("--pcc", flags.pcc,
                 "With --all: what every output must reach (0.99, or 0.999 for float32 activations)")
      .range(-1.0, 1.0);
  app.add_flag(
      "--baseline", flags.baseline,
      "With --all: LibTorch's own PCC in bfloat16 too; a row is right where its error is at most twice that one's");
  app.add_option("--time-limit", flags.time_limit, "With --all: seconds that one file may take; 0: any").not_negative();
  add_compatibility_flags(app, flags.compatibility);
  app.group("Questions");
  app.add_option("--why", flags.why, "Everything the passes said about this node");
  app.add_option("--what-if", flags.what_if, "Count as if the device had this op; repeatable").repeatable();
  app.add_flag("--rank", flags.rank, "Which missing op or refused pattern would bring most, by device time");
}

// What the passes said about one node, in order.
int explain(const CompileResult& result, const Globals& globals) {
  OrderedJson refusals = OrderedJson::array(), matches = OrderedJson::array();
  for (const RefusalRecord& r : result.refusals)
    if (r.node == flags.why)
      refusals.push_back({{"pass", r.pass},
                          {"op", r.op},
                          {"module", r.module},
                          {"source", r.source},
                          {"reason", to_string(r.reason.code)},
                          {"detail", r.reason.detail}});
  for (const MatchRecord& m : result.matches)
    if (m.result == flags.why || std::find(m.nodes.begin(), m.nodes.end(), flags.why) != m.nodes.end())
      matches.push_back(
          {{"pass", m.pass}, {"rule", m.rule}, {"nodes", m.nodes}, {"result", m.result}, {"module", m.module}});
  const Fallback* fallback = nullptr;
  for (const Fallback& f : result.fallbacks)
    if (f.node == flags.why) fallback = &f;
  if (refusals.empty() && matches.empty() && fallback == nullptr)
    throw usage_error("--why: no pass had anything to say about a node '" + flags.why + "'",
                      "ttc inspect --graph text lists the nodes");
  if (globals.json) {
    OrderedJson out{{"node", flags.why},
                    {"place", fallback != nullptr ? "cpu" : "device"},
                    {"matches", matches},
                    {"refusals", refusals}};
    print_json(out);
    return 0;
  }
  for (const auto& m : matches)
    std::cout << m["pass"].get<std::string>() << ": " << m["rule"].get<std::string>() << " -> "
              << m["result"].get<std::string>() << '\n';
  for (const auto& r : refusals)
    std::cout << r["pass"].get<std::string>() << ": " << r["reason"].get<std::string>() << ": "
              << r["detail"].get<std::string>() << "  (" << r["op"].get<std::string>() << " "
              << r["module"].get<std::string>() << " " << r["source"].get<std::string>() << ")\n";
  std::cout << flags.why
            << (fallback != nullptr ? " stays on the CPU: " + fallback->reason.text()
                                    : std::string(" is on the device"))
            << '\n';
  return 0;
}

bool assumed(const Fallback& f) {
  for (const std::string& op : flags.what_if)
    if (f.op == op || f.op.find("." + op + ".") != std::string::npos || f.op.ends_with("." + op)) return true;
  return false;
}

// The first one of each pass and reason in a module's line, and how many there are: an unrolled loop has one for each
// round.
void print_near_misses(const std::vector<RefusalRecord>& misses, bool all) {
  using Place = std::tuple<std::string, std::string, std::string, ReasonCode>;
  const auto place = [](const RefusalRecord& r) { return Place(r.pass, r.module, r.source, r.reason.code); };
  std::map<Place, std::size_t> counts;
  for (const RefusalRecord& r : misses) ++counts[place(r)];
  if (!misses.empty()) std::cout << "nearly recognised:\n";
  for (const RefusalRecord& r : misses) {
    std::size_t& count = counts[place(r)];
    if (count == 0) continue;  // told with the first
    std::cout << "  " << r.node << (r.module.empty() ? "" : " in " + r.module)
              << (r.source.empty() ? "" : " (" + r.source + ")") << ": " << r.pass << ": " << r.reason.detail;
    if (!all && count > 1) std::cout << "; and " << count - 1 << " like it (-v shows them)";
    std::cout << '\n';
    if (!all) count = 0;
  }
}

void print_text(const CompileResult& result, const ir::Model& model, std::size_t gained, bool all_misses) {
  Table table({"node", "op", "module", "reason", "source"});
  for (const Fallback& f : result.fallbacks) table.row({f.node, f.op, f.module, f.reason.text(), f.source});
  if (!table.empty()) std::cout << "stays on the CPU:\n" << table.text(2);
  print_near_misses(result.near_misses(), all_misses);
  if (!flags.what_if.empty()) {
    std::string ops;
    for (const std::string& op : flags.what_if) ops += (ops.empty() ? "" : ", ") + op;
    std::cout << "with " << ops << " on the device: " << result.nodes.device + gained << "/" << result.nodes.total
              << " nodes\n";
  }
  std::cout << result.summary() << '\n';
  if (const std::string converted = conversions_text(model); !converted.empty()) std::cout << converted << '\n';
}

// "DynamicShape (aten.slice x2, aten.view), Unimplemented (aten.topk)"
std::string refusals_text(const SupportRow& row) {
  std::string out;
  for (const auto& [reason, ops] : row.refusals) {
    std::string names;
    for (const auto& [op, count] : ops)
      names += (names.empty() ? "" : ", ") + op + (count > 1 ? " x" + std::to_string(count) : "");
    out += (out.empty() ? "" : ", ") + reason + " (" + names + ")";
  }
  return out;
}

std::string percent(double part, double whole) {
  return whole > 0 ? number_text(std::floor(1000 * part / whole) / 10, 4) + " %" : "-";
}

OrderedJson row_json(const SupportRow& row) {
  OrderedJson refusals = OrderedJson::object();
  for (const auto& [reason, ops] : row.refusals) refusals[reason] = ops;
  return {{"model", row.file},
          {"nodes", {{"total", row.nodes}, {"device", row.device}}},
          {"flops", {{"total", row.flops}, {"device", row.device_flops}}},
          {"refusals", refusals},
          {"runs", row.runs},
          {"pcc", row.runs > 0 ? json_number(row.pcc) : OrderedJson(nullptr)},
          {"max_rel", row.runs > 0 ? json_number(row.max_rel) : OrderedJson(nullptr)},
          {"baseline_pcc", row.baseline ? json_number(*row.baseline) : OrderedJson(nullptr)},
          {"baseline_max_rel", row.baseline_max_rel ? json_number(*row.baseline_max_rel) : OrderedJson(nullptr)},
          {"status", row.status},
          {"detail", row.detail}};
}

// The inverse.
SupportRow row_of(const OrderedJson& json) {
  SupportRow row;
  row.file = json["model"];
  row.nodes = json["nodes"]["total"];
  row.device = json["nodes"]["device"];
  row.flops = json["flops"]["total"];
  row.device_flops = json["flops"]["device"];
  for (const auto& [reason, ops] : json["refusals"].items())
    for (const auto& [op, count] : ops.items()) row.refusals[reason][op] = count;
  row.runs = json["runs"];
  if (!json["pcc"].is_null()) row.pcc = json["pcc"];
  if (!json["max_rel"].is_null()) row.max_rel = json["max_rel"];
  if (!json["baseline_pcc"].is_null()) row.baseline = json["baseline_pcc"].get<double>();
  if (!json["baseline_max_rel"].is_null()) row.baseline_max_rel = json["baseline_max_rel"].get<double>();
  row.status = json["status"];
  row.detail = json["detail"];
  return row;
}

// In a process of its own: a file that ends it, or takes all memory or time, is a row like others.
SupportRow checked(const std::string& file, double pcc, const Globals& globals) {
  const std::size_t known = warnings_from(0).size();
  const ChildResult child = run_in_child(
      [&] {
        OrderedJson out{{"row", row_json(support_row(file, flags, pcc, flags.baseline, notes_of(globals)))}};
        out["warnings"] = warnings_from(known);
        return out.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
      },
      flags.time_limit);
  if (child.problem.empty()) {
    const OrderedJson said = OrderedJson::parse(child.text);
    count_warnings(said["warnings"].get<std::vector<std::string>>());
    return row_of(said["row"]);
  }
  SupportRow row;
  row.file = std::filesystem::path(file).filename().string();
  row.status = "failed";
  row.detail = child.problem;
  return row;
}

int run_all(const Globals& globals) {
  const double pcc = flags.pcc.value_or(flags.activation_dtype == "float32" ? 0.999 : 0.99);
  std::vector<std::string> columns{"model", ">nodes", ">on device", ">FLOPs on device", "stays on the CPU",
                                   ">runs", ">PCC"};
  if (flags.baseline) columns.push_back(">LibTorch bf16");
  columns.push_back("status");
  Table table(columns);
  const auto shown = [](double pcc) { return number_text(std::floor(1e4 * pcc) / 1e4, 4); };
  OrderedJson json = OrderedJson::array();
  std::size_t good = 0;
  const std::vector<std::string> files = model_files(flags.all);
  Phase phase("checking", files.size());
  for (const std::string& file : files) {
    phase.at(std::filesystem::path(file).filename().string());
    const SupportRow row = checked(file, pcc, globals);
    good += row.status == "ok";
    const bool ran = row.runs > 0;
    std::vector<std::string> cells{row.file,
                                   row.nodes > 0 ? std::to_string(row.nodes) : "",
                                   percent(static_cast<double>(row.device), static_cast<double>(row.nodes)),
                                   percent(row.device_flops, row.flops),
                                   refusals_text(row),
                                   ran ? std::to_string(row.runs) : "",
                                   ran ? shown(row.pcc) : ""};
    if (flags.baseline) cells.push_back(row.baseline ? shown(*row.baseline) : "-");
    cells.push_back(row.status + (row.detail.empty() ? "" : ": " + row.detail));
    table.row(std::move(cells));
    json.push_back(row_json(row));
    phase.advance();
  }
  const std::size_t total = json.size();
  if (globals.json)
    print_json({{"folder", flags.all}, {"pcc", pcc}, {"models", json}, {"ok", good}, {"total", total}});
  else
    std::cout << (flags.markdown ? table.markdown() : table.text());
  note(globals, std::to_string(good) + " of " + std::to_string(total) + " models are ok");
  return static_cast<int>(good == total ? Exit::ok : Exit::check_failed);
}

OrderedJson gain_json(const Gain& g) {
  return {{"kind", g.pattern ? "pattern" : "op"},
          {"what", g.what},
          {"reason", to_string(g.reason.code)},
          {"detail", g.reason.detail},
          {"nodes", g.nodes},
          {"flops", g.flops},
          {"transfers", {{"count", g.transfers}, {"bytes", g.transfer_bytes}}},
          {"us", g.us},
          {"node", g.node},
          {"source", g.source}};
}

void print_gains(const std::vector<Gain>& gains) {
  if (gains.empty()) {
    std::cout << "nothing is missing: all nodes are on the device\n";
    return;
  }
  Table table({"would bring", "", ">nodes", ">GFLOP", ">transfers", ">bytes", ">us", "reason", "first"});
  for (const Gain& g : gains)
    table.row({g.what, g.pattern ? "pattern" : "op", std::to_string(g.nodes),
               g.flops > 0 ? number_text(g.flops * 1e-9, 3) : "", g.transfers > 0 ? std::to_string(g.transfers) : "",
               g.transfer_bytes > 0 ? bytes_text(static_cast<double>(g.transfer_bytes)) : "",
               g.us > 0 ? number_text(g.us, 4) : "", g.reason.text(),
               g.node + (g.source.empty() ? "" : " " + g.source)});
  std::cout << "what would bring most, by the time model's us of a call:\n" << table.text(2);
}

int run(const Globals& globals) {
  if (flags.all.empty() == flags.model.empty())
    throw usage_error("ttc check takes a model file, or a folder with --all");
  if (!flags.all.empty() && flags.compatibility.any())
    throw usage_error("--compatibility and --expected-fallbacks are for one model");
  for (const char* flag : {"--rank", "--why", "--what-if", "--dump-dir", "--reproducer"})
    if (!flags.all.empty() && was_given(flag)) throw usage_error(std::string(flag) + " is for one model");
  if (!flags.all.empty()) return run_all(globals);
  for (const char* flag : {"--pcc", "--md", "--baseline", "--time-limit"})
    if (was_given(flag)) throw usage_error(std::string(flag) + " is for a folder of models", "--all DIR names it");
  if (!flags.why.empty()) {
    const std::string of_one = "--why asks of one node";
    refuse_unchecked({"--expected-fallbacks"}, of_one);
    warn_of_idle(globals, {"--what-if", "--rank", "--compatibility"}, of_one);
  } else if (flags.rank && !globals.json) {
    warn_of_idle(globals, {"--what-if"}, "--rank prints what each op would bring by itself");
  }
  const std::optional<ExpectedFallbacks> expected = expected_fallbacks(flags.compatibility);
  const Compiled made = compiled(globals, ModelSource(flags.model), flags, false);
  const auto& [model, result, names] = std::tie(made.model, made.result, made.names);
  for (const UserNames::Idle& one : names.idle_ops("--what-if", flags.what_if)) warn(globals, one.text(), one.hint);
  if (!flags.why.empty()) return explain(result, globals);
  std::size_t gained = 0;
  for (const Fallback& f : result.fallbacks) gained += assumed(f);
  check_warnings(globals);
  std::optional<Compatibility> compatibility;
  bool as_expected = true;
  if (flags.compatibility.any()) {
    compatibility = placement_of(*model);
    as_expected = report_compatibility(globals, flags.compatibility, *compatibility, expected, flags.model);
  }
  const int code = static_cast<int>(as_expected ? Exit::ok : Exit::check_failed);
  std::vector<Gain> gains;
  if (flags.rank) gains = rank_gains(result, *model, profile_device(*model, made.profile, made.shapes), made.shapes);
  if (!globals.json) {
    flags.rank ? print_gains(gains) : print_text(result, *model, gained, globals.verbose > 0);
    return code;
  }
  OrderedJson out{{"input", flags.model}};
  out.update(OrderedJson::parse(report_json(result, *model)));
  out["fallbacks"] = OrderedJson::array();
  for (const Fallback& f : result.fallbacks) out["fallbacks"].push_back(fallback_json(f));
  if (!flags.what_if.empty())
    out["what_if"] = {{"ops", flags.what_if},
                      {"nodes", {{"total", result.nodes.total}, {"device", result.nodes.device + gained}}}};
  if (flags.rank) {
    out["rank"] = OrderedJson::array();
    for (const Gain& gain : gains) out["rank"].push_back(gain_json(gain));
  }
  if (compatibility) out["compatibility"] = OrderedJson::parse(compatibility->json());
  print_json(out);
  return code;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"check", "What compile would put on the device, and why not the rest", ttc::options, ttc::run,
                      "ttc check models/bert_small_dyn.pt2 --fallback-op gelu"})
