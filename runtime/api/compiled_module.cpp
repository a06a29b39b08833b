// A compiled part of a model in an executor of its own, on the module's device.
#include "api/compiled_module.h"

#include <algorithm>

#include "api/convert.h"
#include "api/devices.h"
#include "api/torch_module.h"
#include "session/module_graph.h"
#include "support/error.h"

namespace ttrt {
namespace {

class CompiledModule final : public Module {
 public:
  CompiledModule(TorchModule layer, const ModuleRecord& record, const ModuleOptions& options)
      : Module(std::move(layer)), settings_(settings(record, options)) {}

 private:
  static ttc::CompileSettings settings(const ModuleRecord& record, const ModuleOptions& options) {
    ModuleConfig given{.fp32_acc = options.fp32_acc};
    if (options.weight_dtype) given.weight = ttc::api::device_format(*options.weight_dtype);
    if (options.activation_dtype) given.activation = ttc::api::device_format(*options.activation_dtype);
    if (options.fidelity) given.fidelity = static_cast<MathFidelity>(*options.fidelity);
    const ModuleConfig config = given.over(record.preset);
    ttc::CompileSettings out;
    if (config.weight) out.weight_dtype.push_back("*=" + std::string(to_string(*config.weight)));
    if (config.activation) out.activation_dtype = to_string(*config.activation);
    if (config.fidelity) out.fidelity.push_back("*=" + std::string(to_string(*config.fidelity)));
    if (config.fp32_acc) out.fp32_acc.push_back(*config.fp32_acc ? "*=on" : "*=off");
    return out;
  }

  void preprocess_weights_impl() override {
    guarded([&] {
      compiled_for_ = device() != nullptr ? inner_device(device())->profile() : default_profile();
      model_ = torch_layer().impl().graph();
      refusals_.clear();
      const ttc::CompileResult result = ttc::compile_module(*model_, settings_, compiled_for_);
      for (const ttc::Fallback& one : result.fallbacks) refusals_.push_back(one.op + ": " + one.reason.text());
      if (result.nodes.device == 0)
        throw ttc::Error(ttc::Exit::unsupported, "",
                         refusals_.empty() ? "the device computes nothing of it" : refusals_.front());
    });
  }

  void move_weights_to_device_impl() override {
    guarded([&] {
      const std::shared_ptr<Device> target = inner_device(device());
      if (!(target->profile() == compiled_for_)) preprocess_weights_impl();
      if (executor_ == nullptr || executor_->options().device != target)
        executor_ = std::make_unique<Executor>(model_, ExecutorOptions{.profile = target->profile(), .device = target});
      executor_->move_weights_to_device();
    });
  }

  void move_weights_to_host_impl() override {
    guarded([&] { executor_->move_weights_to_host(); });
  }
  void deallocate_weights_impl() override { move_weights_to_host_impl(); }

  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) override {
    return guarded([&] {
      for (const std::string& refusal : refusals_) note_fallback(refusal);
      const bool keep = std::ranges::any_of(inputs, [](const Tensor& one) { return one.is_resident(); });
      const TorchModule::Impl& layer = torch_layer().impl();
      std::vector<Tensor> out = layer.unfolded(run_values(*executor_, layer.folded(inputs), keep), inputs);
      const auto failures = executor_->fallback_failures();
      for (const FallbackFailure& one : failures)
        if (std::int64_t& known = failures_[one.node]; one.count > std::exchange(known, one.count))
          note_fallback(one.op + ": " + one.reason);
      return out;
    });
  }

  ttc::CompileSettings settings_;
  ArchProfile compiled_for_;
  std::shared_ptr<ttc::ir::Model> model_;
  std::vector<std::string> refusals_;
  std::unique_ptr<Executor> executor_;
  std::map<std::string, std::int64_t> failures_;  // by node
};

}  // namespace

std::shared_ptr<Module> compiled_module(const TorchModule& source, const ModuleRecord& record,
                                        const ModuleOptions& options) {
  TorchModule layer = record.activation.empty() ? source : with_activation(source, record.activation);
  layer.impl().graph();  // says now what would be wrong with it at the first call
  return std::make_shared<CompiledModule>(std::move(layer), record, options);
}

}  // namespace ttrt
