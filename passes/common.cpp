// Replacing matched nodes, walking graphs, near misses and globs.
#include "common.h"

#include <algorithm>

#include "written_memory.h"

namespace ttc {

bool disturbs_writes(const PassContext& context, const ir::Node& root, const std::vector<ir::Node*>& matched,
                     std::string_view op) {
  const WrittenMemory written(*context.model.graph);
  if (written.empty()) return false;
  if (op.starts_with("tt.") && written.gives(root)) return true;
  return std::any_of(matched.begin(), matched.end(),
                     [&](const ir::Node* node) { return node != &root && written.touches(*node); });
}

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

ttrt::HostTensor view_of(const ir::Weight& weight) {
  const auto [owner, data] = weight.storage->load();
  return {.dtype = weight.dtype,
          .sizes = weight.sizes,
          .strides = weight.strides,
          .owner = std::const_pointer_cast<void>(owner),
          .data = const_cast<std::byte*>(data) + weight.storage_offset * size_of(weight.dtype)};
}

void for_each_node(ir::Graph& graph, const std::function<void(ir::Node*)>& f) {
  graph.for_each([&](ir::Node* node) {
    for (const auto& region : node->regions()) for_each_node(*region, f);
    f(node);
  });
}

void rewrite_all(PassContext& context, void (*rewrite)(PassContext&, ir::Node*)) {
  // Each rewrite removes nodes or brings them closer to their final form; the bound only guards against a bug.
  long before = -1;
  for (int round = 0; round < 64 && context.budget.taken() != before; ++round) {
    before = context.budget.taken();
    for_each_node(*context.model.graph, [&](ir::Node* node) { rewrite(context, node); });
  }
}

void refuse_near_miss(PassContext& context, std::string_view pass, std::string_view pattern, const ir::Node& node,
                      const match::NearMiss& miss) {
  context.refuse(pass, node, miss.reason(pattern, node));
}

}  // namespace ttc
