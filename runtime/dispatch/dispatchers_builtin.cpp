// The built-in dispatchers: one class, and what tells them apart in the list at the end.
#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "ir/op_name.h"
#include "dispatch/dispatchers.h"

namespace ttrt::dispatch {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
using ttc::Refusal;

struct Character {
  std::string summary;
  Policy policy = {};
  // Of operators called alone, beyond what no device kernel takes.
  Refusal (*excludes)(const OperatorCall&) = nullptr;
  bool remembers = false;  // what binding found out, refusals too: met again with the same dtypes, shapes and literals,
                           // an operator is only run
  bool logs = false;
};

std::string tensor_text(std::string_view dtype, const Shape& shape) {
  std::string text = " " + std::string(dtype) + "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string call_text(const OperatorCall& call) {
  std::string text = std::string(call.name) + "(";
  for (const RtValue& arg : call.args) {
    if (const auto* host = arg.get_if<HostTensor>())
      text += tensor_text(ttc::torch_name(host->dtype), host->sizes);
    else if (const auto* device = arg.get_if<DeviceTensor>())
      text += tensor_text(to_string(device->spec.dtype), device->spec.logical);
  }
  return text + " )";
}

// A step of a program is the program's to run; what is called alone is bound and run here.
class BuiltIn final : public TtnnDispatcher {
 public:
  explicit BuiltIn(Character is) : is_(std::move(is)) {}
  std::string summary() const override { return is_.summary; }
  std::optional<Policy> policy() const override { return is_.policy; }

  Refusal refusal_of(const OperatorCall& call) const override {
    if (call.program) return call.program->refusal_by(is_.policy);
    const Bound bound = bind(call);
    const auto* const reason = std::get_if<Reason>(&bound);
    log(call, reason ? "refused: " + reason->text() : "can run on the device");
    return reason ? Refusal(*reason) : std::nullopt;
  }

  RtValue dispatch(const OperatorCall& call) const override {
    if (call.program) {
      call.program->run_by(is_.policy);
      return {};
    }
    log(call, "dispatched");
    try {
      RtValue result = run_alone(call);
      log(call, "done");
      return result;
    } catch (const std::exception& error) {
      log(call, "failed: " + std::string(error.what()));
      throw;
    }
  }

 private:
  using Bound = std::variant<std::shared_ptr<const BoundOperator>, Reason>;
  static constexpr std::size_t max_entries = 1024;

  void log(const OperatorCall& call, const std::string& what) const {
    if (is_.logs) log_dispatch("debug: " + call_text(call) + " " + what);
  }

  RtValue run_alone(const OperatorCall& call) const {
    const Bound bound = bind(call);
    if (const auto* reason = std::get_if<Reason>(&bound))
      throw DispatchError(Phase::SELECTION,
                          "'" + std::string(call.name) + "' cannot run on the device: " + reason->text(),
                          {.operation = std::string(call.name)});
    return std::get<std::shared_ptr<const BoundOperator>>(bound)->run(call, eager_device());
  }

  Bound bind(const OperatorCall& call) const {
    if (is_.excludes)
      if (Refusal refusal = is_.excludes(call)) return *std::move(refusal);
    if (!is_.remembers) return BoundOperator::bind(call);
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

  const Character is_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, Bound> entries_;
};

Refusal everything(const OperatorCall& /*call*/) {
  return Reason{ReasonCode::UserExcluded, "the cpu dispatcher runs nothing on the device; --dispatcher default does"};
}

// What tensor_ops is by its definition elsewhere (TT-Symbiote's dispatcher of that name).
constexpr std::string_view tensor_operators[]{
    "aten.view.default",    "aten.reshape.default",   "aten.transpose.int",  "aten.mul.Tensor",
    "aten.mul.Scalar",      "aten.sub.Tensor",        "aten.sub.Scalar",     "aten.add.Tensor",
    "aten.add.Scalar",      "aten.div.Tensor",        "aten.slice.Tensor",   "aten.neg.default",
    "aten.cat.default",     "aten.unsqueeze.default", "aten.squeeze.dim",    "aten.expand.default",
    "aten.bmm.default",     "aten.mm.default",        "aten.matmul.default", "aten.addmm.default",
    "aten.permute.default", "aten.pow.Tensor_Scalar", "aten.stack.default"};

bool is_tensor_operator(std::string_view aten) {
  return std::find(std::begin(tensor_operators), std::end(tensor_operators), aten) != std::end(tensor_operators);
}

Refusal other_than_tensor_ops(const OperatorCall& call) {
  if (is_tensor_operator(ttc::ir::ir_op_name(call.name))) return std::nullopt;
  return Reason{ReasonCode::UserExcluded, std::string(call.name) + " is none of the tensor_ops dispatcher's operators"};
}

// Of programs, the device ops of tensors that one of these is lowered to, layers with weights apart, and those that
// move what others made.
Policy tensor_policy() {
  Policy out{.allows = {{.kernel = "*.host"}}};
  for (const OpRecord* op : all_ops())
    if (op->role != Role::none ||
        (op->packed.empty() && std::any_of(op->lowers.begin(), op->lowers.end(),
                                           [](const Lowering& lowering) { return is_tensor_operator(lowering.aten); })))
      out.allows.push_back({.operation = std::string(op->name)});
  return out;
}

}  // namespace

std::map<std::string, std::shared_ptr<const TtnnDispatcher>> builtin_dispatchers() {
  const auto made = [](Character is) { return std::make_shared<BuiltIn>(std::move(is)); };
  return {
      {"default", made({.summary = "Every operator that a device kernel takes"})},
      {"optimized",
       made({.summary = "default with bound calls kept, fused, folded and sharded kernel variants preferred",
             .policy = {.prefers = {{.kernel = "*.dram_sharded"}, {.kernel = "*.folded"}, {.kernel = "*.fused"}}},
             .remembers = true})},
      {"debug", made({.summary = "default, with every check and refusal and its reason in the log", .logs = true})},
      {"cpu", made({.summary = "Nothing goes to the device",
                    .policy = {.allows = {{.kernel = "*.host"}}},
                    .excludes = everything})},
      {"tensor_ops", made({.summary = "Arithmetic, matrix products and movement of tensors, where default takes them",
                           .policy = tensor_policy(),
                           .excludes = other_than_tensor_ops})}};
}

}  // namespace ttrt::dispatch
