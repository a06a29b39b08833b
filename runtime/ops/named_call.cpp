// The operator becomes a graph of one node, which the records' lowerings read like any other.
#include "ops/named_call.h"

#include <algorithm>
#include <atomic>

#include "ir/op_name.h"
#include "ir/model.h"
#include "ir/op_schema.h"
#include "ops/library.h"

namespace ttrt {

namespace ir = ttc::ir;
using ttc::Reason;
using ttc::ReasonCode;

namespace {

std::atomic<OperatorTypes> operator_types = nullptr;

DType dtype_of(const RtValue& tensor) {
  if (const auto* host = tensor.get_if<HostTensor>()) return host->dtype;
  if (const auto* resident = tensor.get_if<ResidentTensor>()) return resident->dtype;
  return torch_dtype(device_tensor(tensor)->spec.dtype);
}

const Shape& shape_of(const RtValue& tensor) {
  if (const auto* host = tensor.get_if<HostTensor>()) return host->sizes;
  return device_tensor(tensor)->spec.logical;
}

}  // namespace

class OperatorReader {
 public:
  std::variant<std::shared_ptr<const BoundOperator>, Reason> bind(const NamedCall& call) {
    const std::string name = ir::ir_op_name(call.name);
    const OpRecord* const own = find_op(name);
    if (!own && lowerings_of(name).empty()) return Reason{ReasonCode::Unimplemented, "no device op serves " + name};
    const ir::OpSchema* const schema = ir::find_schema(name);
    if (!schema) return Reason{ReasonCode::Unimplemented, "no operator is called " + name};
    schema_ = schema;
    auto args = schema_order(*schema, call.args, call.kwargs);
    if (const auto* reason = std::get_if<Reason>(&args)) return *reason;
    const auto& values = std::get<std::vector<RtValue>>(args);
    tensors_ = tensors_of(values);
    if (tensors_.empty()) return Reason{ReasonCode::Unsupported, "no argument is a tensor"};
    std::vector<ir::Arg> ir_args;
    for (const RtValue& value : values)
      ir_args.push_back(literal_arg(value, [&](const RtValue& tensor) { return to_ir(tensor); }));
    for (const RtValue* tensor : tensors_)
      if (const DType dtype = dtype_of(*tensor); dtype == DType::f64 || ttc::is_complex(dtype))
        return Reason{ReasonCode::DtypeUnsupported,
                      "the device has no format for " + std::string(ttc::torch_name(dtype))};
    ir::Node* const node = model_.graph->append(name, std::move(ir_args));
    while (node->results().size() < std::max<std::size_t>(1, schema->returns.size()))
      node->add_result(ir::Type::unknown_tensor());
    if (own) return finish(*node, *own, Lowered{.args = node->args()});
    for (const auto& result : node->results()) model_.graph->add_output(result.get());
    const OperatorTypes types = operator_types.load(std::memory_order_acquire);
    if (types == nullptr)
      return Reason{ReasonCode::Unsupported, "without LibTorch the operator's results are not known"};
    if (const ttc::Refusal refusal = types(model_)) return *refusal;
    return lower(*node);
  }

 private:
  std::variant<std::shared_ptr<const BoundOperator>, Reason> lower(const ir::Node& node) {
    std::vector<std::string> refused;
    const LowerOptions options;
    for (const auto& [record, lowering] : lowerings_of(node.op())) {
      const LowerResult lowered = ops::lower_node(*record, *lowering, {node, options});
      if (const auto* reason = std::get_if<Reason>(&lowered)) {
        refused.push_back(std::string(record->name) + ": " + reason->text());
        continue;
      }
      auto bound = finish(node, *record, std::get<Lowered>(lowered));
      if (std::holds_alternative<std::shared_ptr<const BoundOperator>>(bound)) return bound;
      refused.push_back(std::string(record->name) + ": " + std::get<Reason>(bound).text());
    }
    std::string text;
    for (const std::string& one : refused) text += (text.empty() ? "" : "; ") + one;
    return Reason{ReasonCode::Unsupported, text};
  }

  ir::Arg to_ir(const RtValue& tensor) {
    std::vector<ir::SymExpr> sizes;
    for (const std::int64_t dim : shape_of(tensor)) sizes.emplace_back(dim);
    return model_.graph->add_input(ir::Type::tensor(dtype_of(tensor), std::move(sizes)),
                                   "t" + std::to_string(model_.graph->inputs().size()));
  }

