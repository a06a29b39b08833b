// Composite spellings of moves and of losses, as traces have them: stacks, splits, shuffles of channels, dims that
// move, flips, and the mean and the sum of differences.
#include <algorithm>
#include <numeric>

#include "decompose.h"
#include "decompose_math.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "decompose-layout";

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;
using Values = std::vector<Value*>;  // results; empty: not decomposed

Value* permuted(Math& m, Value* x, const std::vector<std::int64_t>& order) {
  Type type = x->type;
  for (std::size_t i = 0; i < order.size(); ++i) type.sizes[i] = x->type.sizes.at(static_cast<std::size_t>(order[i]));
  return m.emit("aten.permute.default", {x, Arg::ints(order)}, std::move(type));
}

Values movedim(Math& m, Node* node) {
  Value* x = node->operand(0);
  const int rank = x->type.rank();
  const auto list = [&](const Arg& arg) {
    auto out = arg.integer() ? std::vector<std::int64_t>{*arg.integer()}
                             : arg.integers().value_or(std::vector<std::int64_t>{});
    for (std::int64_t& dim : out) dim += dim < 0 ? rank : 0;
    return out;
  };
  const auto from = list(node->arg(1)), to = list(node->arg(2));
  if (from.empty() || from.size() != to.size()) return {};
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank), -1), rest;
  for (std::int64_t dim = 0; dim < rank; ++dim)
    if (std::find(from.begin(), from.end(), dim) == from.end()) rest.push_back(dim);
  for (std::size_t i = 0; i < from.size(); ++i) order.at(static_cast<std::size_t>(to[i])) = from[i];
  auto next = rest.begin();
  for (std::int64_t& dim : order)
    if (dim < 0) {
      if (next == rest.end()) return {};  // a dim that is named twice
      dim = *next++;
    }
  return {permuted(m, x, order)};
}

Values adjoint(Math& m, Node* node) {
  Value* x = node->operand(0);
  return is_complex(x->type.dtype) || x->type.rank() < 2
             ? Values{}
             : Values{m.transpose(x, x->type.rank() - 2, x->type.rank() - 1)};
}

Values flip(Math& m, Node* node, int dim) {
  Value* x = node->operand(0);
  if (x->type.rank() <= dim) return {};
  return {m.emit_like("aten.flip.default", {x, Arg::ints({dim})}, x)};
}

// [n, groups * c, ...] -> [n, c * groups, ...] and its kin, all of them a reshape, a permutation and a reshape.
Value* shuffled(Math& m, Node* node, const std::vector<SymExpr>& wide, const std::vector<std::int64_t>& order) {
  for (const SymExpr& size : wide)
    if (size_argument(node, size).is_none()) return nullptr;
  for (const SymExpr& size : node->result()->type.sizes)
    if (size_argument(node, size).is_none()) return nullptr;
  return m.reshape(permuted(m, m.reshape(node->operand(0), wide), order), node->result()->type.sizes);
}

Values pixels(Math& m, Node* node, bool apart) {
  const auto& sizes = node->operand(0)->type.sizes;
  const auto r = node->arg(1).integer();
  const std::size_t rank = sizes.size();
  if (!r || *r < 1 || rank < 3) return {};
  const auto& out = node->result()->type.sizes;
  std::vector<SymExpr> wide(sizes.begin(), sizes.end() - 3);
  std::vector<std::int64_t> order(wide.size());
  std::iota(order.begin(), order.end(), 0);
  const auto b = static_cast<std::int64_t>(wide.size());
  if (apart) {  // [c r r, h, w] -> [c, h r, w r]
    wide.insert(wide.end(), {out[rank - 3], SymExpr(*r), SymExpr(*r), sizes[rank - 2], sizes[rank - 1]});
    order.insert(order.end(), {b, b + 3, b + 1, b + 4, b + 2});
  } else {
    wide.insert(wide.end(), {sizes[rank - 3], out[rank - 2], SymExpr(*r), out[rank - 1], SymExpr(*r)});
    order.insert(order.end(), {b, b + 2, b + 4, b + 1, b + 3});
  }
  Value* made = shuffled(m, node, wide, order);
  return made == nullptr ? Values{} : Values{made};
}

Values channel_shuffle(Math& m, Node* node) {
  const auto& sizes = node->operand(0)->type.sizes;
  const auto groups = node->arg(1).integer();
  if (!groups || *groups < 1 || sizes.size() < 3 || !sizes[1].is_number() || sizes[1].number() % *groups != 0)
    return {};
  std::vector<SymExpr> wide{sizes[0], SymExpr(*groups), SymExpr(sizes[1].number() / *groups)};
  wide.insert(wide.end(), sizes.begin() + 2, sizes.end());
  std::vector<std::int64_t> order(wide.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[1], order[2]);
  Value* made = shuffled(m, node, wide, order);
  return made == nullptr ? Values{} : Values{made};
}

// hstack and its kin of tensors that have the dims they are joined along.
Values stack(Math& m, Node* node, int dim, int least_rank) {
  const Arg::List* tensors = node->arg(0).list();
  if (!tensors || tensors->empty()) return {};
  for (const Arg& item : *tensors)
    if (!item.value() || item.value()->type.rank() < least_rank ||
        item.value()->type.dtype != node->result()->type.dtype)
      return {};
  return {m.emit_like("aten.cat.default", {node->arg(0), dim}, node->result())};
}

