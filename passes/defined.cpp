// Operators written out as LibTorch, or rules/definitions.cpp, defines them (shapes/composite.h).
#include <algorithm>
#include <unordered_map>

#include "canonical_forms.h"
#include "decompose.h"
#include "pass/manager.h"
#include "replacement.h"
#include "shapes/composite.h"

namespace ttc {
namespace {

using ir::Node;
using ir::Value;

// Operators that need not be followed any further: device operators or rules may take them as they are. Complex numbers
// are known by the parts that they are made of.
bool whole(std::string_view op) {
  if (op == "aten.complex.default" || op == "aten.polar.default") return true;
  return !ttrt::lowerings_of(op).empty() || has_rule(op) || is_fill(op) || !definition_of(op).empty();
}

// Its module decides what the user wants of it.
void give_provenance(const Node& from, ir::Model& to) {
  ir::walk(*to.graph, [&](Node* node) { node->provenance = from.provenance; });
}

ir::Arg mapped_arg(const ir::Arg& arg, const std::unordered_map<const Value*, ir::Arg>& by) {
  if (const Value* value = arg.value()) return by.at(value);
  const ir::Arg::List* items = arg.list();
  if (!items) return arg;
  ir::Arg::List out;
  for (const ir::Arg& item : *items) out.push_back(mapped_arg(item, by));
  return out;
}

}  // namespace

Defined defined(const PassContext& context, const Node& node, std::vector<std::string> passes) {
  Defined calls = composite_calls(context.model, node, definition_of(node.op()), whole);
  if (std::holds_alternative<Reason>(calls)) return calls;
  ir::Model& model = *std::get<std::unique_ptr<ir::Model>>(calls);
  give_provenance(node, model);
  for (std::size_t i = 0; i < std::min(node.results().size(), model.graph->outputs().size()); ++i)
    if (!node.result(i)->has_uses()) model.graph->set_output(i, ir::Arg());  // nobody asks what computes it
  CompileOptions options = context.options;
  options.require_full = false;
  PassContext inner(model, options);
  PassManagerOptions only;
  only.passes = std::move(passes);
  run_passes(inner, only);
  give_provenance(node, model);
  return calls;
}

Values emit_calls(Rewriter& r, const Node& node, const ir::Model& calls) {
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
    for (const ir::Arg& arg : call->args()) args.push_back(mapped_arg(arg, mapped));
    if (call->results().size() == 1) {
      mapped[call->result()] = r.emit(call->op(), std::move(args), call->result()->type);
      continue;
    }
    Node* made = r.insert(call->op(), std::move(args));
    for (const auto& result : call->results()) mapped[result.get()] = made->add_result(result->type);
  }
  Values out;
  for (std::size_t i = 0; i < calls.graph->outputs().size(); ++i) {
    if (i >= node.results().size()) return {};
    const Value* made = calls.graph->outputs()[i].arg.value();
    out.push_back(made && node.result(i)->has_uses() ? mapped.at(made).value() : nullptr);
    if (node.result(i)->has_uses() && (!out.back() || !r.fits(out.back(), node.result(i)))) return {};
  }
  return out.size() == node.results().size() ? out : Values();
}

Values as_defined(Rewriter& r, Node* node) { return of_reals(*node) ? as_defined_of_any(r, node) : Values(); }

Values as_defined_of_any(Rewriter& r, Node* node) {
  const Defined calls = defined(r.context(), *node, {"functionalize", "canonicalize", "decompose", "dce"});
  if (const Reason* why = std::get_if<Reason>(&calls)) return refused(r, *why);
  return emit_calls(r, *node, *std::get<std::unique_ptr<ir::Model>>(calls));
}

}  // namespace ttc
