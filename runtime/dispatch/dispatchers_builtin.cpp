// The built-in dispatchers, one line each in the list at the end.
#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <unordered_map>

#include "ir/op_name.h"
#include "dispatch/dispatchers.h"

namespace ttrt::dispatch {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
using ttc::Refusal;

using Bound = std::variant<std::shared_ptr<const BoundOperator>, Reason>;

Refusal reason_of(const Bound& bound) {
  if (const auto* reason = std::get_if<Reason>(&bound)) return *reason;
  return std::nullopt;
}

RtValue run(const OperatorCall& call, const Bound& bound) {
  if (const auto* reason = std::get_if<Reason>(&bound))
    throw DispatchError(Phase::SELECTION,
                        "'" + std::string(call.name) + "' cannot run on the device: " + reason->text(),
                        {.operation = std::string(call.name)});
  return std::get<std::shared_ptr<const BoundOperator>>(bound)->run(call, eager_device());
}

// A step of a program is the program's to run; what is called alone is the subclass's.
class BuiltIn : public TtnnDispatcher {
 public:
  Refusal refusal_of(const OperatorCall& call) const final {
    return call.program ? call.program->refusal_by(*policy()) : alone_refusal(call);
  }
  RtValue dispatch(const OperatorCall& call) const final {
    if (!call.program) return run_alone(call);
    call.program->run_by(*policy());
    return {};
  }
  std::optional<Policy> policy() const override { return Policy(); }

 protected:
  virtual Refusal alone_refusal(const OperatorCall& call) const = 0;
  virtual RtValue run_alone(const OperatorCall& call) const = 0;
};

class Default : public BuiltIn {
 public:
  std::string summary() const override { return "Every operator that a device kernel takes"; }

 protected:
  Refusal alone_refusal(const OperatorCall& call) const override { return reason_of(BoundOperator::bind(call)); }
  RtValue run_alone(const OperatorCall& call) const override { return run(call, BoundOperator::bind(call)); }
};

// Keeps what binding found out, refusals too: an operator met again with the same dtypes, shapes and literals is only
// run.
class Optimized final : public BuiltIn {
 public:
  std::string summary() const override {
    return "default with bound calls kept, fused and sharded kernel variants preferred";
  }
  std::optional<Policy> policy() const override {
    return Policy{.prefers = {{.kernel = "*.dram_sharded"}, {.kernel = "*.fused"}}};
  }

 private:
  Refusal alone_refusal(const OperatorCall& call) const override { return reason_of(bound(call)); }
  RtValue run_alone(const OperatorCall& call) const override { return run(call, bound(call)); }

  static constexpr std::size_t max_entries = 1024;

  Bound bound(const OperatorCall& call) const {
    const std::string key = binding_key(call);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
    }
    Bound made = BoundOperator::bind(call);
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= max_entries) entries_.clear();
    return entries_.try_emplace(key, std::move(made)).first->second;
  }

  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, Bound> entries_;
};

class Debug final : public Default {
 public:
  std::string summary() const override { return "default, with every check and refusal and its reason in the log"; }

 private:
  Refusal alone_refusal(const OperatorCall& call) const override {
    const Refusal refusal = Default::alone_refusal(call);
    log_dispatch("debug: " + call_text(call) + (refusal ? " refused: " + refusal->text() : " can run on the device"));
    return refusal;
  }
  RtValue run_alone(const OperatorCall& call) const override {
    log_dispatch("debug: " + call_text(call) + " dispatched");
    try {
      RtValue result = Default::run_alone(call);
      log_dispatch("debug: " + call_text(call) + " done");
      return result;
    } catch (const std::exception& error) {
      log_dispatch("debug: " + call_text(call) + " failed: " + error.what());
      throw;
    }
  }

  static std::string tensor_text(std::string_view dtype, const Shape& shape) {
    std::string text = " " + std::string(dtype) + "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
  }
  static std::string call_text(const OperatorCall& call) {
    std::string text = std::string(call.name) + "(";
    for (const RtValue& arg : call.args) {
      if (const auto* host = arg.get_if<HostTensor>())
        text += tensor_text(ttc::torch_name(host->dtype), host->sizes);
      else if (const auto* device = arg.get_if<DeviceTensor>())
        text += tensor_text(to_string(device->spec.dtype), device->spec.logical);
    }
    return text + " )";
  }
};

class Cpu final : public BuiltIn {
 public:
  std::string summary() const override { return "Nothing goes to the device"; }
  std::optional<Policy> policy() const override { return Policy{.allows = {{.kernel = "*.host"}}}; }

 private:
  Refusal alone_refusal(const OperatorCall& /*call*/) const override {
    return Reason{ReasonCode::UserExcluded, "the cpu dispatcher runs nothing on the device"};
  }
  RtValue run_alone(const OperatorCall& call) const override {
    throw DispatchError(Phase::SELECTION, "the cpu dispatcher runs nothing on the device",
                        {.operation = std::string(call.name), .hint = "choose another one: --dispatcher default"});
  }
};

class TensorOps final : public Default {
 public:
  std::string summary() const override {
    return "Arithmetic, matrix products and movement of tensors, where default takes them";
  }
  // Composite ops stay in LibTorch.
  std::optional<Policy> policy() const override {
    return Policy{.denies = {{.operation = "tt.attention", .kernel = "*.*fused"},
                             {.operation = "tt.*norm", .kernel = "*.device"},
                             {.operation = "tt.*softmax", .kernel = "*.device"},
                             {.operation = "tt.linear", .kernel = "*.?d"},
                             {.operation = "tt.linear", .kernel = "*.dram_sharded"}}};
  }

 private:
  Refusal alone_refusal(const OperatorCall& call) const override {
    if (const Refusal refusal = listed(call)) return refusal;
    return Default::alone_refusal(call);
  }
  RtValue run_alone(const OperatorCall& call) const override {
    if (const Refusal refusal = listed(call))
      throw DispatchError(Phase::SELECTION,
                          "'" + std::string(call.name) + "' is none of the tensor_ops dispatcher's operators",
                          {.operation = std::string(call.name)});
    return Default::run_alone(call);
  }

  static constexpr std::array<std::string_view, 23> operators{
      "aten.view.default",      "aten.reshape.default",   "aten.transpose.int",  "aten.mul.Tensor",
      "aten.mul.Scalar",        "aten.sub.Tensor",        "aten.sub.Scalar",     "aten.add.Tensor",
      "aten.add.Scalar",        "aten.div.Tensor",        "aten.slice.Tensor",   "aten.neg.default",
      "aten.cat.default",       "aten.unsqueeze.default", "aten.squeeze.dim",    "aten.expand.default",
      "aten.bmm.default",       "aten.mm.default",        "aten.matmul.default", "aten.addmm.default",
      "aten.pow.Tensor_Scalar", "aten.stack.default",     "aten.permute.default"};
  static Refusal listed(const OperatorCall& call) {
    if (std::find(operators.begin(), operators.end(), ttc::ir::ir_op_name(call.name)) != operators.end())
      return std::nullopt;
    return Reason{ReasonCode::UserExcluded,
                  std::string(call.name) + " is none of the tensor_ops dispatcher's operators"};
  }
};

}  // namespace

std::map<std::string, std::shared_ptr<const TtnnDispatcher>> builtin_dispatchers() {
  return {{"default", std::make_shared<Default>()},
          {"optimized", std::make_shared<Optimized>()},
          {"debug", std::make_shared<Debug>()},
          {"cpu", std::make_shared<Cpu>()},
          {"tensor_ops", std::make_shared<TensorOps>()}};
}

}  // namespace ttrt::dispatch