Values hstack(Math& m, Node* node) {
  const Arg::List* tensors = node->arg(0).list();
  if (!tensors || tensors->empty() || !(*tensors)[0].value()) return {};
  return stack(m, node, (*tensors)[0].value()->type.rank() == 1 ? 0 : 1, 1);
}

// Parts of the sizes that the results have.
Values parts(Math& m, Node* node) {
  Value* x = node->operand(0);
  const Arg* given = node->arg("dim");
  const bool columns = node->op().starts_with("aten.hsplit.");
  std::int64_t dim = columns ? (x->type.rank() == 1 ? 0 : 1) : given && given->integer() ? *given->integer() : 0;
  if (dim < 0) dim += x->type.rank();
  if (dim < 0 || dim >= x->type.rank()) return {};
  Values out;
  std::int64_t begin = 0;
  for (const auto& result : node->results()) {
    const SymExpr& size = result->type.sizes.at(static_cast<std::size_t>(dim));
    if (!size.is_number()) return {};
    out.push_back(m.slice(x, static_cast<int>(dim), begin, begin + size.number()));
    begin += size.number();
  }
  return out;
}

Values broadcast_tensors(Math& m, Node* node) {
  const Arg::List* tensors = node->arg(0).list();
  if (!tensors || tensors->size() != node->results().size()) return {};
  Values out;
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    Arg::List sizes;
    for (const SymExpr& size : node->result(i)->type.sizes) {
      sizes.push_back(size_argument(node, size));
      if (sizes.back().is_none()) return {};
    }
    out.push_back(m.emit_like("aten.expand.default", {(*tensors)[i], std::move(sizes)}, node->result(i)));
  }
  return out;
}

Values aminmax(Math& m, Node* node) {
  const Arg* dim = node->arg("dim");
  if (!dim || !dim->integer()) return {};
  const bool keep = node->arg("keepdim") && node->arg("keepdim")->boolean() == true;
  Value* x = node->operand(0);
  return {m.reduce("aten.amin.default", x, {*dim->integer()}, keep),
          m.reduce("aten.amax.default", x, {*dim->integer()}, keep)};
}

// Squares or sizes of differences: each, their mean (1) or their sum (2).
Values loss(Math& m, Node* node, bool squares) {
  const auto reduction = node->arg(2).integer();
  if (!reduction || !same_floats(*node)) return {};
  Value* apart = m.binary("aten.sub.Tensor", node->arg(0), node->arg(1));
  Value* each = squares ? m.binary("aten.mul.Tensor", apart, apart) : m.unary("aten.abs.default", apart);
  if (*reduction == 0) return {each};
  return {m.emit_like(*reduction == 1 ? "aten.mean.default" : "aten.sum.default", {each}, node->result())};
}

Values decompose(Math& m, Node* node) {
  const std::string& op = node->op();
  if (op == "aten.movedim.int" || op == "aten.movedim.intlist" || op == "aten.moveaxis.int") return movedim(m, node);
  if (op == "aten.adjoint.default") return adjoint(m, node);
  if (op == "aten.fliplr.default") return flip(m, node, 1);
  if (op == "aten.flipud.default") return flip(m, node, 0);
  if (op == "aten.pixel_shuffle.default" || op == "aten.pixel_unshuffle.default")
    return pixels(m, node, op == "aten.pixel_shuffle.default");
  if (op == "aten.channel_shuffle.default") return channel_shuffle(m, node);
  if (op == "aten.hstack.default") return hstack(m, node);
  if (op == "aten.column_stack.default") return stack(m, node, 1, 2);
  if (op == "aten.vstack.default") return stack(m, node, 0, 2);
  if (op == "aten.dstack.default") return stack(m, node, 2, 3);
  if (op == "aten.tensor_split.sections" || op == "aten.tensor_split.indices" || op.starts_with("aten.hsplit."))
    return parts(m, node);
  if (op == "aten.broadcast_tensors.default") return broadcast_tensors(m, node);
  if (op == "aten.aminmax.default") return aminmax(m, node);
  if (op == "aten.mse_loss.default" || op == "aten.l1_loss.default")
    return loss(m, node, op == "aten.mse_loss.default");
  return {};
}

bool known(const Node& node) {
  if (!node.op().starts_with("aten.") || node.operands().empty() || node.results().empty()) return false;
  for (const auto& result : node.results())
    if (!result->type.is_tensor() || !result->type.has_shape || !result->type.has_dtype) return false;
  const auto operands = node.operands();
  return std::all_of(operands.begin(), operands.end(),
                     [](const Value* x) { return !x->type.is_tensor() || (x->type.has_shape && x->type.has_dtype); });
}

bool run(PassContext& context) {
  bool changed = false;
  for_each_node(*context.model.graph, [&](Node* node) {
    if (!known(*node) || !context.allow_rewrite()) return;
    Math math(node);
    const Values made = decompose(math, node);
    if (made.size() != node->results().size()) return;
    for (std::size_t i = 0; i < made.size(); ++i)
      if (!math.fits(made[i], node->result(i))) return;
    changed = true;
    finish_decomposition(context, pass, node, made);
  });
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"decompose-layout",
                   "Write out stacks, splits, shuffles of pixels and channels, moved dims and losses of differences",
                   ttc::run});
