// Vectors, diagonals, norms and spreads by way of matrix products and sums: dot, outer, products with vectors,
// tensordot, einsum of one operand or more than two, diagonals, distances, weight normalisation, variances however they
// are spelled. What needs a size that the graph does not tell stays one operator.
#include <algorithm>
#include <limits>
#include <map>

#include "decompose.h"
#include "decompose_math.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "decompose-algebra";

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

std::int64_t size_at(const Value* x, int dim) {  // -1: not known
  const SymExpr& size = x->type.sizes.at(static_cast<std::size_t>(dim));
  return size.is_number() ? size.number() : -1;
}

std::optional<int> dim_of(const Node& node, std::string_view name, int rank) {
  const Arg* arg = node.arg(name);
  const auto dim = arg ? arg->integer() : std::nullopt;
  if (!dim || *dim < -rank || *dim >= rank) return std::nullopt;
  return static_cast<int>(*dim < 0 ? *dim + rank : *dim);
}

double number(const Node& node, std::string_view name, double absent) {
  const Arg* arg = node.arg(name);
  return arg ? arg->number().value_or(absent) : absent;
}

// ---- products

Value* dot(Math& m, Node* node) {
  return m.reduce("aten.sum.dim_IntList", m.binary("aten.mul.Tensor", node->arg(0), node->arg(1)), {0}, false);
}

Value* outer(Math& m, Value* a, Value* b) { return m.binary("aten.mul.Tensor", m.unsqueeze(a, 1), m.unsqueeze(b, 0)); }

Value* product(Math& m, Value* a, Value* b) {
  Type type = a->type;
  const auto rank = static_cast<std::size_t>(b->type.rank());
  if (b->type.rank() > a->type.rank()) type.sizes = b->type.sizes;
  type.sizes[type.sizes.size() - 2] = a->type.sizes[static_cast<std::size_t>(a->type.rank()) - 2];
  type.sizes.back() = b->type.sizes[rank - 1];
  for (std::size_t i = 0; i + 2 < type.sizes.size(); ++i) {  // batches that broadcast
    for (const Value* x : {a, b}) {
      const std::size_t skip = type.sizes.size() - x->type.sizes.size();
      if (i >= skip && !(x->type.sizes[i - skip] == SymExpr(1))) type.sizes[i] = x->type.sizes[i - skip];
    }
  }
  return m.emit("aten.matmul.default", {a, b}, std::move(type));
}

// A vector as a matrix of one row or column, which the result loses again.
Value* with_vectors(Math& m, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  const int left = a->type.rank(), right = b->type.rank();
  if (left < 1 || right < 1 || (left > 1 && right > 1)) return nullptr;
  if (left == 1 && right == 1) return dot(m, node);
  if (left == 1) {
    Value* out = product(m, m.unsqueeze(a, 0), b);
    return m.squeeze(out, {out->type.rank() - 2});
  }
  Value* out = product(m, a, m.unsqueeze(b, 1));
  return m.squeeze(out, {out->type.rank() - 1});
}

Value* scaled(Math& m, Value* x, double factor) { return factor == 1 ? x : m.binary("aten.mul.Tensor", x, factor); }

// beta x + alpha (what two vectors, or a matrix and one, make)
Value* add_product(Math& m, Node* node, bool matrix) {
  Value *a = node->operand(1), *b = node->operand(2);
  Value* made = matrix ? m.squeeze(product(m, a, m.unsqueeze(b, 1)), {1}) : outer(m, a, b);
  made = scaled(m, made, number(*node, "alpha", 1));
  const double beta = number(*node, "beta", 1);
  return beta == 0 ? made : m.binary("aten.add.Tensor", scaled(m, node->operand(0), beta), made);
}

// Whether a matrix comes from a weight, by way of operators that look at nothing else: raise-linear has those.
bool from_weight(const Value* x) {
  while (x->def() && x->def()->operands().size() == 1) x = x->def()->operand(0);
  return ir::is_weight(x);
}

// x w^T + b of a matrix that is computed
Value* linear(Math& m, Node* node) {
  Value *x = node->operand(0), *w = node->operand(1);
  if (from_weight(w) || w->type.rank() != 2 || x->type.rank() < 2) return nullptr;
  Value* out = product(m, x, m.transpose(w, 0, 1));
  return node->arg(2).value() ? m.binary("aten.add.Tensor", out, node->arg(2)) : out;
}

