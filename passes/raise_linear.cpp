// Brings matrix products with a constant weight back to aten.linear, whatever the export made of them: addmm and mm
// with a transposed weight, GPT-2's addmm with the weight as it is ([in, out]; it becomes a constant view with the
// strides swapped), matmul and bmm whose right side is one weight for the whole batch, the bias added afterwards, and
// the views that flatten and restore the leading dims around it. Products with a matrix for each expert stay what they
// are, and read a view of the weight where the model transposes it.
#include <algorithm>

#include "common.h"

namespace ttc::raise_linear_pass {
namespace {

constexpr std::string_view pass = "raise-linear", formula = "x w^T + b with a constant weight";

// A [K, N] right side of a product: the weight as [N, K] and the nodes between.
struct RightSide {
  ir::Value* weight = nullptr;
  bool transposed_view = false;       // the weight is stored as [K, N]
  bool stacked = false;               // the weight has leading dims of size 1
  std::vector<std::int64_t> strides;  // of [K, N] in the weight's memory, where views of any kind lie between
  std::vector<ir::Node*> nodes;
};

// The strides under which a tensor is seen in other sizes; nullopt where that takes a copy.
std::optional<std::vector<std::int64_t>> reshaped_strides(const std::vector<std::int64_t>& sizes,
                                                          const std::vector<std::int64_t>& strides,
                                                          const std::vector<std::int64_t>& to) {
  // Dims whose elements lie at equal distances are one run; the new dims are cut from the runs, innermost first.
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    if (!runs.empty() && runs.back().second == sizes[i] * strides[i])
      runs.back() = {runs.back().first * sizes[i], strides[i]};
    else
      runs.emplace_back(sizes[i], strides[i]);
  }
  std::vector<std::int64_t> out(to.size(), 1);
  for (std::size_t i = to.size(); i-- > 0;) {
    if (to[i] == 1) continue;
    if (runs.empty() || to[i] < 1 || runs.back().first % to[i] != 0) return std::nullopt;
    auto& [size, stride] = runs.back();
    out[i] = stride;
    size /= to[i];
    stride *= to[i];
    if (size == 1) runs.pop_back();
  }
  return runs.empty() ? std::optional(out) : std::nullopt;
}

// A weight behind reshapes and permutations that move no bytes, and its strides in the sizes of what they give.
std::optional<RightSide> strided_view(const ir::Model& model, ir::Value* value) {
  RightSide side;
  while (ir::Node* node = value->def()) {
    const bool moves = match::is_reshape(*node) || match::is_identity(*node) || match::permutation(*node);
    if (!moves || !value->type.is_static() || match::is_cast(*node)) return std::nullopt;
    side.nodes.push_back(node);
    value = node->operand(0);
  }
  const ir::Weight* weight = model.weight_of(value);
  if (!weight || side.nodes.empty()) return std::nullopt;
  std::vector<std::int64_t> sizes = weight->sizes, strides = weight->strides;
  for (auto it = side.nodes.rbegin(); it != side.nodes.rend(); ++it) {
    const std::vector<std::int64_t> to = (*it)->result()->type.static_sizes();
    if (const auto order = match::permutation(**it)) {
      const auto before = strides;
      for (std::size_t i = 0; i < strides.size(); ++i) strides[i] = before[static_cast<std::size_t>((*order)[i])];
    } else if (auto seen = reshaped_strides(sizes, strides, to)) {
      strides = std::move(*seen);
    } else {
      return std::nullopt;
    }
    sizes = to;
  }
  side.weight = value;
  side.strides = std::move(strides);
  return side;
}

// The dims before the last two are of size 1.
bool is_one_matrix(const ir::Type& type) {
  return type.rank() >= 2 && std::all_of(type.sizes.begin(), type.sizes.end() - 2,
                                         [](const ir::SymExpr& size) { return size == ir::SymExpr(1); });
}

// The same where it is a matrix [K, N].
std::optional<RightSide> strided_side(const ir::Model& model, ir::Value* value) {
  auto side = strided_view(model, value);
  if (!side || !is_one_matrix(value->type)) return std::nullopt;
  side->strides.erase(side->strides.begin(), side->strides.end() - 2);
  return side;
}

// A constant [N, K] that views the weight with these strides of [K, N].
ir::Value* strided_weight(Rewriter& r, const RightSide& side, const ir::Type& matrix) {
  const std::int64_t k = *matrix.dim(matrix.rank() - 2), n = *matrix.dim(matrix.rank() - 1);
  ir::Weight view = *r.model().weight_of(side.weight);
  view.sizes = {n, k};
  view.strides = {side.strides[1], side.strides[0]};
  return shared_constant(r,
                         ir::weight_input(side.weight)->target + ".matrix_" + std::to_string(n) + "x" +
                             std::to_string(k) + "_" + std::to_string(view.strides[0]) + "x" +
                             std::to_string(view.strides[1]),
                         view);
}

// A constant that views `weight` (rank 2) with its dims swapped: no bytes move.
ir::Value* transposed_weight(Rewriter& r, ir::Value* weight) {
  ir::Weight view = *r.model().weight_of(weight);
  std::swap(view.sizes.at(0), view.sizes.at(1));
  std::swap(view.strides.at(0), view.strides.at(1));
  return shared_constant(r, ir::weight_input(weight)->target + ".transposed", std::move(view));
}

bool broadcasts_leading_dims(const ir::Node& node, const ir::Type& type) {
  const bool expands = node.op() == "aten.expand.default" || match::is_reshape(node) || match::is_identity(node);
  if (!expands || !node.operand(0)->type.has_shape || node.operand(0)->type.rank() < 2) return false;
  const auto& from = node.operand(0)->type.sizes;
  return from[from.size() - 2] == type.sizes[type.sizes.size() - 2] && from.back() == type.sizes.back();
}

// nullopt: not one constant matrix.
std::optional<RightSide> right_side(ir::Value* value) {
  RightSide side;
  if (!value || !value->type.has_shape || value->type.rank() < 2) return std::nullopt;
  while (value->def() && broadcasts_leading_dims(*value->def(), value->type)) {
    side.nodes.push_back(value->def());
    value = value->def()->operand(0);
  }
  side.transposed_view = true;
  side.stacked = value->type.rank() > 2 && ir::is_weight(value) && is_one_matrix(value->type);
  if (value->type.rank() != 2 && !side.stacked) return std::nullopt;
  while (value->def() && (match::is_identity(*value->def()) || match::swaps_last_dims(*value->def()))) {
    if (match::swaps_last_dims(*value->def())) side.transposed_view = !side.transposed_view;
    side.nodes.push_back(value->def());
    value = value->def()->operand(0);
  }
  side.weight = value;
  return side;
}

// A constant [K, N] that views a weight [1, .., K, N].
ir::Value* matrix_of(Rewriter& r, ir::Value* weight) {
  ir::Weight view = *r.model().weight_of(weight);
  view.sizes.erase(view.sizes.begin(), view.sizes.end() - 2);
  view.strides.erase(view.strides.begin(), view.strides.end() - 2);
  return shared_constant(r, ir::weight_input(weight)->target + ".matrix", std::move(view));
}

bool is_one(const ir::Arg* arg) { return !arg || arg->number() == 1.0 || arg->integer() == 1; }

struct Product {
  ir::Value* x;
  ir::Value* weight;
  ir::Value* bias;  // nullptr: none
};

std::optional<Product> product_of(const ir::Node& node) {
  const std::string& op = node.op();
  if (op == "aten.addmm.default") return Product{node.operand(1), node.operand(2), node.operand(0)};
  if (op == "aten.mm.default" || op == "aten.bmm.default" || op == "aten.matmul.default")
    return Product{node.operand(0), node.operand(1), nullptr};
  return std::nullopt;
}

std::string factor(const ir::Arg* arg) { return arg ? match::describe(*arg) : "1"; }

// Why an addmm's scale or bias does not fit aten.linear.
std::optional<match::NearMiss> unfit(const ir::Node& node, const Product& product) {
  if (!is_one(node.arg("alpha")) || !is_one(node.arg("beta")))
    return match::NearMiss{.matched = 1,
                           .node = &node,
                           .expected = "alpha and beta of 1",
                           .found = factor(node.arg("alpha")) + " and " + factor(node.arg("beta"))};
  if (product.bias && (!product.bias->type.has_shape || product.bias->type.rank() != 1))
    return match::NearMiss{.matched = 1,
                           .node = &node,
                           .code = ReasonCode::RankUnsupported,
                           .expected = "a bias vector",
                           .found = product.bias->type.str()};
  return std::nullopt;
}

bool raise_product(PassContext& context, ir::Node* node) {
  const auto product = product_of(*node);
  if (!product || !product->x || !product->weight) return false;
  auto side = right_side(product->weight);
  if (!side || !ir::is_weight(side->weight))
    if (auto strided = strided_side(context.model, product->weight)) side = std::move(strided);
  if (!side || (product->x->type.has_shape && product->x->type.rank() < 2)) return false;
  const auto refuse = [&](const match::NearMiss& miss) {
    refuse_near_miss(context, pass, formula, *node, miss);
    return false;
  };
  if (product->x->type.has_shape && product->x->type.rank() != node->result()->type.rank()) return false;
  if (!ir::is_weight(side->weight))
    return refuse({.matched = side->nodes.size() + 1,
                   .node = node,
                   .code = ReasonCode::NonConstantWeight,
                   .expected = "a constant weight on the right",
                   .found = match::describe(side->weight)});
  if (const auto miss = unfit(*node, *product)) return refuse(*miss);
  Rewriter r(context, pass, node);
  if (side->stacked) side->weight = matrix_of(r, side->weight);
  ir::Value* weight = !side->strides.empty()  ? strided_weight(r, *side, product->weight->type)
                      : side->transposed_view ? transposed_weight(r, side->weight)
                                              : side->weight;
  std::vector<ir::Node*> nodes = side->nodes;
  ir::Value* x = product->x;
  while (x->def() && match::is_identity(*x->def())) {
    nodes.push_back(x->def());
    x = x->def()->operand(0);
  }
  return replace_matched(r, node->op() + " with a constant weight", nodes, "aten.linear.default",
                         {x, weight, product->bias ? ir::Arg(product->bias) : ir::Arg()}) != nullptr;
}

// A product with a stack of matrices that the model transposes at each call: it reads the constant as it lies.
bool read_stack_as_it_lies(PassContext& context, ir::Node* node) {
  const std::string& op = node->op();
  if (op != "aten.bmm.default" && op != "aten.matmul.default" && op != "aten._grouped_mm.default") return false;
  ir::Value* stack = node->operand(1);
  if (!stack || !stack->type.is_static() || stack->type.rank() < 3) return false;
  auto side = strided_view(context.model, stack);
  if (!side) return false;
  Rewriter r(context, pass, node);
  ir::Weight view = *context.model.weight_of(side->weight);
  view.sizes = stack->type.static_sizes();
  view.strides = side->strides;
  std::string name = ir::weight_input(side->weight)->target + ".stack";
  for (const std::int64_t stride : view.strides) name += "_" + std::to_string(stride);
  std::vector<ir::Arg> args = node->args();
  args[1] = shared_constant(r, name, std::move(view));
  return replace_matched(r, op + " with a stack of constant matrices", side->nodes, op, std::move(args)) != nullptr;
}

bool is_linear(const ir::Value* value) { return value && value->def() && value->def()->op() == "aten.linear.default"; }

bool add_bias(PassContext& context, ir::Node* node) {
  using namespace match;
  static const Pattern rule =
      add(through(op({"aten.linear.default"}, {any("x"), weight("w")})
                      .where("a linear without bias", [](const State&, ir::Node& n) { return n.arg(2).is_none(); })
                      .sole()
                      .as("linear")),
          weight("b"));
  if (!node->op().starts_with("aten.add.")) return false;
  const auto found = match::match(context.model, rule, node, 2);
  if (!found.match) return false;
  ir::Value* bias = found.match->value("b");
  const ir::Type &bias_type = bias->type, &linear = found.match->value("linear")->type;
  if (bias_type.rank() != 1 || !linear.has_shape || !(bias_type.sizes[0] == linear.sizes.back())) {
    refuse_near_miss(context, pass, "linear(x, w) + b", *node,
                     {.matched = found.match->nodes.size(),
                      .node = node,
                      .code = ReasonCode::RankUnsupported,
                      .expected = "a bias vector over the last dim",
                      .found = bias_type.str()});
    return false;
  }
  return replace_matched(context, pass, "linear + bias", node, found.match->nodes, "aten.linear.default",
                         {found.match->value("x"), found.match->value("w"), bias}) != nullptr;
}

// view(linear(view(x))) where the views only flatten and restore the leading dims.
bool drop_views(PassContext& context, ir::Node* node) {
  if (!match::is_reshape(*node) || !is_linear(node->operand(0)) || node->operand(0)->use_count() != 1) return false;
  ir::Node* linear = node->operand(0)->def();
  std::vector<ir::Node*> nodes{linear};
  const auto& sizes = node->result()->type.sizes;
  if (!node->result()->type.has_shape || sizes.empty() || !(sizes.back() == linear->result()->type.sizes.back()))
    return false;
  ir::Value* x = linear->operand(0);
  if (match::is_identity(*node))
    return replace_matched(context, pass, "view behind linear", node, nodes, "aten.linear.default",
                           {x, linear->arg(1), linear->arg(2)}) != nullptr;
  while (x->def() && (match::is_reshape(*x->def()) || match::is_identity(*x->def()))) {
    nodes.push_back(x->def());
    x = x->def()->operand(0);
    const auto& from = x->type.sizes;
    const bool fits = x->type.has_shape && from.size() == sizes.size() &&
                      from.back() == linear->operand(0)->type.sizes.back() &&
                      std::equal(from.begin(), from.end() - 1, sizes.begin());
    if (!fits) continue;
    return replace_matched(context, pass, "views around linear", node, nodes, "aten.linear.default",
                           {x, linear->arg(1), linear->arg(2)}) != nullptr;
  }
  return false;
}

// view(linear(view(x))) where the view before merges the last two dims too (heads): they are merged by a view of their
// own.
bool split_view(PassContext& context, ir::Node* node) {
  if (!match::is_reshape(*node) || node->op() != "aten.reshape.default" || !is_linear(node->operand(0)) ||
      node->operand(0)->use_count() != 1)
    return false;
  ir::Node* linear = node->operand(0)->def();
  ir::Node* view = linear->operand(0)->def();
  const ir::Type& out = node->result()->type;
  if (!view || view->op() != "aten.reshape.default" || !out.has_shape || out.rank() != 3 ||
      linear->operand(0)->type.rank() != 2)
    return false;
  ir::Value* x = view->operand(0);
  const ir::Type& split = x->type;
  const ir::Arg::List* sizes = node->arg(1).list();
  if (!split.has_shape || split.rank() != 4 || !sizes || sizes->size() != 3) return false;
  const ir::SymExpr width = linear->operand(0)->type.sizes.back();
  if (!(split.sizes[0] == out.sizes[0] && split.sizes[1] == out.sizes[1] && width.is_number() &&
        split.sizes[2] * split.sizes[3] == width))
    return false;
  if (!(out.sizes.back() == linear->result()->type.sizes.back())) return false;
  Rewriter r(context, pass, node);
  ir::Arg::List merged{(*sizes)[0], (*sizes)[1], width.number()};
  ir::Value* wide = emit(r, "aten.reshape.default", {x, merged},
                         ir::Type::tensor(split.dtype, {split.sizes[0], split.sizes[1], width}));
  wide->def()->provenance = view->provenance;
  if (view->result()->use_count() == 1) wide->def()->origins = view->origins;
  return replace_matched(r, "views around linear", {linear, view}, "aten.linear.default",
                         {wide, linear->arg(1), linear->arg(2)}) != nullptr;
}

// The permutation moves dims of size 1 only: a view.
bool moves_ones(const ir::Node& node) {
  const auto order = match::permutation(node);
  if (!order || !node.operand(0)->type.has_shape) return false;
  int last = -1;
  for (const int dim : *order) {
    if (node.operand(0)->type.dim(dim) == 1) continue;
    if (dim < last) return false;
    last = dim;
  }
  return true;
}

// view(permute(view(linear))) where the permutation is a view too: view(linear). einsum leaves such chains.
bool drop_moves(PassContext& context, ir::Node* node) {
  if (node->op() != "aten.reshape.default") return false;
  ir::Node* move = node->operand(0)->def();
  if (!move || !moves_ones(*move) || move->result()->use_count() != 1) return false;
  std::vector<ir::Node*> nodes{move};
  ir::Value* x = move->operand(0);
  for (; x->def() && match::is_reshape(*x->def()) && x->use_count() == 1; x = x->def()->operand(0))
    nodes.push_back(x->def());
  if (!is_linear(x)) return false;
  return replace_matched(context, pass, "views behind linear", node, nodes, "aten.reshape.default",
                         {x, node->arg(1)}) != nullptr;
}

// linear(view(x)) whose readers are views again: linear(x), with its leading dims.
bool keep_leading_dims(PassContext& context, ir::Node* node) {
  if (node->op() != "aten.linear.default" || !node->operand(0)->def() || !match::is_reshape(*node->operand(0)->def()))
    return false;
  ir::Node* view = node->operand(0)->def();
  ir::Value* x = view->operand(0);
  const ir::Type &flat = node->operand(0)->type, &out = node->result()->type;
  if (!x->type.has_shape || !flat.has_shape || flat.rank() != 2 || x->type.rank() < 3 || !out.has_shape) return false;
  if (!(x->type.sizes.back() == flat.sizes.back()) || node->result()->output_uses() > 0 ||
      node->result()->users().empty())
    return false;
  for (const ir::Node* user : node->result()->users())
    if (!match::is_reshape(*user)) return false;
  ir::Type type = x->type;
  type.sizes.back() = out.sizes.back();
  type.strides.clear();
  ir::Node* made = replace_matched(context, pass, "view before linear", node, {view}, "aten.linear.default",
                                   {x, node->arg(1), node->arg(2)});
  if (made) made->result()->type = std::move(type);
  return made != nullptr;
}

void rewrite(PassContext& context, ir::Node* node) {
  for (const auto rule :
       {raise_product, read_stack_as_it_lies, add_bias, drop_moves, drop_views, keep_leading_dims, split_view})
    if (rule(context, node)) return;
}

void run(PassContext& context) { rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc::raise_linear_pass

TTC_REGISTER_PASS({"raise-linear", "Bring addmm, mm, bmm and matmul with a constant weight back to linear",
                   ttc::raise_linear_pass::run});
