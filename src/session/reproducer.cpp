// A pass: settings as one JSON object in the text's header. A node: the graph around it is transfers only.
#include "session/reproducer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/safetensors.h"
#include "ir/manifest_name.h"
#include "ir/whole_text.h"
#include "pass/call.h"
#include "session/kept.h"
#include "session/part.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "support/json_util.h"
#include "support/mapped_file.h"

namespace ttc {
namespace {

constexpr const char* reproducer_name = "ttc_reproducer.json";

using Strings = std::vector<std::string>;
constexpr std::pair<const char*, Strings CompileSettings::*> list_settings[] = {
    {"replace", &CompileSettings::replace},
    {"exclude", &CompileSettings::exclude},
    {"weight_dtype", &CompileSettings::weight_dtype},
    {"fidelity", &CompileSettings::fidelity},
    {"fp32_acc", &CompileSettings::fp32_acc},
    {"fallback_op", &CompileSettings::fallback_op},
    {"fallback_module", &CompileSettings::fallback_module},
    {"fallback_node", &CompileSettings::fallback_node},
};

std::string content_of(const std::string& path) {
  const auto file = MappedFile::open(path);
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

}  // namespace

void write_pass_reproducer(const std::string& path, const ir::Model& before, const FailedPass& failed) {
  const CompileSettings& settings = failed.settings;
  nlohmann::ordered_json out{{"reproducer", 1},
                             {"pass", failed.pass},
                             {"error", failed.error},
                             {"profile", nlohmann::ordered_json::parse(ttrt::to_json(failed.profile))},
                             {"activation_dtype", settings.activation_dtype},
                             {"verify_each", settings.passes.verify_each},
                             {"shapes", failed.shapes}};
  const std::string map = settings.replace_file.empty() ? settings.replace_text : content_of(settings.replace_file);
  if (!map.empty()) out["replace_text"] = map;
  for (const auto& [name, member] : list_settings)
    if (!(settings.*member).empty()) out[name] = settings.*member;
  ir::Model model{.graph = ir::clone(*before.graph), .weights = before.weights, .ranges = before.ranges,
                  .info = before.info, .extra = before.extra};
  model.extra[reproducer_name] = out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  write_file(path, "// ttc reproducer: the graph before pass " + failed.pass +
                       ", which failed; ttc check of this file runs the pass again\n" +
                       ir::print_whole(model, {reproducer_name}));
}

std::optional<FailedPass> replayed_pass(const ir::Model& model) {
  const auto found = model.extra.find(reproducer_name);
  if (found == model.extra.end()) return std::nullopt;
  try {
    const Json json = parse_json(found->second);
    FailedPass out{.pass = as_string(member(json, "pass")), .error = as_string(member(json, "error")), .settings = {}};
    out.profile = ttrt::parse_profile(member(json, "profile").dump(), model.info.path);
    out.settings.activation_dtype = as_string(member(json, "activation_dtype"));
    out.settings.passes.passes = {out.pass};
    out.settings.passes.verify_each = as_bool(member(json, "verify_each"));
    if (const Json* text = find_member(json, "replace_text")) out.settings.replace_text = as_string(*text);
    for (const auto& [name, list] : list_settings)
      if (const Json* values = find_member(json, name))
        for (const Json& value : as_array(*values)) (out.settings.*list).push_back(as_string(value));
    for (const auto& [symbol, value] : as_object(member(json, "shapes"))) out.shapes[symbol] = as_int(value);
    return out;
  } catch (const Error& error) {
    throw add_context(error, reproducer_name).in_file(model.info.path);
  }
}

CompileSettings replaying(const FailedPass& failed, const CompileSettings& user) {
  CompileSettings out = user;
  const CompileSettings& was = failed.settings;
  for (const auto& [name, list] : list_settings)
    (out.*list).insert((out.*list).begin(), (was.*list).begin(), (was.*list).end());
  if (user.activation_dtype == CompileSettings().activation_dtype) out.activation_dtype = was.activation_dtype;
  if (user.replace_file.empty()) out.replace_text = was.replace_text;
  if (user.passes.passes.empty()) out.passes.passes = was.passes.passes;
  out.passes.verify_each |= was.passes.verify_each;
  return out;
}

namespace {

// The node of the main graph that has this name, or in whose regions it is.
const ir::Node* outermost_node(const ir::Model& model, const std::string& name) {
  for (const auto& node : model.graph->nodes()) {
    if (node_name(*node) == name) return node.get();
    bool inside = false;
    for (const auto& region : node->regions())
      ir::walk(*region, [&](const ir::Node* inner) { inside = inside || node_name(*inner) == name; });
    if (inside) return node.get();
  }
  throw usage_error("the model has no node '" + name + "'", "ttc inspect --graph text lists the nodes");
}

// Whether the node only brings something to the device for `other`.
bool feeds(const ir::Node& node, const ir::Node* other) {
  return ttrt::role_of(node.op()) == ttrt::Role::to_device && std::ranges::count(node.result(0)->users(), other) > 0;
}

// The values in runs of the cases, as the host has them. What else the model computes is not run.
SafeTensors values_in_runs(const ir::Model& model, const std::vector<const ir::Value*>& wanted,
                           const std::vector<Case>& cases, const ttrt::ExecutorOptions& options) {
  auto copy = std::make_shared<ir::Model>();
  std::map<const ir::Value*, ir::Value*> now;
  copy->graph = ir::clone(*model.graph, &now);
  copy->weights = model.weights;
  copy->ranges = model.ranges;
  copy->info = model.info;
  copy->extra = model.extra;
  ir::Graph& graph = *copy->graph;
  while (!graph.outputs().empty()) graph.remove_output(graph.outputs().size() - 1);
  for (const ir::Value* value : wanted) graph.add_output(on_device(value) ? read_back(graph, now[value]) : now[value]);
  std::vector<ir::Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  for (std::size_t i = nodes.size(); i-- > 0;)
    if (std::ranges::all_of(nodes[i]->results(), [](const auto& result) { return result->use_count() == 0; }))
      graph.erase(nodes[i]);
  ttrt::Executor executor(copy, options);
  SafeTensors out;
  const std::vector<ttrt::RtValue> values = executor.run(cases.at(0).inputs);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const auto tensor = as_tensor(values[i])) out.tensors["in" + std::to_string(i)] = own_weight(*tensor);
  return out;
}

// What the manifest says of the device, and nothing of nodes that are not there.
void keep_arch(const ir::Model& from, ir::Model& to) {
  const auto manifest = from.extra.find(manifest_name);
  if (manifest == from.extra.end()) return;
  Json json = parse_json(manifest->second);
  for (const char* list : {"modules", "swapped", "precision", "fallbacks", "journal"})
    if (json.contains(list)) json[list] = Json::array();
  for (const char* gone : {"earlier", "seal", "placement", "summary"}) json.erase(gone);
  to.extra[std::string(manifest_name)] = json.dump(1);
}

}  // namespace

std::unique_ptr<ir::Model> node_reproducer(const std::shared_ptr<const ir::Model>& model, const std::string& node,
                                           const std::vector<Case>& cases, const ttrt::ExecutorOptions& options,
                                           double pcc) {
  const ir::Node* const wanted = outermost_node(*model, node);
  Boundary part =
      boundary_of(*model->graph, [&](const ir::Node& one) { return &one == wanted || feeds(one, wanted); });
  part.outputs.clear();
  for (const auto& result : wanted->results())
    if (result->type.is_tensor()) part.outputs.push_back(result.get());
  std::shared_ptr<ir::Model> out = part_of(*model, part);
  keep_arch(*model, *out);
  embed_calls(*out, out, values_in_runs(*model, part.inputs, cases, options), pcc);
  return std::make_unique<ir::Model>(std::move(*out));
}

std::string failing_node(ttrt::Executor& executor, const std::vector<Case>& cases) {
  std::vector<const ttrt::Instruction*> order;
  for (const auto* region : {&executor.program().setup, &executor.program().main})
    for (const ttrt::Instruction& one : region->instructions) order.push_back(&one);
  std::size_t next = 0;
  executor.set_observer([&](const ttrt::Instruction& done, const ttrt::Frame&) {
    if (const auto at = std::ranges::find(order, &done); at != order.end())
      next = static_cast<std::size_t>(at - order.begin()) + 1;
  });
  std::string out;
  try {
    StepRunner steps(executor, cases);
    for (std::size_t i = 0; i < cases.size(); ++i) steps.run(i);
  } catch (const Error&) {
    if (next < order.size()) out = node_name(*order[next]->node);
  }
  executor.set_observer({});
  return out;
}

}  // namespace ttc
