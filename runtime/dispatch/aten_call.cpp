// The operator becomes a graph of one node, which the records' lowerings read like any other.
#include "dispatch/aten_call.h"

#include <algorithm>

#include "dispatch/last_resort.h"
#include "ir/model.h"
#include "ir/op_schema.h"

namespace ttrt::dispatch {

namespace ir = ttc::ir;
using ttc::Reason;
using ttc::ReasonCode;

namespace {

// Calls f(tensor value) for the tensors of one argument, lists included, in order.
template <typename F>
void for_each_tensor(const RtValue& value, const F& f) {
  if (value.get_if<HostTensor>() || value.get_if<DeviceTensor>()) f(value);
  if (const auto* list = value.get_if<RtValue::List>())
    for (const RtValue& item : *list) for_each_tensor(item, f);
}

DType dtype_of(const RtValue& tensor) {
  if (const auto* host = tensor.get_if<HostTensor>()) return host->dtype;
  return torch_dtype(tensor.get_if<DeviceTensor>()->spec.dtype);
}

const Shape& shape_of(const RtValue& tensor) {
  if (const auto* host = tensor.get_if<HostTensor>()) return host->sizes;
  return tensor.get_if<DeviceTensor>()->spec.logical;
}

// The arguments in schema order, trailing ones left out; a Reason where they do not fit.
std::variant<std::vector<RtValue>, Reason> ordered(const OperatorCall& call, const ir::OpSchema& schema) {
  if (call.args.size() > schema.args.size())
    return Reason{ReasonCode::Unsupported, schema.op + " takes " + std::to_string(schema.args.size()) +
                                               " arguments, got " + std::to_string(call.args.size())};
  std::vector<RtValue> out(call.args.begin(), call.args.end());
  std::vector<bool> given(schema.args.size(), false);
  std::fill_n(given.begin(), out.size(), true);
  for (const auto& [name, value] : call.kwargs) {
    const int i = schema.index_of(name);
    if (i < 0 || given[static_cast<std::size_t>(i)])
      return Reason{ReasonCode::Unsupported, schema.op + " has no free argument '" + name + "'"};
    const auto at = static_cast<std::size_t>(i);
    if (out.size() <= at) out.resize(at + 1);
    out[at] = value;
    given[at] = true;
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!given[i] && !schema.args[i].default_value)
      return Reason{ReasonCode::Unsupported, schema.op + " lacks argument '" + schema.args[i].name + "'"};
  out.resize(std::max(out.size(), call.args.size()));
  return out;
}

std::string alias_of(const std::string& name) {
  if (name == "aten.view.default" || name == "aten._unsafe_view.default") return "aten.reshape.default";
  if (name == "aten._softmax.default") return "aten.softmax.int";
  if (const std::size_t scalar = name.rfind(".Scalar"); scalar != std::string::npos && scalar + 7 == name.size())
    return name.substr(0, scalar) + ".Tensor";
  return {};
}

}  // namespace

std::string ir_name_of(std::string_view text) {
  std::string name(text);
  const std::size_t colons = name.find("::");
  if (colons == std::string::npos) return name;
  name.replace(colons, 2, ".");
  return name.find('.', colons + 1) == std::string::npos ? name + ".default" : name;
}

class Binder {
 public:
  std::variant<std::shared_ptr<const BoundOperator>, Reason> bind(const OperatorCall& call) {
    std::string name = ir_name_of(call.name);
    const OpRecord* const own = find_op(name);
    if (!own && lowerings_of(name).empty()) {
      if (const std::string alias = alias_of(name); !lowerings_of(alias).empty())
        name = alias;
      else
        return Reason{ReasonCode::Unimplemented, "no device op serves " + name};
    }
    const ir::OpSchema* const schema = ir::find_schema(name);
    if (!schema) return Reason{ReasonCode::Unimplemented, "no operator is called " + name};
    schema_ = schema;
    auto args = ordered(call, *schema);
    if (const auto* reason = std::get_if<Reason>(&args)) return *reason;
    std::vector<ir::Arg> ir_args;
    for (const RtValue& value : std::get<std::vector<RtValue>>(args)) ir_args.push_back(to_ir(value));
    if (dtypes_.empty()) return Reason{ReasonCode::Unsupported, "no argument is a tensor"};
    for (const DType dtype : dtypes_)
      if (dtype == DType::f64 || ttc::is_complex(dtype))
        return Reason{ReasonCode::DtypeUnsupported,
                      "the device has no format for " + std::string(ttc::torch_name(dtype))};
    ir::Node* const node = model_.graph->append(name, std::move(ir_args));
    while (node->results().size() < std::max<std::size_t>(1, schema->returns.size()))
      node->add_result(ir::Type::unknown_tensor());
    if (own) return finish(*node, *own, Lowered{.args = node->args(), .results = {}});
    for (const auto& result : node->results()) model_.graph->add_output(result.get());
    if (const ttc::Refusal refusal = last_resort_types(model_)) return *refusal;
    return lower(*node);
  }

