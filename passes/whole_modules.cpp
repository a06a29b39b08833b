// Modules that the user's map replaces whole become one node each: its region holds the operators that compute them,
// with their places, formats and provenance, and files show one operator (ir/body.h). What its record wants of a module
// (ops/whole_modules.h) and what keeps it from being one node, an operator on the CPU between its own for one, is
// refused with the reason.
#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <variant>

#include "ir/body.h"
#include "ir/copy.h"
#include "ops/whole_modules.h"
#include "pass/user_names.h"
#include "replacement.h"

namespace ttc::whole_modules_pass {
namespace {

constexpr std::string_view pass = "whole-modules";

using Module = std::pair<std::string, std::string>;  // path and class

// A module, and what it may become.
struct Wanted {
  Module module;
  std::vector<const ttrt::WholeModule*> records;
  std::vector<ir::Node*> nodes = {};  // of one graph, in order
};

bool is_within(const ir::Provenance& where, const std::string& path) {
  return where.module_path == path ||
         std::ranges::any_of(where.stack, [&](const Module& m) { return m.first == path; });
}

// Those that the entry which takes the module itself allows.
std::vector<const ttrt::WholeModule*> records_for(const PassContext& context, const Module& module) {
  ir::Provenance itself;
  std::tie(itself.module_path, itself.module_class) = module;
  std::vector<const ttrt::WholeModule*> out;
  for (const ReplacementMap& map : context.options.replace)
    for (auto entry = map.rbegin(); entry != map.rend(); ++entry) {
      if (!names_module(entry->key, itself)) continue;
      for (const ttrt::WholeModule& record : ttrt::whole_modules())
        if (entry->becomes_one(record.name)) out.push_back(&record);
      if (!out.empty()) return out;
    }
  return out;
}

std::vector<Wanted> wanted_modules(const PassContext& context) {
  std::vector<Wanted> out;
  if (context.options.replace.empty()) return out;
  std::set<std::string> seen;
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    for (const Module& module : node->provenance->stack) {
      if (module.first.empty() || !seen.insert(module.first).second) continue;
      if (auto records = records_for(context, module); !records.empty())
        out.push_back({.module = module, .records = std::move(records)});
    }
  });
  return out;
}

// ---- what can be one node

std::string place_of(const ir::Node& node) { return node_name(node) + " = " + node.op(); }

// The device nodes of the module; a Reason where something of it is elsewhere.
Refusal collect(PassContext& context, Wanted& wanted) {
  Refusal no;
  const ir::Graph* graph = nullptr;
  for_each_node(*context.model.graph, [&](ir::Node* node) {
    if (!is_within(*node->provenance, wanted.module.first) || no) return;
    if (node->schema() && node->schema()->transfer) return;
    if (!node->op().starts_with("tt.")) {
      if (!node->origins.empty()) no = Reason{ReasonCode::PatternNearMiss, place_of(*node) + " stays on the CPU"};
      return;
    }
    if (ir::is_whole_module(*node) || (node->graph()->parent() && ir::is_whole_module(*node->graph()->parent())))
      no = Reason{ReasonCode::PatternNearMiss, "a part of it is a whole module already"};
    if (graph && graph != node->graph()) no = Reason{ReasonCode::ControlFlow, "parts of it are in branches or loops"};
    graph = node->graph();
    wanted.nodes.push_back(node);
  });
  if (!no && wanted.nodes.empty()) no = Reason{ReasonCode::PatternNearMiss, "nothing of it is on the device"};
  return no;
}

// What stands among the module's nodes and reads what they give.
struct Between {
  std::vector<ir::Node*> later;   // goes behind the module
  std::vector<ir::Value*> sizes;  // of the module's values, which are read again before its end: known without it
  std::vector<ir::Node*> early;   // read such sizes, and stay before the module: a counter of its rows
};

bool is_size(const ir::Value& value) { return value.type.kind == ir::TypeKind::integer && value.type.sym; }

