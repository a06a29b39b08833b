// Control flow: graphs inside nodes become functions, the nodes themselves Python's if, while and for. How the
// arguments of such a node are laid out is the runtime's business (runtime/executor/control_flow.cpp) and the same
// here.
#include "emit/control.h"

#include <algorithm>

#include "emit/functions.h"
#include "emit/python_text.h"
#include "pass/call.h"

namespace ttc::emit {
namespace {

using ttrt::Python;

std::vector<ir::Arg> flattened(const ir::Node& node, std::size_t from, std::size_t to = SIZE_MAX) {
  std::vector<ir::Arg> out;
  for (std::size_t i = from; i < node.args().size() && i < to; ++i) {
    if (const auto* list = node.arg(i).list())
      out.insert(out.end(), list->begin(), list->end());
    else
      out.push_back(node.arg(i));
  }
  return out;
}

const ir::Graph* region_of(const ir::Node& node, std::size_t arg) {
  const auto* region = arg < node.args().size() ? node.arg(arg).get_if<ir::RegionArg>() : nullptr;
  return region == nullptr ? nullptr : node.regions().at(static_cast<std::size_t>(region->index)).get();
}

std::string joined(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

// A statement inside another.
std::string inside(const std::vector<std::string>& targets, const Python& call) {
  return "    " + statement(targets, call, 4).substr(4);
}

// Without the numbers behind it.
std::string stem_of(const ir::Value& value) {
  const std::size_t end = value.name.find_last_not_of("0123456789_");
  return end == std::string::npos ? "x" : value.name.substr(0, end + 1);
}

bool is_true(const ir::Arg& arg) { return arg.boolean().value_or(false); }

}  // namespace

std::optional<Control> control_of(const ir::Node& node) {
  using Kind = Control::Kind;
  const std::string& op = node.op();
  Control out;
  const auto take = [&](Kind kind, std::vector<const ir::Graph*> graphs) -> std::optional<Control> {
    out.kind = kind, out.graphs = std::move(graphs);
    if (std::ranges::find(out.graphs, nullptr) != out.graphs.end()) return std::nullopt;
    return std::move(out);
  };
  if (op == "prim.if" || op == "prim.If") {
    out.condition = node.arg(0);
    return take(Kind::choice, {node.regions().at(0).get(), node.regions().at(1).get()});
  }
  if (op == "prim.loop" || op == "prim.Loop") {
    out.trips = node.arg(0), out.condition = node.arg(1), out.carried = flattened(node, 2);
    return take(Kind::loop, {node.regions().at(0).get()});
  }
  if (op == "higher_order.cond") {
    out.condition = node.arg(0), out.more = flattened(node, 3);
    return take(Kind::choice, {region_of(node, 1), region_of(node, 2)});
  }
  if (op == "higher_order.while_loop") {
    out.carried = flattened(node, 2, 3), out.more = flattened(node, 3);
    return take(Kind::until, {region_of(node, 0), region_of(node, 1)});
  }
  if (op == "higher_order.map_impl") {
    out.mapped = flattened(node, 1, 2), out.more = flattened(node, 2);
    return take(Kind::rows, {region_of(node, 0)});
  }
  if (op == "higher_order.scan") {
    out.carried = flattened(node, 1, 2), out.mapped = flattened(node, 2, 3), out.more = flattened(node, 3);
    return take(Kind::rows, {region_of(node, 0)});
  }
  if (!op.starts_with("higher_order.wrap")) return std::nullopt;
  std::size_t at = 0;
  while (at < node.args().size() && region_of(node, at) == nullptr) ++at;
  out.more = flattened(node, at + 1);
  return take(Kind::call, {region_of(node, at)});
}

// ---- which values are on the device

// Inputs of a graph stand for the carried values, rows of the mapped ones and the rest, behind a counter.
void Functions::bind_inputs(const Control& control, const ir::Graph& graph) {
  std::size_t at = control.kind == Control::Kind::loop ? 1 : 0;
  const auto next = [&](const ir::Arg& arg, bool row, bool constant) {
    if (at == graph.inputs().size()) return;
    const ir::Value *input = graph.inputs()[at++].value.get(), *given = arg.value();
    if (given == nullptr) return;
    if (const ir::Value* weight = weight_behind(given); constant && ir::is_weight(weight))
      weight_behind_[input] = weight;
    if (!row && on_device(given)) device_.insert(input);
  };
  for (const ir::Arg& arg : control.carried) next(arg, false, false);
  for (const ir::Arg& arg : control.mapped) next(arg, true, false);
  for (const ir::Arg& arg : control.more) next(arg, false, true);
}

void Functions::find_device_values(const ir::Graph& graph) {
  const auto given = [&](const ir::Graph& region, std::size_t i) {
    return i < region.outputs().size() && on_device(region.outputs()[i].arg.value());
  };
  for (const auto& node : graph.nodes()) {
    for (const auto& result : node->results())
      if (ttc::on_device(result.get())) device_.insert(result.get());
    const auto control = node->regions().empty() ? std::nullopt : control_of(*node);
    if (!control) continue;
    for (const ir::Graph* region : control->graphs) bind_inputs(*control, *region), find_device_values(*region);
    const ir::Graph& last = *control->graphs.back();
    const std::size_t shift = control->kind == Control::Kind::loop ? 1 : 0, carried = control->carried.size();
    for (std::size_t i = 0; i < node->results().size(); ++i) {
      const bool body = given(last, i + shift);
      const bool other = control->kind == Control::Kind::choice ? given(*control->graphs[0], i)
                         : i < carried                          ? on_device(control->carried[i].value())
                                                                : body;
      if (body != other) mixed_.insert(node.get());
      if (body && other && (i < carried || control->mapped.empty())) device_.insert(node->result(i));
    }
  }
}

const ir::Value* Functions::weight_behind(const ir::Value* value) const {
  const auto at = weight_behind_.find(value);
  return at == weight_behind_.end() ? value : at->second;
}

// ---- functions

Callee Functions::write(const ir::Graph& region, const std::string& name, const std::string& summary,
                        const std::string& path) {
  const auto block = blocks_of(
      region, [&](const ir::Node& node) { return !node.results().empty() && uploaded.contains(node.result()); });
  block->path = path;
  BlockWriter writer(*this, *block);
  writer.write_region(region);
  Function made;
  made.summary = summary;
  return written(writer, std::move(made), name, path);
}

void BlockWriter::write_region(const ir::Graph& region) {
  for (const ir::GraphInput& input : region.inputs()) {
    const ir::Value* value = input.value.get();
    if (program_.weight_behind(value) != value) continue;
    name(value, scope.fresh(stem_of(*value)));
    arguments.emplace_back(value);
  }
  take_arguments();
  for (const ir::GraphOutput& output : region.outputs())
    if (const ir::Value* value = output.arg.value()) take_argument(value, "");
  for (const Item& item : block_.items) write_item(item);
  for (const ir::GraphOutput& output : region.outputs()) {
    results.push_back(output.arg.value());
    returned.push_back(text_of(output.arg));
    scope.returns(returned.back());
  }
}

// ---- statements

namespace {

// What the graphs of one node are given, by their inputs.
using Given = std::map<const ir::Value*, std::string>;

Given given_to(const ir::Graph& graph, const std::vector<std::string>& texts) {
  Given out;
  for (std::size_t i = 0; i < graph.inputs().size() && i < texts.size(); ++i)
    out.emplace(graph.inputs()[i].value.get(), texts[i]);
  return out;
}

}  // namespace

std::vector<std::string> BlockWriter::texts_of(const std::vector<ir::Arg>& args) {
  std::vector<std::string> out;
  for (const ir::Arg& arg : args) {
    const bool constant = arg.value() != nullptr && ir::is_weight(program_.weight_behind(arg.value()));
    out.push_back(constant && !names_.contains(arg.value()) ? "" : text_of(arg));
  }
  return out;
}

std::string BlockWriter::on_host(const ir::Arg& arg, const std::string& text) const {
  return program_.on_device(arg.value()) ? "ttnn.to_torch(" + text + ")" : text;
}

// What a statement gives back of what it was given, whichever way it goes.
void BlockWriter::share(const std::string& target, std::size_t result, const Callee& callee, const Python& call) {
  const auto at = callee.function->shared.find(result);
  if (at == callee.function->shared.end()) return;
  if (scope.buffer(target) == target)
    scope.shares(target, call.args().at(at->second));
  else
    scope.joins(target, call.args().at(at->second));
}

void BlockWriter::write_choice(const ir::Node& node, const Control& control) {
  const std::vector<std::string> given = texts_of(control.more);
  const std::string condition = on_host(control.condition, text_of(control.condition)),
                    where = node.provenance->source.empty() ? "" : " at " + node.provenance->source;
  std::vector<Callee> branches;
  std::vector<Python> calls;
  for (const bool holds : {true, false}) {
    const ir::Graph& graph = *control.graphs[holds ? 0 : 1];
    branches.push_back(program_.write(graph, holds ? "if_true" : "if_false",
                                      "Where the condition" + where + (holds ? " holds." : " does not hold."),
                                      block_.path));
    calls.push_back(call_of(branches.back(), block_.path, given_to(graph, given)));
  }
  const std::vector<std::string> targets = bind_results(node, false);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!program_.on_device(node.result(i))) continue;
    scope.owns(targets[i]);
    for (std::size_t b = 0; b < 2; ++b) share(targets[i], i, branches[b], calls[b]);
  }
  scope.raw("if " + condition + ":\n" + inside(targets, calls[0]) + "else:\n" + inside(targets, calls[1]));
}

