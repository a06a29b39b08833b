// The records of element-wise functions of one tensor: what every UnaryOp shares.
#include "ops/library.h"
#include "ops/unary.h"

#include <algorithm>
#include <list>
#include <map>

#include "ops/integers.h"
#include "ops/rules.h"

namespace ttrt::ops {
namespace {

// Leaked: ops register while other libraries' variables are made.
std::map<std::string_view, const UnaryOp*>& unary_registry() {
  static auto* ops = new std::map<std::string_view, const UnaryOp*>;
  return *ops;
}

const UnaryOp& unary_op(const OpCall& call) { return *unary_registry().at(call.op->name); }

Params params_of(const UnaryOp& op, const OpCall& call) {
  if (op.params != nullptr) return op.params(call);
  Params params{};
  std::size_t n = 0;
  for (const OpArg& arg : call.args) {
    if (const auto* d = std::get_if<double>(&arg)) params.at(n++) = static_cast<float>(*d);
    if (const auto* i = std::get_if<std::int64_t>(&arg)) params.at(n++) = static_cast<float>(*i);
  }
  return params;
}

// ---- kernels

Kernel prepare_exact(const OpCall& call, Arch arch) {
  const UnaryOp& op = unary_op(call);
  ExactFunction exact = op.exact == nullptr ? nullptr : op.exact(call, params_of(op, call));
  if (arch == Arch::blackhole && op.exact_blackhole) exact = vector_unit(*op.exact_blackhole, params_of(op, call));
  if (!exact) return {};
  const TileGroups groups{TileGrid(call.tensors.at(0))};
  const DataType dtype = groups.grid().dtype;
  const Dest dest = dtype == DataType::float32 ? Dest::bits32 : Dest::bits16;
  alignas(64) float zeros[tile_elements] = {};
  exact(dest, zeros);  // tables are made now, not in the first run
  const auto run = [=](const KernelArgs& args, std::int64_t first, std::int64_t last) {
    const std::byte* in = args.in[0]->data();
    std::byte* out = args.out[0]->data();
    for (std::int64_t group = first; group < last; ++group) {
      alignas(64) float v[tile_elements];
      groups.load(in, group, v);
      exact(dest, v);
      groups.scatter(v, group, [&](std::int64_t t, const float* tile) {
        pack_dest(dtype, dest, tile, out + t * groups.grid().bytes);
      });
    }
  };
  return groups.kernel(run, 8);
}

Kernel prepare_unary(const OpCall& call, const PrepareContext& context) {
  const UnaryOp& op = unary_op(call);
  if (all_int32(call)) return integer_unary(call, op.integers(call));
  if (context.numerics == Numerics::exact && !op.special) return prepare_exact(call, context.profile.arch);
  const TileFunction function = op.choose != nullptr ? op.choose(call) : op.function;
  const Params params = params_of(op, call);
  const TileGroups groups{TileGrid(call.tensors.at(0))};
  const auto run = [=](const KernelArgs& args, std::int64_t first, std::int64_t last) {
    const std::byte* in = args.in[0]->data();
    std::byte* out = args.out[0]->data();
    for (std::int64_t group = first; group < last; ++group) {
      alignas(64) float v[tile_elements];
      groups.load(in, group, v);
      function(v, params.data());
      groups.store(Rounding::even, v, group, out, args.out[0]->padding_is_zero);
    }
  };
  return groups.kernel(run);
}

ttc::Refusal supports_unary(const OpCall& call) {
  if (auto no = float_or_int_tiles(call)) return no;
  const UnaryOp& op = unary_op(call);
  if (op.special && call.tensors.at(0).dtype != DataType::float32)
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "the kernel takes float32"};
  if (!all_int32(call) || op.integers != nullptr) return std::nullopt;
  return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, "the kernel takes floats"};
}

std::vector<RtValue> reference_unary(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  std::vector<RtValue> in = as_floats(args);
  if (all_int32(call)) in[0] = as_wide(in[0]);
  if (all_int32(call) || unary_op(call).whole_numbers) {
    for (RtValue& value : in)
      if (const auto* number = value.get_if<double>()) value = static_cast<std::int64_t>(*number);
  }
  auto out = aten.call(unary_op(call).spellings.front().aten, std::move(in));
  for (RtValue& value : out)  // a mask is floats here
    if (const auto* host = value.get_if<HostTensor>(); host != nullptr && host->dtype == DType::boolean)
      value = convert(*host, DType::f32);
  return out;
}

Work work_unary(const OpCall& call) { return vector_work(call, unary_op(call).instructions); }

// ---- cases

std::string_view kept_text(std::string text) {
  static auto* texts = new std::list<std::string>;
  return texts->emplace_back(std::move(text));
}

// Infinities and NaN by way of float32, whatever the activation format.
OpCase special_case(const UnaryOp& op, const Spelling& spelling) {
  const std::string aten(spelling.aten), args(spelling.case_args), type(op.params == nullptr ? "bool" : "f32");
  return {kept_text(aten + args),
          kept_text("graph main($x: f32[4] parameter \"x\" = [1.5, inf, -inf, nan]) {\n  %y: " + type +
                    "[4] = " + aten + "($x" + args + ")\n  return %y\n}\n"),
          op.range};
}

