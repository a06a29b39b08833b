// Binding a call: arguments one by one against the schema, operands to specs, pack rules last, because they read the
// call's literals. Then what a bound call can do.
#include "ops/bind.h"

#include <algorithm>
#include <ranges>

#include "ops/library.h"
#include "support/error.h"

namespace ttrt {

namespace ir = ttc::ir;
using ttc::Reason;
using ttc::ReasonCode;

// ---- operands ------------------------------------------------------------------------------------------------------

OperandKind operand_kind(const OpRecord& record, std::string_view name) {
  for (const Operand& operand : record.operands)
    if (operand.name == name) return operand.kind;
  return pack_rule(record, name) != nullptr ? OperandKind::packed : OperandKind::activation;
}

std::optional<DataType> operand_format(OperandKind kind, DType dtype, DataType activation) {
  if (dtype == DType::f64) activation = DataType::float32;  // the widest there is
  switch (kind) {
    case OperandKind::activation:
      return ttc::is_floating(dtype) ? std::optional(activation) : std::nullopt;
    case OperandKind::index:
      return ttc::is_integral(dtype) ? std::optional(DataType::int32) : std::nullopt;
    case OperandKind::any:
      if (ttc::is_integral(dtype)) return DataType::int32;
      return dtype == DType::boolean || ttc::is_floating(dtype) ? std::optional(activation) : std::nullopt;
    case OperandKind::boolean:
      return dtype == DType::boolean || ttc::is_floating(dtype) ? std::optional(activation) : std::nullopt;
    case OperandKind::exact:
      return exact_format(dtype);
    case OperandKind::packed:
      return activation;  // until the pack rule says which
  }
  return std::nullopt;
}

const Packed* pack_rule(const OpRecord& record, std::string_view name) {
  for (const Packed& rule : record.packed)
    if (rule.name == name) return &rule;
  return nullptr;
}

namespace {

// A single matrix as torch.nn.Linear has it; torch has stacks of matrices as the device does.
HostTensor transposed(HostTensor host) {
  if (host.sizes.size() > 2) return host;
  std::swap(host.sizes.at(0), host.sizes.at(1));
  std::swap(host.strides.at(0), host.strides.at(1));
  return host;
}

std::string sizes_text(const Shape& sizes) {
  std::string out;
  for (const std::int64_t size : sizes) out += (out.empty() ? "" : "x") + std::to_string(size);
  return out;
}

HostTensor reshaped(const HostTensor& tensor, Shape sizes) {
  HostTensor host = contiguous(tensor);
  host.sizes = std::move(sizes);
  host.strides = contiguous_strides(host.sizes);
  return host;
}

}  // namespace

HostTensor packed_matrix(const HostTensor& constant, const Packed& rule, const TensorSpec& spec) {
  HostTensor matrix = constant;
  if (rule.form == Packed::Form::transposed) matrix = transposed(constant);
  if (rule.form == Packed::Form::row) matrix = reshaped(constant, {1, constant.numel()});
  if (rule.form == Packed::Form::arranged) matrix = rule.arrange(constant, spec);
  if (matrix.sizes != spec.logical)
    throw ttc::usage_error("'" + std::string(rule.name) + "' is " + sizes_text(matrix.sizes) + ", not " +
                           sizes_text(spec.logical));
  return packed_values(matrix, rule, spec);
}

HostTensor unpacked_constant(const HostTensor& matrix, const Packed& rule, const Shape& sizes) {
  if (rule.form == Packed::Form::transposed) return contiguous(transposed(matrix));
  if (rule.form == Packed::Form::row) return reshaped(matrix, sizes);
  if (rule.form == Packed::Form::arranged) return contiguous(rule.restore(matrix, sizes));
  return matrix;
}

// ---- arguments -----------------------------------------------------------------------------------------------------

std::variant<std::vector<RtValue>, Reason> schema_order(const ir::OpSchema& schema, std::span<const RtValue> args,
                                                        std::span<const Keyword> kwargs) {
  if (args.size() > schema.args.size())
    return Reason{ReasonCode::Unsupported, schema.op + " takes " + std::to_string(schema.args.size()) +
                                               " arguments, got " + std::to_string(args.size())};
  std::vector<RtValue> out(args.begin(), args.end());
  std::vector<char> given(schema.args.size(), 0);
  std::fill_n(given.begin(), out.size(), 1);
  for (const auto& [name, value] : kwargs) {
    const int i = schema.index_of(name);
    if (i < 0 || given[static_cast<std::size_t>(i)] != 0)
      return Reason{ReasonCode::Unsupported, schema.op + " has no free argument '" + name + "'"};
    const auto at = static_cast<std::size_t>(i);
    if (out.size() <= at) out.resize(at + 1);
    out[at] = value;
    given[at] = 1;
  }
  for (std::size_t i = 0; i < schema.args.size(); ++i) {
    if (given[i] != 0) continue;
    const ir::SchemaArg& formal = schema.args[i];
    if (!formal.default_value)
      return Reason{ReasonCode::Unsupported, schema.op + " lacks argument '" + formal.name + "'"};
    if (i < out.size()) out[i] = literal_value(*formal.default_value);
  }
  return out;
}

const DeviceTensor* device_tensor(const RtValue& value) {
  const auto* resident = value.get_if<ResidentTensor>();
  return resident != nullptr ? &resident->tensor : value.get_if<DeviceTensor>();
}

namespace {

bool is_tensor(const RtValue& value) {
  return value.get_if<HostTensor>() != nullptr || device_tensor(value) != nullptr;
}

template <typename F>
void for_each_tensor(const RtValue& value, const F& f) {
  if (is_tensor(value)) f(value);
  if (const auto* list = value.get_if<RtValue::List>())
    for (const RtValue& item : *list) for_each_tensor(item, f);
}

bool is_whole(const OpArg& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<bool>(value);
}

bool is_empty_list(const OpArg& value) {
  const auto* numbers = std::get_if<std::vector<double>>(&value);
  return numbers != nullptr && numbers->empty();
}

// What a literal of a schema's type may be, and what refusals call it. Integers pass for bools, and one for a list.
struct LiteralKind {
  std::string_view type, name;
  bool (*fits)(const OpArg&);
};
constexpr auto whole_list = [](const OpArg& value) {
  return std::holds_alternative<std::int64_t>(value) || is_empty_list(value) ||
         std::holds_alternative<std::vector<std::int64_t>>(value);
};
constexpr LiteralKind literal_kinds[] = {
    {"int", "an integer", is_whole},
    {"SymInt", "an integer", is_whole},
    {"bool", "a bool", is_whole},
    {"float", "a number", [](const OpArg& value) { return is_whole(value) || std::holds_alternative<double>(value); }},
    {"str", "a text", [](const OpArg& value) { return std::holds_alternative<std::string>(value); }},
    {"ScalarType", "a dtype", [](const OpArg& value) { return std::holds_alternative<DType>(value); }},
    {"int[]", "a list of integers", whole_list},
    {"SymInt[]", "a list of integers", whole_list},
    {"float[]", "a list of numbers",
     [](const OpArg& value) { return whole_list(value) || std::holds_alternative<std::vector<double>>(value); }}};

const LiteralKind* kind_of(std::string_view type) {
  const auto found = std::find_if(std::begin(literal_kinds), std::end(literal_kinds),
                                  [&](const auto& kind) { return kind.type == type; });
  return found == std::end(literal_kinds) ? nullptr : found;
}

bool is_among(std::string_view words, std::string_view word) {
  return std::ranges::any_of(std::views::split(words, ' '),
                             [&](const auto& one) { return std::string_view(one.begin(), one.end()) == word; });
}

class Binder {
 public:
  Binder(const OpRecord& record, const BindOptions& options) : record_(record), options_(options) {
    bound_.call.op = &record;
  }

