// What a part reads and gives, and copying its nodes with that into a graph of its own.
#include "session/part.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "ir/copy.h"
#include "pass/call.h"
#include "support/error.h"

namespace ttc {
namespace {

std::optional<Size> as_size(const ir::Value& number, const std::vector<const ir::Value*>& inputs) {
  if (number.type.kind != ir::TypeKind::integer || !number.type.sym || !number.type.sym->is_symbol())
    return std::nullopt;
  for (const ir::Value* tensor : inputs)
    for (std::size_t d = 0; tensor->type.is_tensor() && tensor->type.has_shape && d < tensor->type.sizes.size(); ++d)
      if (tensor->type.sizes[d] == *number.type.sym) return Size{&number, tensor, static_cast<std::int64_t>(d)};
  return std::nullopt;
}

// Values that the node and the regions in it read from outside of it.
void read_by(const ir::Node& node, std::vector<const ir::Value*>& out) {
  std::set<const ir::Value*> own;
  const std::function<void(const ir::Node&)> visit = [&](const ir::Node& one) {
    for (const ir::Value* value : one.operands())
      if (!own.contains(value)) out.push_back(value);
    for (const auto& region : one.regions()) {
      for (const auto& input : region->inputs()) own.insert(input.value.get());
      for (const auto& inner : region->nodes()) {
        visit(*inner);
        for (const auto& result : inner->results()) own.insert(result.get());
      }
      for (const auto& output : region->outputs())
        output.arg.for_each_value([&](const ir::Value* value) {
          if (!own.contains(value)) out.push_back(value);
        });
    }
  };
  visit(node);
}

ir::Value* transferred(ir::Graph& graph, ir::Value* value, ttrt::Role role, ir::Arg how, const char* place) {
  ir::Node* const node = graph.append(op_name(role), {value, std::move(how)});
  node->place = place;
  return node->add_result(value->type);
}

ir::Value* to_device(ir::Graph& graph, ir::Value* value) {
  const auto format = ttrt::exact_format(value->type.dtype);
  TTC_CHECK(format, "a value of the device has a format of the device");
  return transferred(graph, value, ttrt::Role::to_device, std::string(to_string(*format)), "device");
}

}  // namespace

ir::Value* read_back(ir::Graph& graph, ir::Value* value) {
  return transferred(graph, value, ttrt::Role::to_host, value->type.dtype, "cpu");
}

Boundary boundary_of(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& within) {
  Boundary out;
  std::set<const ir::Value*> inside, seen, wanted;
  for (const auto& node : graph.nodes()) {
    std::vector<const ir::Value*> read;
    read_by(*node, read);
    if (!within(*node)) {
      wanted.insert(read.begin(), read.end());
      continue;
    }
    out.nodes.push_back(node.get());
    for (const ir::Value* value : read)
      if (!inside.contains(value) && seen.insert(value).second)
        (ir::is_weight(value) ? out.weights : out.inputs).push_back(value);
    for (const auto& result : node->results()) inside.insert(result.get());
  }
  for (const ir::GraphOutput& output : graph.outputs())
    if (output.kind == ir::OutputKind::user)
      output.arg.for_each_value([&](const ir::Value* value) { wanted.insert(value); });
  std::erase_if(out.inputs, [&, all = out.inputs](const ir::Value* value) {
    const std::optional<Size> size = as_size(*value, all);
    if (size) out.sizes.push_back(*size);
    return size.has_value();
  });
  for (const ir::Node* node : out.nodes)
    for (const auto& result : node->results())
      if (wanted.contains(result.get())) out.outputs.push_back(result.get());
  return out;
}

std::unique_ptr<ir::Model> part_of(const ir::Model& model, const Boundary& part) {
  auto out = std::make_unique<ir::Model>();
  out->info = {.path = model.info.path,
               .format = model.info.format,
               .torch_version = model.info.torch_version,
               .schema_major = model.info.schema_major,
               .schema_minor = model.info.schema_minor,
               .dialect = model.info.dialect,
               .guards = {},
               .hints = {},
               .module_call_graph = {},
               .other_json = {},
               .user_input_names = {}};
  std::unordered_map<const ir::Value*, ir::Arg> mapped;
  for (const ir::Value* value : part.weights) {
    const ir::GraphInput& input = *ir::weight_input(value);
    ir::Value* copy = out->graph->add_input(value->type, value->name, input.kind, input.target);
    out->graph->input(out->graph->inputs().size() - 1).persistent = input.persistent;
    mapped[value] = copy;
    if (const ir::Weight* weight = model.weight_of(value)) out->weights[input.target] = *weight;
  }
  for (const ir::Value* value : part.inputs) {
    ir::Value* const input = out->graph->add_input(value->type, value->name);
    out->info.user_input_names.push_back(input->name);
    mapped[value] = on_device(value) ? to_device(*out->graph, input) : input;
  }
  for (const Size& size : part.sizes) {
    ir::Node* node = out->graph->append("aten.sym_size.int", {mapped.at(size.tensor), size.dim});
    mapped[size.number] = node->add_result(size.number->type, size.number->name);
  }
  ir::copy_nodes(part.nodes, *out->graph, mapped);
  // Mutations first, as files have them.
  for (const ir::GraphOutput& output : model.graph->outputs())
    if (const ir::Value* value = output.arg.value();
        value && mapped.contains(value) && value->def() != nullptr &&
        (output.kind == ir::OutputKind::buffer_mutation || output.kind == ir::OutputKind::parameter_mutation) &&
        out->weights.contains(output.target))
      out->graph->add_output(mapped[value], output.kind, output.target);
  for (const ir::Value* value : part.outputs) {
    ir::Value* const made = mapped[value].value();
    out->graph->add_output(on_device(value) ? read_back(*out->graph, made) : made);
  }
  for (const std::string& symbol : ir::symbols_of(*out->graph)) {
    if (const auto range = model.ranges.find(symbol); range != model.ranges.end()) out->ranges.insert(*range);
    if (const auto hint = model.info.hints.find(symbol); hint != model.info.hints.end()) out->info.hints.insert(*hint);
  }
  return out;
}

}  // namespace ttc
