// A compile's result as the summary line, as JSON, and as the manifest that the file keeps.
#include "pass/manifest.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <nlohmann/json.hpp>

#include "ops/whole_modules.h"
#include "pass/call.h"
#include "support/json_text.h"

#ifndef TTC_VERSION
#define TTC_VERSION "unknown"
#endif

namespace ttc {
namespace {

using nlohmann::json;

// "/somewhere/bert.py:212" -> "bert.py:212"
std::string without_folder(const std::string& source) {
  const auto slash = source.find_last_of("/\\");
  return slash == std::string::npos ? source : source.substr(slash + 1);
}

json fallback_without_folder(const Fallback& f) {
  json out = fallback_json(f);
  out["source"] = without_folder(f.source);
  return out;
}

json module_json(const ModuleReport& m) {
  return json_of("class", m.klass, "fidelity", m.fidelity, "op", m.op, "path", m.path, "weight_format",
                 m.weight_format);
}

json swap_json(const Swap& s) {
  return {{"path", s.path}, {"class", s.klass}, {"op", s.op}, {"map", s.map}, {"key", s.key}, {"to", s.target}};
}

json match_json(const MatchRecord& m) {
  return json_of("module", m.module, "nodes", m.nodes, "pass", m.pass, "result", m.result, "rule", m.rule);
}

template <typename T>
json list_of(const std::vector<T>& items, json (*one)(const T&)) {
  json list = json::array();
  for (const T& item : items) list.push_back(one(item));
  return list;
}

// The same as text: a big graph has many.
template <typename T>
std::string rows_of(const std::vector<T>& items, json (*one)(const T&)) {
  JsonArrayText rows("\n  ");
  for (const T& item : items) rows.add(one(item));
  return std::move(rows).take();
}

json literal(const ir::Arg* arg) {
  if (!arg) return nullptr;
  if (const auto* text = arg->get_if<std::string>()) return *text;
  if (const auto* flag = arg->get_if<bool>()) return *flag;
  return nullptr;
}

// Each device node whose literals say how precisely it computes.
std::string precision_rows(const ir::Model& model) {
  JsonArrayText list("\n  ");
  ir::walk(*model.graph, [&](ir::Node* node) {
    if (!is_device_node(*node)) return;
    json entry;
    for (const char* name : {"weight_format", "fidelity", "fp32_acc"})
      if (json value = literal(node->arg(name)); !value.is_null()) entry[name] = value;
    if (entry.empty()) return;
    entry["node"] = node_name(*node);
    entry["op"] = node->op();
    entry["module"] = node->provenance->module_path;
    list.add(entry);
  });
  return std::move(list).take();
}

// Only the exceptions: every node that is not a tt operator runs on the CPU.
json placement_json(const ir::Model& model) {
  json cpu = json::array();
  std::size_t device = 0;
  ir::walk(*model.graph, [&](ir::Node* node) {
    if (is_device_node(*node) && node->place != "cpu")
      ++device;
    else if (!node->origins.empty())
      cpu.push_back(node_name(*node));
  });
  return {{"device_nodes", device}, {"cpu", cpu}};
}

json counts_json(const CompileResult& r) {
  return {{"nodes", {{"total", r.nodes.total}, {"device", r.nodes.device}, {"cpu", r.nodes.cpu}}},
          {"flops", {{"total", r.flops.total}, {"device", r.flops.device}}},
          {"transfers", {{"count", r.transfers.count}, {"bytes", r.transfers.bytes}}},
          {"weights", {{"bytes_in", r.weights.bytes_in}, {"bytes_out", r.weights.bytes_out}}},
          {"memory",
           {{"l1_peak", r.memory.l1_peak},
            {"dram_peak", r.memory.dram_peak},
            {"fits", r.memory.fits()},
            {"streamed", r.memory.streamed()}}}};
}

std::string human_bytes(std::int64_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

// "aten.gelu.default" -> "gelu"
std::string short_op(const std::string& op) {
  const auto first = op.find('.');
  if (first == std::string::npos) return op;
  const auto second = op.find('.', first + 1);
  return op.substr(first + 1, second == std::string::npos ? second : second - first - 1);
}

// The manifests of the compiles that made the input, the first one first.
json earlier_json(const ir::Model& model) {
  const auto manifest = model.extra.find(manifest_name);
  if (manifest == model.extra.end()) return nullptr;
  json last = parse_json(manifest->second.str());
  json out = last.value("earlier", json::array());
  last.erase("earlier");
  last.erase("seal");
  out.push_back(std::move(last));
  return out;
}

bool is_known(const ttrt::ArchProfile& profile) {
  const auto known = ttrt::arch_profiles();
  return std::find(known.begin(), known.end(), profile) != known.end();
}

}  // namespace

std::string CompileResult::shortage() const {
  std::string text;
  const auto compare = [&](const char* what, std::int64_t needed, std::int64_t there) {
    if (needed > there)
      text += (text.empty() ? "it needs " : ", and ") + human_bytes(needed) + " of " + what + ", " + arch + " has " +
              human_bytes(there);
  };
  compare("DRAM", memory.dram_peak, memory.dram);
  compare("L1 a core", memory.l1_peak, memory.l1);
  return text;
}

std::string CompileResult::summary() const {
  std::string text = std::to_string(nodes.device) + "/" + std::to_string(nodes.total) + " nodes on device";
  if (nodes.cpu > 0) {
    std::map<std::string, int> groups;
    for (const Fallback& f : fallbacks) ++groups[short_op(f.op) + " x#: " + std::string(to_string(f.reason.code))];
    std::vector<std::pair<std::string, int>> sorted(groups.begin(), groups.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    text += ", " + std::to_string(nodes.cpu) + " on CPU [";
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < sorted.size() && i < shown; ++i) {
      std::string group = sorted[i].first;
      group.replace(group.find('#'), 1, std::to_string(sorted[i].second));
      text += (i ? ", " : "") + group;
    }
    if (sorted.size() > shown) text += ", and " + std::to_string(sorted.size() - shown) + " more kinds";
    text += "]";
  }
  std::map<std::string, int> whole;
  for (const ModuleReport& m : modules)
    if (ttrt::is_whole_module(m.op)) ++whole[m.op];
  for (const auto& [op, count] : whole) text += ", " + std::to_string(count) + " " + op;
  text += ", " + std::to_string(transfers.count) + (transfers.count == 1 ? " transfer, " : " transfers, ");
  text += human_bytes(transfers.bytes);
  if (memory.fits()) return text;
  if (memory.streamed()) return text + "; does not fit at once, " + shortage() + ": weights will be streamed";
  return text + "; DOES NOT FIT: " + shortage();
}

std::vector<RefusalRecord> CompileResult::near_misses() const {
  const auto recognises = [](const std::string& pass) {
    return pass.starts_with("raise-") || pass == "fold-batch-norm" || pass == "fuse-projections" ||
           pass == "whole-modules";
  };
  const auto partial = [](ReasonCode code) {
    return code == ReasonCode::PatternNearMiss || code == ReasonCode::MultiUse ||
           code == ReasonCode::NonConstantWeight || code == ReasonCode::RankUnsupported;
  };
  std::set<std::string> recognised;
  for (const MatchRecord& m : matches)
    if (recognises(m.pass)) recognised.insert(m.nodes.begin(), m.nodes.end());
  std::vector<RefusalRecord> out;
  for (const RefusalRecord& r : refusals)
    if (recognises(r.pass) && partial(r.reason.code) && !recognised.contains(r.node)) out.push_back(r);
  return out;
}

OrderedJson fallback_json(const Fallback& f) {
  return {{"node", f.node},
          {"op", f.op},
          {"module", f.module},
          {"reason", to_string(f.reason.code)},
          {"detail", f.reason.detail},
          {"source", f.source}};
}

std::string CompileResult::json() const {
  nlohmann::json out = counts_json(*this);
  out["arch"] = arch;
  out["modules"] = list_of(modules, module_json);
  out["swapped"] = list_of(swaps, swap_json);
  out["fallbacks"] = list_of(fallbacks, +[](const Fallback& f) { return nlohmann::json(fallback_json(f)); });
  out["near_misses"] = nlohmann::json::array();
  for (const RefusalRecord& r : near_misses())
    out["near_misses"].push_back({{"pass", r.pass},
                                  {"node", r.node},
                                  {"op", r.op},
                                  {"module", r.module},
                                  {"source", r.source},
                                  {"reason", to_string(r.reason.code)},
                                  {"detail", r.reason.detail}});
  out["passes"] = nlohmann::json::array();
  for (const PassReport& p : passes)
    out["passes"].push_back({{"name", p.name},
                             {"changed", p.changed},
                             {"ms", p.ms},
                             {"nodes_before", p.nodes_before},
                             {"nodes_after", p.nodes_after},
                             {"matched", p.matched},
                             {"refused", p.refused}});
  out["summary"] = summary();
  return out.dump();
}

ManifestRows manifest_rows(const ir::Model& model, const CompileResult& result) {
  ManifestRows out;
  out["modules"] = rows_of(result.modules, module_json);
  out["swapped"] = rows_of(result.swaps, swap_json);
  out["precision"] = precision_rows(model);
  out["fallbacks"] = rows_of(result.fallbacks, fallback_without_folder);
  out["journal"] = rows_of(result.matches, match_json);
  out["placement"] = placement_json(model).dump();
  return out;
}

ir::ExtraText manifest_text(const ir::Model& model, const CompileOptions& options, const CompileInput& input,
                            const CompileResult& result, ManifestRows rows) {
  json out = counts_json(result);
  out["ttc"] = TTC_VERSION;
  out["manifest"] = 1;
  out["arch"] = result.arch;
  if (!is_known(options.profile)) out["profile"] = json::parse(ttrt::to_json(options.profile));
  out["activation"] = ttrt::to_string(options.activation);
  out["summary"] = result.summary();
  if (json earlier = earlier_json(model); !earlier.is_null()) out["earlier"] = std::move(earlier);
  for (const auto& [name, value] : out.items()) rows[name] = value.dump();
  json file = {{"format", model.info.format}, {"torch", model.info.torch_version}};
  return ir::ExtraText([members = std::move(rows), file = std::move(file), sha256 = input.sha256]() mutable {
    file["sha256"] = sha256 ? sha256() : std::string();
    members["input"] = file.dump();
    return json_table(members, "\n ");
  });
}

}  // namespace ttc
