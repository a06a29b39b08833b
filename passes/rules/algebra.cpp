// Vectors, diagonals, norms and spreads by way of matrix products and sums: dot, outer, products with vectors,
// tensordot, einsum of one operand or more than two, diagonals, distances, weight normalisation, variances however they
// are spelled. What needs a size that the graph does not tell stays one operator.
#include <algorithm>
#include <limits>
#include <map>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

std::int64_t size_at(const Value* x, int dim) {  // -1: not known
  const SymExpr& size = x->type.sizes.at(static_cast<std::size_t>(dim));
  return size.is_number() ? size.number() : -1;
}

// ---- products

Value* dot(Rewriter& r, Node* node) {
  return r.reduce("aten.sum.dim_IntList", r.binary("aten.mul.Tensor", node->arg(0), node->arg(1)), {0}, false);
}

Value* outer(Rewriter& r, Value* a, Value* b) {
  return r.binary("aten.mul.Tensor", r.unsqueeze(a, 1), r.unsqueeze(b, 0));
}

// A vector as a matrix of one row or column, which the result loses again.
Value* with_vectors(Rewriter& r, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  const int left = a->type.rank(), right = b->type.rank();
  if (left < 1 || right < 1 || (left > 1 && right > 1)) return nullptr;
  if (left == 1 && right == 1) return dot(r, node);
  if (left == 1) {
    Value* out = r.matmul(r.unsqueeze(a, 0), b);
    return r.squeeze(out, {out->type.rank() - 2});
  }
  Value* out = r.matmul(a, r.unsqueeze(b, 1));
  return r.squeeze(out, {out->type.rank() - 1});
}

Value* scaled(Rewriter& r, Value* x, double factor) { return factor == 1 ? x : r.binary("aten.mul.Tensor", x, factor); }

// beta x + alpha (what two vectors, or a matrix and one, make)
Value* add_product(Rewriter& r, Node* node, bool matrix) {
  Value *a = node->operand(1), *b = node->operand(2);
  Value* made = matrix ? r.squeeze(r.matmul(a, r.unsqueeze(b, 1)), {1}) : outer(r, a, b);
  made = scaled(r, made, number_of(*node, "alpha", 1));
  const double beta = number_of(*node, "beta", 1);
  return beta == 0 ? made : r.binary("aten.add.Tensor", scaled(r, node->operand(0), beta), made);
}

// Whether a matrix comes from a weight, by way of operators that look at nothing else: raise-linear has those.
bool from_weight(const Value* x) {
  while (x->def() && x->def()->operands().size() == 1) x = x->def()->operand(0);
  return ir::is_weight(x);
}

// x w^T + b of a matrix that is computed
Value* linear(Rewriter& r, Node* node) {
  Value *x = node->operand(0), *w = node->operand(1);
  if (from_weight(w) || w->type.rank() != 2 || x->type.rank() < 2) return nullptr;
  Value* out = r.matmul(x, r.transpose(w, 0, 1));
  return node->arg(2).value() ? r.binary("aten.add.Tensor", out, node->arg(2)) : out;
}

Value* addmm(Rewriter& r, Node* node) {
  Value *a = node->operand(1), *b = node->operand(2);
  if (from_weight(b)) return nullptr;
  Value* made = scaled(r, r.matmul(a, b), number_of(*node, "alpha", 1));
  const double beta = number_of(*node, "beta", 1);
  return beta == 0 ? made : r.binary("aten.add.Tensor", scaled(r, node->operand(0), beta), made);
}

Value* inner(Rewriter& r, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  if (a->type.rank() == 1 && b->type.rank() == 1) return dot(r, node);
  return b->type.rank() == 2 && a->type.rank() >= 2 ? r.matmul(a, r.transpose(b, 0, 1)) : nullptr;
}

Value* chain(Rewriter& r, Node* node) {
  const Arg::List* list = node->arg(0).list();
  if (!list || list->size() < 2) return nullptr;
  for (const Arg& item : *list)
    if (!item.value() || item.value()->type.rank() != 2) return nullptr;
  Value* out = (*list)[0].value();
  for (std::size_t i = 1; i < list->size(); ++i) out = r.matmul(out, (*list)[i].value());
  return out;
}

// ---- einsum

