// Inputs of a text graph, and the graph compiled and loaded.
#include "pipeline.h"

#include <random>

#include "torch/cpu_op.h"
#include "support/error.h"

namespace ttrt::test {
namespace {

HostTensor drawn(const ttc::ir::Type& type, const Draw& draw, std::mt19937& random) {
  const Shape sizes = type.static_sizes();
  if (ttc::is_floating(type.dtype)) {
    const HostTensor out = empty_host(DType::f32, sizes);
    std::normal_distribution<float> normal(0, draw.scale > 0 ? draw.scale : 1);
    std::uniform_real_distribution<float> uniform(0.1F, 0.9F);
    for (std::int64_t i = 0; i < out.numel(); ++i)
      out.as<float>()[i] = draw.scale > 0 ? normal(random) : uniform(random);
    const HostTensor rounded = draw.scale > 0 ? convert(convert(out, DType::bf16), DType::f32) : out;
    for (std::size_t i = 0; !draw.every_third.empty() && 3 * static_cast<std::int64_t>(i) < out.numel(); ++i)
      rounded.as<float>()[3 * i] = draw.every_third[i % draw.every_third.size()];
    return convert(rounded, type.dtype);
  }
  const bool mask = type.dtype == DType::boolean;
  const HostTensor out = empty_host(DType::i64, sizes);
  const std::int64_t first = mask ? 0 : draw.first, span = mask ? 2 : draw.last - draw.first;
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out.as<std::int64_t>()[i] = first + static_cast<std::int64_t>(random()) % span;
  return convert(out, type.dtype);
}

ExecutorOptions in_mode(Mode mode) {
  ExecutorOptions options;
  options.mode = mode;
  return options;
}

}  // namespace

std::unique_ptr<ttc::ir::Model> parse_text(const std::string& text) {
  install_torch_schemas();
  return ttc::ir::parse(text);
}

std::vector<RtValue> inputs_of(const ttc::ir::Model& model, const Draw& draw) {
  std::mt19937 random(11);
  std::vector<RtValue> out;
  for (const auto& input : model.graph->inputs())
    if (model.weight_of(input.value.get()) == nullptr) out.emplace_back(drawn(input.value->type, draw, random));
  return out;
}

std::unique_ptr<Executor> in_torch(const std::string& text) {
  return std::make_unique<Executor>(std::shared_ptr<const ttc::ir::Model>(parse_text(text)), in_mode(Mode::cpu));
}

OnDevice on_device(const std::string& text, DataType activation) {
  auto model = parse_text(text);
  ttc::CompileOptions options;
  options.activation = activation;
  ttc::PassManagerOptions passes;
  passes.verify_each = true;
  OnDevice out;
  out.result = ttc::compile(*model, options, passes);
  ttc::ir::walk(*model->graph, [&](ttc::ir::Node* node) {
    if (find_op(node->op()) != nullptr) out.ops.insert(node->op());
  });
  out.executor =
      std::make_unique<Executor>(std::shared_ptr<const ttc::ir::Model>(std::move(model)), in_mode(Mode::device));
  return out;
}

}  // namespace ttrt::test
