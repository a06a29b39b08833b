// Choosing passes by name and part, and running them with dumps, times and checks.
#include "pass/manager.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

#include "pass/plugin_pass.h"
#include "support/atomic_file.h"
#include "support/check_hook.h"
#include "support/error.h"
#include "support/progress.h"

namespace ttc {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

[[noreturn]] void unknown(const std::string& what, std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known.data(), known.size());
  throw usage_error(what, near.empty() ? "`ttc passes` lists them" : "did you mean '" + near + "'?");
}

// The pass, and the parts, that a user's name stands for.
PassStep require_step(std::string_view name) {
  const auto former = former_names().find(name);
  const std::string_view now = former == former_names().end() ? name : former->second;
  const std::string_view base = now.substr(0, now.find(':'));
  PassStep step{.info = find_pass(base)};
  if (!step.info) {
    std::vector<std::string> names;
    for (const PassInfo* info : all_passes()) names.emplace_back(info->name);
    unknown("no pass is called '" + std::string(base) + "'", base, names);
  }
  if (base.size() == now.size()) return step;
  std::set<std::string_view> asked;
  for (std::string_view rest = now.substr(base.size() + 1); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('+'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const auto& parts = step.info->parts;
    if (std::find(parts.begin(), parts.end(), part) == parts.end())
      unknown("pass " + std::string(base) + " has no part '" + std::string(part) + "'", part,
              {parts.begin(), parts.end()});
    asked.insert(part);
  }
  for (const std::string_view part : step.info->parts)
    if (asked.contains(part)) step.parts.push_back(part);
  return step;
}

const std::vector<std::string_view>& parts_of(const PassStep& step) {
  return step.parts.empty() ? step.info->parts : step.parts;
}

// Whether one of `names` means the step or a part of it.
bool names_step(const std::vector<std::string>& names, const PassStep& step) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    if (name == "all" || name == "change") return false;
    const PassStep other = require_step(name);
    if (other.info != step.info) return false;
    const auto &ours = parts_of(step), &theirs = other.parts;
    return theirs.empty() || std::find_first_of(ours.begin(), ours.end(), theirs.begin(), theirs.end()) != ours.end();
  });
}

void check_names(const std::vector<std::string>& names, std::initializer_list<std::string_view> special) {
  for (const std::string& name : names)
    if (std::find(special.begin(), special.end(), name) == special.end()) require_step(name);
}

// Without the parts that `disable` names; false where nothing is left.
bool disable(PassStep& step, const std::vector<std::string>& disable) {
  for (const std::string& name : disable) {
    const PassStep off = require_step(name);
    if (off.info != step.info) continue;
    if (off.parts.empty()) return false;
    std::vector<std::string_view> left = parts_of(step);
    std::erase_if(
        left, [&](std::string_view p) { return std::find(off.parts.begin(), off.parts.end(), p) != off.parts.end(); });
    if (left.empty()) return false;
    step.parts = left;
  }
  return true;
}

// Writes the dumps of one run: numbered files in a directory, or text on the log.
class Dumper {
 public:
  Dumper(const PassManagerOptions& options, std::ostream& log) : options_(options), log_(log) {
    if (!options.dump_dir.empty() && !(options.dump_before.empty() && options.dump_after.empty())) {
      std::error_code error;
      std::filesystem::create_directories(options.dump_dir, error);
      if (error) throw usage_error("cannot make the dump directory " + options.dump_dir + ": " + error.message());
    }
  }

  bool wants_before(const PassStep& step) const {
    return contains(options_.dump_before, "all") || names_step(options_.dump_before, step);
  }
  bool wants_after(const PassStep& step, bool changed) const {
    return contains(options_.dump_after, "all") || names_step(options_.dump_after, step) ||
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
    write_file(path.string(), text);
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

// `nodes`: in the graph as it is.
PassReport run_one(PassContext& context, const PassStep& step, std::size_t nodes) {
  PassReport report{.name = step.name(), .nodes_before = nodes};
  const std::size_t matches = context.matches.size(), refusals = context.refusals.size();
  context.changed = false;
  context.parts = {step.parts.begin(), step.parts.end()};
  const auto start = std::chrono::steady_clock::now();
  step.info->run(context);
  report.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  report.changed = context.changed;
  report.nodes_after = report.changed ? count_nodes(*context.model.graph) : nodes;
  report.matched = context.matches.size() - matches;
  report.refused = context.refusals.size() - refusals;
  return report;
}

ir::Model copy_of(const ir::Model& model) {
  return {.graph = ir::clone(*model.graph),
          .weights = model.weights,
          .ranges = model.ranges,
          .info = model.info,
          .extra = model.extra};
}

}  // namespace

std::string PassStep::name() const {
  std::string out(info->name);
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? ":" : "+") + std::string(parts[i]);
  return out;
}

