// Regions to text and back. The text is that of a model of its own: what it reads are its inputs, in the node's order.
#include "ir/body.h"

#include <algorithm>
#include <set>

#include "ir/copy.h"
#include "support/error.h"

namespace ttc::ir {
namespace {

std::size_t body_index(const Node& node) { return static_cast<std::size_t>(node.schema()->index_of("body")); }

std::string body_text(const Node& node, const Model& model) {
  Model body;
  body.ranges = model.ranges;
  std::unordered_map<const Value*, Arg> mapped;
  for (const Value* value : node.operands()) mapped[value] = body.graph->add_input(value->type, value->name);
  std::vector<Node*> nodes;
  for (const auto& inner : node.regions()[0]->nodes()) nodes.push_back(inner.get());
  copy_nodes(nodes, *body.graph, mapped);
  for (const GraphOutput& output : node.regions()[0]->outputs()) body.graph->add_output(mapped.at(output.arg.value()));
  return print(body);
}

// What the text does not hold of a module stack is the node's own.
void restore_stack(const Node& around, Node& node) {
  Provenance where = *node.provenance;
  where.stack = around.provenance->stack, where.calls = around.provenance->calls;
  if (!where.module_path.empty() && where.module_path != around.provenance->module_path)
    where.stack.emplace_back(where.module_path, where.module_class);
  node.provenance = std::make_shared<const Provenance>(std::move(where));
}

void open_body(Node& node) {
  const std::size_t at = body_index(node);
  const std::string* text = node.arg(at).get_if<std::string>();
  if (text == nullptr || text->empty()) throw bad_file("", node.op() + " without a body");
  const std::unique_ptr<Model> body = parse_body(*text);
  const std::vector<Value*> operands = node.operands();
  const Graph& from = *body->graph;
  if (operands.size() != from.inputs().size() || node.results().size() != from.outputs().size())
    throw bad_file("", "the body of " + node.op() + " does not fit its operands and results");
  std::unordered_map<const Value*, Arg> mapped;
  for (std::size_t i = 0; i < operands.size(); ++i) mapped[from.inputs()[i].value.get()] = operands[i];
  std::vector<Node*> nodes;
  for (const auto& inner : from.nodes()) nodes.push_back(inner.get());
  Graph* region = node.add_region();
  copy_nodes(nodes, *region, mapped);
  for (const auto& inner : region->nodes()) restore_stack(node, *inner);
  for (const GraphOutput& output : from.outputs()) region->add_output(mapped.at(output.arg.value()));
  node.set_arg(at, std::string());
}

}  // namespace

bool has_body(const OpSchema* schema) {
  return schema != nullptr && schema->op.starts_with("tt.") && schema->index_of("body") >= 0;
}

std::vector<Value*> captured(const Graph& region) {
  std::set<const Value*> inside;
  std::vector<Value*> tensors, integers;
  for (const auto& node : region.nodes()) {
    for (Value* value : node->operands())
      if (!inside.contains(value)) {
        auto& list = value->type.is_tensor() ? tensors : integers;
        if (std::ranges::find(list, value) == list.end()) list.push_back(value);
      }
    for (const auto& result : node->results()) inside.insert(result.get());
  }
  tensors.insert(tensors.end(), integers.begin(), integers.end());
  return tensors;
}

std::unique_ptr<Model> with_bodies(const Model& model) {
  bool found = false;
  walk(*model.graph, [&](const Node* node) { found = found || is_whole_module(*node); });
  if (!found) return nullptr;
  auto out = std::make_unique<Model>();
  out->graph = clone(*model.graph);
  out->weights = model.weights;
  out->ranges = model.ranges;
  out->info = model.info;
  out->extra = model.extra;
  walk(*out->graph, [&](Node* node) {
    if (!is_whole_module(*node)) return;
    std::string text = body_text(*node, model);
    node->regions().clear();
    node->set_arg(body_index(*node), std::move(text));
  });
  return out;
}

// Device operators alone: what else there is would run nobody knows where.
std::unique_ptr<Model> parse_body(const std::string& text) {
  std::unique_ptr<Model> body = parse(text, "a body");
  for (const GraphInput& input : body->graph->inputs())
    if (input.kind != InputKind::user) throw bad_file("", "the body of a module holds weights of its own");
  for (const auto& node : body->graph->nodes())
    if (!node->op().starts_with("tt.") || !node->regions().empty() || has_body(node->schema()))
      throw bad_file("", "the body of a module calls " + node->op());
  for (const GraphOutput& output : body->graph->outputs())
    if (output.arg.value() == nullptr) throw bad_file("", "the body of a module gives a literal");
  return body;
}

void open_bodies(Graph& graph) {
  walk(graph, [](Node* node) {
    if (node->regions().empty() && has_body(node->schema())) open_body(*node);
  });
}

}  // namespace ttc::ir