  std::variant<BoundCall, Reason> bind(std::span<const RtValue> args) {
    const ir::OpSchema& schema = schema_of(record_);
    if (args.size() > schema.args.size())
      return refuse("takes " + std::to_string(schema.args.size()) + " arguments, got " + std::to_string(args.size()));
    bound_.call.args.reserve(schema.args.size());
    for (std::size_t i = 0; i < schema.args.size(); ++i) {
      const ir::SchemaArg& formal = schema.args[i];
      if (i >= args.size() && !formal.default_value) return refuse("lacks argument '" + formal.name + "'");
      auto arg = i < args.size() ? argument(formal, args[i]) : argument(formal, literal_value(*formal.default_value));
      if (auto* reason = std::get_if<Reason>(&arg)) return std::move(*reason);
      bound_.call.args.push_back(std::get<OpArg>(std::move(arg)));
    }
    try {
      apply_pack_rules();
      ops::resolve_configuration(bound_.call, options_.arch);
    } catch (const ttc::Error& error) {  // literals that give no spec
      return Reason{ReasonCode::Unsupported, error.what()};
    }
    for (const Packed& rule : record_.packed)
      if (const TensorSpec* spec = bound_.call.tensor(rule.name); spec != nullptr && volume(spec->logical) == 0)
        return refuse("packs no '" + std::string(rule.name) + "' without elements");
    return std::move(bound_);
  }

