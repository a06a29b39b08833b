// Composite spellings of moves and of losses, as traces have them: stacks, splits, shuffles of channels, dims that
// move, flips, and the mean and the sum of differences.
#include <algorithm>
#include <numeric>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

Values movedim(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const int rank = x->type.rank();
  if (rank == 0) return x;
  const auto list = [&](const Arg& arg) {
    auto out = dims_of(arg).value_or(std::vector<std::int64_t>{});
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
  return {r.permute(x, order)};
}

Values adjoint(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  return is_complex(x->type.dtype) || x->type.rank() < 2
             ? Values{}
             : Values{r.transpose(x, x->type.rank() - 2, x->type.rank() - 1)};
}

Values flip(Rewriter& r, Node* node, int dim) {
  Value* x = node->operand(0);
  if (x->type.rank() <= dim) return {};
  return {r.emit_like("aten.flip.default", {x, Arg::ints({dim})}, x)};
}

// [n, groups * c, ...] -> [n, c * groups, ...] and its kin, all of them a reshape, a permutation and a reshape.
Value* shuffled(Rewriter& r, Node* node, const std::vector<SymExpr>& wide, const std::vector<std::int64_t>& order) {
  if (!r.sizes(wide) || !r.sizes(node->result()->type.sizes)) return nullptr;
  return r.reshape(r.permute(r.reshape(node->operand(0), wide), order), node->result()->type.sizes);
}

Values pixels(Rewriter& r, Node* node, bool apart) {
  const auto& sizes = node->operand(0)->type.sizes;
  const auto times = node->arg(1).integer();
  const std::size_t rank = sizes.size();
  if (!times || *times < 1 || rank < 3) return {};
  const auto& out = node->result()->type.sizes;
  std::vector<SymExpr> wide(sizes.begin(), sizes.end() - 3);
  std::vector<std::int64_t> order(wide.size());
  std::iota(order.begin(), order.end(), 0);
  const auto b = static_cast<std::int64_t>(wide.size());
  if (apart) {  // [c r r, h, w] -> [c, h r, w r]
    wide.insert(wide.end(), {out[rank - 3], SymExpr(*times), SymExpr(*times), sizes[rank - 2], sizes[rank - 1]});
    order.insert(order.end(), {b, b + 3, b + 1, b + 4, b + 2});
  } else {
    wide.insert(wide.end(), {sizes[rank - 3], out[rank - 2], SymExpr(*times), out[rank - 1], SymExpr(*times)});
    order.insert(order.end(), {b, b + 2, b + 4, b + 1, b + 3});
  }
  return shuffled(r, node, wide, order);
}

Values channel_shuffle(Rewriter& r, Node* node) {
  const auto& sizes = node->operand(0)->type.sizes;
  const auto groups = node->arg(1).integer();
  if (!groups || *groups < 1 || sizes.size() < 3 || !sizes[1].is_number() || sizes[1].number() % *groups != 0)
    return {};
  std::vector<SymExpr> wide{sizes[0], SymExpr(*groups), SymExpr(sizes[1].number() / *groups)};
  wide.insert(wide.end(), sizes.begin() + 2, sizes.end());
  std::vector<std::int64_t> order(wide.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[1], order[2]);
  return shuffled(r, node, wide, order);
}

// hstack and its kin of tensors that have the dims they are joined along.
Values stack(Rewriter& r, Node* node, int dim, int least_rank) {
  const Arg::List* tensors = node->arg(0).list();
  if (!tensors || tensors->empty()) return {};
  for (const Arg& item : *tensors)
    if (!item.value() || item.value()->type.rank() < least_rank ||
        item.value()->type.dtype != node->result()->type.dtype)
      return {};
  return {r.emit_like("aten.cat.default", {node->arg(0), dim}, node->result())};
}

Values hstack(Rewriter& r, Node* node) {
  const Arg::List* tensors = node->arg(0).list();
  if (!tensors || tensors->empty() || !(*tensors)[0].value()) return {};
  return stack(r, node, (*tensors)[0].value()->type.rank() == 1 ? 0 : 1, 1);
}

// Parts of the sizes that the results have.
Values parts(Rewriter& r, Node* node) {
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
    out.push_back(r.slice(x, static_cast<int>(dim), begin, begin + size.number()));
    begin += size.number();
  }
  return out;
}

Values broadcast_tensors(Rewriter& r, Node* node) {
  const Arg::List* tensors = node->arg(0).list();
  if (!tensors || tensors->size() != node->results().size()) return {};
  Values out;
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    auto sizes = r.sizes(node->result(i)->type.sizes);
    if (!sizes) return {};
    out.push_back(r.emit_like("aten.expand.default", {(*tensors)[i], std::move(*sizes)}, node->result(i)));
  }
  return out;
}

Values aminmax(Rewriter& r, Node* node) {
  const Arg* dim = node->arg("dim");
  if (!dim || !dim->integer()) return {};
  const bool keep = flag_of(*node, "keepdim");
  Value* x = node->operand(0);
  return {r.reduce("aten.amin.default", x, {*dim->integer()}, keep),
          r.reduce("aten.amax.default", x, {*dim->integer()}, keep)};
}

// Squares or sizes of differences: each, their mean (1) or their sum (2).
Values loss(Rewriter& r, Node* node, bool squares) {
  const auto reduction = node->arg(2).integer();
  if (!reduction) return {};
  Value* apart = r.binary("aten.sub.Tensor", node->arg(0), node->arg(1));
  Value* each = squares ? r.binary("aten.mul.Tensor", apart, apart) : r.unary("aten.abs.default", apart);
  if (*reduction == 0) return {each};
  return {r.emit_like(*reduction == 1 ? "aten.mean.default" : "aten.sum.default", {each}, node->result())};
}

}  // namespace

RulePart layout_rules() {
  return {"layout",
          known_tensors,
          true,
          {{{"aten.movedim.int", "aten.movedim.intlist", "aten.moveaxis.int"}, movedim},
           {{"aten.adjoint.default"}, adjoint},
           {{"aten.fliplr.default"}, [](Rewriter& r, Node* n) { return flip(r, n, 1); }},
           {{"aten.flipud.default"}, [](Rewriter& r, Node* n) { return flip(r, n, 0); }},
           {{"aten.pixel_shuffle.default"}, [](Rewriter& r, Node* n) { return pixels(r, n, true); }},
           {{"aten.pixel_unshuffle.default"}, [](Rewriter& r, Node* n) { return pixels(r, n, false); }},
           {{"aten.channel_shuffle.default"}, channel_shuffle},
           {{"aten.hstack.default"}, hstack},
           {{"aten.column_stack.default"}, [](Rewriter& r, Node* n) { return stack(r, n, 1, 2); }},
           {{"aten.vstack.default"}, [](Rewriter& r, Node* n) { return stack(r, n, 0, 2); }},
           {{"aten.dstack.default"}, [](Rewriter& r, Node* n) { return stack(r, n, 2, 3); }},
           {{"aten.tensor_split.sections", "aten.tensor_split.indices", "aten.hsplit.int", "aten.hsplit.array"}, parts},
           {{"aten.broadcast_tensors.default"}, broadcast_tensors},
           {{"aten.aminmax.default"}, aminmax},
           {{"aten.mse_loss.default"}, [](Rewriter& r, Node* n) { return loss(r, n, true); }, same_floats},
           {{"aten.l1_loss.default"}, [](Rewriter& r, Node* n) { return loss(r, n, false); }, same_floats}}};
}

}  // namespace ttc