Value* addmm(Math& m, Node* node) {
  Value *a = node->operand(1), *b = node->operand(2);
  if (from_weight(b)) return nullptr;
  Value* made = scaled(m, product(m, a, b), number(*node, "alpha", 1));
  const double beta = number(*node, "beta", 1);
  return beta == 0 ? made : m.binary("aten.add.Tensor", scaled(m, node->operand(0), beta), made);
}

Value* inner(Math& m, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  if (a->type.rank() == 1 && b->type.rank() == 1) return dot(m, node);
  return b->type.rank() == 2 && a->type.rank() >= 2 ? product(m, a, m.transpose(b, 0, 1)) : nullptr;
}

Value* chain(Math& m, Node* node) {
  const Arg::List* list = node->arg(0).list();
  if (!list || list->size() < 2) return nullptr;
  for (const Arg& item : *list)
    if (!item.value() || item.value()->type.rank() != 2) return nullptr;
  Value* out = (*list)[0].value();
  for (std::size_t i = 1; i < list->size(); ++i) out = product(m, out, (*list)[i].value());
  return out;
}

// ---- einsum

bool einsum_letters(const std::string& term) {
  return std::all_of(term.begin(), term.end(), [&](char c) {
    return std::islower(static_cast<unsigned char>(c)) && std::count(term.begin(), term.end(), c) == 1;
  });
}

Value* einsum_of(Math& m, const std::string& text, const std::vector<Value*>& tensors, Type type) {
  return m.emit("aten.einsum.default", {text, Arg::List(tensors.begin(), tensors.end())}, std::move(type));
}

// One operand: dims that are not asked for are added up, the others put in order.
Value* einsum_of_one(Math& m, Node* node, Value* x, const std::string& term, const std::string& out) {
  std::vector<std::int64_t> gone;
  std::string kept;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (out.find(term[i]) == std::string::npos)
      gone.push_back(static_cast<std::int64_t>(i));
    else
      kept += term[i];
  }
  if (!gone.empty()) x = m.reduce("aten.sum.dim_IntList", x, gone, false);
  if (kept == out) return x;
  std::vector<std::int64_t> order;
  for (const char c : out) order.push_back(static_cast<std::int64_t>(kept.find(c)));
  return m.emit_like("aten.permute.default", {x, Arg::ints(order)}, node->result());
}

// Two operands at a time: a step keeps the letters that something after it needs.
Value* einsum(Math& m, Node* node) {
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
  if (terms.size() == 1) return einsum_of_one(m, node, x, terms[0], out);
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
    x = einsum_of(m, have + "," + terms[i] + "->" + next, {x, (*tensors)[i].value()}, std::move(type));
    have = next;
  }
  return x;
}

Value* tensordot(Math& m, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  const auto left = node->arg(2).integers(), right = node->arg(3).integers();
  if (!left || !right || left->size() != right->size() || a->type.rank() + b->type.rank() > 26) return nullptr;
  std::string first, second, out;
  for (int i = 0; i < a->type.rank(); ++i) first += static_cast<char>('a' + i);
  for (int i = 0; i < b->type.rank(); ++i) second += static_cast<char>('a' + a->type.rank() + i);
  out = first + second;
  for (std::size_t i = 0; i < left->size(); ++i) {
    const auto at = [](std::int64_t dim, int rank) { return static_cast<std::size_t>(dim < 0 ? dim + rank : dim); };
    char& own = second.at(at((*right)[i], b->type.rank()));
    const char shared = first.at(at((*left)[i], a->type.rank()));
    out.erase(std::remove_if(out.begin(), out.end(), [&](char c) { return c == own || c == shared; }), out.end());
    own = shared;
  }
  return einsum_of(m, first + "," + second + "->" + out, {a, b}, node->result()->type);
}

// ---- diagonals

