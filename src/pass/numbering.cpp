// See numbering.h.
#include "pass/numbering.h"

#include <array>
#include <string_view>

namespace ttc {
namespace {

bool holds_tensor(const ir::Type& type) {
  if (type.is_tensor()) return true;
  for (const ir::Type& element : type.elements)
    if (holds_tensor(element)) return true;
  return false;
}

std::optional<double> dim(const ir::Value* value, int i, const ir::SymBinding& shapes) {
  if (!value || !value->type.has_shape) return std::nullopt;
  const int rank = value->type.rank();
  if (i < 0) i += rank;
  if (i < 0 || i >= rank) return std::nullopt;
  const auto n = value->type.sizes[static_cast<std::size_t>(i)].evaluate(shapes);
  return n ? std::optional<double>(static_cast<double>(*n)) : std::nullopt;
}

std::optional<double> numel(const ir::Value* value, const ir::SymBinding& shapes) {
  if (!value || !value->type.has_shape) return std::nullopt;
  double product = 1;
  for (int i = 0; i < value->type.rank(); ++i) {
    const auto n = dim(value, i, shapes);
    if (!n) return std::nullopt;
    product *= *n;
  }
  return product;
}

double product_or_zero(std::optional<double> a, std::optional<double> b) { return a && b ? 2 * *a * *b : 0; }

double attention_flops(const ir::Node& node, const ir::SymBinding& shapes) {
  const auto queries = numel(node.operand(0), shapes);
  const auto depth = dim(node.operand(0), -1, shapes), keys = dim(node.operand(1), -2, shapes);
  const auto width = dim(node.operand(2), -1, shapes);
  if (!queries || !depth || !keys || !width || *depth == 0) return 0;
  return 2 * *queries * *keys * (1 + *width / *depth);
}

double convolution_flops(const ir::Node& node, const ir::SymBinding& shapes) {
  const auto weights = numel(node.operand(1), shapes), out_channels = dim(node.operand(1), 0, shapes);
  const ir::Arg* transposed = node.arg("transposed");
  const bool backwards =
      node.op().starts_with("aten.conv_transpose") || (transposed && transposed->boolean().value_or(false));
  const auto positions = numel(backwards ? node.operand(0) : node.result(), shapes);
  if (!weights || !out_channels || *out_channels == 0) return 0;
  return product_or_zero(positions, *weights / *out_channels);
}

}  // namespace

bool is_compute(const ir::Node& node) {
  const std::string& op = node.op();
  if (op == "tt.to_device" || op == "tt.to_host" || !node.regions().empty()) return false;
  if (op.starts_with("prim.") || op.starts_with("_operator.") || op.starts_with("aten._assert")) return false;
  for (const auto& result : node.results())
    if (holds_tensor(result->type)) return true;
  return false;
}

double flops_of(const ir::Node& node, const ir::SymBinding& shapes) {
  static constexpr std::array products{"aten._grouped_mm.default", "aten.linear.default", "aten.mm.default",
                                       "aten.bmm.default", "aten.matmul.default"};
  static constexpr std::array sums{"aten.addmm.default", "aten.baddbmm.default"};
  if (node.results().empty()) return 0;
  const std::string& op = node.op();
  for (std::string_view name : products)
    if (op == name) return product_or_zero(numel(node.result(), shapes), dim(node.operand(0), -1, shapes));
  for (std::string_view name : sums)
    if (op == name) return product_or_zero(numel(node.result(), shapes), dim(node.operand(1), -1, shapes));
  if (op == "aten.scaled_dot_product_attention.default") return attention_flops(node, shapes);
  if (op.starts_with("aten.conv") || op.starts_with("aten._convolution")) return convolution_flops(node, shapes);
  return 0;
}

namespace {

void number_graph(PassContext& context, ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (const auto& region : node->regions()) number_graph(context, *region);
    node->origins.clear();
    if (!is_compute(*node)) continue;
    node->origins.push_back(static_cast<int>(context.canonical.size()));
    context.canonical.push_back({.name = node_name(*node),
                                 .op = node->op(),
                                 .module = node->provenance->module_path,
                                 .source = node->provenance->source,
                                 .flops = flops_of(*node, context.shapes)});
  }
}

}  // namespace

void number_nodes(PassContext& context) {
  context.canonical.clear();
  number_graph(context, *context.model.graph);
}

}  // namespace ttc