namespace {

std::vector<std::pair<std::string_view, std::string_view>>& placed_passes() {
  static auto* const instance = new std::vector<std::pair<std::string_view, std::string_view>>;
  return *instance;
}

}  // namespace

void run_pass_before(std::string_view pass, std::string_view before) { placed_passes().emplace_back(pass, before); }
const std::vector<std::pair<std::string_view, std::string_view>>& passes_of_plugins() { return placed_passes(); }

std::vector<PassStep> select_passes(const PassManagerOptions& options) {
  check_names(options.disable, {});
  check_names(options.dump_before, {"all"});
  check_names(options.dump_after, {"all", "change"});
  if (!options.stop_after.empty()) require_step(options.stop_after);
  std::vector<PassStep> selected;
  const auto add = [&](std::string_view name, std::string_view why) {
    PassStep step = require_step(name);
    step.why = why;
    if (disable(step, options.disable)) selected.push_back(std::move(step));
  };
  const auto until_stop = [&] {
    for (std::size_t i = 0; !options.stop_after.empty() && i < selected.size(); ++i)
      if (names_step({options.stop_after}, selected[i])) selected.resize(i + 1);
    return std::move(selected);
  };
  for (const std::string& name : options.passes) add(name, "");
  if (!options.passes.empty()) return until_stop();
  auto brought = passes_of_plugins();
  for (const auto& [pass, before] : brought) require_step(before);
  for (const PipelineStep& step : default_pipeline()) {
    std::erase_if(brought, [&](const auto& one) {
      const bool here = one.second == step.pass.substr(0, step.pass.find(':'));
      if (here) add(one.first, "brought by a plug-in, which runs it here");
      return here;
    });
    add(step.pass, step.why);
  }
  return until_stop();
}

std::vector<std::string> idle_names(const PassManagerOptions& options) {
  PassManagerOptions all = options;
  all.disable.clear();
  const std::vector<PassStep> enabled = select_passes(options), possible = select_passes(all);
  std::vector<std::string> out;
  const auto check = [&](const char* flag, const std::vector<std::string>& names, const std::vector<PassStep>& steps) {
    for (const std::string& name : names)
      if (name != "all" && name != "change" &&
          std::none_of(steps.begin(), steps.end(), [&](const PassStep& step) { return names_step({name}, step); }))
        out.push_back(std::string(flag) + " " + name + " has no effect: that pass is not among those that run");
  };
  check("--disable", options.disable, possible);
  check("--dump-before", options.dump_before, enabled);
  check("--dump-after", options.dump_after, enabled);
  if (!options.stop_after.empty()) check("--stop-after", {options.stop_after}, enabled);
  if (!options.dump_dir.empty() && options.dump_before.empty() && options.dump_after.empty())
    out.push_back("--dump-dir " + options.dump_dir + " has no effect: --dump-before and --dump-after say what is dumped");
  return out;
}

std::vector<PassReport> run_passes(PassContext& context, const PassManagerOptions& options) {
  std::ostream& log = options.log ? *options.log : std::cerr;
  const std::vector<PassStep> steps = select_passes(options);
  if (options.print_pipeline)
    for (const PassStep& step : steps)
      log << step.name() << ": " << step.info->summary << (step.why.empty() ? "" : "\n    here: ") << step.why << '\n';
  Dumper dumper(options, log);
  context.budget.limit(options.rewrite_limit);
  if (options.verify_each) verify_after(context, "(input)");

  std::vector<PassReport> reports;
  std::size_t nodes = count_nodes(*context.model.graph);
  Phase phase("compiling " + context.model.info.path, steps.size());
  for (const PassStep& step : steps) {
    phase.at(step.name());
    const std::size_t index = reports.size() + 1;
    if (dumper.wants_before(step)) dumper.dump(index, step.info->name, "before", ir::print(context.model));
    const std::optional<ir::Model> before = options.on_failure ? std::optional(copy_of(context.model)) : std::nullopt;
    const auto failed = [&](const std::string& error) {
      if (before) options.on_failure(step, *before, context.shapes, error.c_str());
    };
    const AtCheckFailure at_check(failed);
    try {
      reports.push_back(run_one(context, step, nodes));
      nodes = reports.back().nodes_after;
      const bool changed = reports.back().changed;
      if (dumper.wants_after(step, changed))
        dumper.dump(index, step.info->name, "after", changed ? ir::print(context.model) : "(unchanged)\n");
      if (options.verify_each) verify_after(context, step.info->name);
    } catch (const std::exception& error) {
      failed(error.what());
      if (dynamic_cast<const Error*>(&error) || dynamic_cast<const std::bad_alloc*>(&error)) throw;
      throw std::runtime_error("pass " + step.name() + ": " + error.what());
    }
    phase.advance();
  }
  if (options.time_passes || options.stats) print_table(log, reports, options.time_passes, options.stats);
  return reports;
}

}  // namespace ttc
