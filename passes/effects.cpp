// See effects.h.
#include "effects.h"

#include <algorithm>
#include <array>

namespace ttc {
namespace {

// By the name between namespace and overload.
constexpr std::array<std::string_view, 24> random_ops{
    "rand",        "randn",  "randint", "randperm",   "rand_like",      "randn_like", "randint_like",   "bernoulli",
    "multinomial", "normal", "poisson", "binomial",   "native_dropout", "uniform",    "exponential",    "geometric",
    "log_normal",  "cauchy", "empty",   "empty_like", "empty_strided",  "new_empty",  "empty_permuted", "rrelu"};

ir::Arg replaced(const ir::Arg& in, const ir::Value* value, const ir::Arg& by) {
  if (in.value() == value) return by;
  const ir::Arg::List* items = in.list();
  if (!items) return in;
  ir::Arg::List out;
  for (const ir::Arg& item : *items) out.push_back(replaced(item, value, by));
  return out;
}

void replace_in_outputs(ir::Graph& graph, const ir::Value* value, const ir::Arg& by) {
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    graph.set_output(i, replaced(graph.outputs()[i].arg, value, by));
  for (const auto& node : graph.nodes())
    for (const auto& region : node->regions()) replace_in_outputs(*region, value, by);
}

}  // namespace

std::string_view base_name(std::string_view op) {
  const auto dot = op.find('.');
  if (dot == std::string_view::npos) return op;
  op.remove_prefix(dot + 1);
  return op.substr(0, op.find('.'));
}

bool mutates(const ir::Node& node) { return node.schema() && node.schema()->mutates(); }

bool is_random(const ir::Node& node) {
  const std::string_view name = base_name(node.op());
  if (std::find(random_ops.begin(), random_ops.end(), name) != random_ops.end()) return true;
  return name.ends_with("dropout") && node.arg("train") && node.arg("train")->boolean() != false;
}

bool has_effects(const ir::Node& node) {
  if (!node.schema() || node.results().empty() || mutates(node) || is_random(node)) return true;
  for (const auto& region : node.regions())
    for (const auto& inner : region->nodes())
      if (has_effects(*inner)) return true;
  return node.regions().empty() && node.op().starts_with("higher_order.");
}

bool any_mutation(const ir::Graph& graph) {
  bool found = false;
  ir::walk(graph, [&](ir::Node* node) { found = found || mutates(*node); });
  return found;
}

bool regions_capture(const ir::Node& node) { return !node.op().starts_with("higher_order."); }

void replace_with_arg(ir::Value* value, const ir::Arg& arg) {
  if (ir::Value* other = arg.value()) return value->replace_all_uses_with(other);
  const std::vector<ir::Node*> users = value->users();
  for (ir::Node* user : users) {
    std::vector<ir::Arg> args;
    for (const ir::Arg& old : user->args()) args.push_back(replaced(old, value, arg));
    user->set_args(std::move(args));
  }
  if (value->output_uses() > 0) replace_in_outputs(*value->graph(), value, arg);
}

}  // namespace ttc
