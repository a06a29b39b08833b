// See common.h.
#include "common.h"

#include <algorithm>

#include "written_memory.h"

namespace ttc {

namespace {

// Nodes that go would read, later than they do, what is written in place meanwhile; or a written tensor would move to
// the device.
bool disturbs_writes(const PassContext& context, const ir::Node& root, const std::vector<ir::Node*>& matched,
                     std::string_view op) {
  const WrittenMemory written(*context.model.graph);
  if (written.empty()) return false;
  if (op.starts_with("tt.") && written.gives(root)) return true;
  return std::any_of(matched.begin(), matched.end(),
                     [&](const ir::Node* node) { return node != &root && written.touches(*node); });
}

}  // namespace

ir::Node* replace_matched(PassContext& context, std::string_view pass, std::string_view rule, ir::Node* root,
                          const std::vector<ir::Node*>& matched, std::string op, std::vector<ir::Arg> args) {
  Rewriter r(context, pass, root);
  return replace_matched(r, rule, matched, std::move(op), std::move(args));
}

ir::Node* replace_matched(Rewriter& r, std::string_view rule, const std::vector<ir::Node*>& matched, std::string op,
                          std::vector<ir::Arg> args) {
  if (disturbs_writes(r.context(), *r.node(), matched, op)) return nullptr;
  return r.commit_as(std::move(op), std::move(args),
                     {.rule = std::string(rule), .matched = matched, .keep_strides = true});
}

ir::Value* emit(Rewriter& r, std::string op, std::vector<ir::Arg> args, ir::Type type) {
  type.strides.clear();
  return r.insert(std::move(op), std::move(args))->add_result(std::move(type));
}

ir::Value* shared_constant(Rewriter& r, const std::string& name, ir::Weight view) {
  ir::Value* known = r.model().graph->find_input_by_target(name);
  return known ? known : r.constant(name, std::move(view));
}

namespace {

bool rewrite_graph(PassContext& context, ir::Graph& graph, bool (*rewrite)(PassContext&, ir::Node*)) {
  bool changed = false;
  graph.for_each([&](ir::Node* node) {
    for (const auto& region : node->regions()) changed |= rewrite_graph(context, *region, rewrite);
    changed |= rewrite(context, node);
  });
  return changed;
}

}  // namespace

void for_each_node(ir::Graph& graph, const std::function<void(ir::Node*)>& f) {
  graph.for_each([&](ir::Node* node) {
    for (const auto& region : node->regions()) for_each_node(*region, f);
    f(node);
  });
}

bool rewrite_all(PassContext& context, bool (*rewrite)(PassContext&, ir::Node*)) {
  bool changed = false;
  // Each rewrite removes nodes or brings them closer to their final form; the bound only guards against a bug.
  for (int round = 0; round < 64; ++round) {
    if (!rewrite_graph(context, *context.model.graph, rewrite)) return changed;
    changed = true;
  }
  return changed;
}

namespace {

// A value or an input's dim of this size; none where the graph has neither.
ir::Arg size_at_hand(ir::Node* before, const ir::SymExpr& size) {
  for (const auto& node : before->graph()->nodes()) {
    if (node.get() == before) break;
    for (const auto& result : node->results())
      if (result->type.kind == ir::TypeKind::integer && result->type.sym && *result->type.sym == size)
        return result.get();
  }
  for (const ir::GraphInput& input : before->graph()->inputs())
    for (std::size_t dim = 0; dim < input.value->type.sizes.size(); ++dim) {
      if (!(input.value->type.sizes[dim] == size)) continue;
      ir::Node* node = before->graph()->insert_before(before, "aten.sym_size.int",
                                                      {input.value.get(), static_cast<std::int64_t>(dim)});
      node->provenance = before->provenance;
      return node->add_result(ir::Type::integer(size));
    }
  return {};
}

// The operator that computes a function of two sizes; "" for others.
std::string_view operator_of(const std::string& function) {
  if (function == "add") return "_operator.add";
  if (function == "mul") return "_operator.mul";
  if (function == "floordiv") return "_operator.floordiv";
  return function == "mod" ? "_operator.mod" : "";
}

}  // namespace

ir::Arg size_argument(ir::Node* before, const ir::SymExpr& size) {
  if (size.is_number()) return size.number();
  if (ir::Arg found = size_at_hand(before, size); !found.is_none()) return found;
  const std::string_view op = size.is_symbol() ? "" : operator_of(size.name());
  if (op.empty()) return {};
  ir::SymExpr so_far = size.operands().front();
  ir::Arg made = size_argument(before, so_far);
  for (std::size_t i = 1; i < size.operands().size() && !made.is_none(); ++i) {
    const ir::SymExpr& operand = size.operands()[i];
    ir::Arg next = size_argument(before, operand);
    if (next.is_none()) return {};
    so_far = ir::SymExpr::call(size.name(), {so_far, operand});
    ir::Node* node = before->graph()->insert_before(before, std::string(op), {std::move(made), std::move(next)});
    node->provenance = before->provenance;
    made = node->add_result(ir::Type::integer(so_far));
  }
  return made;
}

void refuse_near_miss(PassContext& context, std::string_view pass, std::string_view pattern, const ir::Node& node,
                      const match::NearMiss& miss) {
  const std::string name = node_name(node);
  for (const RefusalRecord& known : context.refusals)
    if (known.pass == pass && known.node == name) return;
  context.refuse(pass, node, miss.reason(pattern, node));
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] != '*' && pattern[p] == text[t]))) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace ttc
