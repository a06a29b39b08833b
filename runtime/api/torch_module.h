// What a TorchModule holds, for the modules that are made of it.
#pragma once

#include <mutex>

#include "api/module.h"
#include "executor/executor.h"
#include "modules/module.h"

namespace ttrt {

struct TorchModule::Impl {
  std::string klass, path;
  std::map<std::string, Tensor> parameters;
  std::map<std::string, Value> attributes;
  std::shared_ptr<const ttc::ir::Model> whole;  // of a file; none by hand
  std::string activation;                       // an ATen operator that what it computes goes through

  // Computes what the module does. Throws ttc::Error.
  std::unique_ptr<ttc::ir::Model> graph() const;
  // By hand the graph knows one leading dim: what stands for several, and the results in their place again.
  std::vector<Tensor> folded(const std::vector<Tensor>& inputs) const;
  std::vector<Tensor> unfolded(std::vector<Tensor> outputs, const std::vector<Tensor>& inputs) const;

  std::mutex mutex;
  std::unique_ptr<Executor> cpu;  // made when it is first asked for

 private:
  const ModuleCall& call() const;
};

// Runs an executor on public tensors, floats converted to what the model takes. `keep`: outputs stay on the device.
std::vector<Tensor> run_values(Executor& executor, const std::vector<Tensor>& inputs, bool keep);
// The same module with an operator behind it.
TorchModule with_activation(const TorchModule& module, std::string_view aten);

}  // namespace ttrt
