// Linear layers become tt.linear, convolutions tt.conv2d and tt.conv_transpose2d; an activation that is the only reader
// of one is computed in the same operator.
#include <array>

#include "match/kinds.h"
#include "replace.h"

namespace ttc {
namespace {

constexpr std::string_view pass = "replace-linear";

// The name by which tt.linear knows an activation; "" for other nodes.
std::string activation_of(const ir::Node& node) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> plain{
      {{"aten.relu.default", "relu"},
       {"aten.silu.default", "silu"},
       {"aten.tanh.default", "tanh"},
       {"aten.sigmoid.default", "sigmoid"}}};
  for (const auto& [op, name] : plain)
    if (node.op() == op) return std::string(name);
  if (node.op() != "aten.gelu.default") return {};
  const ir::Arg* approximate = node.arg("approximate");
  const std::string* text = approximate ? approximate->get_if<std::string>() : nullptr;
  return text && *text == "tanh" ? "gelu_tanh" : "gelu";
}

int schema_index(const ir::Node& node, std::string_view name) {
  return node.schema() ? node.schema()->index_of(name) : -1;
}

bool fuse_activation(PassContext& context, ir::Node* linear) {
  ir::Value* out = linear->result();
  if (out->use_count() != 1 || out->users().empty()) return false;
  ir::Node* user = out->users().front();
  const std::string name = activation_of(*user);
  const int index = schema_index(*linear, "activation");
  if (name.empty() || index < 0 || user->graph() != linear->graph() || user_refusal(context, *user, "tt." + name))
    return false;
  std::vector<ir::Arg> args = linear->args();
  args.resize(std::max(args.size(), static_cast<std::size_t>(index) + 1));
  args[static_cast<std::size_t>(index)] = name;
  const ttrt::OpRecord* record = ttrt::find_op(linear->op());
  if (call_refusal(context, *record, args)) return false;
  const auto where = linear->provenance;
  const std::string kind = linear->op() == "tt.linear" ? "linear" : "convolution";
  ir::Node* made = replace_matched(context, pass, kind + " + " + name, user, {linear}, linear->op(), std::move(args));
  if (!made) return false;
  made->provenance = where;  // the weights' module names the node
  return true;
}

bool run(PassContext& context) {
  bool changed =
      replace_ops(context, pass,
                  {"aten.linear.default", "aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default",
                   "aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding", "aten.convolution.default",
                   "aten._convolution.default", "aten._convolution_mode.default", "aten.conv_transpose1d.default",
                   "aten.conv_transpose2d.input", "aten.conv_transpose3d.input"});
  for_each_node(*context.model.graph, [&](ir::Node* node) {
    if (node->op() == "tt.linear" || node->op() == "tt.conv2d" || node->op() == "tt.conv_transpose2d")
      changed |= fuse_activation(context, node);
  });
  return changed;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"replace-linear",
                   "Replace linear layers and convolutions by device operators, with the activation that follows",
                   ttc::run});
