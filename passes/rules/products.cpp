// Matrix products in disguise: einsum of two tensors as permutations around one matmul, and baddbmm, addbmm and addmm
// of matrices that are computed as a product and a sum.
#include <algorithm>

#include "../decompose.h"

namespace ttc {
namespace {

using ir::Node;
using ir::SymExpr;
using ir::Type;
using ir::Value;

// ---- einsum

struct Equation {
  std::string left, right, out;  // one letter per dim; "..." is spelled out with capitals
};

// nullopt: not two operands, a letter twice in one of them, or no output named.
std::optional<Equation> parse(std::string text, int left_rank, int right_rank) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow ||
      text.find(',', comma + 1) != std::string::npos)
    return std::nullopt;
  Equation e{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  int widest = 0;
  const auto hidden = [](const std::string& term, int rank) {
    return term.find("...") == std::string::npos ? 0 : rank - static_cast<int>(term.size()) + 3;
  };
  for (const int n : {hidden(e.left, left_rank), hidden(e.right, right_rank)}) widest = std::max(widest, n);
  if (widest < 0 || widest > 20) return std::nullopt;
  const auto spell = [&](std::string& term, int dims) {
    const std::size_t at = term.find("...");
    if (at == std::string::npos) return;
    std::string letters;
    for (int i = widest - dims; i < widest; ++i) letters += static_cast<char>('A' + i);
    term.replace(at, 3, letters);
  };
  spell(e.left, hidden(e.left, left_rank));
  spell(e.right, hidden(e.right, right_rank));
  spell(e.out, widest);
  for (const std::string* term : {&e.left, &e.right, &e.out})
    for (const char c : *term)
      if (!std::isalpha(static_cast<unsigned char>(c)) || std::count(term->begin(), term->end(), c) != 1)
        return std::nullopt;
  if (static_cast<int>(e.left.size()) != left_rank || static_cast<int>(e.right.size()) != right_rank)
    return std::nullopt;
  return e;
}

bool has(const std::string& term, char c) { return term.find(c) != std::string::npos; }

// x with its dims, named by `term`, in the order `to`, whose further letters are dims of size 1.
Value* arranged(Rewriter& r, Value* x, std::string term, const std::string& to) {
  std::vector<std::int64_t> order;
  std::string kept;
  for (const char c : to)
    if (has(term, c)) {
      order.push_back(static_cast<std::int64_t>(term.find(c)));
      kept += c;
    }
  if (!std::is_sorted(order.begin(), order.end())) {
    x = r.permute(x, order);
  }
  for (std::size_t i = 0; i < to.size(); ++i)
    if (i >= kept.size() || kept[i] != to[i]) {
      x = r.unsqueeze(x, static_cast<int>(i));
      kept.insert(i, 1, to[i]);
    }
  return x;
}

// The product of the sizes of these letters as one dim at the end of x; letters must be x's last dims.
Value* merged(Rewriter& r, Value* x, std::size_t letters) {
  if (letters == 1) return x;
  if (letters == 0) return r.unsqueeze(x, -1);
  std::vector<SymExpr> sizes(x->type.sizes.begin(), x->type.sizes.end() - static_cast<std::ptrdiff_t>(letters));
  SymExpr product = 1;
  for (std::size_t i = sizes.size(); i < x->type.sizes.size(); ++i) product = product * x->type.sizes[i];
  sizes.push_back(product);
  return r.reshape(x, sizes);
}

Value* einsum_products(Rewriter& r, Node* node) {
  const std::string* text = node->arg(0).get_if<std::string>();
  const ir::Arg::List* tensors = node->arg(1).list();
  if (!text || !tensors || tensors->size() != 2) return nullptr;
  Value *a = (*tensors)[0].value(), *b = (*tensors)[1].value();
  if (!a || !b || !is_floating(a->type.dtype) || a->type.dtype != b->type.dtype) return nullptr;
  const auto e = parse(*text, a->type.rank(), b->type.rank());
  if (!e) return nullptr;
  std::string batch, left, right, inner;
  for (const char c : e->out)
    (has(e->left, c) && has(e->right, c)           ? batch
     : has(e->left, c)                             ? (std::isupper(static_cast<unsigned char>(c)) ? batch : left)
     : std::isupper(static_cast<unsigned char>(c)) ? batch
                                                   : right) += c;
  for (const char c : e->left) {
    if (has(e->out, c)) continue;
    if (!has(e->right, c)) return nullptr;  // summed in one operand only
    inner += c;
  }
  for (const char c : e->right)
    if (!has(e->out, c) && !has(e->left, c)) return nullptr;
  // Dims of a group that is not one letter are merged, which needs the sizes of all the others as well.
  const auto needs_sizes = [](const std::string& group) { return group.size() > 1; };
  if (needs_sizes(left) || needs_sizes(right) || needs_sizes(inner))
    for (const Value* x : {a, b})
      if (!r.sizes(x->type.sizes)) return nullptr;
  Value* x = merged(r, arranged(r, a, e->left, batch + left + inner), inner.size());
  Value* y = merged(r, arranged(r, b, e->right, batch + right + inner), inner.size());
  const auto rows = [&](Value* value, std::size_t letters) {  // [batch, letters..., inner] -> [batch, rows, inner]
    if (letters == 1) return value;
    std::vector<SymExpr> sizes(value->type.sizes.begin(),
                               value->type.sizes.begin() + static_cast<std::ptrdiff_t>(batch.size()));
    SymExpr product = 1;
    for (std::size_t i = 0; i < letters; ++i) product = product * value->type.sizes[batch.size() + i];
    sizes.push_back(product);
    sizes.push_back(value->type.sizes.back());
    return letters > 0 ? r.reshape(value, sizes) : r.unsqueeze(value, static_cast<int>(batch.size()));
  };
  x = rows(x, left.size());
  y = rows(y, right.size());
  y = r.transpose(y, y->type.rank() - 2, y->type.rank() - 1);
  Type type = x->type;
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (type.sizes[i] == SymExpr(1)) type.sizes[i] = y->type.sizes[i];
  type.sizes.back() = y->type.sizes.back();
  Value* product = r.emit("aten.matmul.default", {x, y}, type);
  // Back to one dim per letter, then to the order asked for.
  const std::string made = batch + left + right;
  if (left.size() != 1 || right.size() != 1) {
    std::vector<SymExpr> sizes;
    for (const char c : made) sizes.push_back(node->result()->type.sizes[e->out.find(c)]);
    product = r.reshape(product, sizes);
  }
  return arranged(r, product, made, e->out);
}

// ---- sums of products

bool no_factor(const ir::Arg* factor) { return !factor || factor->is_none() || factor->number() == 1.0; }

// With a constant matrix and no factors it is a linear layer, which raise-linear knows.
bool no_layer(const Node& node) {
  const Value* b = node.operand(2);
  const bool constant = ir::is_weight(b) || (b && b->def() && match::permutation(*b->def()));
  return !constant || !no_factor(node.arg("alpha")) || !no_factor(node.arg("beta"));
}

bool one_result(const Node& node) { return known_tensors(node) && node.results().size() == 1; }

}  // namespace

RulePart product_rules() {
  return {"products",
          one_result,
          false,
          {{{"aten.einsum.default"}, einsum_products},
           {{"aten.baddbmm.default", "aten.addbmm.default", "aten.mv.default"}, as_defined},
           {{"aten.addmm.default"}, as_defined, no_layer}}};
}

}  // namespace ttc