 private:
  std::variant<std::shared_ptr<const BoundOperator>, Reason> lower(const ir::Node& node) {
    std::vector<std::string> refused;
    const LowerOptions options;
    for (const auto& [record, lowering] : lowerings_of(node.op())) {
      const LowerResult lowered = lowering->lower({node, options});
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

  ir::Arg to_ir(const RtValue& value) {
    if (value.get_if<HostTensor>() || value.get_if<DeviceTensor>()) {
      std::vector<ir::SymExpr> sizes;
      for (const std::int64_t dim : shape_of(value)) sizes.emplace_back(dim);
      dtypes_.push_back(dtype_of(value));
      shapes_.push_back(shape_of(value));
      return model_.graph->add_input(ir::Type::tensor(dtypes_.back(), std::move(sizes)),
                                     "t" + std::to_string(dtypes_.size() - 1));
    }
    if (const auto* list = value.get_if<RtValue::List>()) {
      ir::Arg::List out;
      for (const RtValue& item : *list) out.push_back(to_ir(item));
      return out;
    }
    if (const auto* v = value.get_if<double>()) return *v;
    if (const auto* v = value.get_if<std::int64_t>()) return *v;
    if (const auto* v = value.get_if<bool>()) return *v;
    if (const auto* v = value.get_if<std::string>()) return *v;
    if (const auto* v = value.get_if<DType>()) return *v;
    if (const auto* v = value.get_if<ir::MemoryFormatArg>()) return *v;
    if (const auto* v = value.get_if<ir::LayoutArg>()) return *v;
    if (const auto* v = value.get_if<ir::DeviceArg>()) return *v;
    return {};
  }

  TensorRef operand(const OpRecord& record, std::string_view name, const ir::Value* value) {
    BoundOperator::Operand one{.source = static_cast<std::size_t>(value->index())};
    for (const ttrt::Operand& o : record.operands)
      if (o.name == name) one.kind = o.kind;
    for (const Packed& p : record.packed)
      if (p.name == name) one.packed = &p;
    const DType dtype = dtypes_[one.source];
    const bool integer = one.kind == OperandKind::index || ttc::is_integral(dtype);
    const DataType format = integer                                                 ? DataType::int32
                            : one.kind == OperandKind::exact && dtype == DType::f32 ? DataType::float32
                                                                                    : DataType::bfloat16;
    bound_->call_.tensors.push_back(
        {.logical = shapes_[one.source], .dtype = format, .layout = Layout::tile, .memory = {}});
    bound_->operands_.push_back(one);
    return {static_cast<int>(bound_->operands_.size()) - 1};
  }

  OpArg to_op_arg(const OpRecord& record, std::string_view name, const ir::Arg& arg) {
    if (const ir::Value* value = arg.value()) return operand(record, name, value);
    if (arg.has_values()) {
      std::vector<TensorRef> refs;
      for (const ir::Arg& item : *arg.list())
        if (item.value()) refs.push_back(operand(record, name, item.value()));
      return refs;
    }
    if (const auto* b = arg.get_if<bool>()) return *b;
    if (const auto* i = arg.get_if<std::int64_t>()) return *i;
    if (const auto* d = arg.get_if<double>()) return *d;
    if (const auto* s = arg.get_if<std::string>()) return *s;
    if (const auto* d = arg.get_if<DType>()) return *d;
    if (const auto ints = arg.integers()) return *ints;
    if (const auto* list = arg.list()) {
      std::vector<double> numbers;
      for (const ir::Arg& item : *list) numbers.push_back(item.number().value_or(0));
      return numbers;
    }
    return {};
  }

  std::variant<std::shared_ptr<const BoundOperator>, Reason> finish(const ir::Node& node, const OpRecord& record,
                                                                    const Lowered& lowered) {
    if (!record.prepare || !record.infer)
      return Reason{ReasonCode::Unimplemented, std::string(record.name) + " is no kernel of its own"};
    bound_ = std::make_shared<BoundOperator>();
    OpCall& call = bound_->call_;
    call.op = &record;
    const ir::OpSchema* const schema = ir::find_schema(record.name);
    TTC_CHECK(schema != nullptr, "a record without a schema");
    for (std::size_t i = 0; i < schema->args.size(); ++i) {
      const ir::Arg arg = i < lowered.args.size() ? lowered.args[i] : schema->args[i].default_value.value_or(ir::Arg());
      call.args.push_back(to_op_arg(record, schema->args[i].name, arg));
    }
    try {
      for (std::size_t i = 0; i < bound_->operands_.size(); ++i)
        if (bound_->operands_[i].packed) call.tensors[i] = bound_->operands_[i].packed->spec(call);
      if (record.supports)
        if (const ttc::Refusal refusal = record.supports(call)) return *refusal;
      for (const TensorSpec& spec : record.infer(call)) {
        const std::size_t i = bound_->results_.size();
        const std::size_t of = i < lowered.results.size() ? static_cast<std::size_t>(lowered.results[i]) : i;
        const bool typed = of < node.results().size() && node.result(of)->type.has_dtype;
        bound_->results_.push_back(typed ? node.result(of)->type.dtype : torch_dtype(spec.dtype));
      }
    } catch (const ttc::Error& error) {
      return Reason{ReasonCode::Unsupported, error.what()};
    }
    bound_->schema_ = schema_;
    return std::shared_ptr<const BoundOperator>(bound_);
  }

  ir::Model model_;
  std::vector<DType> dtypes_;  // of the tensors, in order
  std::vector<Shape> shapes_;
  const ir::OpSchema* schema_ = nullptr;
  std::shared_ptr<BoundOperator> bound_;
};

std::variant<std::shared_ptr<const BoundOperator>, Reason> BoundOperator::bind(const OperatorCall& call) {
  return Binder().bind(call);
}

namespace {

HostTensor arranged(HostTensor host, const Packed& packed, const TensorSpec& spec) {
  switch (packed.form) {
    case Packed::Form::matrix:
      return host;
    case Packed::Form::transposed:
      std::swap(host.sizes.at(0), host.sizes.at(1));
      std::swap(host.strides.at(0), host.strides.at(1));
      return contiguous(host);
    case Packed::Form::row:
      host.sizes = {1, host.sizes.at(0)};
      host.strides = contiguous_strides(host.sizes);
      return host;
    case Packed::Form::arranged:
      return packed.arrange(host, spec);
  }
  return host;
}

}  // namespace

RtValue BoundOperator::run(const OperatorCall& call, Device& device) const {
  std::vector<const RtValue*> sources;
  const auto args = ordered(call, *schema_);
  if (const auto* reason = std::get_if<Reason>(&args)) throw ttc::usage_error(reason->detail);
  for (const RtValue& arg : std::get<std::vector<RtValue>>(args))
    for_each_tensor(arg, [&](const RtValue& t) { sources.push_back(&t); });
  std::vector<DeviceTensor> in;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const RtValue& value = *sources.at(operands_[i].source);
    const TensorSpec& spec = call_.tensors[i];
    if (const auto* there = value.get_if<DeviceTensor>(); there && there->spec == spec) {
      in.push_back(*there);
      continue;
    }
    const auto* host = value.get_if<HostTensor>();
    HostTensor source = contiguous(host ? *host : to_host(*value.get_if<DeviceTensor>(), dtype_of(value)));
    if (operands_[i].packed)
      source = packed_values(arranged(std::move(source), *operands_[i].packed, spec), *operands_[i].packed, spec);
    else if (source.dtype == DType::boolean && is_float_format(spec.dtype))
      source = convert(source, DType::f32);
    in.push_back(to_device(source, device, spec));
  }
  std::vector<const DeviceTensor*> in_pointers, constants;
  for (std::size_t i = 0; i < in.size(); ++i) {
    in_pointers.push_back(&in[i]);
    constants.push_back(operands_[i].packed ? &in[i] : nullptr);
  }
  const Kernel kernel = call_.op->prepare(call_, {.numerics = Numerics::fast, .constants = constants});
  if (!kernel) throw ttc::usage_error(std::string(call_.op->name) + " has no kernel for these arguments");
  std::vector<DeviceTensor> out;
  for (const TensorSpec& spec : call_.op->infer(call_)) out.push_back(allocate(device, spec));
  std::vector<DeviceTensor*> out_pointers;
  for (DeviceTensor& tensor : out) out_pointers.push_back(&tensor);
  kernel({.in = in_pointers, .out = out_pointers});
  RtValue::List results;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool as_mask = results_[i] == DType::boolean && is_float_format(out[i].spec.dtype);
    results.emplace_back(as_mask ? convert(to_host(out[i], DType::f32), DType::boolean) : to_host(out[i], results_[i]));
  }
  return results.size() == 1 ? std::move(results.front()) : RtValue(std::move(results));
}

namespace {

void add_key(std::string& key, const RtValue& value) {
  const auto raw = [&](const auto& x) { key.append(reinterpret_cast<const char*>(&x), sizeof x); };
  key += static_cast<char>('a' + value.v.index());
  if (value.get_if<HostTensor>() || value.get_if<DeviceTensor>()) {
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

std::string binding_key(const OperatorCall& call) {
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

}  // namespace ttrt::dispatch
