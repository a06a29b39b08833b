// The captured values are outputs of a copy of the whole model that gives them out beside its own.
#include "session/extract.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/copy.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/error.h"

namespace ttc {
namespace {

bool is_within(const ir::Provenance& where, const std::string& path) {
  if (path.empty() || where.module_path == path || where.module_path.starts_with(path + ".")) return true;
  return std::ranges::any_of(where.stack, [&](const auto& module) { return module.first == path; });
}

[[noreturn]] void no_such_module(const ir::Model& model, const std::string& path) {
  std::set<std::string> paths;
  ir::walk(*model.graph, [&](ir::Node* node) {
    paths.insert(node->provenance->module_path);
    for (const auto& [module, klass] : node->provenance->stack) paths.insert(module);
  });
  const std::vector<std::string> known(paths.begin(), paths.end());
  const std::string close = nearest(path, known.data(), known.size());
  throw usage_error("--module " + path + ": nothing of the model was computed in a module of this name",
                    close.empty() ? "ttc inspect -v lists the modules" : "did you mean '" + close + "'?");
}

// A number from elsewhere that is the size of a tensor from elsewhere.
struct Size {
  const ir::Value *number, *tensor;
  std::int64_t dim;
};

// What a part of a graph reads and gives, in order.
struct Boundary {
  std::vector<ir::Node*> nodes;
  std::vector<const ir::Value*> inputs, weights, outputs;
  std::vector<Size> sizes;  // read, but no inputs
};

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

Boundary boundary_of(const ir::Graph& graph, const std::string& path) {
  Boundary out;
  std::set<const ir::Value*> inside, seen, wanted;
  for (const auto& node : graph.nodes()) {
    std::vector<const ir::Value*> read;
    read_by(*node, read);
    if (!is_within(*node->provenance, path)) {
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
    mapped[value] = out->graph->add_input(value->type, value->name);
    out->info.user_input_names.push_back(value->name);
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
  for (const ir::Value* value : part.outputs) out->graph->add_output(mapped[value]);
  for (const std::string& symbol : ir::symbols_of(*out->graph)) {
    if (const auto range = model.ranges.find(symbol); range != model.ranges.end()) out->ranges.insert(*range);
    if (const auto hint = model.info.hints.find(symbol); hint != model.info.hints.end()) out->info.hints.insert(*hint);
  }
  return out;
}

// A copy of the model whose outputs are the values.
std::shared_ptr<ir::Model> giving(const ModelSource& source, const std::string& path) {
  std::shared_ptr<ir::Model> model = source.read();
  const Boundary part = boundary_of(*model->graph, path);
  for (std::size_t i = model->graph->outputs().size(); i-- > 0;)
    if (model->graph->outputs()[i].kind == ir::OutputKind::user) model->graph->remove_output(i);
  for (const auto* values : {&part.inputs, &part.outputs})
    for (const ir::Value* value : *values) model->graph->add_output(const_cast<ir::Value*>(value));
  return model;
}

void capture(const ModelSource& source, const std::string& path, const InputOptions& options, std::size_t inputs,
             SafeTensors& out) {
  const std::shared_ptr<ir::Model> model = giving(source, path);
  const std::vector<Case> cases = load_cases(*model, options);
  ttrt::Executor executor(model, {.mode = ttrt::Mode::cpu});
  StepRunner steps(executor, cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::vector<ttrt::RtValue> values = steps.run(i);
    const std::string prefix = cases.size() == 1 ? "" : "step" + std::to_string(i) + ".";
    for (std::size_t k = 0; k < values.size(); ++k) {
      const auto tensor = as_tensor(values[k]);
      if (!tensor) continue;
      const std::string name = k < inputs ? "in" + std::to_string(k) : "out" + std::to_string(k - inputs);
      out.tensors[prefix + name] = own_weight(*tensor);
    }
  }
}

}  // namespace

Extracted extract_module(const ModelSource& source, const std::string& path, const InputOptions& inputs) {
  const std::unique_ptr<ir::Model> model = source.read();
  if (is_rewritten(*model))
    throw Error(Exit::unsupported, source.path(), "it is rewritten: its values are the device's",
                "extract the module from the exported file, and compile that");
  const Boundary part = boundary_of(*model->graph, path);
  if (part.nodes.empty()) no_such_module(*model, path);
  if (part.outputs.empty()) throw usage_error("--module " + path + ": nothing that it computes is read elsewhere");
  Extracted out{.model = part_of(*model, part), .calls = {}, .nodes = part.nodes.size()};
  capture(source, path, inputs, part.inputs.size(), out.calls);
  return out;
}

}  // namespace ttc