bool einsum_letters(const std::string& term) {
  return std::all_of(term.begin(), term.end(), [&](char c) {
    return std::islower(static_cast<unsigned char>(c)) && std::count(term.begin(), term.end(), c) == 1;
  });
}

Value* einsum_of(Rewriter& r, const std::string& text, const std::vector<Value*>& tensors, Type type) {
  return r.emit("aten.einsum.default", {text, Arg::List(tensors.begin(), tensors.end())}, std::move(type));
}

// One operand: dims that are not asked for are added up, the others put in order.
Value* einsum_of_one(Rewriter& r, Node* node, Value* x, const std::string& term, const std::string& out) {
  std::vector<std::int64_t> gone;
  std::string kept;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (out.find(term[i]) == std::string::npos)
      gone.push_back(static_cast<std::int64_t>(i));
    else
      kept += term[i];
  }
  if (!gone.empty()) x = r.reduce("aten.sum.dim_IntList", x, gone, false);
  if (kept == out) return x;
  std::vector<std::int64_t> order;
  for (const char c : out) order.push_back(static_cast<std::int64_t>(kept.find(c)));
  return r.emit_like("aten.permute.default", {x, Arg::ints(order)}, node->result());
}

// Two operands at a time: a step keeps the letters that something after it needs.
Value* einsum(Rewriter& r, Node* node) {
  const std::string* given = node->arg(0).get_if<std::string>();
  const Arg::List* tensors = node->arg(1).list();
  if (!given || !tensors || tensors->empty() || tensors->size() == 2) return nullptr;
  std::string text = *given;
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) return nullptr;
  const std::string out = text.substr(arrow + 2);
  std::vector<std::string> terms{""};
  for (const char c : text.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  std::map<char, SymExpr> sizes;
  if (terms.size() != tensors->size() || !einsum_letters(out)) return nullptr;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Value* x = (*tensors)[i].value();
    if (!x || !einsum_letters(terms[i]) || x->type.rank() != static_cast<int>(terms[i].size())) return nullptr;
    for (std::size_t d = 0; d < terms[i].size(); ++d) sizes[terms[i][d]] = x->type.sizes[d];
  }
  Value* x = (*tensors)[0].value();
  if (terms.size() == 1) return einsum_of_one(r, node, x, terms[0], out);
  std::string have = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    std::string later = out, next;
    for (std::size_t k = i + 1; k < terms.size(); ++k) later += terms[k];
    for (const char c : have + terms[i])
      if (later.find(c) != std::string::npos && next.find(c) == std::string::npos) next += c;
    if (i + 1 == terms.size()) next = out;
    Type type = x->type;
    type.sizes.clear();
    for (const char c : next) type.sizes.push_back(sizes.at(c));
    x = einsum_of(r, have + "," + terms[i] + "->" + next, {x, (*tensors)[i].value()}, std::move(type));
    have = next;
  }
  return x;
}

Value* tensordot(Rewriter& r, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  const auto left = node->arg(2).integers(), right = node->arg(3).integers();
  if (!left || !right || left->size() != right->size() || a->type.rank() + b->type.rank() > 26) return nullptr;
  std::string first, second, out;
  for (int i = 0; i < a->type.rank(); ++i) first += static_cast<char>('a' + i);
  for (int i = 0; i < b->type.rank(); ++i) second += static_cast<char>('a' + a->type.rank() + i);
  out = first + second;
  for (std::size_t i = 0; i < left->size(); ++i) {
    const auto at = [](std::int64_t dim, int rank) { return static_cast<std::size_t>(dim < 0 ? dim + rank : dim); };
    const std::size_t here = at((*left)[i], a->type.rank()), there = at((*right)[i], b->type.rank());
    if (!(a->type.sizes[here] == b->type.sizes[there])) return nullptr;  // one of them is 1: the other is added up
    char& own = second.at(there);
    const char shared = first.at(here);
    out.erase(std::remove_if(out.begin(), out.end(), [&](char c) { return c == own || c == shared; }), out.end());
    own = shared;
  }
  return einsum_of(r, first + "," + second + "->" + out, {a, b}, node->result()->type);
}

// ---- diagonals

