// See decompose.h.
#include "decompose.h"

#include "support/error.h"

namespace ttc {

ir::Value* Decomposer::emit(std::string op, std::vector<ir::Arg> args, ir::Type type) {
  const std::size_t first = op.find('.');
  const std::string stem = op.substr(first + 1, op.find('.', first + 1) - first - 1);
  ir::Node* node = fused_->graph()->insert_before(fused_, std::move(op), std::move(args));
  node->provenance = fused_->provenance;
  type.strides.clear();
  return node->add_result(std::move(type), fused_->graph()->unique_name(stem));
}

std::vector<ir::Value*> Decomposer::emit_all(std::string op, std::vector<ir::Arg> args, const ir::Node& like) {
  ir::Node* node = fused_->graph()->insert_before(fused_, std::move(op), std::move(args));
  node->provenance = fused_->provenance;
  std::vector<ir::Value*> out;
  for (const auto& result : like.results()) {
    ir::Type type = result->type;
    type.strides.clear();
    out.push_back(node->add_result(std::move(type), fused_->graph()->unique_name(result->name)));
  }
  return out;
}

ir::Value* Decomposer::linear(ir::Value* x, ir::Value* weight, const ir::Arg& bias) {
  ir::Type type = x->type;
  type.sizes.back() = weight->type.sizes.at(0);
  return emit("aten.linear.default", {x, weight, bias}, std::move(type));
}

ir::Value* Decomposer::reshape(ir::Value* x, const std::vector<ir::SymExpr>& sizes) {
  ir::Arg::List list;
  for (const ir::SymExpr& size : sizes) {
    list.push_back(size_argument(fused_, size));
    TTC_CHECK(!list.back().is_none(), "a size that the graph does not have");
  }
  ir::Type type = x->type;
  type.sizes = sizes;
  return emit("aten.reshape.default", {x, std::move(list)}, std::move(type));
}

ir::Value* Decomposer::transpose(ir::Value* x, int a, int b) {
  ir::Type type = x->type;
  std::swap(type.sizes.at(static_cast<std::size_t>(a)), type.sizes.at(static_cast<std::size_t>(b)));
  return emit("aten.transpose.int", {x, a, b}, std::move(type));
}

ir::Value* Decomposer::slice(ir::Value* x, int dim, std::int64_t begin, std::int64_t end) {
  ir::Type type = x->type;
  type.sizes.at(static_cast<std::size_t>(dim)) = ir::SymExpr(end - begin);
  return emit("aten.slice.Tensor", {x, dim, begin, end, 1}, std::move(type));
}

std::vector<ir::Value*> Decomposer::split(ir::Value* x, int dim, std::int64_t parts) {
  const std::int64_t size = x->type.sizes.at(static_cast<std::size_t>(dim)).number() / parts;
  ir::Type type = x->type;
  type.sizes[static_cast<std::size_t>(dim)] = ir::SymExpr(size);
  type.strides.clear();
  ir::Node* node = fused_->graph()->insert_before(
      fused_, "aten.split_with_sizes.default",
      {x, ir::Arg::ints(std::vector<std::int64_t>(static_cast<std::size_t>(parts), size)), dim});
  node->provenance = fused_->provenance;
  std::vector<ir::Value*> out;
  for (std::int64_t i = 0; i < parts; ++i) out.push_back(node->add_result(type, fused_->graph()->unique_name("split")));
  return out;
}

void finish_decomposition(PassContext& context, std::string_view pass, ir::Node* node,
                          const std::vector<ir::Value*>& values) {
  context.matches.push_back(
      {std::string(pass), node->op(), {node_name(*node)}, values.at(0)->name, node->provenance->module_path});
  for (std::size_t i = 0; i < node->results().size() && i < values.size(); ++i)
    if (values[i] != nullptr) node->result(i)->replace_all_uses_with(values[i]);
  node->graph()->erase(node);
}

}  // namespace ttc
