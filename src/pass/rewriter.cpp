// Emitting, taking back and committing; what a rewrite leaves in the journal.
#include "pass/rewriter.h"

#include <algorithm>

#include "support/error.h"

namespace ttc {

using ir::Arg;
using ir::Node;
using ir::SymExpr;
using ir::Value;

namespace {

// "mul" of "aten.mul.Tensor".
std::string stem_of(const std::string& op) {
  const std::size_t first = op.find('.');
  return op.substr(first + 1, op.find('.', first + 1) - first - 1);
}

}  // namespace

// ---- emitting -----------------------------------------------------------------------------------------------------

Node* Rewriter::insert(std::string op, std::vector<Arg> args) {
  TTC_CHECK(!committed_, "a rewrite emits after its commit");
  Node* made = position_->graph()->insert_before(position_, std::move(op), std::move(args));
  made->provenance = position_->provenance;
  emitted_.push_back(made);
  return made;
}

Value* Rewriter::emit(std::string op, std::vector<Arg> args, ir::Type type) {
  const std::string stem = stem_of(op);
  type.strides.clear();
  return insert(std::move(op), std::move(args))->add_result(std::move(type), stem);
}

std::vector<Value*> Rewriter::emit_all(std::string op, std::vector<Arg> args, const Node& like) {
  Node* made = insert(std::move(op), std::move(args));
  std::vector<Value*> out;
  for (const auto& result : like.results()) {
    ir::Type type = result->type;
    type.strides.clear();
    out.push_back(made->add_result(std::move(type), result->name));
  }
  return out;
}

Value* Rewriter::constant(std::string name, ir::Weight weight) {
  constants_.push_back(model().add_constant(std::move(name), std::move(weight)));
  return constants_.back();
}

Arg Rewriter::size_at_hand(const SymExpr& size) {
  const ir::Graph& graph = *position_->graph();
  for (const auto& node : graph.nodes()) {
    if (node.get() == position_) break;
    for (const auto& result : node->results())
      if (result->type.kind == ir::TypeKind::integer && result->type.sym && *result->type.sym == size)
        return result.get();
  }
  for (const ir::GraphInput& input : graph.inputs())
    for (std::size_t dim = 0; dim < input.value->type.sizes.size(); ++dim)
      if (input.value->type.sizes[dim] == size)
        return insert("aten.sym_size.int", {input.value.get(), static_cast<std::int64_t>(dim)})
            ->add_result(ir::Type::integer(size));
  return {};
}

namespace {

// The operator that computes a function of two sizes; "" for others.
std::string_view operator_of(const std::string& function) {
  if (function == "add") return "_operator.add";
  if (function == "mul") return "_operator.mul";
  if (function == "floordiv") return "_operator.floordiv";
  return function == "mod" ? "_operator.mod" : "";
}

}  // namespace

Arg Rewriter::size(const SymExpr& size) {
  if (size.is_number()) return size.number();
  if (Arg found = size_at_hand(size); !found.is_none()) return found;
  const std::string_view op = size.is_symbol() ? "" : operator_of(size.name());
  if (op.empty()) return {};
  SymExpr so_far = size.operands().front();
  Arg made = this->size(so_far);
  for (std::size_t i = 1; i < size.operands().size() && !made.is_none(); ++i) {
    const SymExpr& operand = size.operands()[i];
    Arg next = this->size(operand);
    if (next.is_none()) return {};
    so_far = SymExpr::call(size.name(), {so_far, operand});
    made = insert(std::string(op), {std::move(made), std::move(next)})->add_result(ir::Type::integer(so_far));
  }
  return made;
}

std::optional<Arg::List> Rewriter::sizes(const std::vector<SymExpr>& sizes) {
  Arg::List out;
  for (const SymExpr& one : sizes) {
    out.push_back(size(one));
    if (out.back().is_none()) return std::nullopt;
  }
  return out;
}

// ---- ending -------------------------------------------------------------------------------------------------------

void Rewriter::take_back() {
  for (auto it = emitted_.rbegin(); it != emitted_.rend(); ++it) (*it)->graph()->erase(*it);
  emitted_.clear();
  for (auto it = constants_.rbegin(); it != constants_.rend(); ++it) model().remove_constant(*it);
  constants_.clear();
}

bool Rewriter::take(std::string rule, std::vector<std::string> gone, std::string result) {
  TTC_CHECK(!committed_, "a rewrite is committed twice");
  if (!possible_ || !context_.budget.take()) {
    take_back();
    return false;
  }
  context_.matches.push_back({.pass = pass_,
                              .rule = std::move(rule),
                              .nodes = std::move(gone),
                              .result = std::move(result),
                              .module = node_ ? node_->provenance->module_path : std::string()});
  context_.changed = true;
  committed_ = true;
  constants_.clear();
  return true;
}

bool Rewriter::commit(const std::vector<Value*>& values, Commit how) {
  std::vector<std::string> gone{node_name(*node_)};
  for (const Node* node : how.matched)
    if (node != node_) gone.push_back(node_name(*node));
  const auto first = std::find_if(values.begin(), values.end(), [](const Value* v) { return v != nullptr; });
  if (!take(how.rule.empty() ? node_->op() : how.rule, std::move(gone), first == values.end() ? "" : (*first)->name))
    return false;
  for (std::size_t i = 0; i < node_->results().size() && i < values.size(); ++i) {
    if (values[i] == nullptr) continue;
    node_->result(i)->replace_all_uses_with(values[i]);
    if (std::find(emitted_.begin(), emitted_.end(), values[i]->def()) != emitted_.end())
      merge_origins(*values[i]->def(), node_->origins);
  }
  emitted_.clear();
  std::erase(how.matched, node_);
  node_->graph()->erase(node_);
  const std::vector<int> origins = erase_unused(how.matched);
  if (first != values.end() && (*first)->def() != nullptr && !origins.empty()) merge_origins(*(*first)->def(), origins);
  return true;
}

Node* Rewriter::commit_as(std::string op, std::vector<Arg> args, Commit how) {
  std::vector<Node*> others;
  std::vector<std::string> gone{node_name(*node_)};
  for (Node* node : how.matched)
    if (node != node_ && std::find(others.begin(), others.end(), node) == others.end()) {
      others.push_back(node);
      gone.push_back(node_name(*node));
    }
  if (how.results.empty())
    for (std::size_t i = 0; i < node_->results().size(); ++i) how.results.push_back(static_cast<int>(i));
  const auto old = [&](int i) { return node_->result(static_cast<std::size_t>(i)); };
  if (!take(how.rule.empty() ? node_->op() : how.rule, std::move(gone),
            how.results.empty() ? op : old(how.results[0])->name))
    return nullptr;
  Node* made = node_->graph()->insert_before(node_, std::move(op), std::move(args));
  made->provenance = node_->provenance;
  made->origins = node_->origins;
  for (const int i : how.results) {
    Value* result = made->take_result(*old(i));
    if (!how.keep_strides) result->type.strides.clear();
  }
  emitted_.clear();
  node_->graph()->erase(node_);
  merge_origins(*made, erase_unused(others));
  return made;
}

bool Rewriter::commit_edit(std::string rule, const std::function<void()>& edit, std::string result,
                           std::vector<std::string> gone) {
  if (gone.empty()) gone.push_back(node_name(*node_));
  if (!take(std::move(rule), std::move(gone), std::move(result))) return false;
  emitted_.clear();
  edit();
  return true;
}

bool Rewriter::refuse(Reason reason) {
  context_.refuse(pass_, *node_, std::move(reason));
  return false;
}

// ---- origins ------------------------------------------------------------------------------------------------------

std::vector<int> erase_unused(const std::vector<Node*>& candidates) {
  std::vector<int> origins;
  std::vector<Node*> left = candidates;
  bool erased = true;
  while (erased) {
    erased = false;
    for (Node*& node : left) {
      if (!node) continue;
      const bool used =
          std::any_of(node->results().begin(), node->results().end(), [](const auto& r) { return r->has_uses(); });
      if (used) continue;
      origins.insert(origins.end(), node->origins.begin(), node->origins.end());
      node->graph()->erase(node);
      node = nullptr;
      erased = true;
    }
  }
  return origins;
}

void merge_origins(Node& into, const std::vector<int>& origins) {
  into.origins.insert(into.origins.end(), origins.begin(), origins.end());
  std::sort(into.origins.begin(), into.origins.end());
  into.origins.erase(std::unique(into.origins.begin(), into.origins.end()), into.origins.end());
}

}  // namespace ttc
