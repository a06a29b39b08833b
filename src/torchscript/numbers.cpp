// Sizes, and arithmetic on numbers and on 0-d tensors made from numbers.
#include <set>

#include "support/error.h"
#include "torchscript/lowering.h"

namespace ttc::ts {
namespace {

using ir::Arg;
using ir::Type;
using ir::TypeKind;

Type number_type(const Arg& arg) {
  if (const ir::Value* value = arg.value()) return value->type;
  if (arg.get_if<double>()) return Type::of(TypeKind::floating);
  return arg.get_if<bool>() ? Type::of(TypeKind::boolean) : Type::integer();
}

bool is_literal_int(const Arg& arg, std::int64_t n) {
  const auto* value = arg.get_if<std::int64_t>();
  return value && *value == n;
}

// The Python operator that .pt2 files name for arithmetic on sizes.
const char* python_operator(const std::string& name) {
  static const std::map<std::string, const char*> names = {{"add", "_operator.add"},
                                                           {"sub", "_operator.sub"},
                                                           {"rsub", "_operator.sub"},
                                                           {"mul", "_operator.mul"},
                                                           {"floordiv", "_operator.floordiv"},
                                                           {"floor_divide", "_operator.floordiv"},
                                                           {"remainder", "_operator.mod"},
                                                           {"div", "_operator.truediv"},
                                                           {"pow", "_operator.pow"},
                                                           {"neg", "_operator.neg"},
                                                           {"eq", "_operator.eq"},
                                                           {"ne", "_operator.ne"},
                                                           {"lt", "_operator.lt"},
                                                           {"le", "_operator.le"},
                                                           {"gt", "_operator.gt"},
                                                           {"ge", "_operator.ge"},
                                                           {"__and__", "_operator.and_"},
                                                           {"__or__", "_operator.or_"},
                                                           {"__not__", "torch.sym_not"},
                                                           {"min", "torch.sym_min"},
                                                           {"max", "torch.sym_max"}};
  const auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}

void on_size(LoweringState& s, const JitNode& node) {
  const Abstract tensor = Abstract{.arg = to_arg(s, s.in(node, 0))};
  const ir::Value* weight = tensor.value() && ir::is_weight(tensor.value()) ? tensor.value() : nullptr;
  if (node.inputs().size() == 1) {
    if (!weight) return s.out(node, Abstract{.kind = Abstract::Kind::sizes, .arg = tensor.arg});
    std::vector<Abstract> sizes;
    for (const std::int64_t n : weight->type.static_sizes()) sizes.push_back(Abstract{.arg = n});
    return s.out(node, s.make_list(std::move(sizes), node.output()->type()));
  }
  const Abstract& dim = s.in(node, 1);
  if (weight && dim.is_literal() && dim.arg.integer())
    if (const auto n = weight->type.dim(static_cast<int>(std::clamp<std::int64_t>(*dim.arg.integer(), -1000, 1000))))
      return s.out(node, Abstract{.arg = *n});
  s.out(node, Abstract{.arg = s.emit1("aten.sym_size.int", {tensor.arg, to_arg(s, dim)}, Type::integer())});
}

// The number a 0-d tensor certainly holds: made from it, or a constant of the file.
std::optional<Arg> number_in(const LoweringState& s, const Abstract& abstract) {
  if (abstract.kind == Abstract::Kind::number_tensor) return abstract.arg;
  const ir::GraphInput* input = abstract.value() ? ir::weight_input(abstract.value()) : nullptr;
  if (!input || input->kind != ir::InputKind::constant) return std::nullopt;
  const ir::Weight* weight = s.model.weight_of(abstract.value());
  if (!weight || !weight->sizes.empty() || !weight->data()) return std::nullopt;
  switch (weight->dtype) {
    case DType::i64:
      return *reinterpret_cast<const std::int64_t*>(weight->data());
    case DType::i32:
      return std::int64_t{*reinterpret_cast<const std::int32_t*>(weight->data())};
    case DType::f64:
      return *reinterpret_cast<const double*>(weight->data());
    case DType::f32:
      return double{*reinterpret_cast<const float*>(weight->data())};
    case DType::boolean:
      return *reinterpret_cast<const bool*>(weight->data());
    default:
      return std::nullopt;
  }
}

void on_number(LoweringState& s, const JitNode& node) {
  if (node.inputs().size() != 1 || fold_literals(s, node)) {
    if (node.inputs().size() != 1) lower_operator(s, node);
    return;
  }
  const Type wanted = ir_type(node.output()->type());
  const Abstract& abstract = s.in(node, 0);
  const bool any_number = wanted.kind == TypeKind::floating &&
                          node.output()->type()->kind() == c10::TypeKind::NumberType;  // ScalarImplicit
  std::optional<Arg> number = number_in(s, abstract);
  if (!number && abstract.value() && is_number_type(node.input(0)->type())) number = abstract.arg;
  if (number && (any_number || number_type(*number).kind == wanted.kind)) return s.out(node, Abstract{.arg = *number});
  if (number && !number->has_values()) {
    if (wanted.kind == TypeKind::integer)
      return s.out(node, Abstract{.arg = static_cast<std::int64_t>(*number->number())});
    if (wanted.kind == TypeKind::floating) return s.out(node, Abstract{.arg = *number->number()});
    return s.out(node, Abstract{.arg = *number->number() != 0});
  }
  if (!number || abstract.kind != Abstract::Kind::number_tensor) return lower_operator(s, node);
  const Type from = number_type(*number);
  const std::string suffix = from.kind == TypeKind::integer    ? ".int"
                             : from.kind == TypeKind::floating ? ".float"
                                                               : ".Scalar";
  const char* name = wanted.kind == TypeKind::integer    ? "aten.Int"
                     : wanted.kind == TypeKind::floating ? "aten.Float"
                                                         : "aten.Bool";
  s.out(node,
        Abstract{.arg = s.emit1(name + (wanted.kind == TypeKind::integer && suffix == ".int" ? ".Scalar" : suffix),
                                {*number}, wanted)});
}

void on_num_to_tensor(LoweringState& s, const JitNode& node) {
  if (s.in(node, 0).kind != Abstract::Kind::arg) s.unsupported("prim::NumToTensor of something that is no number");
  s.out(node, Abstract{.kind = Abstract::Kind::number_tensor, .arg = s.in(node, 0).arg});
}

Arg emit_number(LoweringState& s, const char* op, std::vector<Arg> args) {
  const std::string name = op;
  if (args.size() == 2) {
    if ((name == "_operator.mul" || name == "_operator.floordiv") && is_literal_int(args[1], 1) &&
        number_type(args[0]).kind == TypeKind::integer)
      return args[0];
    if (name == "_operator.mul" && is_literal_int(args[0], 1) && number_type(args[1]).kind == TypeKind::integer)
      return args[1];
    if (name == "_operator.add" && is_literal_int(args[1], 0)) return args[0];
  }
  static const std::set<std::string> comparisons = {"_operator.eq",   "_operator.ne",  "_operator.lt",
                                                    "_operator.le",   "_operator.gt",  "_operator.ge",
                                                    "_operator.and_", "_operator.or_", "torch.sym_not"};
  Type type = Type::integer();
  for (const Arg& arg : args)
    if (number_type(arg).kind == TypeKind::floating) type = Type::of(TypeKind::floating);
  if (name == "_operator.truediv") type = Type::of(TypeKind::floating);
  if (name == "math.trunc") type = Type::integer();
  if (comparisons.contains(name)) type = Type::of(TypeKind::boolean);
  return s.emit1(name, std::move(args), std::move(type));
}

// Shape arithmetic of traced models runs on 0-d tensors: x.size(0) // 2 is floor_divide(NumToTensor(size), 2).
bool tensor_arithmetic(LoweringState& s, const JitNode& node, const std::string& name) {
  std::vector<Arg> numbers;
  bool from_number = false;
  const std::size_t operands = name == "neg" ? 1 : 2;
  if (node.inputs().size() < operands || node.output()->type()->kind() != c10::TypeKind::TensorType) return false;
  for (std::size_t i = 0; i < operands; ++i) {
    const Abstract& abstract = s.in(node, i);
    from_number = from_number || abstract.kind == Abstract::Kind::number_tensor;
    auto number = number_in(s, abstract);
    if (!number && abstract.is_literal() && abstract.arg.number()) number = abstract.arg;
    if (!number) return false;
    numbers.push_back(*number);
  }
  if (!from_number) return false;
  bool truncated = false;
  std::string op = name;
  if (name == "rsub") {
    op = "sub";
    std::swap(numbers[0], numbers[1]);
  }
  for (std::size_t i = operands; i < node.inputs().size(); ++i) {
    const Abstract& extra = s.in(node, i);
    const auto* mode = extra.arg.get_if<std::string>();
    if (name == "div" && mode && *mode == "floor")
      op = "floordiv";
    else if (name == "div" && mode && *mode == "trunc")
      truncated = true;
    else if (!extra.is_literal() || !is_literal_int(extra.arg, 1))
      return false;  // alpha
  }
  Arg number = emit_number(s, python_operator(op), std::move(numbers));
  if (truncated) number = emit_number(s, "math.trunc", {number});
  s.out(node, Abstract{.kind = Abstract::Kind::number_tensor, .arg = std::move(number)});
  return true;
}

// ceil, floor and clamp from below or above of such tensors. A rounded float stays one.
bool tensor_rounding(LoweringState& s, const JitNode& node, const std::string& name) {
  if (node.inputs().empty() || s.in(node, 0).kind != Abstract::Kind::number_tensor) return false;
  Arg number = s.in(node, 0).arg;
  const bool whole = number_type(number).kind == TypeKind::integer;
  if (name == "ceil" || name == "floor") {
    if (!whole) {
      const Arg rounded = s.emit1("math." + name, {number}, Type::integer());
      number = s.emit1("torch.sym_float", {rounded}, Type::of(TypeKind::floating));
    }
  } else {
    for (std::size_t i = 1; i < node.inputs().size(); ++i) {
      const Abstract& bound = s.in(node, i);
      if (bound.is_literal() && bound.arg.is_none()) continue;
      const auto limit = bound.is_literal() ? bound.arg.number() : std::nullopt;
      if (!limit || (whole && !bound.arg.integer())) return false;
      const Arg typed = whole ? bound.arg : Arg(*limit);
      number = emit_number(s, i == 1 ? "torch.sym_max" : "torch.sym_min", {number, typed});
    }
  }
  s.out(node, Abstract{.kind = Abstract::Kind::number_tensor, .arg = std::move(number)});
  return true;
}

void on_rounding(LoweringState& s, const JitNode& node) {
  const bool tensor = node.outputs().size() == 1 && node.output()->type()->kind() == c10::TypeKind::TensorType;
  const bool number = node.outputs().size() == 1 && node.output()->type()->kind() == c10::TypeKind::IntType;
  if (number && node.inputs().size() == 1 && !s.in(node, 0).is_literal())
    return s.out(node, Abstract{.arg = s.emit1(std::string("math.") + node.kind().toUnqualString(),
                                               {to_arg(s, s.in(node, 0))}, Type::integer())});
  if (!tensor || !tensor_rounding(s, node, node.kind().toUnqualString())) lower_operator(s, node);
}

void on_arithmetic(LoweringState& s, const JitNode& node) {
  const std::string name = node.kind().toUnqualString();
  if (is_list(s, node, 0)) return on_list_read(s, node);
  if (fold_literals(s, node)) return;
  bool numbers = python_operator(name) && node.outputs().size() == 1 && node.inputs().size() <= 2 &&
                 is_number_type(node.output()->type());
  for (const torch::jit::Value* input : node.inputs()) numbers = numbers && is_number_type(input->type());
  if (numbers) {
    std::vector<Arg> args;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) args.push_back(to_arg(s, s.in(node, i)));
    return s.out(node, Abstract{.arg = emit_number(s, python_operator(name), std::move(args))});
  }
  if (python_operator(name) && node.outputs().size() == 1 && tensor_arithmetic(s, node, name)) return;
  lower_operator(s, node);
}

}  // namespace

void add_number_handlers(Handlers& handlers) {
  handlers["aten::size"] = on_size;
  handlers["prim::NumToTensor"] = on_num_to_tensor;
  for (const char* name : {"Int", "IntImplicit", "Float", "FloatImplicit", "Bool", "ScalarImplicit"})
    handlers[std::string("aten::") + name] = on_number;
  for (const char* name : {"add", "sub", "rsub", "mul", "floordiv", "floor_divide", "remainder", "div", "pow", "neg",
                           "eq", "ne", "lt", "le", "gt", "ge", "__and__", "__or__", "__not__"})
    handlers[std::string("aten::") + name] = on_arithmetic;
  for (const char* kind : {"prim::min", "prim::max"}) handlers[kind] = on_arithmetic;
  for (const char* kind : {"aten::ceil", "aten::floor", "aten::clamp"}) handlers[kind] = on_rounding;
}

}  // namespace ttc::ts
