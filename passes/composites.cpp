// Writes operators that no device operator serves out as LibTorch defines them: the calls that their composite kernel
// makes (shapes/composite.h) go through the passes before this one in a model of their own, and take the operator's
// place where every one of them runs on the device in the end. Otherwise the operator stays whole, on the host.
#include <algorithm>
#include <unordered_map>

#include "canonical_forms.h"
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

// Operators that need not be followed any further: device operators or rules may take them as they are.
bool whole(std::string_view op) {
  return !ttrt::lowerings_of(op).empty() || has_rule(op) || is_fill(op) || !definition_of(op).empty();
}

// Its module decides what the user wants of it.
void give_provenance(const Node& from, ir::Model& to) {
  ir::walk(*to.graph, [&](Node* node) { node->provenance = from.provenance; });
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

ir::Arg replaced(const ir::Arg& arg, const std::unordered_map<const Value*, ir::Arg>& by) {
  if (const Value* value = arg.value()) return by.at(value);
  const ir::Arg::List* items = arg.list();
  if (!items) return arg;
  ir::Arg::List out;
  for (const ir::Arg& item : *items) out.push_back(replaced(item, by));
  return out;
}

// The composite's nodes before the node; nothing where a type is not the node's.
Values emit(Rewriter& r, const Node& node, const ir::Model& calls) {
  std::unordered_map<const Value*, ir::Arg> mapped;
  std::vector<Value*> operands;
  for (Value* value : node.operands())
    if (value->type.is_tensor() && std::find(operands.begin(), operands.end(), value) == operands.end())
      operands.push_back(value);
  std::size_t next = 0;
  for (const ir::GraphInput& input : calls.graph->inputs()) {
    const Value* value = input.value.get();
    if (const ir::Weight* weight = calls.weight_of(value))
      mapped[value] = r.constant(input.target, *weight);
    else if (value->type.is_tensor())
      mapped[value] = operands.at(next++);
    else if (mapped[value] = r.size(*value->type.sym); mapped[value].is_none())
      return {};
  }
  for (const auto& call : calls.graph->nodes()) {
    std::vector<ir::Arg> args;
    for (const ir::Arg& arg : call->args()) args.push_back(replaced(arg, mapped));
    Node* made = r.insert(call->op(), std::move(args));
    for (const auto& result : call->results()) mapped[result.get()] = made->add_result(result->type);
  }
  Values out;
  for (std::size_t i = 0; i < calls.graph->outputs().size(); ++i) {
    const Value* made = calls.graph->outputs()[i].arg.value();
    out.push_back(made ? mapped.at(made).value() : nullptr);
    if (!out.back() || i >= node.results().size() || !r.fits(out.back(), node.result(i))) return {};
  }
  return out.size() == node.results().size() ? out : Values();
}

void write_out(PassContext& context, Node* node) {
  CompileOptions options = context.options;
  options.require_full = false;
  if (runs_on_device(alone(context.model, *node), options)) return;  // promote or replace sees to it
  Rewriter r(context, pass, node);
  auto calls = composite_calls(context.model, *node, definition_of(node->op()), whole);
  if (Reason* why = std::get_if<Reason>(&calls)) return void(r.refuse(std::move(*why)));
  ir::Model& model = *std::get<std::unique_ptr<ir::Model>>(calls);
  give_provenance(*node, model);
  PassContext inner(model, options);
  PassManagerOptions before;
  before.passes = passes_before();
  run_passes(inner, before);
  give_provenance(*node, model);
  if (!runs_on_device(model, options))
    return void(r.refuse({ReasonCode::Unsupported, "not all of what LibTorch makes it of runs on the device"}));
  if (const Values made = emit(r, *node, model); !made.empty()) r.commit(made, {.rule = "as LibTorch defines it"});
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
