// Exported models build attention masks from position counters: every position is >= 0, a padding mask is gathered by
// positions that run over all of it. What is known without running is simplified here, so that masks neither cost nodes
// nor hide what they are: comparisons that always hold leave conjunctions, gathers by running counters become views.
#include <algorithm>

#include "common.h"
#include "match/index_form.h"

namespace ttc::simplify_masks_pass {
namespace {

constexpr std::string_view pass = "simplify-masks";

bool is_and(const ir::Node& node) {
  return node.results().size() == 1 && node.result()->type.has_dtype && node.result()->type.dtype == DType::boolean &&
         (node.op() == "aten.__and__.Tensor" || node.op() == "aten.bitwise_and.Tensor" ||
          node.op() == "aten.logical_and.default");
}

// True where every reader broadcasts: the operand may be smaller as long as it broadcasts to the same shape.
bool only_broadcast(const ir::Value* value) {
  if (value->output_uses() > 0) return false;
  for (const ir::Node* user : value->users()) {
    const bool expands = user->op() == "aten.expand.default" && user->operand(0) == value;
    const bool mask = user->op() == "aten.scaled_dot_product_attention.default" && user->operand(3) == value;
    if (!expands && !mask) return false;
    // expand keeps a dim it is given as -1: those must not shrink.
    if (expands)
      for (const ir::Arg& size : *user->arg(1).list())
        if (size.integer() == -1) return false;
  }
  return true;
}

bool broadcast_only_where_equal(const ir::Value* wide, const ir::Value* narrow) {
  // A -1 of expand is fine where the dim is the same in both.
  if (wide->output_uses() > 0 || !narrow->type.has_shape || wide->type.rank() != narrow->type.rank()) return false;
  for (const ir::Node* user : wide->users()) {
    if (user->op() != "aten.expand.default" || user->operand(0) != wide || !user->arg(1).list()) return false;
    const ir::Arg::List& sizes = *user->arg(1).list();
    const std::size_t skip = sizes.size() - wide->type.sizes.size();
    for (std::size_t i = skip; i < sizes.size(); ++i)
      if (sizes[i].integer() == -1 && !(wide->type.sizes[i - skip] == narrow->type.sizes[i - skip])) return false;
  }
  return true;
}

// true and x -> x.
bool drop_true(PassContext& context, match::IndexForms& forms, ir::Node* node) {
  if (!is_and(*node) || !node->operand(0) || !node->operand(1)) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    ir::Value *always = node->operand(i), *rest = node->operand(1 - i);
    if (!forms.always_true(always) || rest->type.dtype != DType::boolean) continue;
    const bool same = match::same_shape(rest->type, node->result()->type);
    if (!same && !only_broadcast(node->result()) && !broadcast_only_where_equal(node->result(), rest)) continue;
    std::vector<ir::Node*> served;
    if (always->def()) served.push_back(always->def());
    return Rewriter(context, pass, node).commit({rest}, {.rule = "always true", .matched = std::move(served)});
  }
  return false;
}

// One index of a gather: runs 0, 1, 2, ... along one dim of the result.
std::optional<int> running_dim(match::IndexForms& forms, const ir::Value* index, int rank) {
  const auto form = forms.of(index);
  if (!form || form->offset != 0) return std::nullopt;
  std::optional<int> dim;
  for (std::size_t i = 0; i < form->steps.size(); ++i) {
    if (form->steps[i] == 0) continue;
    if (form->steps[i] != 1 || dim) return std::nullopt;
    dim = static_cast<int>(i) + rank - static_cast<int>(form->steps.size());
  }
  return dim;
}

// x with dim `dim` cut to the length `size`; x itself where it has that length.
ir::Value* cut(Rewriter& r, ir::Value* x, int dim, const ir::SymExpr& size, ir::Value* index, int index_dim) {
  ir::Type type = x->type;
  ir::SymExpr& old = type.sizes[static_cast<std::size_t>(dim)];
  if (old == size) return x;
  old = size;
  ir::Arg end = r.size(size);
  if (end.is_none()) end = emit(r, "aten.sym_size.int", {index, index_dim}, ir::Type::integer(size));
  return emit(r, "aten.slice.Tensor", {x, dim, 0, end, 1}, type);
}

// x[i0, i1, ...] where each index runs over its own dim of the result, in order: a view with dims of size 1 between.
void gather_to_view(PassContext& context, match::IndexForms& forms, ir::Node* node) {
  if (node->op() != "aten.index.Tensor" || !node->operand(0) || !node->arg(1).list()) return;
  ir::Value* x = node->operand(0);
  const ir::Arg::List indices = *node->arg(1).list();
  const ir::Type& type = node->result()->type;
  if (!x->type.has_shape || !type.has_shape || static_cast<int>(indices.size()) != x->type.rank()) return;
  std::vector<int> dims;
  for (const ir::Arg& item : indices) {
    const ir::Value* index = item.value();
    const auto dim = index ? running_dim(forms, index, type.rank()) : std::nullopt;
    if (!dim || (!dims.empty() && *dim <= dims.back())) return;
    dims.push_back(*dim);
  }
  Rewriter r(context, pass, node);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    ir::Value* index = indices[i].value();
    x = cut(r, x, static_cast<int>(i), type.sizes[static_cast<std::size_t>(dims[i])], index,
            dims[i] - (type.rank() - index->type.rank()));
  }
  for (int dim = 0; dim < type.rank(); ++dim) {
    if (std::find(dims.begin(), dims.end(), dim) != dims.end()) continue;
    ir::Type wider = x->type;
    wider.sizes.insert(wider.sizes.begin() + dim, ir::SymExpr(1));
    x = emit(r, "aten.unsqueeze.default", {x, dim}, wider);
  }
  std::vector<ir::Node*> counters;
  for (const ir::Arg& item : indices)
    if (item.value()->def()) counters.push_back(item.value()->def());
  r.commit({x}, {.rule = "gather by running counters", .matched = std::move(counters)});
}

void rewrite(PassContext& context, ir::Node* node) {
  match::IndexForms forms(context.model);
  if (!drop_true(context, forms, node)) gather_to_view(context, forms, node);
}

void run(PassContext& context) { rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc::simplify_masks_pass

TTC_REGISTER_PASS({"simplify-masks", "Simplify masks and gathers that position counters decide whatever the inputs are",
                   ttc::simplify_masks_pass::run});
