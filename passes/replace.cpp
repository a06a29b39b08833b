// Composite operators become device operators, group by group: linear layers and convolutions, with the activation that
// is the only reader of one; norms; attention; and the views and transposes around attention (view and transpose of
// [B, S, H * D] to [B, H, S, D] split heads, the way back concatenates them; a norm of heads on the way goes behind).
// What is cheap by itself is left to place, which weighs it against the transfers.
#include <algorithm>

#include "match/kinds.h"
#include "ops/activation.h"
#include "replacement.h"

namespace ttc::replace_pass {
namespace {

constexpr std::string_view pass = "replace";

bool is_of(const ir::Node& node, std::string_view family) {
  const auto found = ttrt::lowerings_of(node.op());
  return std::any_of(found.begin(), found.end(), [&](const auto& each) { return each.first->family == family; });
}

// Every node of a family, with a refusal for what has to stay. What another operator takes is place's.
void replace_family(PassContext& context, std::string_view family) {
  const WrittenMemory written(*context.model.graph);
  for_each_node(*context.model.graph, [&](ir::Node* node) {
    if (!is_of(*node, family)) return;
    auto found = find_replacement(context, written, *node);
    if (Reason* reason = std::get_if<Reason>(&found))
      context.refuse(pass, *node, std::move(*reason));
    else if (std::get<Replacement>(found).record->family == family)
      replace_node(context, pass, node, std::move(std::get<Replacement>(found)));
  });
}

// ---- activations behind layers

int schema_index(const ir::Node& node, std::string_view name) {
  return node.schema() ? node.schema()->index_of(name) : -1;
}

void fuse_activation(PassContext& context, ir::Node* linear) {
  ir::Value* out = linear->result();
  if (out->use_count() != 1 || out->users().empty()) return;
  ir::Node* user = out->users().front();
  const auto [activation, name] = ttrt::ops::activation_of(*user);
  const int index = schema_index(*linear, "activation");
  if (name.empty() || index < 0 || user->graph() != linear->graph() ||
      joining_refusal(context, *linear, *user, activation))
    return;
  std::vector<ir::Arg> args = linear->args();
  args.resize(std::max(args.size(), static_cast<std::size_t>(index) + 1));
  args[static_cast<std::size_t>(index)] = std::string(name);
  const ttrt::OpRecord* record = ttrt::find_op(linear->op());
  if (call_refusal(context, *record, args)) return;
  const auto where = linear->provenance;
  const MapEntry* entry = context.entry_for(*linear, linear->op());
  const std::string rule = linear->op().substr(linear->op().find('.') + 1) + " + " + std::string(name);
  ir::Node* made = replace_matched(context, pass, rule, user, {linear}, linear->op(), std::move(args));
  if (made == nullptr) return;
  made->provenance = where;  // the weights' module names the node
  if (entry != nullptr) context.taken[node_name(*made)] = entry;
}

// ---- heads

const std::vector<int> swaps_heads{0, 2, 1, 3};

// The value that `value` permutes, with the whole permutation; identities and several permutations in between count.
struct Permuted {
  ir::Value* base;
  std::vector<int> order{0, 1, 2, 3};
  std::vector<ir::Node*> nodes = {};
};

Permuted permuted(ir::Value* value) {
  Permuted p{.base = value};
  while (ir::Node* node = p.base->def()) {
    const auto order = match::permutation(*node);
    if (order && order->size() == 4) {
      for (int& dim : p.order) dim = (*order)[static_cast<std::size_t>(dim)];
    } else if (!match::is_identity(*node)) {
      break;
    }
    p.nodes.push_back(node);
    p.base = node->operand(0);
  }
  return p;
}

bool same(const ir::Type& a, int i, const ir::Type& b, int j) {
  return a.sizes[static_cast<std::size_t>(i)] == b.sizes[static_cast<std::size_t>(j)];
}

bool make(PassContext& context, std::string_view rule, ir::Node* root, const std::vector<ir::Node*>& nodes,
          ttrt::Role role, std::vector<ir::Arg> args) {
  const ttrt::OpRecord& record = ttrt::op_for(role);
  if (user_refusal(context, *root, record.name) || call_refusal(context, record, args)) return false;
  return replace_matched(context, pass, rule, root, nodes, std::string(record.name), std::move(args)) != nullptr;
}

// The norm of each head's elements that stands on the way from the view to the transpose, where nothing else reads it;
// nullptr where there is none. The rows of a norm do not know of each other, so it gives the same bits behind the
// transpose, where heads are what layers are cut into.
ir::Node* norm_of_heads(const Permuted& p) {
  ir::Node* norm = p.base->def();
  const ttrt::OpRecord* record = norm ? ttrt::find_op(norm->op()) : nullptr;
  const auto alone = [](const ir::Node* each) { return each->result()->use_count() == 1; };
  const bool is = record && record->family == "norm" && alone(norm) && norm->graph() == p.nodes.front()->graph();
  return is && std::all_of(p.nodes.begin() + 1, p.nodes.end(), alone) ? norm : nullptr;
}

// norm(split_heads(x)) in the place of transpose(norm(view(x))).
bool split_before_norm(PassContext& context, const Permuted& p, ir::Node* norm, std::vector<ir::Arg> split) {
  const ttrt::OpRecord& record = ttrt::op_for(ttrt::Role::split_heads);
  ir::Node *root = p.nodes.front(), *view = norm->operand(0)->def();
  std::vector<ir::Node*> moves = p.nodes, gone{norm};
  moves.push_back(view);
  gone.insert(gone.end(), moves.begin(), moves.end());
  if (user_refusal(context, *root, record.name) || call_refusal(context, record, split) ||
      disturbs_writes(context, *root, gone, record.name))
    return false;
  const MapEntry* entry = context.entry_for(*norm, norm->op());
  Rewriter r(context, pass, root);
  ir::Value* heads = r.emit_like(std::string(record.name), std::move(split), root->result());
  std::vector<ir::Arg> args = norm->args();
  args[0] = heads;
  ir::Value* made = r.emit_like(norm->op(), std::move(args), root->result());
  made->def()->provenance = norm->provenance;
  const std::string name = root->result()->name;
  std::vector<std::string> names;
  for (const ir::Node* each : gone) names.push_back(node_name(*each));
  r.commit_edit(
      "view + norm + transpose",
      [&] {
        root->result()->replace_all_uses_with(made);
        merge_origins(*heads->def(), erase_unused(p.nodes));
        merge_origins(*made->def(), erase_unused({norm}));
        merge_origins(*heads->def(), erase_unused({view}));
        made->name = name;
      },
      name, std::move(names));
  if (r.committed() && entry != nullptr) context.taken[node_name(*made->def())] = entry;
  return r.committed();
}

bool split(PassContext& context, ir::Node* node) {
  if (!match::permutation(*node) || node->result()->type.rank() != 4) return false;
  const Permuted p = permuted(node->result());
  if (p.order != swaps_heads) return false;
  ir::Node* norm = norm_of_heads(p);
  const ir::Value* parted = norm ? norm->operand(0) : p.base;
  ir::Node* view = parted->def();
  if (!view || !match::is_reshape(*view) || parted->use_count() != 1) return false;
  const ir::Type &wide = view->operand(0)->type, &heads = parted->type;
  const auto count = heads.dim(2);
  if (!wide.has_shape || wide.rank() != 3 || !same(wide, 0, heads, 0) || !same(wide, 1, heads, 1) || !count ||
      !is_floating(wide.dtype))
    return false;
  std::vector<ir::Arg> args{view->operand(0), *count};
  if (norm) return split_before_norm(context, p, norm, std::move(args));
  std::vector<ir::Node*> nodes = p.nodes;
  nodes.push_back(view);
  return make(context, "view + transpose", node, nodes, ttrt::Role::split_heads, std::move(args));
}

bool concat(PassContext& context, ir::Node* node) {
  if (!match::is_reshape(*node) || !node->operand(0)->type.has_shape || node->operand(0)->type.rank() != 4)
    return false;
  const ir::Type &merged = node->result()->type, &split = node->operand(0)->type;
  if (!merged.has_shape || merged.rank() != 3 || !same(merged, 0, split, 0) || !same(merged, 1, split, 1) ||
      !is_floating(merged.dtype))
    return false;
  const Permuted p = permuted(node->operand(0));
  if (p.order != swaps_heads) return false;
  return make(context, "transpose + reshape", node, p.nodes, ttrt::Role::concat_heads, {p.base});
}

void run(PassContext& context) {
  if (context.wants("linear")) {
    replace_family(context, "linear");
    for_each_node(*context.model.graph, [&](ir::Node* node) {
      if (schema_index(*node, "activation") >= 0) fuse_activation(context, node);
    });
  }
  if (context.wants("norm")) replace_family(context, "norm");
  if (context.wants("rotary")) replace_rotary(context);
  if (context.wants("attention")) replace_attention(context, WrittenMemory(*context.model.graph));
  if (context.wants("heads"))
    for_each_node(*context.model.graph, [&](ir::Node* node) {
      if (!split(context, node)) concat(context, node);
    });
}

}  // namespace
}  // namespace ttc::replace_pass

TTC_REGISTER_PASS({"replace",
                   "Replace layers with their activations, norms, rotary embedding, attention and the moves of heads "
                   "by device operators",
                   ttc::replace_pass::run,
                   {"linear", "norm", "rotary", "attention", "heads"}});