// Elements with dim2 - dim1 = offset: every (columns + 1)-th of the two dims as one, at the end.
Value* diagonal(Math& m, Node* node, Value* x, std::int64_t offset, int dim1, int dim2) {
  const int rank = x->type.rank();
  if (dim1 == dim2) return nullptr;
  std::vector<std::int64_t> order;
  for (int i = 0; i < rank; ++i)
    if (i != dim1 && i != dim2) order.push_back(i);
  order.insert(order.end(), {dim1, dim2});
  if (!std::is_sorted(order.begin(), order.end())) {
    Type type = x->type;
    for (std::size_t i = 0; i < order.size(); ++i) type.sizes[i] = x->type.sizes[static_cast<std::size_t>(order[i])];
    x = m.emit("aten.permute.default", {x, Arg::ints(order)}, type);
  }
  const std::int64_t rows = size_at(x, rank - 2), cols = size_at(x, rank - 1);
  if (rows < 1 || cols < 1) return nullptr;
  const std::int64_t count =
      std::min(rows + std::min<std::int64_t>(offset, 0), cols - std::max<std::int64_t>(offset, 0));
  if (count < 1) return nullptr;
  std::vector<SymExpr> sizes(x->type.sizes.begin(), x->type.sizes.end() - 2);
  sizes.emplace_back(rows * cols);
  for (const SymExpr& size : sizes)
    if (size_argument(node, size).is_none()) return nullptr;
  x = m.reshape(x, sizes);
  const std::int64_t first = offset >= 0 ? offset : -offset * cols, last = first + (count - 1) * (cols + 1) + 1;
  Type type = x->type;
  type.sizes.back() = SymExpr(count);
  return m.emit("aten.slice.Tensor", {x, rank - 2, first, last, cols + 1}, std::move(type));
}

Value* diagonal(Math& m, Node* node) {
  Value* x = node->operand(0);
  const auto dim1 = dim_of(*node, "dim1", x->type.rank()), dim2 = dim_of(*node, "dim2", x->type.rank());
  const auto offset = node->arg(1).integer();
  return dim1 && dim2 && offset ? diagonal(m, node, x, *offset, *dim1, *dim2) : nullptr;
}

Value* trace(Math& m, Node* node) {
  Value* line = diagonal(m, node, node->operand(0), 0, 0, 1);
  return line ? m.reduce("aten.sum.dim_IntList", line, {0}, false) : nullptr;
}

// x along the diagonal of a square of zeros.
Value* diagonal_matrix(Math& m, Value* x) {
  const int rank = x->type.rank();
  const std::int64_t n = size_at(x, rank - 1);
  if (n < 1) return nullptr;
  Type type = x->type;
  type.sizes = {SymExpr(n)};
  type.dtype = DType::i64;
  Value* counter = m.emit("aten.arange.start_step", {0, n, 1, DType::i64}, type);
  Value* on = m.compare("aten.eq.Tensor", m.unsqueeze(counter, 1), counter);
  return m.choose("aten.where.ScalarOther", on, m.unsqueeze(x, rank - 1), 0.0);
}

Value* diag(Math& m, Node* node) {
  Value* x = node->operand(0);
  const auto offset = node->arg(1).integer();
  if (!offset) return nullptr;
  if (x->type.rank() == 2) return diagonal(m, node, x, *offset, 0, 1);
  return *offset == 0 ? diagonal_matrix(m, x) : nullptr;
}

Value* diag_embed(Math& m, Node* node) {
  const int rank = node->operand(0)->type.rank() + 1;
  if (node->arg(1).integer() != 0 || dim_of(*node, "dim1", rank) != rank - 2 || dim_of(*node, "dim2", rank) != rank - 1)
    return nullptr;
  return diagonal_matrix(m, node->operand(0));
}

// ---- norms

Value* norm(Math& m, Value* x, double order, const std::vector<std::int64_t>& dims, bool keep) {
  Value* like = m.reduce("aten.amax.default", x, dims, keep);  // only its type is of use
  return m.emit_like("aten.linalg_vector_norm.default", {x, order, Arg::ints(dims), keep}, like);
}

