// Vectors and spreads by way of matrix products and sums: products with vectors, variances however they are spelled,
// einsum of more than two operands; and what LibTorch or definitions.cpp has the formula of: outer products, diagonals,
// distances, weight normalisation. What needs a size that the graph does not tell stays one operator.
#include <algorithm>
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

// ---- einsum

bool einsum_letters(const std::string& term) {
  return std::all_of(term.begin(), term.end(), [&](char c) {
    return std::islower(static_cast<unsigned char>(c)) && std::count(term.begin(), term.end(), c) == 1;
  });
}

// Two operands at a time: a step keeps the letters that something after it needs.
Value* einsum(Rewriter& r, Node* node) {
  const std::string* given = node->arg(0).get_if<std::string>();
  const Arg::List* tensors = node->arg(1).list();
  if (!given || !tensors || tensors->size() < 3) return nullptr;
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
    x = r.emit("aten.einsum.default", {have + "," + terms[i] + "->" + next, Arg::List{x, (*tensors)[i]}},
               std::move(type));
    have = next;
  }
  return x;
}

bool of_one(const Node& node) {
  const Arg::List* tensors = node.arg(1).list();
  return tensors && tensors->size() == 1 && same_floats(node);
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
           {{"aten.matmul.default"}, with_vectors},
           {{"aten.linear.default"}, linear},
           {{"aten.outer.default", "aten.ger.default", "aten.addmv.default", "aten.addr.default", "aten.inner.default",
             "aten.linalg_multi_dot.default", "aten.tensordot.default", "aten.diagonal.default", "aten.diag.default",
             "aten.diag_embed.default", "aten.linalg_matrix_norm.str_ord", "aten.dist.default",
             "aten.pairwise_distance.default", "aten.cdist.default", "aten.cosine_similarity.default",
             "aten._weight_norm.default"},
            as_defined},
           {{"aten.einsum.default"}, einsum},
           {{"aten.einsum.default"}, as_defined, of_one},
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
