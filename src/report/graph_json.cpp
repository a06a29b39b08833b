// graph_json(): modules, values and nodes by number.
#include <algorithm>
#include <unordered_map>

#include "ir/node_name.h"
#include "report/page.h"
#include "report/place.h"

namespace ttc {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

constexpr std::size_t longest_text = 4000;  // of one node's line: lists of literals have no end

// A node's own line, without the bodies of its regions.
std::string line_of(const Node& node) {
  std::string text = ir::print(node);
  if (const auto end = text.find('\n'); end != std::string::npos) text.resize(end);
  if (text.size() > longest_text) {
    std::size_t cut = longest_text;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
    text.resize(cut);
    text += "...";
  }
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? std::string() : text.substr(begin);
}

class GraphWriter {
 public:
  Json write(const ir::Model& model) {
    out_ = {
        {"modules", Json::array()}, {"inputs", Json::array()}, {"nodes", Json::array()}, {"outputs", Json::array()}};
    collect_modules(*model.graph);
    for (const auto& input : model.graph->inputs())
      if (!ir::is_weight(input.value.get())) {
        number_.emplace(input.value.get(), static_cast<int>(out_["inputs"].size()));
        out_["inputs"].push_back({{"name", input.value->name}, {"type", input.value->type.str()}});
      }
    inputs_ = static_cast<int>(out_["inputs"].size());
    graph(*model.graph, -1);
    for (const auto& output : model.graph->outputs())
      output.arg.for_each_value([&](const Value* value) {
        if (const auto found = number_.find(value); found != number_.end())
          out_["outputs"].push_back({{"name", output.target.empty() ? value->name : output.target},
                                     {"type", value->type.str()},
                                     {"from", found->second}});
      });
    return std::move(out_);
  }

 private:
  // A stack has the way from the root; text has only its last entry, there a parent is the longest path before a dot.
  void collect_modules(const Graph& graph) {
    std::map<std::string, std::string> classes;
    ir::walk(graph, [&](const Node* node) {
      const ir::Provenance& where = *node->provenance;
      for (const auto& [path, type] : where.stack) classes.emplace(path, type);
      if (!where.module_path.empty()) classes.emplace(where.module_path, where.module_class);
    });
    classes.erase("");
    for (const auto& [path, type] : classes) {  // "a" stands before "a.b"
      int parent = -1;
      for (auto dot = path.rfind('.'); dot != std::string::npos && dot > 0 && parent < 0;
           dot = path.rfind('.', dot - 1))
        if (const auto found = module_.find(path.substr(0, dot)); found != module_.end()) parent = found->second;
      module_.emplace(path, static_cast<int>(out_["modules"].size()));
      out_["modules"].push_back({{"path", path}, {"class", type}, {"parent", parent}});
    }
  }

  void graph(const Graph& graph, int region) {
    for (const auto& node : graph.nodes()) {
      const int number = inputs_ + static_cast<int>(out_["nodes"].size());
      for (const auto& result : node->results()) number_.emplace(result.get(), number);
      add(*node, region);
      for (const auto& body : node->regions()) this->graph(*body, number);
    }
  }

  void add(const Node& node, int region) {
    const auto module = module_.find(node.provenance->module_path);
    Json from = Json::array(), weights = Json::array();
    for (const Value* operand : node.operands()) {
      if (ir::is_weight(operand))
        weights.push_back(operand->name);
      else if (const auto found = number_.find(operand); found != number_.end())
        from.push_back(found->second);
    }
    Json json = {{"name", ir::node_name(node)},
                 {"op", node.op()},
                 {"type", node.results().empty() ? std::string() : node.result()->type.str()},
                 {"module", module == module_.end() ? -1 : module->second},
                 {"place", place_of(node)},
                 {"from", std::move(from)},
                 {"text", line_of(node)}};
    if (!weights.empty()) json["weights"] = std::move(weights);
    if (!node.provenance->source.empty()) json["source"] = node.provenance->source;
    if (region >= 0) json["region"] = region;
    for (const char* name : {"weight_format", "fidelity", "fp32_acc"})
      if (const ir::Arg* arg = node.arg(name)) {
        if (const auto* text = arg->get_if<std::string>()) json[name] = *text;
        if (const auto* flag = arg->get_if<bool>()) json[name] = *flag;
      }
    out_["nodes"].push_back(std::move(json));
  }

  Json out_;
  int inputs_ = 0;
  std::map<std::string, int> module_;  // by path
  std::unordered_map<const Value*, int> number_;
};

}  // namespace

Json graph_json(const ir::Model& model) { return GraphWriter().write(model); }

}  // namespace ttc