// The values that a loop hands from turn to turn, under names of their own.
std::vector<std::string> BlockWriter::carry(const ir::Node& node, const Control& control) {
  const std::vector<std::string> first = texts_of(control.carried);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const ir::Graph& body = *control.graphs.back();
    names.push_back(scope.fresh(stem_of(*body.inputs().at(i + (control.kind == Control::Kind::loop ? 1 : 0)).value)));
    const std::string start = first[i].empty() ? text_of(control.carried[i]) : first[i];
    scope.raw(names[i] + " = " + start);
    if (i < node.results().size()) name(node.result(i), names[i]);
    if (i >= node.results().size() || !program_.on_device(node.result(i))) continue;
    scope.owns(names[i]);
    scope.shares(names[i], start);
  }
  return names;
}

void BlockWriter::write_until(const ir::Node& node, const Control& control) {
  const std::vector<std::string> carried = carry(node, control);
  std::vector<std::string> given = carried;
  for (const std::string& text : texts_of(control.more)) given.push_back(text);
  const ir::Graph &test = *control.graphs[0], &body = *control.graphs[1];
  const std::string where = node.provenance->source.empty() ? "" : " at " + node.provenance->source;
  const Callee tested = program_.write(test, "goes_on", "Whether the loop" + where + " goes on.", block_.path),
               turn = program_.write(body, "turn", "One turn of the loop" + where + ".", block_.path);
  const Python call = call_of(tested, block_.path, given_to(test, given));
  scope.raw("while " + on_host(test.outputs().at(0).arg, call.str()) + ":\n" +
            inside(carried, call_of(turn, block_.path, given_to(body, given))));
}

