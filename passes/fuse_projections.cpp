// The projections of one attention that read the same tensor become one product with their weights side by side, and
// one movement that cuts queries, keys and values into heads (the op library's fused QKV); where queries come from
// another tensor, keys and values do. Numbers that scale a projection scale its heads instead. Which of the heads are
// queries, keys and values is seen from the attention that they reach, through whatever stands between (rotations,
// norms, caches).
// A column of a product does not depend on the others, so the results are those of the products one by one, bit for
// bit: where block formats share exponents along a row, the parts must begin where a block does. In exact numerics the
// library's choice of blocks of K may change with the width; then the bits are those that it gives for the fused one.
#include <algorithm>
#include <array>
#include <set>

#include "fused_product.h"
#include "replacement.h"

namespace ttc::fuse_projections_pass {
namespace {

constexpr std::string_view pass = "fuse-projections";
constexpr std::array<std::string_view, 3> roles{"queries", "keys", "values"};

// From a layer to its heads: the product, numbers that scale it, the movement.
struct Projection {
  ir::Node* linear = nullptr;  // nullptr: the heads of another value
  std::vector<ir::Node*> scales = {};
  ir::Node* heads = nullptr;

  ir::Value* input() const { return linear->operand(0); }
  ir::Value* value() const { return scales.empty() ? heads->operand(0) : scales.back()->operand(0); }
  std::int64_t count() const { return *heads->arg(1).integer(); }
  std::optional<std::int64_t> size() const { return heads->result()->type.dim(3); }
};

bool is_attention(const ir::Node& node) {
  const ttrt::OpRecord* record = ttrt::find_op(node.op());
  return record && record->family == "attention";
}

bool scales_by_number(const ir::Node& node) {
  return (node.op() == "aten.mul.Tensor" || node.op() == "aten.div.Tensor") && node.operand(0) && node.arg(1).number();
}

std::optional<Projection> projection(ir::Node* heads) {
  if (ttrt::role_of(heads->op()) != ttrt::Role::split_heads || !heads->result()->type.has_shape) return std::nullopt;
  Projection out{.heads = heads};
  ir::Node* node = heads->operand(0)->def();
  for (; node && node->graph() == heads->graph() && node->result()->use_count() == 1 && scales_by_number(*node);
       node = node->operand(0)->def())
    out.scales.push_back(node);
  if (node && node->graph() == heads->graph() && node->result()->use_count() == 1 && is_packed_linear(*node))
    out.linear = node;
  return out;
}

// The attentions that a value reaches without passing another layer, and as which operand.
std::map<ir::Node*, std::size_t> attentions_of(ir::Value* value) {
  std::map<ir::Node*, std::size_t> out;
  std::set<ir::Node*> seen;
  std::vector<ir::Value*> open{value};
  while (!open.empty()) {
    ir::Value* at = open.back();
    open.pop_back();
    for (ir::Node* user : at->users()) {
      if (is_attention(*user)) {
        std::size_t operand = 0;
        while (operand < roles.size() && user->operand(operand) != at) ++operand;
        const auto known = out.emplace(user, operand).first;
        known->second = std::min(known->second, operand);  // positions may come from the queries too, as a mask
      } else if (!is_packed_linear(*user) && seen.insert(user).second) {
        for (const auto& result : user->results()) open.push_back(result.get());
      }
    }
  }
  return out;
}

// ---- putting it in place

bool is_before(const ir::Node* a, const ir::Node* b) { return a->graph() == b->graph() && a->graph()->is_before(a, b); }

// The first node that reads one of the heads; nullptr where one does before `value` is there.
ir::Node* first_reader(const std::array<Projection*, 3>& qkv, const ir::Node* value) {
  ir::Node* first = nullptr;
  for (const Projection* part : qkv)
    for (ir::Node* user : part->heads->result()->users()) {
      while (user->graph() != part->heads->graph()) user = user->graph()->parent();
      if (!is_before(value, user)) return nullptr;
      if (!first || is_before(user, first)) first = user;
    }
  return first;
}

ir::Value* scaled(Rewriter& r, ir::Value* heads, const Projection& part) {
  for (auto scale = part.scales.rbegin(); scale != part.scales.rend(); ++scale) {
    std::vector<ir::Arg> args = (*scale)->args();
    args[0] = heads;
    heads = r.emit_like((*scale)->op(), std::move(args), heads);
    heads->def()->provenance = (*scale)->provenance;
    heads->def()->origins = (*scale)->origins;
  }
  return heads;
}

// The three values that take the heads' places; empty where the movement does not serve them.
std::vector<ir::Value*> emit_heads(Rewriter& r, const std::array<Projection*, 3>& qkv, ir::Value* x, ir::Value* kv) {
  const ttrt::OpRecord& record = ttrt::op_for(ttrt::Role::split_query_key_value);
  const ir::Node& like = *qkv[0]->heads;
  std::vector<ir::Arg> args{x, kv ? ir::Arg(kv) : ir::Arg(), qkv[0]->count(), qkv[1]->count(), false};
  if (user_refusal(r.context(), like, record.name) || call_refusal(r.context(), record, args)) return {};
  ir::Node* made = r.insert(std::string(record.name), std::move(args));
  made->provenance = like.provenance;
  std::vector<ir::Value*> out;
  for (const Projection* part : qkv) {
    ir::Type type = part->heads->result()->type;
    type.strides.clear();
    merge_origins(*made, part->heads->origins);
    out.push_back(made->add_result(std::move(type)));
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = scaled(r, out[i], *qkv[i]);
  return out;
}

void replace(const std::array<Projection*, 3>& qkv, const std::vector<ir::Value*>& heads, ir::Value* product) {
  for (std::size_t i = 0; i < qkv.size(); ++i) {
    ir::Value* old = qkv[i]->heads->result();
    const std::string name = old->name;
    old->replace_all_uses_with(heads[i]);
    heads[i]->def()->graph()->erase(qkv[i]->heads);
    heads[i]->name = name;
    for (ir::Node* scale : qkv[i]->scales) scale->graph()->erase(scale);
    if (qkv[i]->linear && !qkv[i]->linear->result()->has_uses()) {  // queries of another tensor stay
      merge_origins(*product->def(), qkv[i]->linear->origins);
      qkv[i]->linear->graph()->erase(qkv[i]->linear);
    }
  }
}

// ---- one attention

struct Found {
  ir::Node* attention;
  std::array<std::optional<Projection>, 3> parts;
};

Refusal heads_refusal(const std::array<Projection*, 3>& qkv) {
  for (const Projection* part : qkv)
    if (!part->size() || part->size() != qkv[0]->size() || part->heads->graph() != qkv[0]->heads->graph())
      return Reason{ReasonCode::PatternNearMiss, "heads of different sizes"};
  if (qkv[1]->count() != qkv[2]->count())
    return Reason{ReasonCode::PatternNearMiss, "other heads of keys than of values"};
  return std::nullopt;
}

void commit(Rewriter& r, const char* rule, const std::array<Projection*, 3>& qkv, const std::vector<ir::Value*>& heads,
            ir::Value* product) {
  std::vector<std::string> gone;
  for (const Projection* part : qkv) {
    if (part->linear && part->linear->result()->use_count() == 1) gone.push_back(node_name(*part->linear));
    gone.push_back(node_name(*part->heads));
  }
  r.commit_edit(rule, [&] { replace(qkv, heads, product); }, product->name, std::move(gone));
}

// Some columns of another value.
struct Columns {
  ir::Value* base;
  std::int64_t first, width;
};

std::optional<Columns> columns_of(const ir::Value* value) {
  const ir::Node* node = value->def();
  const bool slice = node && node->op() == "aten.slice.Tensor";
  if (!node || !(slice || node->op().starts_with("aten.split") || node->op() == "aten.chunk.default")) return {};
  const ir::Arg* dim = node->arg("dim");
  const auto width = value->type.dim(-1);
  if (!dim || match::dim_argument(dim, value->type.rank()) != value->type.rank() - 1 || !width) return {};
  Columns out{.base = node->operand(0), .first = 0, .width = *width};
  if (slice) {
    const auto start = node->arg("start")->is_none() ? 0 : node->arg("start")->integer().value_or(-1);
    if (start < 0 || node->arg("step")->integer() != 1) return {};
    out.first = start;
  }
  for (int i = 0; !slice && i < value->index(); ++i)
    out.first += node->result(static_cast<std::size_t>(i))->type.dim(-1).value_or(0);
  return out;
}

// The value whose columns are the queries', the keys' and the values', in this order and no others: a model may have
// one layer for them by itself.
ir::Value* side_by_side(const std::array<Projection*, 3>& qkv) {
  ir::Value* base = nullptr;
  std::int64_t next = 0;
  for (const Projection* part : qkv) {
    const auto columns = columns_of(part->value());
    if (!columns || (base && columns->base != base) || columns->first != next) return nullptr;
    base = columns->base;
    next += columns->width;
  }
  return base->type.rank() == 3 && base->type.dim(2) == next && base->def() && base->graph() == qkv[0]->heads->graph()
             ? base
             : nullptr;
}

bool cut(PassContext& context, const std::array<Projection*, 3>& qkv) {
  ir::Value* base = side_by_side(qkv);
  ir::Node* reader = base ? first_reader(qkv, base->def()) : nullptr;
  if (!reader) return false;
  std::vector<ir::Node*> parts;
  for (const Projection* part : qkv)
    if (ir::Node* from = part->value()->def(); std::ranges::find(parts, from) == parts.end()) parts.push_back(from);
  Rewriter r(context, pass, qkv[0]->heads);
  r.emit_before(reader);
  const std::vector<ir::Value*> heads = emit_heads(r, qkv, base, nullptr);
  if (heads.empty()) return false;
  commit(r, "columns of queries, keys and values", qkv, heads, base);
  if (r.committed()) merge_origins(*heads[1]->def(), erase_unused(parts));
  return r.committed();
}

// Fuses all three, or keys and values; why not, where it does neither.
Refusal fuse(PassContext& context, std::array<Projection*, 3> qkv) {
  if (Refusal no = heads_refusal(qkv)) return no;
  if (cut(context, qkv) || !qkv[1]->linear || !qkv[2]->linear) return std::nullopt;
  const bool all = qkv[0]->linear && qkv[0]->input() == qkv[1]->input();
  if (qkv[1]->input() != qkv[2]->input())
    return Reason{ReasonCode::PatternNearMiss, "keys and values are projections of different tensors"};
  std::vector<Projection*> parts(qkv.begin() + (all ? 0 : 1), qkv.end());
  std::vector<ir::Node*> linears;
  for (const Projection* part : parts) linears.push_back(part->linear);
  const FusedProduct fusion(context, linears, *parts[0]->heads->provenance);
  if (Refusal no = fusion.refusal()) return no;
  ir::Node* first = parts.front()->linear;
  for (const Projection* part : parts)
    if (is_before(part->linear, first)) first = part->linear;
  const ir::Node* queries = all ? nullptr : qkv[0]->value()->def();
  const bool inside = queries && queries->graph() == first->graph();
  ir::Node* reader = first_reader(qkv, inside && is_before(first, queries) ? queries : first);
  if (!reader) return Reason{ReasonCode::PatternNearMiss, "keys are read before queries are there"};
  Rewriter r(context, pass, first);
  ir::Value* product = fusion.emit(r);
  if (!product) return Reason{ReasonCode::PatternNearMiss, "the product of all columns has no kernel"};
  r.emit_before(reader);
  const std::vector<ir::Value*> heads =
      all ? emit_heads(r, qkv, product, nullptr) : emit_heads(r, qkv, qkv[0]->value(), product);
  if (heads.empty()) return Reason{ReasonCode::PatternNearMiss, "no operator cuts the product into heads"};
  commit(r, all ? "queries, keys and values" : "keys and values", qkv, heads, product);
  return std::nullopt;
}

// Attentions in the order of the graph, with the projections that each reads alone.
std::vector<Found> find(PassContext& context) {
  std::vector<Found> out;
  std::map<ir::Node*, std::size_t> index;
  std::vector<std::pair<Projection, std::map<ir::Node*, std::size_t>>> all;
  for_each_node(*context.model.graph, [&](ir::Node* node) {
    if (is_attention(*node)) {
      index[node] = out.size();
      out.push_back({.attention = node, .parts = {}});
    }
    if (auto one = projection(node)) {
      auto reached = attentions_of(node->result());
      all.emplace_back(std::move(*one), std::move(reached));
    }
  });
  for (auto& [part, reached] : all) {
    if (reached.size() != 1 || reached.begin()->second >= roles.size()) continue;
    auto& slot = out[index.at(reached.begin()->first)].parts[reached.begin()->second];
    if (!slot) slot = std::move(part);
  }
  return out;
}

void run(PassContext& context) {
  for (Found& found : find(context)) {
    auto& [q, k, v] = found.parts;
    if (!q || !k || !v) continue;
    if (Refusal no = fuse(context, {&*q, &*k, &*v})) {
      const std::string what = q->linear ? "queries, keys and values" : "keys and values";
      no->detail = "projections of " + what + " as one: " + no->detail;
      context.refuse(pass, *found.attention, std::move(*no));
    }
  }
}

}  // namespace
}  // namespace ttc::fuse_projections_pass

TTC_REGISTER_PASS({"fuse-projections",
                   "Make one product of the projections of an attention, with one movement into heads",
                   ttc::fuse_projections_pass::run});
