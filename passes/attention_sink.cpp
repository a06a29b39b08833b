// An attention sink takes its share of each row's softmax and gives nothing for it. It is one key more, with a value of
// zeros: queries get a dim that holds the sink, and that key has a one there and zeros elsewhere, so that the sink is
// its score. No operator needs to know of sinks, and the mask stays as narrow as it is.
#include "attention_pattern.h"
#include "attention_shapes.h"

namespace ttc {
namespace {

using Sizes = std::vector<ir::SymExpr>;

ir::Type grown(ir::Type type, int dim) {
  ir::SymExpr& size = type.sizes.at(static_cast<std::size_t>(type.rank() + dim));
  size = size + ir::SymExpr(1);
  return type;
}

// One more row (dim -2) or column (dim -1) of this number.
ir::Value* padded(Rewriter& r, ir::Value* x, int dim, double number) {
  const auto around = dim == -1 ? ir::Arg::ints({0, 1}) : ir::Arg::ints({0, 0, 0, 1});
  return r.emit("aten.constant_pad_nd.default", {x, around, number}, grown(x->type, dim));
}

ir::Value* with_column(Rewriter& r, ir::Value* x, ir::Value* column) {
  return r.emit("aten.cat.default", {ir::Arg::List{x, column}, -1}, grown(x->type, -1));
}

}  // namespace

std::optional<match::NearMiss> add_sink(Rewriter& r, const std::vector<ir::SymExpr>& leading, Attention& a,
                                        ir::Value*& mask) {
  Sizes column(leading);
  column.push_back(a.query->type.sizes[leading.size()]);
  column.emplace_back(1);
  const ir::SymExpr keys = a.key->type.sizes[static_cast<std::size_t>(a.key->type.rank()) - 2];
  if (mask && (mask->type.rank() == 0 || !(mask->type.sizes.back() == keys)))
    return miss(a, a.scores, "a mask of every key beside an attention sink");
  if (a.scale == 0) return miss(a, a.scores, "scores other than 0 beside an attention sink");
  ir::Value* sink = a.sink;
  if (sink->type.sizes != column) sink = reshaped(r, sink, column);
  if (!sink) return miss(a, a.scores, "an attention sink for each query and head");
  if (sink->type.dtype != a.query->type.dtype) sink = r.cast(sink, a.query->type.dtype);
  if (a.scale != 1) sink = r.binary("aten.mul.Tensor", sink, 1 / a.scale);
  a.query = with_column(r, a.query, sink);
  ir::Value* first = r.slice(a.key, a.key->type.rank() - 1, 0, 1);
  ir::Value* zeros = r.emit_like("aten.full_like.default", {first, 0.0}, first);
  a.key = with_column(r, padded(r, a.key, -2, 0), padded(r, zeros, -2, 1));
  a.value = padded(r, a.value, -2, 0);
  if (mask) mask = padded(r, mask, -1, mask->type.dtype == DType::boolean ? 1 : 0);
  return std::nullopt;
}

}  // namespace ttc