 private:
  void apply_pack_rules() {
    for (const Packed& rule : record_.packed) {
      const int index = bound_.call.tensor_index(rule.name);
      if (index >= 0) bound_.call.tensors[static_cast<std::size_t>(index)] = rule.spec(bound_.call);
    }
  }

  Reason refuse(const std::string& what) const {
    return {ReasonCode::Unsupported, std::string(record_.name) + " " + what};
  }

  std::variant<OpArg, Reason> argument(const ir::SchemaArg& formal, const RtValue& value) {
    const bool wants_tensor = formal.type.starts_with("Tensor"), optional = formal.type.ends_with('?');
    if (value.is_none() && (optional || wants_tensor)) return OpArg();
    if (is_tensor(value)) {
      if (!wants_tensor) return refuse("takes no tensor as '" + formal.name + "'");
      if (formal.type.starts_with("Tensor[")) return refuse("takes a list of tensors as '" + formal.name + "'");
      return operand(formal, value);
    }
    const auto* list = value.get_if<RtValue::List>();
    if (wants_tensor && list != nullptr) {
      if (!formal.type.starts_with("Tensor[")) return refuse("takes one tensor as '" + formal.name + "'");
      return operands(formal, *list);
    }
    auto literal = wants_tensor ? std::nullopt : op_literal(value);
    if (!literal)
      return refuse(wants_tensor ? "takes a tensor as '" + formal.name + "'"
                                 : "does not take what is given as '" + formal.name + "'");
    const std::string_view type(formal.type.data(), formal.type.size() - (optional ? 1 : 0));
    if (const LiteralKind* kind = kind_of(type); kind != nullptr && !kind->fits(*literal))
      return refuse("takes " + std::string(kind->name) + " as '" + formal.name + "'");
    if (const auto* word = std::get_if<std::string>(&*literal))
      if (auto no = word_refusal(formal, *word)) return *std::move(no);
    return *std::move(literal);
  }

  ttc::Refusal word_refusal(const ir::SchemaArg& formal, const std::string& word) const {
    if (formal.default_value && formal.default_value->get_if<std::string>() != nullptr &&
        *formal.default_value->get_if<std::string>() == word)
      return std::nullopt;
    for (const Words& known : record_.words) {
      if (known.literal != formal.name) continue;
      if (known.permits != nullptr ? known.permits(word) : is_among(known.words, word)) return std::nullopt;
      return refuse("takes no " + formal.name + " '" + word + "'" +
                    (known.words.empty() ? "" : "; known are: " + std::string(known.words)));
    }
    const bool known = formal.name == "fidelity" ? math_fidelity_from_string(word).has_value()
                                                 : data_type_from_string(word).has_value();
    return known ? ttc::Refusal() : refuse("takes no " + formal.name + " '" + word + "'");
  }

  std::variant<OpArg, Reason> operands(const ir::SchemaArg& formal, const RtValue::List& list) {
    std::vector<TensorRef> refs;
    for (const RtValue& item : list) {
      if (!is_tensor(item)) return refuse("takes tensors only in the list '" + formal.name + "'");
      auto ref = operand(formal, item);
      if (auto* reason = std::get_if<Reason>(&ref)) return std::move(*reason);
      refs.push_back(std::get<TensorRef>(std::get<OpArg>(ref)));
    }
    return OpArg(std::move(refs));
  }

  std::variant<OpArg, Reason> operand(const ir::SchemaArg& formal, const RtValue& value) {
    const BoundOperand operand{.kind = operand_kind(record_, formal.name), .packed = pack_rule(record_, formal.name)};
    if (const DeviceTensor* there = device_tensor(value)) {
      bound_.call.tensors.push_back(there->spec);
    } else {
      const auto& host = *value.get_if<HostTensor>();
      const auto format = operand_format(operand.kind, host.dtype, options_.activation);
      if (!format)
        return Reason{ReasonCode::DtypeUnsupported, formal.name + " is " + std::string(ttc::torch_name(host.dtype))};
      bound_.call.tensors.push_back({.logical = host.sizes, .dtype = *format, .layout = Layout::tile, .memory = {}});
    }
    bound_.operands.push_back(operand);
    return OpArg(TensorRef{static_cast<int>(bound_.operands.size()) - 1});
  }

