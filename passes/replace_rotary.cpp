// Rotary position embedding becomes tt.rotary_embedding: x cos + cat(-x2, x1) sin, x1 and x2 the halves of the last
// dim.
#include "replacement.h"

namespace ttc {
namespace {

using namespace match;

constexpr std::string_view pass = "replace", formula = "x cos + cat(-x2, x1) sin";

// What `value` is a piece of along the last dim, where it begins at `first`; nullptr for others.
ir::Value* piece_from(ir::Value* value, const ir::SymExpr& first, std::vector<ir::Node*>& nodes) {
  ir::Node* node = value == nullptr ? nullptr : value->def();
  if (node == nullptr || node->op() != "aten.slice.Tensor" || !value->type.has_shape) return nullptr;
  const int rank = value->type.rank(), dim = static_cast<int>(node->arg(1).integer().value_or(0));
  const bool whole_steps = node->args().size() < 5 || node->arg(4).integer() == 1;
  const std::int64_t start = node->arg(2).integer().value_or(0);
  if ((dim < 0 ? dim + rank : dim) != rank - 1 || !whole_steps || !(ir::SymExpr(start) == first)) return nullptr;
  nodes.push_back(node);
  return node->operand(0);
}

// x of cat(-x2, x1); nullptr for others.
ir::Value* turned(ir::Node* cat, std::vector<ir::Node*>& nodes) {
  const auto parts = cat->operands();
  const ir::Type& whole = cat->result()->type;
  if (parts.size() != 2 || whole.rank() != 4 || parts[0]->def() == nullptr) return nullptr;
  const auto dim = cat->args().size() > 1 ? cat->arg(1).integer() : std::nullopt;
  ir::Node* minus = parts[0]->def();
  if (!dim || (*dim != 3 && *dim != -1) || minus->op() != "aten.neg.default") return nullptr;
  const auto half = parts[1]->type.dim(3);
  if (!half || whole.dim(3) != 2 * *half) return nullptr;
  nodes.insert(nodes.end(), {cat, minus});
  ir::Value *high = piece_from(minus->operand(0), *half, nodes), *low = piece_from(parts[1], 0, nodes);
  return high != nullptr && high == low && same_shape(high->type, whole) ? high : nullptr;
}

bool is_angle(const ir::Value* value, const ir::Type& x) {
  const ir::Type& type = value->type;
  return type.has_shape && type.rank() == 4 && type.dim(0) == 1 && type.dim(1) == 1 && type.sizes[2] == x.sizes[2] &&
         type.sizes[3] == x.sizes[3];
}

void rewrite(PassContext& context, ir::Node* node) {
  static const Pattern rule =
      add(mul(any("a"), any("b")).sole(), mul(op({"aten.cat.default"}, {}).as("turned").sole(), any("sin")).sole());
  if (node->op() != "aten.add.Tensor") return;
  const Outcome found = match::match(context.model, rule, node, 3);
  if (!found.match) return;
  std::vector<ir::Node*> nodes = found.match->nodes;
  ir::Value* x = turned(found.match->node("turned"), nodes);
  if (x == nullptr) return;
  ir::Value *a = found.match->value("a"), *b = found.match->value("b"), *sin = found.match->value("sin");
  ir::Value* cos = a == x ? b : a;
  if (a != x && b != x) return;
  const ttrt::OpRecord& record = ttrt::op_for(ttrt::Role::rotary_embedding);
  if (!is_angle(cos, x->type) || !is_angle(sin, x->type)) {
    context.refuse(pass, *node,
                   {ReasonCode::PatternNearMiss, std::string(formula) + ": the angles are not [1, 1, S, D]"});
    return;
  }
  std::vector<ir::Arg> args{x, cos, sin};
  if (settle_call(context, *node, record, args)) return;
  replace_matched(context, pass, formula, node, nodes, std::string(record.name), std::move(args));
}

}  // namespace

void replace_rotary(PassContext& context) {
  for_each_node(*context.model.graph, [&](ir::Node* node) { rewrite(context, node); });
}

}  // namespace ttc
