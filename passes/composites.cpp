// Writes operators that no device operator serves out as LibTorch defines them: the calls that their composite kernel
// makes (shapes/composite.h) go through the passes before this one in a model of their own, and take the operator's
// place where every one of them runs on the device in the end. Otherwise the operator stays whole, on the host.
#include <algorithm>
#include <unordered_map>

#include "decompose.h"
#include "ir/copy.h"
#include "ir/node_counts.h"
#include "pass/compile.h"
#include "replacement.h"
#include "shapes/composite.h"

namespace ttc::composites_pass {
namespace {

constexpr std::string_view pass = "composites";
constexpr int most_nested = 4;

using ir::Node;
using ir::Value;

thread_local int nested = 0;

bool is_known(const ir::Type& type) {
  return type.is_tensor() ? type.has_shape && type.has_dtype : type.kind == ir::TypeKind::integer && type.sym;
}

// What this pass may write out: of known sizes, and not what the user keeps on the host.
bool is_candidate(const PassContext& context, const WrittenMemory& written, const Node& node) {
  if (!node.op().starts_with("aten.") || !node.regions().empty() || !ir::computes_tensors(node) ||
      written.touches(node) || user_refusal(context, node, ""))
    return false;
  const auto operands = node.operands();
  return !operands.empty() &&
         std::all_of(operands.begin(), operands.end(), [](const Value* x) { return is_known(x->type); }) &&
         std::all_of(node.results().begin(), node.results().end(), [](const auto& x) { return is_known(x->type); });
}

// Passes from functionalize to this one, as they stand in the default order.
std::vector<std::string> passes_before() {
  std::vector<std::string> out;
  for (const PipelineStep& step : default_pipeline()) {
    if ((!out.empty() || step.pass == "functionalize") && step.pass != "number-nodes") out.emplace_back(step.pass);
    if (step.pass == pass) break;
  }
  return out;
}

bool runs_on_device(const ir::Model& model, const CompileOptions& options) {
  ir::Model copy;
  copy.graph = ir::clone(*model.graph);
  copy.weights = model.weights;
  copy.ranges = model.ranges;
  copy.info.hints = model.info.hints;
  PassManagerOptions others;
  others.disable.emplace_back(pass);
  return compile(copy, options, others).nodes.cpu == 0;
}

// The node in a model of its own.
ir::Model alone(const ir::Model& of, const Node& node) {
  ir::Model out;
  out.ranges = of.ranges;
  out.info.hints = of.info.hints;
  std::unordered_map<const Value*, ir::Arg> mapped;
  for (const Value* value : node.operands()) {
    if (mapped.contains(value)) continue;
    if (const ir::Weight* weight = of.weight_of(value))
      mapped[value] = out.add_constant(value->name, *weight);
    else
      mapped[value] = out.graph->add_input(value->type, value->name);
  }
  ir::copy_nodes({const_cast<Node*>(&node)}, *out.graph, mapped);
  ir::walk(*out.graph, [](Node* copy) { copy->origins.clear(); });
  for (const auto& result : out.graph->nodes().back()->results()) out.graph->add_output(result.get());
  return out;
}

void write_out(PassContext& context, Node* node) {
  CompileOptions options = context.options;
  options.require_full = false;
  if (runs_on_device(alone(context.model, *node), options)) return;  // promote or replace sees to it
  Rewriter r(context, pass, node);
  const Defined calls = defined(context, *node, passes_before());
  if (const Reason* why = std::get_if<Reason>(&calls)) return void(r.refuse(*why));
  const ir::Model& model = *std::get<std::unique_ptr<ir::Model>>(calls);
  if (!runs_on_device(model, options))
    return void(r.refuse({ReasonCode::Unsupported, "not all of what LibTorch makes it of runs on the device"}));
  if (const Values made = emit_calls(r, *node, model); !made.empty())
    r.commit(made, {.rule = "as LibTorch defines it"});
}

void run(PassContext& context) {
  if (nested >= most_nested) return;
  ++nested;
  const WrittenMemory written(*context.model.graph);
  std::vector<Node*> nodes;
  for_each_node(*context.model.graph, [&](Node* node) {
    if (!is_candidate(context, written, *node) ||
        (definition_of(node->op()).empty() && !has_composite_kernel(node->op())))
      return;
    if (std::holds_alternative<Reason>(find_replacement(context, written, *node))) nodes.push_back(node);
  });
  for (Node* node : nodes) write_out(context, node);
  --nested;
}

}  // namespace
}  // namespace ttc::composites_pass

TTC_REGISTER_PASS({"composites", "Write operators out as LibTorch defines them, where all of that runs on the device",
                   ttc::composites_pass::run});