  const OpRecord& record_;
  const BindOptions& options_;
  BoundCall bound_;
};

}  // namespace

std::vector<const RtValue*> tensors_of(std::span<const RtValue> args) {
  std::vector<const RtValue*> out;
  for (const RtValue& arg : args) for_each_tensor(arg, [&](const RtValue& tensor) { out.push_back(&tensor); });
  return out;
}

std::variant<BoundCall, Reason> bind_call(const OpRecord& record, std::span<const RtValue> args,
                                          const BindOptions& options) {
  return Binder(record, options).bind(args);
}

// ---- the bound call ------------------------------------------------------------------------------------------------

ttc::Refusal BoundCall::refusal() const {
  if (record().prepare == nullptr || record().infer == nullptr)
    return Reason{ReasonCode::Unimplemented, std::string(record().name) + " is no kernel of its own"};
  try {
    const auto empty = [](const TensorSpec& spec) { return volume(spec.logical) == 0; };
    const std::vector<TensorSpec> made = record().infer(call);
    if (!made.empty() && std::ranges::all_of(made, empty)) return std::nullopt;  // nothing to compute
    return record().supports != nullptr ? record().supports(call) : std::nullopt;
  } catch (const ttc::Error& error) {
    return Reason{ReasonCode::Unsupported, error.what()};
  }
}

std::variant<Kernel, Reason> BoundCall::prepare(const PrepareContext& context) const {
  // Nothing to compute: no kernel has to think of grids without tiles.
  const std::vector<TensorSpec> made = results();
  if (std::all_of(made.begin(), made.end(), [](const TensorSpec& spec) { return volume(spec.logical) == 0; }))
    return Kernel([](const KernelArgs&) {});
  Kernel kernel = record().prepare(call, context);
  if (kernel) return kernel;
  return Reason{ReasonCode::Unimplemented, std::string(to_string(context.numerics)) + " numerics of " +
                                               std::string(record().name) + ": " +
                                               std::string(record().no_exact_kernel)};
}

DeviceTensor BoundCall::upload(std::size_t i, const RtValue& value, Device& device) const {
  const TensorSpec& spec = call.tensors.at(i);
  const DeviceTensor* there = device_tensor(value);
  if (there != nullptr && there->spec == spec) return *there;
  HostTensor host = there != nullptr ? to_host(*there, torch_dtype(there->spec.dtype)) : *value.get_if<HostTensor>();
  if (operands.at(i).packed != nullptr)
    host = packed_matrix(host, *operands[i].packed, spec);
  else if (host.dtype == DType::boolean && is_float_format(spec.dtype))
    host = convert(host, DType::f32);
  return to_device(contiguous(host), device, spec);
}

std::variant<std::vector<DeviceTensor>, Reason> BoundCall::run(std::span<const RtValue> args, Device& device,
                                                               Numerics numerics) const {
  if (ttc::Refusal limits = refusal()) return *std::move(limits);
  const std::vector<const RtValue*> values = tensors_of(args);
  TTC_CHECK(values.size() == operands.size(), "a call runs on the tensors it was bound to");
  std::vector<DeviceTensor> in, out;
  for (std::size_t i = 0; i < values.size(); ++i) in.push_back(upload(i, *values[i], device));
  std::vector<const DeviceTensor*> from, constants;
  for (std::size_t i = 0; i < in.size(); ++i) {
    from.push_back(&in[i]);
    constants.push_back(operands[i].packed != nullptr ? &in[i] : nullptr);
  }
  auto kernel = prepare({.numerics = numerics, .constants = constants, .variant = {}, .profile = device.profile()});
  if (auto* reason = std::get_if<Reason>(&kernel)) return std::move(*reason);
  for (const TensorSpec& spec : results()) out.push_back(allocate(device, spec));
  std::vector<DeviceTensor*> to;
  for (DeviceTensor& tensor : out) to.push_back(&tensor);
  std::get<Kernel>(kernel)({.in = from, .out = to});
  return out;
}

std::vector<RtValue> BoundCall::reference(Reference& torch, std::span<const RtValue> tensors) const {
  if (record().reference == nullptr)
    throw ttc::Error(ttc::Exit::unsupported, "", std::string(record().name) + " has no CPU reference");
  std::vector<RtValue> args;
  for (const OpArg& arg : call.args) {
    if (const auto* one = std::get_if<TensorRef>(&arg)) {
      args.push_back(tensors[static_cast<std::size_t>(one->index)]);
    } else if (const auto* many = std::get_if<std::vector<TensorRef>>(&arg)) {
      RtValue::List list;
      for (const TensorRef ref : *many) list.push_back(tensors[static_cast<std::size_t>(ref.index)]);
      args.emplace_back(std::move(list));
    } else {
      args.push_back(literal_value(arg));
    }
  }
  return record().reference(torch, call, args);
}

}  // namespace ttrt