// Elements with dim2 - dim1 = offset: every (columns + 1)-th of the two dims as one, at the end.
Value* diagonal(Rewriter& r, Value* x, std::int64_t offset, int dim1, int dim2) {
  const int rank = x->type.rank();
  if (dim1 == dim2) return nullptr;
  std::vector<std::int64_t> order;
  for (int i = 0; i < rank; ++i)
    if (i != dim1 && i != dim2) order.push_back(i);
  order.insert(order.end(), {dim1, dim2});
  if (!std::is_sorted(order.begin(), order.end())) {
    x = r.permute(x, order);
  }
  const std::int64_t rows = size_at(x, rank - 2), cols = size_at(x, rank - 1);
  if (rows < 1 || cols < 1) return nullptr;
  const std::int64_t count =
      std::min(rows + std::min<std::int64_t>(offset, 0), cols - std::max<std::int64_t>(offset, 0));
  if (count < 1) return nullptr;
  std::vector<SymExpr> sizes(x->type.sizes.begin(), x->type.sizes.end() - 2);
  sizes.emplace_back(rows * cols);
  if (!r.sizes(sizes)) return nullptr;
  x = r.reshape(x, sizes);
  const std::int64_t first = offset >= 0 ? offset : -offset * cols, last = first + (count - 1) * (cols + 1) + 1;
  Type type = x->type;
  type.sizes.back() = SymExpr(count);
  return r.emit("aten.slice.Tensor", {x, rank - 2, first, last, cols + 1}, std::move(type));
}

Value* diagonal_of(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const auto dim1 = dim_of(*node, "dim1", x->type.rank()), dim2 = dim_of(*node, "dim2", x->type.rank());
  const auto offset = node->arg(1).integer();
  return dim1 && dim2 && offset ? diagonal(r, x, *offset, *dim1, *dim2) : nullptr;
}

Value* trace(Rewriter& r, Node* node) {
  Value* line = diagonal(r, node->operand(0), 0, 0, 1);
  return line ? r.reduce("aten.sum.dim_IntList", line, {0}, false) : nullptr;
}

// x along the diagonal of a square of zeros.
Value* diagonal_matrix(Rewriter& r, Value* x) {
  const int rank = x->type.rank();
  const std::int64_t n = size_at(x, rank - 1);
  if (n < 1) return nullptr;
  Type type = x->type;
  type.sizes = {SymExpr(n)};
  type.dtype = DType::i64;
  Value* counter = r.emit("aten.arange.start_step", {0, n, 1, DType::i64}, type);
  Value* on = r.compare("aten.eq.Tensor", r.unsqueeze(counter, 1), counter);
  return r.choose("aten.where.ScalarOther", on, r.unsqueeze(x, rank - 1), 0.0);
}

Value* diag(Rewriter& r, Node* node) {
  Value* x = node->operand(0);
  const auto offset = node->arg(1).integer();
  if (!offset) return nullptr;
  if (x->type.rank() == 2) return diagonal(r, x, *offset, 0, 1);
  return *offset == 0 ? diagonal_matrix(r, x) : nullptr;
}

Value* diag_embed(Rewriter& r, Node* node) {
  const int rank = node->operand(0)->type.rank() + 1;
  if (node->arg(1).integer() != 0 || dim_of(*node, "dim1", rank) != rank - 2 || dim_of(*node, "dim2", rank) != rank - 1)
    return nullptr;
  return diagonal_matrix(r, node->operand(0));
}

// ---- norms

Value* norm(Rewriter& r, Value* x, double order, const std::vector<std::int64_t>& dims, bool keep) {
  Value* like = r.reduce("aten.amax.default", x, dims, keep);  // only its type is of use
  return r.emit_like("aten.linalg_vector_norm.default", {x, order, Arg::ints(dims), keep}, like);
}

