// See manager.h.
#include "pass/manager.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "support/error.h"

namespace ttc {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

const PassInfo& require_pass(std::string_view name) {
  if (const PassInfo* info = find_pass(name)) return *info;
  std::vector<std::string> names;
  for (const PassInfo* info : all_passes()) names.emplace_back(info->name);
  const std::string near = nearest(name, names.data(), names.size());
  throw usage_error("no pass is called '" + std::string(name) + "'",
                    near.empty() ? "`ttc passes` lists them" : "did you mean '" + near + "'?");
}

void check_names(const std::vector<std::string>& names, std::initializer_list<std::string_view> special) {
  for (const std::string& name : names)
    if (std::find(special.begin(), special.end(), name) == special.end()) require_pass(name);
}

// Writes the dumps of one run: numbered files in a directory, or text on the log.
class Dumper {
 public:
  Dumper(const PassManagerOptions& options, std::ostream& log) : options_(options), log_(log) {
    if (!options.dump_dir.empty()) {
      std::error_code error;
      std::filesystem::create_directories(options.dump_dir, error);
      if (error) throw usage_error("cannot make the dump directory " + options.dump_dir + ": " + error.message());
    }
  }

  bool wants_before(std::string_view pass) const {
    return contains(options_.dump_before, pass) || contains(options_.dump_before, "all");
  }
  bool wants_after(std::string_view pass, bool changed) const {
    return contains(options_.dump_after, pass) || contains(options_.dump_after, "all") ||
           (changed && contains(options_.dump_after, "change"));
  }
  void dump(std::size_t index, std::string_view pass, std::string_view when, const std::string& text) {
    if (options_.dump_dir.empty()) {
      log_ << "// ---- " << when << ' ' << pass << '\n' << text;
      return;
    }
    std::ostringstream name;
    name << std::setw(2) << std::setfill('0') << index << '-' << pass << '.' << when << ".ir";
    const auto path = std::filesystem::path(options_.dump_dir) / name.str();
    std::ofstream file(path);
    file << text;
    if (!file.flush()) throw usage_error("cannot write the dump " + path.string());
  }

 private:
  const PassManagerOptions& options_;
  std::ostream& log_;
};

void verify_after(const PassContext& context, std::string_view pass) {
  const std::vector<std::string> problems = ir::verify(context.model);
  if (problems.empty()) return;
  std::string what = "pass " + std::string(pass) + " broke the graph: " + problems.front();
  if (problems.size() > 1) what += " (and " + std::to_string(problems.size() - 1) + " more)";
  throw Error(Exit::bug, context.model.info.path, what, "run again with --dump-before " + std::string(pass));
}

void print_table(std::ostream& log, const std::vector<PassReport>& reports, bool times, bool stats) {
  for (const PassReport& r : reports) {
    log << std::left << std::setw(20) << r.name << std::right;
    if (times) log << std::setw(10) << std::fixed << std::setprecision(2) << r.ms << " ms";
    if (stats)
      log << std::setw(7) << r.nodes_before << " -> " << std::left << std::setw(6) << r.nodes_after << std::right
          << std::setw(5) << r.matched << " matched" << std::setw(5) << r.refused << " refused"
          << (r.changed ? "" : "  (unchanged)");
    log << '\n';
  }
}

PassReport run_one(PassContext& context, const PassInfo& info) {
  PassReport report{.name = std::string(info.name), .nodes_before = count_nodes(*context.model.graph)};
  const std::size_t matches = context.matches.size(), refusals = context.refusals.size();
  const auto start = std::chrono::steady_clock::now();
  report.changed = info.run(context);
  report.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  report.nodes_after = count_nodes(*context.model.graph);
  report.matched = context.matches.size() - matches;
  report.refused = context.refusals.size() - refusals;
  return report;
}

}  // namespace

std::vector<const PassInfo*> select_passes(const PassManagerOptions& options) {
  check_names(options.disable, {});
  check_names(options.dump_before, {"all"});
  check_names(options.dump_after, {"all", "change"});
  if (!options.stop_after.empty()) require_pass(options.stop_after);
  std::vector<const PassInfo*> selected;
  const auto add = [&](std::string_view name) {
    const PassInfo& info = require_pass(name);
    if (!contains(options.disable, name)) selected.push_back(&info);
  };
  for (const std::string& name : options.passes) add(name);
  if (options.passes.empty())
    for (std::string_view name : default_pipeline()) add(name);
  return selected;
}

std::vector<PassReport> run_passes(PassContext& context, const PassManagerOptions& options) {
  std::ostream& log = options.log ? *options.log : std::cerr;
  const std::vector<const PassInfo*> passes = select_passes(options);
  if (options.print_pipeline)
    for (const PassInfo* info : passes) log << info->name << ": " << info->summary << '\n';
  Dumper dumper(options, log);
  context.budget.limit(options.rewrite_limit);
  if (options.verify_each) verify_after(context, "(input)");

  std::vector<PassReport> reports;
  for (const PassInfo* info : passes) {
    const std::size_t index = reports.size() + 1;
    if (dumper.wants_before(info->name)) dumper.dump(index, info->name, "before", ir::print(context.model));
    reports.push_back(run_one(context, *info));
    const bool changed = reports.back().changed;
    if (dumper.wants_after(info->name, changed))
      dumper.dump(index, info->name, "after", changed ? ir::print(context.model) : "(unchanged)\n");
    if (options.verify_each) verify_after(context, info->name);
    if (info->name == options.stop_after) break;
  }
  if (options.time_passes || options.stats) print_table(log, reports, options.time_passes, options.stats);
  return reports;
}

}  // namespace ttc
