// The built-in dispatchers, each registering itself.
#include <algorithm>
#include <array>
#include <cstdio>
#include <list>
#include <mutex>
#include <unordered_map>

#include "ir/op_name.h"
#include "dispatch/dispatchers_builtin.h"

namespace ttrt::dispatch {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
using ttc::Refusal;

using Bound = std::variant<std::shared_ptr<const BoundOperator>, Reason>;

Refusal refusal_of(const Bound& bound) {
  if (const auto* reason = std::get_if<Reason>(&bound)) return *reason;
  return std::nullopt;
}

RtValue run(const OperatorCall& call, const Bound& bound) {
  if (const auto* reason = std::get_if<Reason>(&bound))
    throw DispatchError("'" + std::string(call.name) + "' cannot run on the device: " + reason->text(), call.name, {},
                        Phase::SELECTION);
  return std::get<std::shared_ptr<const BoundOperator>>(bound)->run(call, eager_device());
}

class Default : public TtnnDispatcher {
 public:
  std::string summary() const override { return "Every operator that a device kernel takes"; }
  Refusal can_dispatch(const OperatorCall& call) const override { return refusal_of(BoundOperator::bind(call)); }
  RtValue dispatch(const OperatorCall& call) const override { return run(call, BoundOperator::bind(call)); }
  std::vector<PolicyRule> policy() const override { return {}; }
};

// Keeps what binding found out, refusals too: an operator met again with the same dtypes, shapes and literals is only
// run.
class Optimized final : public TtnnDispatcher {
 public:
  std::string summary() const override {
    return "default with bound calls kept, fused and sharded kernel variants preferred";
  }
  Refusal can_dispatch(const OperatorCall& call) const override { return refusal_of(bound(call)); }
  RtValue dispatch(const OperatorCall& call) const override { return run(call, bound(call)); }
  std::vector<PolicyRule> policy() const override {
    return {{.kind = PolicyRule::Kind::add, .kernel = "*.dram_sharded", .value = 100},
            {.kind = PolicyRule::Kind::add, .kernel = "*.fused", .value = 100}};
  }

 private:
  static constexpr std::size_t max_entries = 1024;

  Bound bound(const OperatorCall& call) const {
    const std::string key = binding_key(call);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = entries_.find(key); found != entries_.end()) {
        order_.splice(order_.end(), order_, found->second.place);
        return found->second.bound;
      }
    }
    Bound made = BoundOperator::bind(call);
    const std::lock_guard lock(mutex_);
    const auto [place, fresh] = entries_.try_emplace(key);
    if (!fresh) return made;  // another thread was faster
    place->second = {made, order_.insert(order_.end(), key)};
    if (entries_.size() > max_entries) {
      entries_.erase(order_.front());
      order_.pop_front();
    }
    return made;
  }

  struct Entry {
    Bound bound;
    std::list<std::string>::iterator place;
  };
  mutable std::mutex mutex_;
  mutable std::list<std::string> order_;  // least recently used first
  mutable std::unordered_map<std::string, Entry> entries_;
};

class Debug final : public Default {
 public:
  std::string summary() const override { return "default, with every check and refusal and its reason in the log"; }
  Refusal can_dispatch(const OperatorCall& call) const override {
    const Refusal refusal = Default::can_dispatch(call);
    log_dispatch("debug: " + call_text(call) + (refusal ? " refused: " + refusal->text() : " can run on the device"));
    return refusal;
  }
  RtValue dispatch(const OperatorCall& call) const override {
    log_dispatch("debug: " + call_text(call) + " dispatched");
    try {
      RtValue result = Default::dispatch(call);
      log_dispatch("debug: " + call_text(call) + " done");
      return result;
    } catch (const std::exception& error) {
      log_dispatch("debug: " + call_text(call) + " failed: " + error.what());
      throw;
    }
  }

 private:
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

class Cpu final : public TtnnDispatcher {
 public:
  std::string summary() const override { return "Nothing goes to the device"; }
  Refusal can_dispatch(const OperatorCall& /*call*/) const override { return refusal(); }
  RtValue dispatch(const OperatorCall& call) const override {
    throw DispatchError("the cpu dispatcher runs nothing on the device", call.name, {}, Phase::SELECTION,
                        ttc::Exit::usage, {}, "choose another one: --dispatcher default");
  }
  std::vector<PolicyRule> policy() const override { return {{.kind = PolicyRule::Kind::allow, .kernel = "*.host"}}; }

 private:
  static Refusal refusal() { return Reason{ReasonCode::UserExcluded, "the cpu dispatcher runs nothing on the device"}; }
};

class TensorOps final : public Default {
 public:
  std::string summary() const override {
    return "Arithmetic, matrix products and movement of tensors, where default takes them";
  }
  Refusal can_dispatch(const OperatorCall& call) const override {
    if (const Refusal refusal = listed(call)) return refusal;
    return Default::can_dispatch(call);
  }
  RtValue dispatch(const OperatorCall& call) const override {
    if (const Refusal refusal = listed(call))
      throw DispatchError("'" + std::string(call.name) + "' is none of the tensor_ops dispatcher's operators",
                          call.name, {}, Phase::SELECTION);
    return Default::dispatch(call);
  }
  // Composite ops stay in LibTorch.
  std::vector<PolicyRule> policy() const override {
    using enum PolicyRule::Kind;
    return {{.kind = deny, .operation = "tt.attention", .kernel = "*.*fused"},
            {.kind = deny, .operation = "tt.*norm", .kernel = "*.device"},
            {.kind = deny, .operation = "tt.*softmax", .kernel = "*.device"},
            {.kind = deny, .operation = "tt.linear", .kernel = "*.?d"},
            {.kind = deny, .operation = "tt.linear", .kernel = "*.dram_sharded"}};
  }

 private:
  static constexpr std::array<std::string_view, 23> operators{
      "aten.view.default",      "aten.reshape.default",   "aten.transpose.int",  "aten.mul.Tensor",
      "aten.mul.Scalar",        "aten.sub.Tensor",        "aten.sub.Scalar",     "aten.add.Tensor",
      "aten.add.Scalar",        "aten.div.Tensor",        "aten.slice.Tensor",   "aten.neg.default",
      "aten.cat.default",       "aten.unsqueeze.default", "aten.squeeze.dim",    "aten.expand.default",
      "aten.bmm.default",       "aten.mm.default",        "aten.matmul.default", "aten.addmm.default",
      "aten.pow.Tensor_Scalar", "aten.stack.default",     "aten.permute.default"};
  static Refusal listed(const OperatorCall& call) {
    if (std::find(operators.begin(), operators.end(), ttc::ir::ir_op_name(call.name)) != operators.end()) return std::nullopt;
    return Reason{ReasonCode::UserExcluded,
                  std::string(call.name) + " is none of the tensor_ops dispatcher's operators"};
  }
};

}  // namespace

void register_builtin_dispatchers(
    const std::function<void(const std::string&, std::shared_ptr<const TtnnDispatcher>)>& add) {
  add("default", std::make_shared<Default>());
  add("optimized", std::make_shared<Optimized>());
  add("debug", std::make_shared<Debug>());
  add("cpu", std::make_shared<Cpu>());
  add("tensor_ops", std::make_shared<TensorOps>());
}

}  // namespace ttrt::dispatch