// (sum |x|^p)^(1/p); of order 0 how many are not zero.
Value* power_norm(Rewriter& r, Node* node) {
  const auto order = node->arg(1).number();
  Value* x = node->operand(0);
  const double known[] = {1, 2, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  if (!order || std::find(std::begin(known), std::end(known), *order) != std::end(known)) return nullptr;
  auto dims = node->arg(2).integers().value_or(std::vector<std::int64_t>{});
  if (dims.empty())
    for (int i = 0; i < x->type.rank(); ++i) dims.push_back(i);
  const bool keep = node->arg(3).boolean() == true;
  if (*order == 0) {
    Value* count = r.choose("aten.where.Scalar", r.compare("aten.ne.Scalar", x, 0), 1.0, 0.0);
    if (x->type.dtype != DType::f32) return nullptr;
    return r.reduce("aten.sum.dim_IntList", count, dims, keep);
  }
  Value* powers = r.unary("aten.pow.Tensor_Scalar", r.unary("aten.abs.default", x), {*order});
  return r.unary("aten.pow.Tensor_Scalar", r.reduce("aten.sum.dim_IntList", powers, dims, keep), {1 / *order});
}

Value* matrix_norm(Rewriter& r, Node* node) {
  const auto* order = node->arg(1).get_if<std::string>();
  const auto dims = node->arg(2).integers();
  if (!order || *order != "fro" || !dims || dims->size() != 2) return nullptr;
  return norm(r, node->operand(0), 2, *dims, node->arg(3).boolean() == true);
}

Value* distance(Rewriter& r, Node* node) {
  const auto p = node->arg(2).number();
  if (!p) return nullptr;
  Value* apart = r.binary("aten.sub.Tensor", node->arg(0), node->arg(1));
  if (node->op() == "aten.dist.default") {
    std::vector<std::int64_t> dims;
    for (int i = 0; i < apart->type.rank(); ++i) dims.push_back(i);
    return norm(r, apart, *p, dims, false);
  }
  apart = r.binary("aten.add.Tensor", apart, number_of(*node, "eps", 1e-6));
  return norm(r, apart, *p, {-1}, flag_of(*node, "keepdim"));
}

// The rows of a against those of b, where the differences are not too many to write down.
Value* distances(Rewriter& r, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  const auto p = node->arg(2).number();
  constexpr std::int64_t most = 1 << 20;
  if (!p || a->type.rank() != b->type.rank() || a->type.rank() < 2) return nullptr;
  Value* apart = r.binary("aten.sub.Tensor", r.unsqueeze(a, a->type.rank() - 1), r.unsqueeze(b, b->type.rank() - 2));
  std::int64_t count = 1;
  for (const SymExpr& size : apart->type.sizes) {
    if (!size.is_number() || size.number() > most / std::max<std::int64_t>(count, 1)) return nullptr;
    count *= size.number();
  }
  return norm(r, apart, *p, {-1}, false);
}

Value* cosine(Rewriter& r, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  const auto dim = node->arg(2).integer();
  if (!dim || a->type.rank() != b->type.rank()) return nullptr;
  const double eps = number_of(*node, "eps", 1e-8);
  const auto unit = [&](Value* x) {
    Value* length = r.unary("aten.clamp_min.default", norm(r, x, 2, {*dim}, true), {eps});
    return r.binary("aten.div.Tensor", x, length);
  };
  Value* both = r.binary("aten.mul.Tensor", unit(a), unit(b));
  return r.reduce("aten.sum.dim_IntList", both, {*dim}, false);
}

// v g / |v|, the norm over all dims but one
Value* weight_norm(Rewriter& r, Node* node) {
  Value *v = node->operand(0), *g = node->operand(1);
  const auto kept = dim_of(*node, "dim", v->type.rank());
  if (!kept) return nullptr;
  std::vector<std::int64_t> dims;
  for (int i = 0; i < v->type.rank(); ++i)
    if (i != *kept) dims.push_back(i);
  if (dims.empty()) return nullptr;
  return r.binary("aten.mul.Tensor", v, r.binary("aten.div.Tensor", g, norm(r, v, 2, dims, true)));
}

// ---- variances

struct Spread {
  std::vector<std::int64_t> dims;
  double correction = 1;
  bool keep = false;
};

std::optional<Spread> spread_of(const Node& node) {
  Spread out;
  const int rank = node.operand(0)->type.rank();
  const Arg *dim = node.arg("dim"), *unbiased = node.arg("unbiased");
  if (dim && !dim->is_none()) {
    const auto list = dims_of(*dim);
    if (!list) return std::nullopt;
    for (const std::int64_t d : *list) out.dims.push_back(d < 0 ? d + rank : d);
  }
  std::sort(out.dims.begin(), out.dims.end());
  if (out.dims.empty())
    for (int i = 0; i < rank; ++i) out.dims.push_back(i);
  out.keep = flag_of(node, "keepdim");
  if (unbiased) out.correction = unbiased->boolean() == false ? 0 : 1;
  out.correction = number_of(node, "correction", out.correction);
  return out;
}

bool neighbours(const std::vector<std::int64_t>& dims) {
  return dims.empty() || dims.back() - dims.front() + 1 == static_cast<std::int64_t>(dims.size());
}

// Of dims that are neighbours the device has a variance; of others it is the mean square of what is left of the mean.
Value* variance(Rewriter& r, Value* x, const Spread& spread) {
  if (neighbours(spread.dims)) {
    Value* like = r.reduce("aten.amax.default", x, spread.dims, spread.keep);  // only its type is of use
    return r.emit_like("aten.var.correction", {x, Arg::ints(spread.dims), spread.correction, spread.keep}, like);
  }
  double count = 1;
  for (const std::int64_t dim : spread.dims) {
    const std::int64_t size = size_at(x, static_cast<int>(dim));
    if (size < 1) return nullptr;
    count *= static_cast<double>(size);
  }
  if (count <= spread.correction) return nullptr;
  Value* rest = r.binary("aten.sub.Tensor", x, r.reduce("aten.mean.dim", x, spread.dims, true));
  Value* squares = r.reduce("aten.mean.dim", r.binary("aten.mul.Tensor", rest, rest), spread.dims, spread.keep);
  return scaled(r, squares, count / (count - spread.correction));
}

Values spread(Rewriter& r, Node* node, bool root, bool mean) {
  Value* x = node->operand(0);
  const auto how = spread_of(*node);
  if (!how || (node->op() == "aten.var.correction" && neighbours(how->dims))) return {};
  Value* out = variance(r, x, *how);
  if (out == nullptr) return {};
  if (root) out = r.unary("aten.sqrt.default", out);
  if (!mean) return {out};
  return {out, r.reduce("aten.mean.dim", x, how->dims, how->keep)};
}

}  // namespace