  std::variant<std::shared_ptr<const BoundOperator>, Reason> finish(const ir::Node& node, const OpRecord& record,
                                                                    const Lowered& lowered) {
    auto made = std::make_shared<BoundOperator>();
    std::vector<RtValue> values;
    for (const ir::Arg& arg : lowered.args)
      values.push_back(literal_value(arg, [&](const ir::Value& value) {
        made->sources_.push_back(static_cast<std::size_t>(value.index()));
        return *tensors_[made->sources_.back()];
      }));
    auto bound = ttrt::bind_call(record, values);
    if (auto* reason = std::get_if<Reason>(&bound)) return std::move(*reason);
    made->bound_ = std::get<BoundCall>(std::move(bound));
    if (ttc::Refusal refusal = made->bound_.refusal()) return *std::move(refusal);
    for (const TensorSpec& spec : made->bound_.results()) {
      const std::size_t i = made->results_.size();
      const std::size_t of = i < lowered.results.size() ? static_cast<std::size_t>(lowered.results[i]) : i;
      const bool typed = of < node.results().size() && node.result(of)->type.has_dtype;
      made->results_.push_back(typed ? node.result(of)->type.dtype : torch_dtype(spec.dtype));
    }
    made->schema_ = schema_;
    return std::shared_ptr<const BoundOperator>(std::move(made));
  }

  ir::Model model_;
  std::vector<const RtValue*> tensors_;  // of the operator's arguments, in order: the inputs of the graph
  const ir::OpSchema* schema_ = nullptr;
};

void set_operator_types(OperatorTypes types) { operator_types.store(types, std::memory_order_release); }

std::variant<std::shared_ptr<const BoundOperator>, Reason> BoundOperator::bind(const NamedCall& call) {
  return OperatorReader().bind(call);
}

std::vector<ResidentTensor> BoundOperator::run_on(const NamedCall& call, Device& device, Numerics numerics) const {
  const auto args = schema_order(*schema_, call.args, call.kwargs);
  if (const auto* reason = std::get_if<Reason>(&args)) throw ttc::usage_error(reason->detail);
  const std::vector<const RtValue*> tensors = tensors_of(std::get<std::vector<RtValue>>(args));
  std::vector<RtValue> operands;
  for (const std::size_t source : sources_) operands.push_back(*tensors.at(source));
  const auto made = bound_.run(operands, device, numerics);
  if (const auto* reason = std::get_if<Reason>(&made)) throw ttc::Error(ttc::Exit::unsupported, "", reason->text());
  std::vector<ResidentTensor> results;
  for (const DeviceTensor& one : std::get<std::vector<DeviceTensor>>(made))
    results.push_back({.tensor = one, .dtype = results_[results.size()]});
  return results;
}

RtValue BoundOperator::run(const NamedCall& call, Device& device) const {
  RtValue::List results;
  for (const ResidentTensor& one : run_on(call, device)) {
    const bool as_mask = one.dtype == DType::boolean && is_float_format(one.tensor.spec.dtype);
    results.emplace_back(as_mask ? convert(to_host(one.tensor, DType::f32), DType::boolean)
                                 : to_host(one.tensor, one.dtype));
  }
  return results.size() == 1 ? std::move(results.front()) : RtValue(std::move(results));
}

namespace {

void add_key(std::string& key, const RtValue& value) {
  const auto raw = [&](const auto& x) { key.append(reinterpret_cast<const char*>(&x), sizeof x); };
  key += static_cast<char>('a' + value.v.index());
  if (value.get_if<HostTensor>() || device_tensor(value)) {
    raw(dtype_of(value));
    key += std::to_string(shape_of(value).size());
    for (const std::int64_t dim : shape_of(value)) raw(dim);
  } else if (const auto* list = value.get_if<RtValue::List>()) {
    key += std::to_string(list->size()) + "[";
    for (const RtValue& item : *list) add_key(key, item);
  } else if (const auto* s = value.get_if<std::string>()) {
    key += std::to_string(s->size()) + ":" + *s;
  } else if (const auto* i = value.get_if<std::int64_t>()) {
    raw(*i);
  } else if (const auto* d = value.get_if<double>()) {
    raw(*d);
  } else if (const auto* b = value.get_if<bool>()) {
    raw(*b);
  } else if (const auto* t = value.get_if<DType>()) {
    raw(*t);
  }
}

}  // namespace

std::string binding_key(const NamedCall& call) {
  std::string key(call.name);
  for (const RtValue& arg : call.args) add_key(key += '|', arg);
  for (const auto& [name, value] : call.kwargs) add_key(key += "|" + name + "=", value);
  return key;
}

Device& eager_device() {
  static const auto* const opened = [] {
    try {
      return new std::shared_ptr<Device>(get_default_device());
    } catch (const ttc::Error&) {  // there is none
    }
    for (int slot = pcie_slots - 1;; --slot) {
      try {
        auto device = create_device(default_profile(), slot);
        initialize_device(*device);
        return new std::shared_ptr<Device>(std::move(device));  // outlives every static object that uses it
      } catch (const ttc::Error&) {
        if (slot == 0) throw;
      }
    }
  }();
  return **opened;
}

}  // namespace ttrt