// Whether of the module's values `node` reads sizes alone; then these and what reads them are added to `out`.
bool reads_sizes_only(ir::Node* node, const std::set<const ir::Node*>& own, const std::set<const ir::Node*>& after,
                      Between& out) {
  if (!node->regions().empty()) return false;
  out.early.push_back(node);
  for (ir::Value* value : node->operands()) {
    if (!own.contains(value->def()) && !after.contains(value->def())) continue;
    if (is_size(*value))
      out.sizes.push_back(value);
    else if (own.contains(value->def()) || !reads_sizes_only(value->def(), own, after, out))
      return false;
  }
  return true;
}

// A Reason where the module reads something else of what others make of its results.
std::variant<Between, Reason> split(const Wanted& wanted) {
  Between out;
  const std::set<const ir::Node*> own(wanted.nodes.begin(), wanted.nodes.end());
  std::set<const ir::Node*> after;
  const auto reads = [&](const ir::Node& node, const std::set<const ir::Node*>& of) {
    bool found = false;
    const auto look = [&](const ir::Node* one) {
      for (const ir::Value* value : one->operands()) found = found || of.contains(value->def());
    };
    look(&node);
    for (const auto& region : node.regions()) ir::walk(*region, look);
    return found;
  };
  bool inside = false;
  for (const auto& node : wanted.nodes.front()->graph()->nodes()) {
    inside = inside || node.get() == wanted.nodes.front();
    if (!inside) continue;
    if (own.contains(node.get())) {
      for (ir::Value* value : node->operands()) {
        if (!after.contains(value->def())) continue;
        if (is_size(*value))
          out.sizes.push_back(value);
        else if (!reads_sizes_only(value->def(), own, after, out))
          return Reason{ReasonCode::PatternNearMiss, place_of(*node) + " reads what others make of its results"};
        for (const ir::Node* early : out.early) after.erase(early);
      }
    } else if (reads(*node, own) || reads(*node, after)) {
      after.insert(node.get());
      out.later.push_back(node.get());
    }
    if (node.get() == wanted.nodes.back()) break;
  }
  std::erase_if(out.later, [&](ir::Node* node) { return std::ranges::count(out.early, node) > 0; });
  return out;
}

// The sizes from what is there before the module; what they were read from goes where nothing else reads it. False
// where the graph lacks one.
bool bring_sizes_forward(Rewriter& r, const Wanted& wanted, const Between& between,
                         std::vector<std::pair<ir::Value*, ir::Value*>>& out) {
  r.emit_before(wanted.nodes.front());
  for (ir::Value* size : between.sizes) {
    ir::Value* made = r.size(*size->type.sym).value();
    if (!made) return false;
    out.emplace_back(size, made);
  }
  return true;
}

void use_sizes(const Wanted& wanted, const std::vector<ir::Node*>& early,
               const std::vector<std::pair<ir::Value*, ir::Value*>>& sizes) {
  std::vector<ir::Node*> old, open;
  for (const auto& [from, to] : sizes) {
    for (ir::Node* node : wanted.nodes) node->replace_uses_of(from, to);
    for (ir::Node* node : early) node->replace_uses_of(from, to);
    open.push_back(from->def());
  }
  while (!open.empty()) {
    ir::Node* node = open.back();
    open.pop_back();
    const bool counts = node && (is_size(*node->result()) || (node->schema() && node->schema()->transfer));
    if (!counts || std::ranges::find(old, node) != old.end()) continue;
    old.push_back(node);
    for (const ir::Value* operand : node->operands()) open.push_back(operand->def());
  }
  erase_unused(old);
}

std::vector<ir::Value*> results_of(const Wanted& wanted) {
  const std::set<const ir::Node*> own(wanted.nodes.begin(), wanted.nodes.end());
  std::vector<ir::Value*> out;
  for (const ir::Node* node : wanted.nodes)
    for (const auto& result : node->results())
      if (result->output_uses() > 0 ||
          std::ranges::any_of(result->users(), [&](const ir::Node* user) { return !own.contains(user); }))
        out.push_back(result.get());
  return out;
}

// ---- making it one

std::shared_ptr<const ir::Provenance> provenance_of(const Wanted& wanted) {
  ir::Provenance where = *wanted.nodes.front()->provenance;
  const auto end = std::ranges::find(where.stack, wanted.module);
  if (end != where.stack.end()) where.stack.erase(end + 1, where.stack.end());
  where.merged.clear();
  where.module_path = wanted.module.first;
  where.module_class = wanted.module.second;
  return std::make_shared<const ir::Provenance>(std::move(where));
}

