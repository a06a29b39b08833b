// PyTorch promotes operands of several dtypes silently; a device operator takes one kind of value. Where integers or
// booleans meet floats, or booleans integers, the cast that PyTorch makes is written out, so that it has a place of its
// own. Comparisons of integers with floats stay as they are: the float would have to hold the integer exactly.
#include <algorithm>
#include <array>
#include <map>

#include "effects.h"
#include "pass/rewriter.h"

namespace ttc::promote_pass {
namespace {

constexpr std::string_view pass = "promote";

enum class Kind { boolean, integer, floating, other };

Kind kind_of(DType dtype) {
  if (dtype == DType::boolean) return Kind::boolean;
  if (dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16) return Kind::floating;
  return is_integral(dtype) ? Kind::integer : Kind::other;
}

bool is_tensor(const ir::Value* value) { return value && value->type.is_tensor() && value->type.has_dtype; }

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

  void run() {
    ir::walk(*context_.model.graph, [&](ir::Node* node) {
      const std::string_view name = base_name(node->op());
      if (!node->op().starts_with("aten.") || node->results().empty()) return;
      for (std::size_t i = 0; i < node->args().size(); ++i) {
        bool changed = false;
        ir::Arg arg = cast(node, name, i, node->arg(i), changed);
        if (changed) node->set_arg(i, std::move(arg));
      }
    });
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
      Rewriter r(context_, pass, node);
      ir::Type type = value->type;
      type.dtype = *dtype;
      type.strides.clear();
      ir::Value* made = r.insert("aten.to.dtype", {value, *dtype})->add_result(std::move(type));
      if (!r.commit_edit("promoted", [] {}, made->name)) return arg;
      known = made;
    }
    changed = true;
    return known;
  }

  PassContext& context_;
  std::map<std::tuple<ir::Graph*, ir::Value*, DType>, ir::Value*> casts_;
};

void run(PassContext& context) { Promoter(context).run(); }

}  // namespace
}  // namespace ttc::promote_pass

TTC_REGISTER_PASS({"promote", "Write out the casts that PyTorch makes between booleans, integers and floats",
                   ttc::promote_pass::run});
