// A module stands for its nodes: it ran on the device where the device served all of them.
#include "session/compatibility.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "executor/kernel_choice.h"
#include "ir/manifest_name.h"
#include "pass/call.h"
#include "pass/user_names.h"
#include "support/error.h"
#include "support/glob.h"
#include "support/json_util.h"
#include "support/mapped_file.h"

namespace ttc {
namespace {

using Counts = std::map<std::string, std::int64_t>;

// "torch.nn.modules.linear.Linear" -> "Linear"
std::string short_class(const std::string& klass) { return klass.substr(klass.rfind('.') + 1); }

HostNode host_node(const ir::Node& node, bool planned, std::string reason) {
  const ir::Provenance& where = *node.provenance;
  const bool named = !where.module_path.empty();
  return {.node = node_name(node),
          .op = node.op(),
          .module = named ? where.module_path : node_name(node),
          .klass = where.module_class.empty() ? node.op() : short_class(where.module_class),
          .reason = std::move(reason),
          .planned = planned,
          .expected = planned,
          .where = node.provenance};
}

// A list of the model's manifest; empty where there is none.
Json::array_t manifest_list(const ir::Model& model, const char* name) {
  const auto manifest = model.extra.find(manifest_name);
  if (manifest == model.extra.end()) return {};
  const Json root = parse_json(manifest->second.str());
  const Json* list = find_member(root, name);
  return list != nullptr ? as_array(*list) : Json::array_t();
}

// Why a compile left nodes to the host, by their names.
std::map<std::string, std::string> planned_reasons(const ir::Model& model) {
  std::map<std::string, std::string> out;
  for (const Json& one : manifest_list(model, "fallbacks"))
    out[as_string(member(one, "node"))] = as_string(member(one, "reason")) + ": " + as_string(member(one, "detail"));
  return out;
}

// Why the host served device ops, by the names of their nodes; "" stands for a whole run.
std::map<std::string, std::string> runtime_reasons(const ttrt::Executor& executor) {
  std::map<std::string, std::string> out;
  for (const ttrt::ServedCalls& one : executor.chooser().served())
    if (!one.on_device) out[one.node] = "served by " + one.kernel;
  for (const ttrt::FallbackFailure& one : executor.fallback_failures())
    if (one.node.empty() || out.contains(one.node)) out[one.node] = one.reason;
  return out;
}

Counts by_class(const std::map<std::string, std::string>& classes, const Counts* calls = nullptr) {
  Counts out;
  for (const auto& [path, klass] : classes)
    if (calls == nullptr)
      ++out[klass];
    else if (const auto found = calls->find(path); found != calls->end())
      out[klass] += found->second;
  return out;
}

std::int64_t sum(const Counts& counts) {
  std::int64_t out = 0;
  for (const auto& [key, count] : counts) out += count;
  return out;
}

}  // namespace

std::vector<std::string> Compatibility::regressions() const {
  std::set<std::string> out;
  for (const HostNode& one : host)
    if (!one.expected) out.insert(one.klass);
  return {out.begin(), out.end()};
}

std::string Compatibility::json() const {
  using Out = nlohmann::ordered_json;
  std::map<std::string, std::string> fell_back;
  Out nodes = Out::array();
  for (const HostNode& one : host) {
    if (runs > 0) fell_back[one.module] = one.klass;
    nodes.push_back({{"node", one.node},
                     {"op", one.op},
                     {"module", one.module},
                     {"class", one.klass},
                     {"reason", one.reason},
                     {"planned", one.planned},
                     {"expected", one.expected}});
  }
  const Counts succeeded = by_class(swapped, &successes);
  const std::vector<std::string> unexpected = regressions();
  return Out{{"model_class", model_class},
             {"runs", runs},
             {"modules_swapped", {{"by_class", by_class(swapped)}, {"by_module", swapped}}},
             {"runtime_observed",
              {{"successes_by_class", succeeded},
               {"fallbacks_by_class", by_class(fell_back)},
               {"fallbacks_by_module", fell_back}}},
             {"regressions", unexpected},
             {"summary",
              {{"modules_swapped_count", swapped.size()},
               {"runtime_successes", sum(succeeded)},
               {"runtime_fallbacks", fell_back.size()},
               {"regression_count", unexpected.size()}}},
             {"fallbacks", nodes},
             {"no_longer", no_longer}}
      .dump(-1, ' ', false, Out::error_handler_t::replace);
}

Compatibility placement_of(const ir::Model& model) {
  Compatibility out;
  for (const Json& one : manifest_list(model, "modules")) {
    const std::string& klass = as_string(member(one, "class"));
    out.swapped[as_string(member(one, "path"))] = klass.empty() ? as_string(member(one, "op")) : short_class(klass);
  }
  const auto reasons = planned_reasons(model);
  ir::walk(*model.graph, [&](ir::Node* node) {
    if (const auto& stack = node->provenance->stack; out.model_class.empty() && !stack.empty())
      out.model_class = short_class(stack.front().second);
    if (node->origins.empty() || (is_device_node(*node) && node->place != "cpu")) return;
    const auto reason = reasons.find(node_name(*node));
    out.host.push_back(host_node(*node, true, reason == reasons.end() ? "stays on the CPU" : reason->second));
  });
  return out;
}

void RunLedger::observe(const ttrt::Executor& executor) {
  ++runs_;
  std::map<std::string, bool> whole;
  for (const ttrt::ServedOp& one : executor.served())
    if (const ir::Node& node = *one.instruction->node; is_device_node(node) && node.place != "cpu")
      if (bool& all = whole.emplace(node.provenance->module_path, true).first->second; !one.on_device) all = false;
  for (const auto& [path, all] : whole) whole_[path] += all;
}

Compatibility RunLedger::report(const ttrt::Executor& executor) const {
  Compatibility out = placement_of(executor.model());
  out.runs = runs_;
  for (const auto& [path, klass] : out.swapped) {
    auto found = whole_.find(path);
    // Layers that are one operator run as a part of the module around them.
    for (std::string at = path; found == whole_.end() && at.find('.') != at.npos;)
      found = whole_.find(at = at.substr(0, at.rfind('.')));
    if (found != whole_.end()) out.successes[path] = found->second;
  }
  const auto reasons = runtime_reasons(executor);
  const auto all = reasons.find("");
  for (const ttrt::ServedOp& one : executor.served()) {
    const ir::Node& node = *one.instruction->node;
    if (!is_device_node(node) || node.place == "cpu") continue;
    const auto reason = reasons.contains(node_name(node)) ? reasons.find(node_name(node)) : all;
    if (reason != reasons.end()) out.host.push_back(host_node(node, false, reason->second));
  }
  return out;
}

bool ExpectedFallbacks::Entry::covers(const HostNode& node) const {
  if (name.empty()) return module == node.module && (op.empty() || op == node.op);
  return names_module(name, *node.where) || names_op(name, node.op, {}) || glob_match(name, node.module) ||
         glob_match(name, node.node);
}

ExpectedFallbacks ExpectedFallbacks::of(const std::vector<std::string>& names) {
  ExpectedFallbacks out;
  for (const std::string& name : names) out.entries_.push_back({.name = name, .module = {}, .op = {}});
  return out;
}

ExpectedFallbacks ExpectedFallbacks::read(const std::string& path) {
  ExpectedFallbacks out;
  const auto file = MappedFile::open(path);
  try {
    const Json json = parse_json({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
    if (json.is_array()) {
      std::vector<std::string> names;
      for (const Json& name : as_array(json)) names.push_back(as_string(name));
      return of(names);
    } else if (const Json* nodes = find_member(json, "fallbacks")) {
      for (const Json& one : as_array(*nodes))
        out.entries_.push_back(
            {.name = {}, .module = as_string(member(one, "module")), .op = as_string(member(one, "op"))});
    } else {
      for (const auto& [module, klass] : as_object(member(member(json, "runtime_observed"), "fallbacks_by_module")))
        out.entries_.push_back({.name = {}, .module = module, .op = {}});
    }
  } catch (const Error& error) {
    throw Error(error.code(), path, error.what(),
                "a list of names, [\"Embedding\", \"aten.topk.default\"], or an earlier report is what it takes");
  }
  return out;
}

void ExpectedFallbacks::judge(Compatibility& compatibility) const {
  for (HostNode& one : compatibility.host)
    one.expected = std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.covers(one); });
  std::set<std::string> told;
  for (const Entry& entry : entries_)
    if (std::ranges::none_of(compatibility.host, [&](const HostNode& one) { return entry.covers(one); }) &&
        told.insert(entry.text()).second)
      compatibility.no_longer.push_back(entry.text());
}

}  // namespace ttc
