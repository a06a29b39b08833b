// PyTorch promotes operands of several dtypes silently; a device operator takes one kind of value. Where integers or
// booleans meet floats, booleans integers, or float64 other floats, the cast that PyTorch makes is written out, so that
// it has a place of its own. Comparisons of integers with floats stay as they are: the float would have to hold the
// integer exactly. Arithmetic of narrow integers, which wraps, becomes that of int64, whose result is cast back.
#include <algorithm>
#include <array>
#include <map>

#include "common.h"
#include "effects.h"
#include "ops/op.h"
#include "replacement.h"
#include "written_memory.h"

namespace ttc::promote_pass {
namespace {

constexpr std::string_view pass = "promote";

// In the order of promotion.
enum class Kind { boolean, integer, floating, wide, other };

Kind kind_of(DType dtype) {
  if (dtype == DType::boolean) return Kind::boolean;
  if (dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16) return Kind::floating;
  if (dtype == DType::f64) return Kind::wide;
  return is_integral(dtype) ? Kind::integer : Kind::other;
}

bool is_tensor(const ir::Value* value) { return value && value->type.is_tensor() && value->type.has_dtype; }

template <std::size_t n>
bool among(std::string_view name, const std::array<std::string_view, n>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Casts by themselves, and what takes the sizes of its operand only.
bool has_its_own_dtype(std::string_view name) {
  static constexpr std::array<std::string_view, 8> names{"to",         "_to_copy",  "type_as",    "full_like",
                                                         "zeros_like", "ones_like", "empty_like", "view"};
  return among(name, names);
}

// Operands that say which elements are meant.
bool chooses(std::string_view argument) {
  static constexpr std::array<std::string_view, 8> names{"index", "indices", "condition", "target",
                                                         "offs",  "offsets", "repeats",   "sorter"};
  return argument.ends_with("mask") || among(argument, names);
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
  // any and all of uint8 are uint8.
  if (takes_masks(name) && is_tensor(node.result()) && node.result()->type.dtype == DType::boolean)
    return from == Kind::integer ? std::optional(DType::boolean) : std::nullopt;
  if (compares(name)) {
    Kind most = from;
    DType dtype = value->type.dtype;
    for (const ir::Value* operand : node.operands())
      if (is_tensor(operand) && kind_of(operand->type.dtype) > most) {
        most = kind_of(operand->type.dtype);
        dtype = operand->type.dtype;
      }
    return from != Kind::integer && most != from && most != Kind::other ? std::optional(dtype) : std::nullopt;
  }
  if (has_its_own_dtype(name) || !is_tensor(node.result())) return std::nullopt;
  const ir::OpSchema* schema = node.schema();
  if (schema != nullptr && arg < schema->args.size() && chooses(schema->args[arg].name)) return std::nullopt;
  const DType to = node.result()->type.dtype;
  if (kind_of(to) == Kind::other || from == Kind::other) return std::nullopt;
  const bool floats = kind_of(to) >= Kind::floating;
  return from < kind_of(to) || (floats && from != kind_of(to)) ? std::optional(to) : std::nullopt;
}

bool is_narrow(DType dtype) { return is_integral(dtype) && dtype != DType::i64; }

class Promoter {
 public:
  explicit Promoter(PassContext& context) : context_(context), written_(*context.model.graph) {}

  void run() {
    for_each_node(*context_.model.graph, [&](ir::Node* node) {
      const std::string_view name = base_name(node->op());
      if (!node->op().starts_with("aten.") || node->results().empty() || ttrt::lowerings_of(node->op()).empty()) return;
      for (std::size_t i = 0; i < node->args().size(); ++i) {
        bool changed = false;
        ir::Arg arg = cast(node, name, i, node->arg(i), changed);
        if (changed) node->set_arg(i, std::move(arg));
      }
      if (wraps(*node)) widen(node);
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

  bool served(const ir::Node& node) const {
    return std::holds_alternative<Replacement>(find_replacement(context_, written_, node));
  }

  // One result of narrow integers that no device operator computes as they are.
  bool wraps(const ir::Node& node) const {
    if (node.results().size() != 1 || !is_tensor(node.result()) || !is_narrow(node.result()->type.dtype)) return false;
    if (has_its_own_dtype(base_name(node.op()))) return false;
    const auto found = find_replacement(context_, written_, node);
    const Reason* reason = std::get_if<Reason>(&found);
    return reason && reason->code == ReasonCode::DtypeUnsupported;
  }

  void widen(ir::Node* node) {
    Rewriter r(context_, pass, node);
    const auto wide = [&](const ir::Arg& arg) {
      ir::Value* value = arg.value();
      return is_tensor(value) && is_narrow(value->type.dtype) ? ir::Arg(r.cast(value, DType::i64)) : arg;
    };
    std::vector<ir::Arg> args;
    for (const ir::Arg& arg : node->args()) {
      if (const ir::Arg::List* items = arg.list()) {
        ir::Arg::List list;
        for (const ir::Arg& item : *items) list.push_back(wide(item));
        args.emplace_back(std::move(list));
      } else {
        args.push_back(arg.get_if<DType>() ? ir::Arg(DType::i64) : wide(arg));
      }
    }
    ir::Type type = node->result()->type;
    type.dtype = DType::i64;
    ir::Value* made = r.emit(node->op(), std::move(args), std::move(type));
    if (!served(*made->def())) return;
    r.commit({r.emit_like("aten.to.dtype", {made, node->result()->type.dtype}, node->result())});
  }

  PassContext& context_;
  const WrittenMemory written_;
  std::map<std::tuple<ir::Graph*, ir::Value*, DType>, ir::Value*> casts_;
};

void run(PassContext& context) { Promoter(context).run(); }

}  // namespace
}  // namespace ttc::promote_pass

TTC_REGISTER_PASS({"promote", "Write out the casts that PyTorch makes between booleans, integers and floats",
                   ttc::promote_pass::run});
