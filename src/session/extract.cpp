// The captured values are outputs of a copy of the whole model that gives them out beside its own.
#include "session/extract.h"

#include <algorithm>

#include "session/module_graph.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/error.h"

namespace ttc {
namespace {

// A copy of the model whose outputs are the values.
std::shared_ptr<ir::Model> giving(const ModelSource& source, const std::string& path) {
  std::shared_ptr<ir::Model> model = source.read();
  const Boundary part = module_part(*model, path);
  for (std::size_t i = model->graph->outputs().size(); i-- > 0;)
    if (model->graph->outputs()[i].kind == ir::OutputKind::user) model->graph->remove_output(i);
  for (const auto* values : {&part.inputs, &part.outputs})
    for (const ir::Value* value : *values) model->graph->add_output(const_cast<ir::Value*>(value));
  return model;
}

void capture(const ModelSource& source, const std::string& path, const InputOptions& options, std::size_t inputs,
             const Notes& notes, SafeTensors& out) {
  const std::shared_ptr<ir::Model> model = giving(source, path);
  const std::vector<Case> cases = load_cases(*model, options, false, notes);
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

Extracted extract_module(const ModelSource& source, const std::string& path, const InputOptions& inputs,
                         const Notes& notes) {
  const std::unique_ptr<ir::Model> model = source.read();
  const Boundary part = module_part(*model, path);
  Extracted out{.model = part_of(*model, part), .calls = {}, .nodes = part.nodes.size()};
  capture(source, path, inputs, part.inputs.size(), notes, out.calls);
  return out;
}

}  // namespace ttc
