// The model as model.to(torch.bfloat16) has it: parameters converted, buffers and constants as they are.
#include "session/baseline.h"

#include <algorithm>

#include "executor/bfloat16_op.h"
#include "executor/executor.h"
#include "executor/signature.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/error.h"

namespace ttc {
namespace {

std::shared_ptr<const ir::Model> in_bfloat16(const ModelSource& source) {
  std::shared_ptr<ir::Model> model = source.read();
  if (is_rewritten(*model))
    throw usage_error(source.path() + ": a rewritten model has no LibTorch result to compare with",
                      "give the model that it was made of");
  for (const ir::GraphInput& input : model->graph->inputs()) {
    if (input.kind != ir::InputKind::parameter) continue;
    const auto weight = model->weights.find(input.target);
    if (weight == model->weights.end() || weight->second.dtype != DType::f32 || weight->second.storage->absent())
      continue;
    const ttrt::HostTensor low = ttrt::to_bfloat16(own_tensor(weight->second));
    weight->second = ir::make_weight(low.dtype, low.sizes, {low.data, low.data + low.nbytes()});
  }
  return model;
}

std::vector<Case> in_bfloat16(std::vector<Case> cases) {
  for (Case& one : cases)
    for (ttrt::RtValue& input : one.inputs)
      if (const auto* tensor = input.get_if<ttrt::HostTensor>()) input = ttrt::to_bfloat16(*tensor);
  return cases;
}

// The calls are the rewritten model's, which takes what its source takes.
void check_fits(const ModelSource& source, const ir::Model& model, const Case& one) {
  const std::size_t takes = ttrt::user_inputs(model).size();
  if (takes != one.inputs.size() || !fits(model, one))
    throw usage_error(source.path() + " is no baseline: it does not take these inputs",
                      "--baseline-model names the model that the rewritten one was made of");
}

}  // namespace

void add_baseline(const ModelSource& source, std::vector<Case>& cases) {
  if (std::ranges::all_of(cases, [](const Case& one) { return one.expected.empty(); }))
    throw usage_error("a baseline needs outputs to compare with", "--io FILE holds recorded ones");
  const std::shared_ptr<const ir::Model> model = in_bfloat16(source);
  check_fits(source, *model, cases.at(0));
  ttrt::Executor executor(model, {.mode = ttrt::Mode::cpu, .check_inputs = false, .bfloat16 = true});
  const std::vector<Case> low = in_bfloat16(cases);
  StepRunner steps(executor, low);
  for (std::size_t step = 0; step < cases.size(); ++step) {
    const std::vector<ttrt::RtValue> outputs = flat_outputs(steps.run(step));
    Case& one = cases[step];
    one.baseline.assign(one.expected.size(), {});
    for (std::size_t i = 0; i < one.expected.size() && i < outputs.size(); ++i) {
      const auto actual = as_tensor(outputs[i]);
      if (actual && one.expected[i] && actual->sizes == one.expected[i]->sizes)
        one.baseline[i] = ttrt::compare(*actual, *one.expected[i]);
    }
  }
}

}  // namespace ttc