void BlockWriter::write_loop(const ir::Node& node, const Control& control) {
  const std::vector<std::string> carried = carry(node, control);
  const ir::Graph& body = *control.graphs[0];
  const bool always = is_true(control.condition) && is_true(body.outputs().at(0).arg);
  const std::string count = scope.fresh(stem_of(*body.inputs().at(0).value)),
                    where = node.provenance->source.empty() ? "" : " at " + node.provenance->source;
  std::vector<std::string> given{count}, targets{always ? "_" : scope.fresh("goes_on")};
  given.insert(given.end(), carried.begin(), carried.end());
  targets.insert(targets.end(), carried.begin(), carried.end());
  const Callee turn = program_.write(body, "turn", "One turn of the loop" + where + ".", block_.path);
  const Python call = call_of(turn, block_.path, given_to(body, given));
  if (!always) scope.raw(targets[0] + " = " + on_host(control.condition, text_of(control.condition)));
  scope.raw("for " + count + " in range(" + text_of(control.trips) + "):\n" +
            (always ? "" : "    if not " + targets[0] + ":\n        break\n") + inside(targets, call));
}

// Rows of tensors one after the other; what the graph gives beside the carried values is stacked.
void BlockWriter::write_rows(const ir::Node& node, const Control& control) {
  const std::vector<std::string> carried = carry(node, control), mapped = texts_of(control.mapped);
  const ir::Graph& body = *control.graphs[0];
  const std::string where = node.provenance->source.empty() ? "" : " at " + node.provenance->source;
  std::vector<std::string> given = carried, rows, sources, targets = carried, steps;
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    rows.push_back(scope.fresh(stem_of(*body.inputs().at(carried.size() + i).value)));
    sources.push_back(on_host(control.mapped[i], mapped[i].empty() ? text_of(control.mapped[i]) : mapped[i]));
  }
  given.insert(given.end(), rows.begin(), rows.end());
  for (const std::string& text : texts_of(control.more)) given.push_back(text);
  const Callee turn = program_.write(body, "row", "One row" + where + ".", block_.path);
  std::string after;
  std::vector<std::string> stacked;
  for (std::size_t i = carried.size(); i < node.results().size(); ++i) {
    const std::string step = scope.fresh("step"), list = scope.fresh("steps"), made = scope.fresh(stem(node));
    const ir::Arg& output = body.outputs().at(i).arg;
    scope.raw(list + " = []");
    targets.push_back(step);
    after += "    " + list + ".append(" + on_host(output, step) + ")\n";
    stacked.push_back(
        made + " = torch.stack(" + list + ")" +
        (program_.on_device(output.value()) ? ".to(" + torch_dtype_text(node.result(i)->type.dtype) + ")" : ""));
    name(node.result(i), made);
  }
  const bool one = rows.size() == 1;
  scope.raw("for " + joined(rows) + " in " + (one ? sources[0] : "zip(" + joined(sources) + ")") + ":\n" +
            inside(targets, call_of(turn, block_.path, given_to(body, given))) + after);
  for (const std::string& line : stacked) scope.raw(line);
}

void BlockWriter::write_control(const ir::Node& node) {
  using Kind = Control::Kind;
  const auto control = control_of(node);
  if (!control) return refuse(node, {ReasonCode::Unsupported, node.op() + " is no control flow that Python has"});
  if (program_.is_mixed(&node))
    return refuse(node, {ReasonCode::Unsupported, "a value of it is on the device one time and not another"});
  switch (control->kind) {
    case Kind::choice:
      return write_choice(node, *control);
    case Kind::until:
      return write_until(node, *control);
    case Kind::loop:
      return write_loop(node, *control);
    case Kind::rows:
      return write_rows(node, *control);
    case Kind::call:
      break;
  }
  const ir::Graph& graph = *control->graphs[0];
  const Callee callee = program_.write(graph, "wrapped", "What " + node.op() + " has inside.", block_.path);
  const Python call = call_of(callee, block_.path, given_to(graph, texts_of(control->more)));
  const std::vector<std::string> targets = bind_results(node, false);
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (program_.on_device(node.result(i))) scope.owns(targets[i]), share(targets[i], i, callee, call);
  scope.add(targets, call);
}

}  // namespace ttc::emit
