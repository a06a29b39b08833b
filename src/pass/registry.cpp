// The registry of passes, sizes for symbols that have none, and refusals.
#include <algorithm>

#include "ir/copy.h"
#include "pass/pass.h"
#include "support/error.h"

namespace ttc {
namespace {

std::map<std::string_view, PassInfo>& registry() {
  static std::map<std::string_view, PassInfo> passes;
  return passes;
}

void bind_symbols(const ir::Graph& graph, const ir::SymRanges& ranges, ir::SymBinding& out) {
  for (const std::string& symbol : ir::symbols_of(graph)) {
    if (out.contains(symbol)) continue;
    const auto range = ranges.find(symbol);
    const std::int64_t low = range != ranges.end() && range->second.min ? *range->second.min : 1;
    out.emplace(symbol, std::max<std::int64_t>(low, 1));
  }
}

// Whether every tensor has elements at these sizes, as far as they can be known.
bool has_elements(const ir::Graph& graph, const ir::SymBinding& shapes) {
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results())
      for (const ir::SymExpr& size : result->type.sizes)
        if (!size.is_number() && size.evaluate(shapes).value_or(1) < 1) return false;
  return true;
}

// The lower bounds of ranges may be sizes at which windows do not fit: images of 2 by 2 for a kernel of 3 by 3. The
// dims that nobody gave grow until something is left to compute, or as far as they may.
void leave_elements(const ir::Model& model, const ir::SymBinding& given, ir::SymBinding& shapes) {
  for (int i = 0; i < 12 && !has_elements(*model.graph, shapes); ++i) {
    for (auto& [symbol, value] : shapes) {
      if (given.contains(symbol)) continue;
      const auto range = model.ranges.find(symbol);
      const bool bounded = range != model.ranges.end() && range->second.max;
      value = bounded ? std::min(2 * value, std::max(*range->second.max, value)) : 2 * value;
    }
  }
}

}  // namespace

PassContext::PassContext(ir::Model& m, const CompileOptions& o) : model(m), options(o), shapes(o.shapes) {
  for (const auto& [symbol, range] : m.ranges)
    if (!shapes.contains(symbol)) shapes.emplace(symbol, std::max<std::int64_t>(range.min.value_or(1), 1));
  bind_symbols(*m.graph, m.ranges, shapes);
  leave_elements(m, o.shapes, shapes);
}

const MapEntry* PassContext::entry_for(const ir::Node& node, std::string_view device_op) const {
  const auto known = node.results().empty() ? taken.end() : taken.find(node_name(node));
  return known != taken.end() ? known->second : find_entry(options.replace, node, device_op);
}

void PassContext::refuse(std::string_view pass, const ir::Node& node, Reason reason) {
  const std::string name = node_name(node);
  if (!refused_.emplace(pass, name).second) return;
  refusals.push_back({.pass = std::string(pass),
                      .node = name,
                      .op = node.op(),
                      .module = node.provenance->module_path,
                      .source = node.provenance->source,
                      .reason = std::move(reason)});
}

bool PassContext::has_refused(std::string_view pass, const ir::Node& node) const {
  return refused_.contains({std::string(pass), node_name(node)});
}

std::size_t count_nodes(const ir::Graph& graph) {
  std::size_t count = graph.nodes().size();
  for (const auto& node : graph.nodes())
    for (const auto& region : node->regions()) count += count_nodes(*region);
  return count;
}

void register_pass(const PassInfo& info) {
  const bool fresh = registry().emplace(info.name, info).second;
  TTC_CHECK(fresh, "pass registered twice: " + std::string(info.name));
}

const PassInfo* find_pass(std::string_view name) {
  const auto found = registry().find(name);
  return found == registry().end() ? nullptr : &found->second;
}

std::vector<const PassInfo*> all_passes() {
  std::vector<const PassInfo*> passes;
  for (const auto& [name, info] : registry()) passes.push_back(&info);
  return passes;
}

}  // namespace ttc
