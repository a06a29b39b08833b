// Inputs and weights stand as nodes of their own in the module that reads them first.
#include "session/explorer_graph.h"

#include <algorithm>
#include <map>

#include "ir/node_name.h"

namespace ttc {
namespace {

class Explorer {
 public:
  Explorer(const CompileResult& result, const DeviceProfile& profile) {
    for (const NodeCost& op : profile.ops) costs_.emplace(op.node, &op);
    for (const Fallback& f : result.fallbacks) reasons_.emplace(f.node, f.reason.text());
  }

  OrderedJson nodes(const ir::Graph& graph) {
    OrderedJson out = OrderedJson::array();
    for (const ir::GraphInput& input : graph.inputs()) {
      if (!input.value->has_uses()) continue;
      const auto& users = input.value->users();
      const bool weight = ir::is_weight(input.value.get());
      out.push_back(node_of("%" + input.value->name, input.value->name,
                            weight && !users.empty() ? space_of(**users.begin()) : "", weight ? "weight" : "input"));
      out.back()["outputsMetadata"].push_back(output_of(*input.value, 0));
    }
    ir::walk(graph, [&](const ir::Node* node) { out.push_back(of(*node)); });
    return out;
  }

 private:
  static std::string space_of(const ir::Node& node) {
    std::string out = node.provenance->module_path;
    std::ranges::replace(out, '.', '/');
    return out;
  }

  static void add(OrderedJson& attributes, const char* key, const std::string& value) {
    if (!value.empty()) attributes.push_back({{"key", key}, {"value", value}});
  }

  static OrderedJson node_of(const std::string& id, const std::string& label, const std::string& space,
                             const std::string& kind) {
    OrderedJson out{{"id", id}, {"label", label}, {"namespace", space}};
    out["attrs"] = out["incomingEdges"] = out["outputsMetadata"] = OrderedJson::array();
    add(out["attrs"], "kind", kind);
    return out;
  }

  static OrderedJson output_of(const ir::Value& value, int index) {
    OrderedJson out{{"id", std::to_string(index)}, {"attrs", OrderedJson::array()}};
    add(out["attrs"], "tensor_shape", value.type.str());
    add(out["attrs"], "__tensor_tag", value.name);
    return out;
  }

  OrderedJson of(const ir::Node& node) const {
    const std::string name = ir::node_name(node);
    OrderedJson out = node_of(name, node.op(), space_of(node), {});
    OrderedJson& attributes = out["attrs"];
    const auto reason = reasons_.find(name);
    add(attributes, "place", node.place.empty() ? "cpu" : std::string(node.place));
    if (reason != reasons_.end()) add(attributes, "reason", reason->second);
    add(attributes, "source", node.provenance->source);
    add(attributes, "class", node.provenance->module_class);
    if (const auto cost = costs_.find(&node); cost != costs_.end()) add_cost(attributes, *cost->second);
    for (const ir::Value* value : node.operands()) {
      const bool made = value->def() != nullptr;
      out["incomingEdges"].push_back({{"sourceNodeId", made ? ir::node_name(*value->def()) : "%" + value->name},
                                      {"sourceNodeOutputId", std::to_string(made ? value->index() : 0)},
                                      {"targetNodeInputId", std::to_string(out["incomingEdges"].size())}});
    }
    for (const auto& result : node.results()) out["outputsMetadata"].push_back(output_of(*result, result->index()));
    return out;
  }

  static void add_cost(OrderedJson& attributes, const NodeCost& cost) {
    add(attributes, "us", std::to_string(cost.time.us));
    add(attributes, "bound", std::string(to_string(cost.time.bound)));
    add(attributes, "program", cost.program);
    add(attributes, "kernel", cost.kernel);
    add(attributes, "fidelity", cost.fidelity);
    if (cost.cores > 0) add(attributes, "cores", std::to_string(cost.cores));
    std::string formats;
    for (const ttrt::TensorSpec& spec : cost.operands)
      formats += (formats.empty() ? "" : ", ") + std::string(to_string(spec.dtype));
    add(attributes, "formats", formats);
  }

  std::map<const ir::Node*, const NodeCost*> costs_;
  std::map<std::string, std::string> reasons_;
};

}  // namespace

OrderedJson explorer_graph(const ir::Model& model, const CompileResult& result, const DeviceProfile& profile,
                           const std::string& label) {
  OrderedJson graph{{"id", profile.arch.name}, {"nodes", Explorer(result, profile).nodes(*model.graph)}};
  OrderedJson collection{{"label", label}, {"graphs", OrderedJson::array()}};
  collection["graphs"].push_back(std::move(graph));
  OrderedJson out = OrderedJson::array();
  out.push_back(std::move(collection));
  return out;
}

}  // namespace ttc
