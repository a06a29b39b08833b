// Puts the body of higher-order operators that only switch a mode of PyTorch in their place: gradients on or off means
// nothing for inference, and autocast that is switched off changes no dtype. Also branches whose condition is a
// literal.
#include "inline_wraps.h"

#include "effects.h"
#include "pass/rewriter.h"

namespace ttc {
namespace {

constexpr std::string_view inline_wraps = "inline-wraps";

struct Body {
  int region = 0;
  std::vector<ir::Arg> args;
};

// The region an argument names, and the arguments behind it.
std::optional<Body> body_at(const ir::Node& node, std::size_t i) {
  if (i >= node.args().size()) return std::nullopt;
  const auto* region = node.arg(i).get_if<ir::RegionArg>();
  if (!region || region->index < 0 || static_cast<std::size_t>(region->index) >= node.regions().size())
    return std::nullopt;
  return Body{region->index, {node.args().begin() + static_cast<std::ptrdiff_t>(i) + 1, node.args().end()}};
}

std::optional<Body> chosen_branch(const ir::Node& node) {
  const auto condition = node.args().empty() ? std::nullopt : node.arg(0).boolean();
  if (!condition || node.regions().size() != 2) return std::nullopt;
  if (node.op() == "prim.if") return Body{*condition ? 0 : 1, {}};
  if (node.op() != "higher_order.cond" || node.args().size() != 4) return std::nullopt;
  auto body = body_at(node, *condition ? 1 : 2);
  const ir::Arg::List* operands = node.arg(3).list();
  if (body && operands) body->args = *operands;
  return operands ? body : std::nullopt;
}

std::optional<Body> body_of(PassContext& context, const ir::Node& node) {
  if (node.op() == "higher_order.wrap_with_set_grad_enabled") return body_at(node, 1);
  if (node.op() != "higher_order.wrap_with_autocast") return chosen_branch(node);
  const ir::Arg* enabled = node.arg("enabled") ? node.arg("enabled") : node.args().size() > 2 ? &node.arg(2) : nullptr;
  if (enabled && enabled->boolean() == false) return body_at(node, 4);
  context.refuse(inline_wraps, node,
                 {ReasonCode::Unsupported, "autocast is on: PyTorch chooses the dtypes inside while it runs"});
  return std::nullopt;
}

bool inline_body(PassContext& context, ir::Node* node, const Body& body) {
  const ir::Graph& region = *node->regions()[static_cast<std::size_t>(body.region)];
  if (region.inputs().size() != body.args.size() || region.outputs().size() != node->results().size()) return false;
  return Rewriter(context, inline_wraps, node).commit_edit(node->op(), [&] {
    const std::vector<ir::Arg> outputs = ir::inline_region(region, body.args, node);
    for (std::size_t i = 0; i < outputs.size(); ++i) replace_with_arg(node->result(i), outputs[i]);
    node->graph()->erase(node);
  });
}

void inline_all(PassContext& context) { inline_regions(context, *context.model.graph); }

}  // namespace

bool inline_regions(PassContext& context, ir::Graph& graph) {
  bool changed = false, again = true;
  while (again) {
    again = false;
    graph.for_each([&](ir::Node* node) {
      for (const auto& region : node->regions()) changed = inline_regions(context, *region) || changed;
      if (node->regions().empty()) return;
      const auto body = body_of(context, *node);
      if (body) again = inline_body(context, node, *body) || again;
    });
    changed = changed || again;
  }
  return changed;
}

}  // namespace ttc

TTC_REGISTER_PASS({"inline-wraps",
                   "Inline regions that only switch gradients or autocast off, and branches already decided",
                   ttc::inline_all});