OpCase integer_case(const UnaryOp& op) {
  return {
      "integers",
      kept_text("graph main(%x: i64[3, 40] user) {\n  %a: i64[3, 40] = aten.sub.Tensor(%x, 25)\n  %y: i64[3, 40] = " +
                std::string(op.spellings.front().aten) + "(%a" + std::string(op.integer_case_args) +
                ")\n  return %y\n}\n")};
}

// Every spelling over ragged and whole shapes.
std::vector<OpCase> cases_of(const UnaryOp& op) {
  std::vector<OpCase> cases;
  for (const Spelling& spelling : op.spellings) {
    if (op.special) {
      cases.push_back(special_case(op, spelling));
      continue;
    }
    const std::string aten(spelling.aten), args(spelling.case_args);
    for (const std::string shape : {"[3, 40]", "[1, 7, 33]", "[2, 5, 64]"})
      cases.push_back({kept_text(aten + args + " " + shape),
                       kept_text("graph main(%x: f32" + shape + " user) {\n  %y: f32" + shape + " = " + aten + "(%x" +
                                 args + ")\n  return %y\n}\n"),
                       op.range});
  }
  if (op.integers != nullptr) cases.push_back(integer_case(op));
  return cases;
}

}  // namespace

LowerResult lower_unary(const LowerContext& context) {
  const bool integers = is_integer(context.node.result());
  if (auto no = integers ? check_alike(context) : check_floats(context)) return *no;
  if (const DType dtype = context.node.result()->type.dtype; integers && dtype != DType::i64 && dtype != DType::i32)
    return ttc::Reason{ttc::ReasonCode::DtypeUnsupported,
                       "arithmetic of " + std::string(ttc::torch_name(dtype)) + ", which wraps"};
  Lowered out;
  for (const ttc::ir::Arg& arg : context.node.args()) {
    if (arg.value() != nullptr && !arg.value()->type.is_tensor())
      return unsupported("a number is computed at run time");
    const bool number = arg.value() == nullptr && arg.get_if<std::string>() == nullptr && arg.number();
    out.args.push_back(number ? ttc::ir::Arg(*arg.number()) : arg);
  }
  return out;
}

void register_unary(const UnaryOp& op) {
  static auto* records = new std::list<OpRecord>;
  unary_registry().emplace(op.name, &op);
  OpRecord& record = records->emplace_back();
  record.name = op.name;
  record.summary = op.summary;
  record.schema = op.schema;
  for (const Spelling& spelling : op.spellings) {
    const auto same = [&](const Lowering& l) { return l.aten == spelling.aten; };
    if (std::none_of(record.lowers.begin(), record.lowers.end(), same))
      record.lowers.push_back({spelling.aten, spelling.lower});
  }
  record.infer = same_as_x;
  record.operands = {{"x", op.special ? OperandKind::exact : OperandKind::any}};
  record.supports = supports_unary;
  record.prepare = prepare_unary;
  record.reference = reference_unary;
  record.work = work_unary;
  record.tolerance = op.tolerance;
  record.cases = cases_of(op);
  record.no_exact_kernel = op.no_exact_kernel;
  record.angle = op.angle;
  record.words = op.words;
  record.special_values = op.special_values;
  record.emit = op.emit != nullptr ? op.emit : op.exact != nullptr ? emit_plain : nullptr;
  register_op(record);
  register_library_op({.record = record.name, .program = "Unary"});
}

void register_unary(std::span<const UnaryOp> ops) {
  for (const UnaryOp& op : ops) register_unary(op);
}

const UnaryOp* find_unary(std::string_view op) {
  const auto found = unary_registry().find(op);
  return found == unary_registry().end() ? nullptr : found->second;
}

FoundActivation find_activation(std::string_view name) {
  for (const auto& [op_name, op] : unary_registry())
    for (const Activation& activation : op->activations)
      if (activation.name == name) return {op, &activation};
  return {};
}

namespace {

// A literal of the node, or what it is by default; "" for everything but texts.
std::string_view word_of(const ttc::ir::Node& node, std::string_view literal) {
  const ttc::ir::Arg* arg = node.arg(literal);
  const int i = node.schema() == nullptr ? -1 : node.schema()->index_of(literal);
  if (arg == nullptr && i >= 0) {
    const auto& absent = node.schema()->args[static_cast<std::size_t>(i)].default_value;
    arg = absent ? &*absent : nullptr;
  }
  const std::string* word = arg == nullptr ? nullptr : arg->get_if<std::string>();
  return word == nullptr ? std::string_view() : *word;
}

}  // namespace

FoundActivation activation_behind(const ttc::ir::Node& aten) {
  for (const auto& [op_name, op] : unary_registry()) {
    if (op->activations.empty() || op->spellings.front().aten != aten.op()) continue;
    for (const Activation& activation : op->activations) {
      if (activation.literal.empty() || word_of(aten, activation.literal) == activation.value) return {op, &activation};
    }
  }
  return {};
}

}  // namespace ttrt::ops
