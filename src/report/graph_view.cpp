// render_graph(): DOT for graphviz, and one HTML page with the nodes as rows under their modules.
#include <algorithm>
#include <sstream>

#include "ir/node_counts.h"
#include "report/inspect.h"
#include "report/place.h"

namespace ttc {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

std::string escaped(std::string_view text, bool html) {
  std::string out;
  for (const char c : text) {
    if (html) {
      if (c == '<')
        out += "&lt;";
      else if (c == '>')
        out += "&gt;";
      else if (c == '&')
        out += "&amp;";
      else if (c == '"')
        out += "&quot;";
      else if (c == '\'')
        out += "&#39;";
      else
        out += c;
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

// Ids by order, so that names may hold anything.
class Ids {
 public:
  int of(const void* key) { return ids_.emplace(key, static_cast<int>(ids_.size())).first->second; }

 private:
  std::map<const void*, int> ids_;
};

class DotWriter {
 public:
  std::string write(const ir::Model& model) {
    out_ << "digraph model {\n  rankdir=TB; node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\", "
            "fontsize=10];\n";
    graph(*model.graph, 1);
    out_ << "}\n";
    return out_.str();
  }

 private:
  void graph(const Graph& graph, int depth) {
    const std::string indent(2 * depth, ' ');
    for (const auto& input : graph.inputs()) {
      if (ir::is_weight(input.value.get()) || !input.value->has_uses()) continue;
      out_ << indent << "v" << ids_.of(input.value.get()) << " [shape=ellipse, fillcolor=\"#e8e8e8\", label=\""
           << escaped(input.value->name, false) << "\\n"
           << escaped(input.value->type.str(), false) << "\"];\n";
    }
    for (const auto& node : graph.nodes()) write_node(*node, depth);
    const int end = ids_.of(&graph);
    out_ << indent << "v" << end << " [shape=ellipse, fillcolor=\"#e8e8e8\", label=\""
         << (graph.parent() ? "return" : "output") << "\"];\n";
    for (const auto& output : graph.outputs())
      output.arg.for_each_value([&](Value* value) { edge(*value, end, depth); });
  }

  void write_node(const Node& node, int depth) {
    const std::string indent(2 * depth, ' '), place = place_of(node);
    const int id = ids_.of(&node);
    const char* color = place == "device" ? "#b7e1c0" : place == "cpu" ? "#f6d5a8" : "white";
    out_ << indent << "v" << id << " [fillcolor=\"" << color << "\", label=\"" << escaped(node.op(), false);
    if (!node.results().empty()) out_ << "\\n" << escaped(node.result()->type.str(), false);
    if (!node.provenance->module_path.empty()) out_ << "\\n" << escaped(node.provenance->module_path, false);
    out_ << "\"];\n";
    for (const Value* value : node.operands()) edge(*value, id, depth);
    for (const auto& region : node.regions()) {
      out_ << indent << "subgraph cluster_" << ids_.of(region.get()) << " {\n"
           << indent << "  label=\"" << escaped(region->name, false) << "\";\n";
      graph(*region, depth + 1);
      out_ << indent << "}\n";
    }
  }

  void edge(const Value& from, int to, int depth) {
    if (ir::is_weight(&from)) return;
    const int id = from.def() ? ids_.of(from.def()) : ids_.of(&from);
    out_ << std::string(2 * depth, ' ') << "v" << id << " -> v" << to << ";\n";
  }

  std::ostringstream out_;
  Ids ids_;
};

constexpr const char* page_head = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>ttc graph</title>
<style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem; color: #1d2a33; }
h1 { font-size: 1.2rem; } code, td { font-family: ui-monospace, monospace; font-size: 12.5px; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: 2px 8px; vertical-align: top; }
th { position: sticky; top: 0; background: #fff; border-bottom: 1px solid #9aa5ad; }
tr.device td:first-child { border-left: 6px solid #3f9d5a; } tr.cpu td:first-child { border-left: 6px solid #e0902f; }
tr.none td:first-child { border-left: 6px solid #c9d1d6; } tr.device { background: #eef8f0; } tr.cpu { background: #fdf5e9; }
tr.region td { background: #f1f3f5; font-weight: 600; } tr:target { outline: 2px solid #2467b3; }
a { color: #2467b3; text-decoration: none; } a:hover { text-decoration: underline; } .dim { color: #6b7780; }
.key span { display: inline-block; padding: 0 8px; margin-right: 8px; border-left: 6px solid; }
input { font: inherit; padding: 3px 6px; width: 24rem; }
</style></head><body>
)";
constexpr const char* page_tail = R"(</table>
<script>
const box = document.getElementById('filter');
box.addEventListener('input', () => {
  const word = box.value.toLowerCase();
  for (const row of document.querySelectorAll('tr[data-text]')) row.hidden = !row.dataset.text.toLowerCase().includes(word);
});
</script></body></html>
)";

class HtmlWriter {
 public:
  std::string write(const ir::Model& model) {
    ir::NodeCounter counter;
    bool placed = false;
    ir::walk(*model.graph, [&](Node* node) {
      const std::string place = place_of(*node);
      placed = placed || !place.empty();
      counter.add(*node, place == "device");
    });
    const ir::NodeCounts counts = counter.counts();
    out_ << page_head << "<h1>" << escaped(model.info.path, true)
         << "</h1>\n<p class=\"key\" title=\"Compute nodes of the model before rewriting; a fused operator counts for "
            "each "
            "that it computes\"><span style=\"border-color:#3f9d5a\">device: "
         << (placed ? counts.device : 0)
         << "</span><span style=\"border-color:#e0902f\">CPU: " << (placed ? counts.cpu : 0)
         << "</span><span style=\"border-color:#c9d1d6\">nodes: " << counts.total
         << "</span></p>\n<p><input id=\"filter\" placeholder=\"filter by operator, module or name\"></p>\n"
         << "<table><tr><th>value</th><th>operator</th><th>operands</th><th>type</th><th>module</th><th>source</th></"
            "tr>\n";
    graph(*model.graph, 0);
    out_ << page_tail;
    return out_.str();
  }

 private:
  std::string link(const Value& value) {
    const std::string name = escaped(value.name, true);
    if (ir::is_weight(&value)) return "<span class=\"dim\">$" + name + "</span>";
    return "<a href=\"#v" + std::to_string(ids_.of(&value)) + "\">" + name + "</a>";
  }

  void graph(const Graph& graph, int depth) {
    for (const auto& input : graph.inputs())
      if (!ir::is_weight(input.value.get()))
        out_ << "<tr class=\"none\" id=\"v" << ids_.of(input.value.get()) << "\"><td>"
             << escaped(input.value->name, true) << "</td><td class=\"dim\">input</td><td></td><td>"
             << escaped(input.value->type.str(), true) << "</td><td></td><td></td></tr>\n";
    for (const auto& node : graph.nodes()) row(*node, depth);
    out_ << "<tr class=\"none\"><td></td><td class=\"dim\">return</td><td>";
    for (const auto& output : graph.outputs())
      output.arg.for_each_value([&](Value* value) { out_ << link(*value) << ' '; });
    out_ << "</td><td></td><td></td><td></td></tr>\n";
  }

  void row(const Node& node, int depth) {
    const std::string place = place_of(node);
    const ir::Provenance& from = *node.provenance;
    std::string names, types;
    for (const auto& result : node.results()) {
      names +=
          "<span id=\"v" + std::to_string(ids_.of(result.get())) + "\">" + escaped(result->name, true) + "</span> ";
      types += escaped(result->type.str(), true) + " ";
    }
    const std::string first = node.results().empty() ? "" : node.result()->name;
    out_ << "<tr class=\""
         << (place == "device" ? "device"
             : place == "cpu"  ? "cpu"
                               : "none")
         << "\" data-text=\"" << escaped(first + " " + node.op() + " " + from.module_path, true)
         << "\"><td style=\"padding-left:" << 8 + 16 * depth << "px\">" << names << "</td><td>"
         << escaped(node.op(), true) << "</td><td>";
    for (const Value* value : node.operands()) out_ << link(*value) << ' ';
    out_ << "</td><td>" << types << "</td><td title=\"" << escaped(from.module_class, true) << "\">"
         << escaped(from.module_path, true) << "</td><td class=\"dim\">" << escaped(from.source, true)
         << "</td></tr>\n";
    for (const auto& region : node.regions()) {
      out_ << "<tr class=\"region\"><td colspan=\"6\">" << escaped(region->name, true) << "</td></tr>\n";
      graph(*region, depth + 1);
    }
  }

  std::ostringstream out_;
  Ids ids_;
};

}  // namespace

GraphForm graph_form(const std::string& name) {
  if (name == "text") return GraphForm::text;
  if (name == "dot") return GraphForm::dot;
  if (name == "html") return GraphForm::html;
  throw usage_error("unknown graph form '" + name + "'", "one of text, dot, html");
}

std::string render_graph(const ir::Model& model, GraphForm form) {
  if (form == GraphForm::dot) return DotWriter().write(model);
  if (form == GraphForm::html) return HtmlWriter().write(model);
  return ir::print(model);
}

}  // namespace ttc
