// Values of a graph as what the binder takes: tensors by the spec that they have or will have on the device, symbolic
// integers by their value.
#include "pass/call.h"

namespace ttc {

ir::SymBinding example_sizes(const ir::Model& model, const ir::SymBinding& given) {
  ir::SymBinding out = given;
  out.insert(model.info.hints.begin(), model.info.hints.end());
  for (const auto& [symbol, range] : model.ranges)
    out.emplace(symbol, std::max<std::int64_t>(range.min.value_or(2), 2));
  return out;
}

bool is_device_node(const ir::Node& node) {
  return node.op().starts_with("tt.") && node.op() != ttrt::op_for(ttrt::Role::to_host).name;
}
bool on_device(const ir::Value* value) {
  return value && value->def() && is_device_node(*value->def()) && value->def()->place == "device";
}

namespace {

struct ValueReader {
  const ttrt::OpRecord& record;
  const ir::SymBinding& shapes;
  ttrt::DataType activation;
  std::string_view name = {};  // of the argument at hand, in the schema
  Refusal failure = {};        // the first

  ttrt::RtValue fail(ReasonCode code, std::string detail) {
    if (!failure) failure = Reason{code, std::move(detail)};
    return {};
  }

  ttrt::RtValue operator()(const ir::Value& value) {
    if (value.type.kind == ir::TypeKind::integer) {
      const auto number = value.type.sym ? value.type.sym->evaluate(shapes) : std::nullopt;
      if (!number) return fail(ReasonCode::DynamicShape, "the integer " + value.name + " is known at run time only");
      return *number;
    }
    if (!value.type.is_tensor()) return fail(ReasonCode::Unsupported, std::string(name) + " is a " + value.type.str());
    if (!value.type.has_shape || !value.type.has_dtype)
      return fail(ReasonCode::DynamicShape, "the shape of " + value.name + " is not known");
    const auto format = on_device(&value) ? ttrt::exact_format(value.type.dtype)
                                          : operand_format(operand_kind(record, name), value.type.dtype, activation);
    if (!format)
      return fail(ReasonCode::DtypeUnsupported, std::string(name) + " is " + std::string(torch_name(value.type.dtype)));
    ttrt::TensorSpec spec;
    spec.dtype = *format;
    spec.logical.reserve(value.type.sizes.size());
    for (const ir::SymExpr& size : value.type.sizes) {
      const auto number = size.evaluate(shapes);
      if (!number) return fail(ReasonCode::DynamicShape, "a dim of " + value.name + " is known at run time only");
      spec.logical.push_back(*number);
    }
    return ttrt::DeviceTensor{.spec = std::move(spec), .buffer = nullptr};
  }
};

}  // namespace

std::variant<ttrt::BoundCall, Reason> concrete_call(const ttrt::OpRecord& record, const std::vector<ir::Arg>& args,
                                                    const ir::SymBinding& shapes, const ttrt::BindOptions& options) {
  const ir::OpSchema& schema = ttrt::schema_of(record);
  ValueReader reader{.record = record, .shapes = shapes, .activation = options.activation};
  std::vector<ttrt::RtValue> values;
  values.reserve(args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    reader.name = schema.args.at(i).name;
    values.push_back(ttrt::literal_value(args[i], [&](const ir::Value& value) { return reader(value); }));
    if (reader.failure) return *reader.failure;
  }
  return ttrt::bind_call(record, values, options);
}

}  // namespace ttc
