// Modules found by their paths, calls given their shapes by trying them, and packed weights that are kept.
#include "session/module_graph.h"

#include <algorithm>
#include <cctype>

#include "ir/op_schema.h"
#include "session/device_profile.h"
#include "session/model_source.h"
#include "shapes/shape_prop.h"
#include "support/error.h"

namespace ttc {
namespace {

// "int[2]": a number stands for two of it.
ir::Arg as_schema_has(const ir::Arg& literal, const std::string& type) {
  const std::size_t bracket = type.find("nt[");
  if (bracket == std::string::npos || !literal.get_if<std::int64_t>()) return literal;
  const std::size_t count = std::isdigit(static_cast<unsigned char>(type[bracket + 3])) != 0
                                ? static_cast<std::size_t>(type[bracket + 3] - '0')
                                : 1;
  return ir::Arg::ints(std::vector<std::int64_t>(count, *literal.get_if<std::int64_t>()));
}

ir::SymExpr with(const ir::SymExpr& size, const std::string& symbol, std::int64_t number) {
  if (size.is_number()) return size;
  if (size.is_symbol()) return size.name() == symbol ? ir::SymExpr(number) : size;
  std::vector<ir::SymExpr> operands;
  for (const ir::SymExpr& operand : size.operands()) operands.push_back(with(operand, symbol, number));
  return ir::SymExpr::call(size.name(), std::move(operands));
}

// In the types of the inputs and of what the nodes give.
void fix(ir::Model& model, const std::string& symbol, std::int64_t number) {
  const auto in_type = [&](ir::Type& type) {
    for (auto* sizes : {&type.sizes, &type.strides})
      for (ir::SymExpr& size : *sizes) size = with(size, symbol, number);
  };
  for (const ir::GraphInput& input : model.graph->inputs()) in_type(input.value->type);
  for (const auto& node : model.graph->nodes())
    for (const auto& result : node->results()) in_type(result->type);
  model.ranges.erase(symbol);
  model.info.hints.erase(symbol);
}

bool is_within(const ir::Provenance& where, const std::string& path) {
  if (path.empty() || where.module_path == path || where.module_path.starts_with(path + ".")) return true;
  return std::ranges::any_of(where.stack, [&](const auto& module) { return module.first == path; });
}

}  // namespace

std::map<std::string, std::string> modules_of(const ir::Model& model) {
  std::map<std::string, std::string> out;
  ir::walk(*model.graph, [&](ir::Node* node) {
    out.emplace(node->provenance->module_path, node->provenance->module_class);
    for (const auto& [path, klass] : node->provenance->stack) out.emplace(path, klass);
  });
  return out;
}

Boundary module_part(const ir::Model& model, const std::string& path) {
  if (is_rewritten(model))
    throw Error(Exit::unsupported, model.info.path, "it is rewritten: its values are the device's",
                "extract the module from the exported file, and compile that");
  Boundary part = boundary_of(*model.graph, [&](const ir::Node& node) { return is_within(*node.provenance, path); });
  if (part.nodes.empty()) {
    std::vector<std::string> known;
    for (const auto& [module, klass] : modules_of(model)) known.push_back(module);
    const std::string close = nearest(path, known.data(), known.size());
    throw usage_error("--module " + path + ": nothing of the model was computed in a module of this name",
                      close.empty() ? "ttc inspect -v lists the modules" : "did you mean '" + close + "'?");
  }
  if (part.outputs.empty()) throw usage_error("--module " + path + ": nothing that it computes is read elsewhere");
  return part;
}

std::unique_ptr<ir::Model> cut_module(const ir::Model& model, const std::string& path) {
  return part_of(model, module_part(model, path));
}

std::unique_ptr<ir::Model> model_of_call(const std::string& op, const std::vector<CallArgument>& args,
                                         const std::vector<SampleDim>& sample, DType dtype, const std::string& klass) {
  const ir::OpSchema* schema = ir::find_schema(op);
  if (schema == nullptr || schema->args.size() < args.size()) throw usage_error(op + " takes no such call");
  auto model = std::make_unique<ir::Model>();
  model->info.path = klass;
  std::vector<ir::Arg> values;
  const ir::Value* input = nullptr;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const CallArgument& arg = args[i];
    if (arg.kind == CallArgument::Kind::input) {
      input = values.emplace_back(model->graph->add_input(ir::Type::unknown_tensor(), arg.name)).value();
      model->info.user_input_names.push_back(arg.name);
    } else if (arg.kind == CallArgument::Kind::weight) {
      std::vector<ir::SymExpr> sizes(arg.weight.sizes.begin(), arg.weight.sizes.end());
      values.emplace_back(model->graph->add_input(ir::Type::tensor(arg.weight.dtype, std::move(sizes)), arg.name,
                                                  ir::InputKind::parameter, arg.name));
      model->weights[arg.name] = arg.weight;
    } else {
      values.push_back(as_schema_has(arg.literal, schema->args[i].type));
    }
  }
  ir::Node* node = model->graph->append(op, std::move(values));
  model->graph->add_output(node->add_result(ir::Type::unknown_tensor()));
  InputShape shape{.sizes = {}, .dtype = dtype};
  for (const SampleDim& dim : sample) shape.sizes.push_back(dim.size);
  const ShapeReport report = propagate_shapes(*model, {{model->info.user_input_names.at(0), shape}});
  if (!report.notes.empty() || !node->result()->type.has_shape)
    throw usage_error(klass + ": " + op + " does not take its parameters" +
                      (report.notes.empty() ? "" : ": " + report.notes.front()));
  const std::vector<ir::SymExpr> found = input->type.sizes;
  for (std::size_t d = 0; d < sample.size(); ++d)
    if (!sample[d].free && found[d].is_symbol()) fix(*model, found[d].name(), sample[d].size);
  return model;
}

void append_call(ir::Model& model, const std::string& op) {
  if (model.graph->outputs().size() != 1 || model.graph->outputs()[0].arg.value() == nullptr)
    throw usage_error("only a module of one output can have " + op + " behind it");
  ir::Value* out = model.graph->outputs()[0].arg.value();
  model.graph->remove_output(0);
  ir::Node* node = model.graph->append(op, {out});
  model.graph->add_output(node->add_result(out->type));
}

CompileResult compile_module(ir::Model& model, const CompileSettings& settings, const ttrt::ArchProfile& profile) {
  CompileOptions options = compile_options(settings);
  options.profile = profile;
  CompileResult out =
      compile(model, options, settings.passes, {.memory = [&](const ir::Model& made, const ir::SymBinding& shapes) {
                return memory_need(made, profile, shapes);
              }});
  std::map<const ir::Storage*, std::shared_ptr<const ir::Storage>> made;
  for (auto& [name, weight] : model.weights) {
    if (weight.storage == nullptr || !weight.storage->produce) continue;
    auto& kept = made[weight.storage.get()];
    if (kept == nullptr) {
      const auto [owner, data] = weight.storage->load();
      kept = std::make_shared<const ir::Storage>(
          ir::Storage{.owner = owner, .data = data, .bytes = weight.storage->bytes, .produce = {}});
    }
    weight.storage = kept;
  }
  return out;
}

}  // namespace ttc