void outline(const Wanted& wanted, const ttrt::WholeModule& record, const std::vector<ir::Node*>& later) {
  ir::Node* last = wanted.nodes.back();
  ir::Graph& graph = *last->graph();
  const std::vector<ir::Value*> results = results_of(wanted);
  ir::Node* made = graph.insert_before(last, std::string(record.name), {ir::Arg::List()});
  made->provenance = provenance_of(wanted);
  made->place = "device";
  ir::Graph* region = made->add_region();
  std::unordered_map<const ir::Value*, ir::Arg> mapped;
  ir::copy_nodes(wanted.nodes, *region, mapped);
  for (ir::Node* node : later) graph.move_before(node, last);
  std::vector<std::pair<ir::Value*, std::string>> names;
  for (const ir::Node* node : wanted.nodes)
    for (const auto& result : node->results()) names.emplace_back(mapped.at(result.get()).value(), result->name);
  for (ir::Value* result : results) {
    ir::Type type = result->type;
    ir::Value* outer = made->add_result(std::move(type), result->name);
    result->replace_all_uses_with(outer);
    region->add_output(mapped.at(result));
  }
  for (auto node = wanted.nodes.rbegin(); node != wanted.nodes.rend(); ++node) graph.erase(*node);
  for (auto& [value, name] : names) value->name = name;
  ir::Arg::List tensors, integers;
  for (ir::Value* value : ir::captured(*region)) (value->type.is_tensor() ? tensors : integers).emplace_back(value);
  std::vector<ir::Arg> args = made->args();
  args[0] = std::move(tensors);
  args[1] = std::move(integers);
  made->set_args(std::move(args));
}

// The record whose module the nodes are; why they are none of them.
std::variant<const ttrt::WholeModule*, Reason> chosen(const Wanted& wanted) {
  Refusal first;
  for (const ttrt::WholeModule* record : wanted.records) {
    Refusal no = record->refusal(wanted.nodes);
    if (!no) return record;
    if (!first) first = std::move(no);
  }
  return *std::move(first);
}

void refuse(PassContext& context, const Wanted& wanted, Reason no) {
  no.detail = wanted.module.first + " as one " + std::string(wanted.records.front()->name) + ": " + no.detail;
  if (wanted.nodes.empty())
    context.refusals.push_back({.pass = std::string(pass),
                                .node = {},
                                .op = {},
                                .module = wanted.module.first,
                                .source = {},
                                .reason = std::move(no)});
  else
    context.refuse(pass, *wanted.nodes.back(), std::move(no));
}

void replace(PassContext& context, Wanted& wanted) {
  if (Refusal no = collect(context, wanted)) return refuse(context, wanted, *std::move(no));
  auto record = chosen(wanted);
  if (Reason* no = std::get_if<Reason>(&record)) return refuse(context, wanted, std::move(*no));
  auto between = split(wanted);
  if (Reason* no = std::get_if<Reason>(&between)) return refuse(context, wanted, std::move(*no));
  Rewriter r(context, pass, wanted.nodes.back());
  std::vector<std::pair<ir::Value*, ir::Value*>> sizes;
  if (!bring_sizes_forward(r, wanted, std::get<Between>(between), sizes))
    return refuse(context, wanted,
                  {ReasonCode::DynamicShape, "it reads sizes of its results that the inputs do not tell"});
  std::vector<std::string> gone;
  for (const ir::Node* node : wanted.nodes) gone.push_back(node_name(*node));
  const ttrt::WholeModule& whole = *std::get<const ttrt::WholeModule*>(record);
  r.commit_edit(
      std::string(whole.name),
      [&] {
        use_sizes(wanted, std::get<Between>(between).early, sizes);
        outline(wanted, whole, std::get<Between>(split(wanted)).later);
      },
      gone.back(), gone);
}

void run(PassContext& context) {
  for (Wanted& wanted : wanted_modules(context)) replace(context, wanted);
}

}  // namespace
}  // namespace ttc::whole_modules_pass

TTC_REGISTER_PASS({"whole-modules", "Make one node of each module that the map replaces whole",
                   ttc::whole_modules_pass::run});
