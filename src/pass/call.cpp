// See call.h.
#include "pass/call.h"

#include "support/error.h"

namespace ttc {

using ttrt::DataType;
using ttrt::exact_format;
using ttrt::OperandKind;

OperandKind operand_kind(const ttrt::OpRecord& record, std::string_view name) {
  for (const ttrt::Operand& operand : record.operands)
    if (operand.name == name) return operand.kind;
  return OperandKind::activation;
}

std::optional<DataType> operand_format(OperandKind kind, DType dtype, DataType activation) {
  switch (kind) {
    case OperandKind::activation:
      if (!is_floating(dtype)) return std::nullopt;
      return activation;
    case OperandKind::index:
      return is_integral(dtype) ? std::optional(DataType::int32) : std::nullopt;
    case OperandKind::any:
      if (is_integral(dtype)) return DataType::int32;
      return dtype == DType::boolean || is_floating(dtype) ? std::optional(activation) : std::nullopt;
    case OperandKind::boolean:
      return dtype == DType::boolean || is_floating(dtype) ? std::optional(activation) : std::nullopt;
    case OperandKind::exact:
      return exact_format(dtype);
    case OperandKind::packed:
      return activation;
  }
  return std::nullopt;
}

bool is_device_node(const ir::Node& node) { return node.op().starts_with("tt.") && node.op() != "tt.to_host"; }
bool on_device(const ir::Value* value) {
  return value && value->def() && is_device_node(*value->def()) && value->def()->place == "device";
}

namespace {

struct CallBuilder {
  const ttrt::OpRecord& record;
  const ir::SymBinding& shapes;
  DataType activation;
  ttrt::OpCall call = {};
  std::optional<Reason> failure = {};

  std::optional<ttrt::OpArg> fail(ReasonCode code, std::string detail) {
    if (!failure) failure = Reason{code, std::move(detail)};
    return std::nullopt;
  }

  std::optional<ttrt::OpArg> tensor(const std::string& name, const ir::Value* value) {
    if (value->type.kind == ir::TypeKind::integer) {
      const auto number = value->type.sym ? value->type.sym->evaluate(shapes) : std::nullopt;
      if (!number) return fail(ReasonCode::DynamicShape, "the integer " + value->name + " is known at run time only");
      return ttrt::OpArg{*number};
    }
    if (!value->type.is_tensor()) return fail(ReasonCode::Unsupported, name + " is a " + value->type.str());
    if (!value->type.has_shape || !value->type.has_dtype)
      return fail(ReasonCode::DynamicShape, "the shape of " + value->name + " is not known");
    const OperandKind kind = operand_kind(record, name);
    const auto format =
        on_device(value) ? exact_format(value->type.dtype) : operand_format(kind, value->type.dtype, activation);
    if (!format) return fail(ReasonCode::DtypeUnsupported, name + " is " + std::string(torch_name(value->type.dtype)));
    ttrt::TensorSpec spec;
    spec.dtype = *format;
    for (const ir::SymExpr& size : value->type.sizes) {
      const auto number = size.evaluate(shapes);
      if (!number) return fail(ReasonCode::DynamicShape, "a dim of " + value->name + " is known at run time only");
      spec.logical.push_back(*number);
    }
    call.tensors.push_back(std::move(spec));
    return ttrt::OpArg{ttrt::TensorRef{static_cast<int>(call.tensors.size()) - 1}};
  }

  std::optional<ttrt::OpArg> list(const std::string& name, const ir::Arg::List& items) {
    std::vector<ttrt::TensorRef> refs;
    std::vector<std::int64_t> ints;
    std::vector<double> floats;
    for (const ir::Arg& item : items) {
      const auto one = convert(name, item);
      if (!one) return std::nullopt;
      if (const auto* ref = std::get_if<ttrt::TensorRef>(&*one))
        refs.push_back(*ref);
      else if (const auto* i = std::get_if<std::int64_t>(&*one))
        ints.push_back(*i);
      else if (const auto* f = std::get_if<double>(&*one))
        floats.push_back(*f);
      else
        return fail(ReasonCode::Unsupported, name + " is a list of something else than tensors and numbers");
    }
    if (!refs.empty()) return ttrt::OpArg{refs};
    if (!floats.empty()) {
      floats.insert(floats.end(), ints.begin(), ints.end());
      return ttrt::OpArg{floats};
    }
    return ttrt::OpArg{ints};
  }

  std::optional<ttrt::OpArg> convert(const std::string& name, const ir::Arg& arg) {
    if (arg.is_none()) return ttrt::OpArg{};
    if (const ir::Value* value = arg.value()) return tensor(name, value);
    if (const auto* b = arg.get_if<bool>()) return ttrt::OpArg{*b};
    if (const auto* i = arg.get_if<std::int64_t>()) return ttrt::OpArg{*i};
    if (const auto* f = arg.get_if<double>()) return ttrt::OpArg{*f};
    if (const auto* s = arg.get_if<std::string>()) return ttrt::OpArg{*s};
    if (const auto* d = arg.get_if<DType>()) return ttrt::OpArg{*d};
    if (const auto* items = arg.list()) return list(name, *items);
    return fail(ReasonCode::Unsupported, name + " is of a kind the device does not know");
  }
};

}  // namespace

std::variant<ttrt::OpCall, Reason> concrete_call(const ttrt::OpRecord& record, const std::vector<ir::Arg>& args,
                                                 const ir::SymBinding& shapes, DataType activation) {
  const ir::OpSchema* schema = ir::find_schema(record.name);
  TTC_CHECK(schema != nullptr, "no schema for " + std::string(record.name));
  CallBuilder builder{.record = record, .shapes = shapes, .activation = activation};
  builder.call.op = &record;
  for (std::size_t i = 0; i < schema->args.size(); ++i) {
    const ir::SchemaArg& formal = schema->args[i];
    const ir::Arg arg = i < args.size() ? args[i] : formal.default_value.value_or(ir::Arg());
    auto converted = builder.convert(formal.name, arg);
    if (!converted) return *builder.failure;
    builder.call.args.push_back(std::move(*converted));
  }
  for (const ttrt::Packed& packed : record.packed) {
    const int index = builder.call.tensor_index(packed.name);
    if (index >= 0) builder.call.tensors[static_cast<std::size_t>(index)] = packed.spec(builder.call);
  }
  return std::move(builder.call);
}

}  // namespace ttc