RulePart algebra_rules() {
  return {"algebra",
          same_floats,
          true,
          {{{"aten.dot.default", "aten.vdot.default"}, dot},
           {{"aten.outer.default", "aten.ger.default"},
            [](Rewriter& r, Node* n) { return outer(r, n->operand(0), n->operand(1)); }},
           {{"aten.matmul.default"}, with_vectors},
           {{"aten.addmv.default"}, [](Rewriter& r, Node* n) { return add_product(r, n, true); }},
           {{"aten.addr.default"}, [](Rewriter& r, Node* n) { return add_product(r, n, false); }},
           {{"aten.linear.default"}, linear},
           {{"aten.addmm.default"}, addmm},
           {{"aten.inner.default"}, inner},
           {{"aten.linalg_multi_dot.default"}, chain},
           {{"aten.einsum.default"}, einsum},
           {{"aten.tensordot.default"}, tensordot},
           {{"aten.diagonal.default"}, diagonal_of},
           {{"aten.trace.default"}, trace},
           {{"aten.diag.default"}, diag},
           {{"aten.diag_embed.default"}, diag_embed},
           {{"aten.linalg_vector_norm.default"}, power_norm},
           {{"aten.linalg_matrix_norm.str_ord"}, matrix_norm},
           {{"aten.dist.default", "aten.pairwise_distance.default"}, distance},
           {{"aten.cdist.default"}, distances},
           {{"aten.cosine_similarity.default"}, cosine},
           {{"aten._weight_norm.default"}, weight_norm},
           {{"aten.var.default", "aten.var.dim", "aten.var.correction"},
            [](Rewriter& r, Node* n) { return spread(r, n, false, false); }},
           {{"aten.std.default", "aten.std.dim", "aten.std.correction"},
            [](Rewriter& r, Node* n) { return spread(r, n, true, false); }},
           {{"aten.var_mean.default", "aten.var_mean.dim", "aten.var_mean.correction"},
            [](Rewriter& r, Node* n) { return spread(r, n, false, true); }},
           {{"aten.std_mean.default", "aten.std_mean.dim", "aten.std_mean.correction"},
            [](Rewriter& r, Node* n) { return spread(r, n, true, true); }}}};
}

}  // namespace ttc