// (sum |x|^p)^(1/p); of order 0 how many are not zero.
Value* power_norm(Math& m, Node* node) {
  const auto order = node->arg(1).number();
  Value* x = node->operand(0);
  const double known[] = {1, 2, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  if (!order || std::find(std::begin(known), std::end(known), *order) != std::end(known)) return nullptr;
  auto dims = node->arg(2).integers().value_or(std::vector<std::int64_t>{});
  if (dims.empty())
    for (int i = 0; i < x->type.rank(); ++i) dims.push_back(i);
  const bool keep = node->arg(3).boolean() == true;
  if (*order == 0) {
    Value* count = m.choose("aten.where.Scalar", m.compare("aten.ne.Scalar", x, 0), 1.0, 0.0);
    if (x->type.dtype != DType::f32) return nullptr;
    return m.reduce("aten.sum.dim_IntList", count, dims, keep);
  }
  Value* powers = m.unary("aten.pow.Tensor_Scalar", m.unary("aten.abs.default", x), {*order});
  return m.unary("aten.pow.Tensor_Scalar", m.reduce("aten.sum.dim_IntList", powers, dims, keep), {1 / *order});
}

Value* matrix_norm(Math& m, Node* node) {
  const auto* order = node->arg(1).get_if<std::string>();
  const auto dims = node->arg(2).integers();
  if (!order || *order != "fro" || !dims || dims->size() != 2) return nullptr;
  return norm(m, node->operand(0), 2, *dims, node->arg(3).boolean() == true);
}

Value* distance(Math& m, Node* node) {
  const auto p = node->arg(2).number();
  if (!p) return nullptr;
  Value* apart = m.binary("aten.sub.Tensor", node->arg(0), node->arg(1));
  if (node->op() == "aten.dist.default") {
    std::vector<std::int64_t> dims;
    for (int i = 0; i < apart->type.rank(); ++i) dims.push_back(i);
    return norm(m, apart, *p, dims, false);
  }
  apart = m.binary("aten.add.Tensor", apart, number(*node, "eps", 1e-6));
  return norm(m, apart, *p, {-1}, node->arg("keepdim") && node->arg("keepdim")->boolean() == true);
}

// The rows of a against those of b, where the differences are not too many to write down.
Value* distances(Math& m, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  const auto p = node->arg(2).number();
  constexpr std::int64_t most = 1 << 20;
  if (!p || a->type.rank() != b->type.rank() || a->type.rank() < 2) return nullptr;
  Value* apart = m.binary("aten.sub.Tensor", m.unsqueeze(a, a->type.rank() - 1), m.unsqueeze(b, b->type.rank() - 2));
  std::int64_t count = 1;
  for (const SymExpr& size : apart->type.sizes) {
    if (!size.is_number() || size.number() > most / std::max<std::int64_t>(count, 1)) return nullptr;
    count *= size.number();
  }
  return norm(m, apart, *p, {-1}, false);
}

Value* cosine(Math& m, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  const auto dim = node->arg(2).integer();
  if (!dim || a->type.rank() != b->type.rank()) return nullptr;
  const double eps = number(*node, "eps", 1e-8);
  const auto unit = [&](Value* x) {
    Value* length = m.unary("aten.clamp_min.default", norm(m, x, 2, {*dim}, true), {eps});
    return m.binary("aten.div.Tensor", x, length);
  };
  Value* both = m.binary("aten.mul.Tensor", unit(a), unit(b));
  return m.reduce("aten.sum.dim_IntList", both, {*dim}, false);
}

// v g / |v|, the norm over all dims but one
Value* weight_norm(Math& m, Node* node) {
  Value *v = node->operand(0), *g = node->operand(1);
  const auto kept = dim_of(*node, "dim", v->type.rank());
  if (!kept) return nullptr;
  std::vector<std::int64_t> dims;
  for (int i = 0; i < v->type.rank(); ++i)
    if (i != *kept) dims.push_back(i);
  if (dims.empty()) return nullptr;
  return m.binary("aten.mul.Tensor", v, m.binary("aten.div.Tensor", g, norm(m, v, 2, dims, true)));
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
  const Arg *dim = node.arg("dim"), *unbiased = node.arg("unbiased"), *keep = node.arg("keepdim");
  if (dim && !dim->is_none()) {
    const auto one = dim->integer();
    const auto list = one ? std::optional(std::vector<std::int64_t>{*one}) : dim->integers();
    if (!list) return std::nullopt;
    for (const std::int64_t d : *list) out.dims.push_back(d < 0 ? d + rank : d);
  }
  std::sort(out.dims.begin(), out.dims.end());
  if (out.dims.empty())
    for (int i = 0; i < rank; ++i) out.dims.push_back(i);
  out.keep = keep && keep->boolean() == true;
  if (unbiased) out.correction = unbiased->boolean() == false ? 0 : 1;
  out.correction = number(node, "correction", out.correction);
  return out;
}

bool neighbours(const std::vector<std::int64_t>& dims) {
  return dims.back() - dims.front() + 1 == static_cast<std::int64_t>(dims.size());
}

// Of dims that are neighbours the device has a variance; of others it is the mean square of what is left of the mean.
Value* variance(Math& m, Value* x, const Spread& spread) {
  if (neighbours(spread.dims)) {
    Value* like = m.reduce("aten.amax.default", x, spread.dims, spread.keep);  // only its type is of use
    return m.emit_like("aten.var.correction", {x, Arg::ints(spread.dims), spread.correction, spread.keep}, like);
  }
  double count = 1;
  for (const std::int64_t dim : spread.dims) {
    const std::int64_t size = size_at(x, static_cast<int>(dim));
    if (size < 1) return nullptr;
    count *= static_cast<double>(size);
  }
  if (count <= spread.correction) return nullptr;
  Value* rest = m.binary("aten.sub.Tensor", x, m.reduce("aten.mean.dim", x, spread.dims, true));
  Value* squares = m.reduce("aten.mean.dim", m.binary("aten.mul.Tensor", rest, rest), spread.dims, spread.keep);
  return scaled(m, squares, count / (count - spread.correction));
}

std::vector<Value*> spread(Math& m, Node* node, bool root, bool mean) {
  Value* x = node->operand(0);
  const auto how = spread_of(*node);
  if (!how || (node->op() == "aten.var.correction" && neighbours(how->dims))) return {};
  Value* out = variance(m, x, *how);
  if (out == nullptr) return {};
  if (root) out = m.unary("aten.sqrt.default", out);
  if (!mean) return {out};
  return {out, m.reduce("aten.mean.dim", x, how->dims, how->keep)};
}

// ---- the table

using Rule = Value* (*)(Math&, Node*);

const std::map<std::string, Rule, std::less<>>& rules() {
  static const std::map<std::string, Rule, std::less<>> table{
      {"aten.dot.default", dot},
      {"aten.vdot.default", dot},
      {"aten.outer.default", [](Math& m, Node* n) { return outer(m, n->operand(0), n->operand(1)); }},
      {"aten.ger.default", [](Math& m, Node* n) { return outer(m, n->operand(0), n->operand(1)); }},
      {"aten.matmul.default", with_vectors},
      {"aten.addmv.default", [](Math& m, Node* n) { return add_product(m, n, true); }},
      {"aten.addr.default", [](Math& m, Node* n) { return add_product(m, n, false); }},
      {"aten.linear.default", linear},
      {"aten.addmm.default", addmm},
      {"aten.inner.default", inner},
      {"aten.linalg_multi_dot.default", chain},
      {"aten.einsum.default", einsum},
      {"aten.tensordot.default", tensordot},
      {"aten.diagonal.default", diagonal},
      {"aten.trace.default", trace},
      {"aten.diag.default", diag},
      {"aten.diag_embed.default", diag_embed},
      {"aten.linalg_vector_norm.default", power_norm},
      {"aten.linalg_matrix_norm.str_ord", matrix_norm},
      {"aten.dist.default", distance},
      {"aten.pairwise_distance.default", distance},
      {"aten.cdist.default", distances},
      {"aten.cosine_similarity.default", cosine},
      {"aten._weight_norm.default", weight_norm},
  };
  return table;
}

std::vector<Value*> decompose(Math& m, Node* node) {
  const std::string stem = node->op().substr(5, node->op().rfind('.') - 5);
  if (stem == "var" || stem == "std" || stem == "var_mean" || stem == "std_mean")
    return spread(m, node, stem.starts_with("std"), stem.ends_with("_mean"));
  const auto found = rules().find(node->op());
  Value* made = found == rules().end() ? nullptr : found->second(m, node);
  return made == nullptr ? std::vector<Value*>{} : std::vector<Value*>{made};
}

bool of_floats(const Node& node) {
  for (const Value* operand : node.operands())
    if (operand->type.is_tensor() &&
        (!operand->type.has_shape || !operand->type.has_dtype || operand->type.dtype != node.operands()[0]->type.dtype))
      return false;
  for (const auto& result : node.results())
    if (!result->type.is_tensor() || !result->type.has_shape || !result->type.has_dtype ||
        result->type.dtype != node.operands()[0]->type.dtype)
      return false;
  const DType dtype = node.operands()[0]->type.dtype;
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

bool run(PassContext& context) {
  bool changed = false;
  for_each_node(*context.model.graph, [&](Node* node) {
    if (!node->op().starts_with("aten.") || node->results().empty() || node->operands().empty()) return;
    if (!of_floats(*node) || !context.allow_rewrite()) return;
    Math math(node);
    const std::vector<Value*> made = decompose(math, node);
    if (made.empty()) return;
    for (std::size_t i = 0; i < made.size(); ++i)
      if (!math.fits(made[i], node->result(i))) return;
    changed = true;
    finish_decomposition(context, pass, node, made);
  });
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"decompose-algebra",
                   "Write out products with vectors, diagonals, norms, distances and variances as products and sums",
                   ttc::run});
