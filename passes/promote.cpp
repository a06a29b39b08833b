// PyTorch promotes operands of several dtypes silently; a device operator takes one kind of value. Where integers or
// booleans meet floats, or booleans integers, the cast that PyTorch makes is written out, so that it has a place of its
// own. Comparisons of integers with floats stay as they are: the float would have to hold the integer exactly.
#include <algorithm>
#include <array>
#include <map>

#include "pass/pass.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "promote";

enum class Kind { boolean, integer, floating, other };

Kind kind_of(DType dtype) {
  if (dtype == DType::boolean) return Kind::boolean;
  if (dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16) return Kind::floating;
  return is_integral(dtype) ? Kind::integer : Kind::other;
}

bool is_tensor(const ir::Value* value) { return value && value->type.is_tensor() && value->type.has_dtype; }

// "add" of "aten.add.Tensor".
std::string_view base_name(std::string_view op) {
  if (!op.starts_with("aten.")) return "";
  op.remove_prefix(5);
  return op.substr(0, op.find('.'));
}

template <std::size_t n>
bool among(std::string_view name, const std::array<std::string_view, n>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Operators that compute in the dtype of their result.
bool computes_in_result(std::string_view name) {
  static constexpr std::array<std::string_view, 49> names{
      "add",     "sub",          "rsub",   "mul",    "div",        "maximum",     "minimum", "pow",       "fmod",
      "cat",     "floor_divide", "stack",  "where",  "remainder",  "lerp",        "clamp",   "clamp_min", "clamp_max",
      "sum",     "prod",         "cumsum", "sin",    "cos",        "tan",         "exp",     "log",       "log2",
      "log10",   "log1p",        "sqrt",   "rsqrt",  "reciprocal", "sigmoid",     "tanh",    "atan",      "erf",
      "addcmul", "addcdiv",      "atan2",  "exp2",   "expm1",      "masked_fill", "softmax", "square",    "asin",
      "acos",    "sinh",         "cosh",   "baddbmm"};
  return among(name, names);
}

bool takes_masks(std::string_view name) {
  static constexpr std::array<std::string_view, 6> names{"logical_and", "logical_or", "logical_xor",
                                                         "logical_not", "any",        "all"};
  return among(name, names);
}

bool compares(std::string_view name) {
  static constexpr std::array<std::string_view, 6> names{"eq", "ne", "lt", "le", "gt", "ge"};
  return among(name, names);
}

// The dtype that operand `value` of the node is computed in; nullopt: its own, or one that is no business of this pass.
std::optional<DType> wanted(const ir::Node& node, std::string_view name, std::size_t arg, const ir::Value* value) {
  const Kind from = kind_of(value->type.dtype);
  if (takes_masks(name)) return from == Kind::integer ? std::optional(DType::boolean) : std::nullopt;
  if (compares(name)) {
    Kind most = from;
    DType dtype = value->type.dtype;
    for (const ir::Value* operand : node.operands())
      if (is_tensor(operand) && kind_of(operand->type.dtype) > most) {
        most = kind_of(operand->type.dtype);
        dtype = operand->type.dtype;
      }
    return from == Kind::boolean && most != from && most != Kind::other ? std::optional(dtype) : std::nullopt;
  }
  if (!computes_in_result(name) || !is_tensor(node.result())) return std::nullopt;
  if ((name == "where" && arg == 0) || (name == "masked_fill" && arg == 1)) return std::nullopt;
  const DType to = node.result()->type.dtype;
  return from < kind_of(to) && kind_of(to) != Kind::other ? std::optional(to) : std::nullopt;
}

class Promoter {
 public:
  explicit Promoter(PassContext& context) : context_(context) {}

  bool run() {
    ir::walk(*context_.model.graph, [&](ir::Node* node) {
      const std::string_view name = base_name(node->op());
      if (name.empty() || node->results().empty()) return;
      for (std::size_t i = 0; i < node->args().size(); ++i) {
        bool changed = false;
        ir::Arg arg = cast(node, name, i, node->arg(i), changed);
        if (changed) node->set_arg(i, std::move(arg));
        changed_ = changed_ || changed;
      }
    });
    return changed_;
  }

 private:
  ir::Arg cast(ir::Node* node, std::string_view name, std::size_t i, const ir::Arg& arg, bool& changed) {
    if (const ir::Arg::List* items = arg.list()) {
      ir::Arg::List out;
      for (const ir::Arg& item : *items) out.push_back(cast(node, name, i, item, changed));
      return out;
    }
    ir::Value* value = arg.value();
    if (!is_tensor(value)) return arg;
    const auto dtype = wanted(*node, name, i, value);
    if (!dtype) return arg;
    ir::Value*& known = casts_[{node->graph(), value, *dtype}];
    if (!known) {
      if (!context_.allow_rewrite()) return arg;
      ir::Node* made = node->graph()->insert_before(node, "aten.to.dtype", {value, *dtype});
      made->provenance = node->provenance;
      ir::Type type = value->type;
      type.dtype = *dtype;
      type.strides.clear();
      known = made->add_result(std::move(type));
      context_.matched(pass, "promoted", {node_name(*node)}, *made);
    }
    changed = true;
    return known;
  }

  PassContext& context_;
  std::map<std::tuple<ir::Graph*, ir::Value*, DType>, ir::Value*> casts_;
  bool changed_ = false;
};

bool run(PassContext& context) { return Promoter(context).run(); }

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"promote", "Write out the casts that PyTorch makes between booleans, integers and floats",
                   ttc::run});
