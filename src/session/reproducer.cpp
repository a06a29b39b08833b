// A pass: settings as one JSON object in the text's header. A node: the graph around it is transfers only.
#include "session/reproducer.h"

#include <algorithm>
#include <utility>
#include <nlohmann/json.hpp>

#include "executor/buffers.h"
#include "executor/signature.h"
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

std::string flags_of(const std::vector<std::string>& plugins) {
  std::string out;
  for (const std::string& path : plugins) out += (out.empty() ? "--plugin " : " --plugin ") + path;
  return out;
}

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
  if (!failed.plugins.empty()) out["plugins"] = failed.plugins;
  for (const auto& [name, member] : list_settings)
    if (!(settings.*member).empty()) out[name] = settings.*member;
  ir::Model model{.graph = ir::clone(*before.graph),
                  .weights = before.weights,
                  .ranges = before.ranges,
                  .info = before.info,
                  .extra = before.extra};
  model.extra[reproducer_name] = out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  write_file(path, "// ttc reproducer: the graph before pass " + failed.pass +
                       ", which failed; ttc check of this file runs the pass again\n" +
                       ir::print_whole(model, {reproducer_name}));
}

std::optional<FailedPass> replayed_pass(const ir::Model& model) {
  const auto found = model.extra.find(reproducer_name);
  if (found == model.extra.end()) return std::nullopt;
  try {
    const Json json = parse_json(found->second.str());
    FailedPass out{.pass = as_string(member(json, "pass")), .error = as_string(member(json, "error")), .settings = {}};
    out.profile = ttrt::parse_profile(member(json, "profile").dump(), model.info.path);
    out.settings.activation_dtype = as_string(member(json, "activation_dtype"));
    out.settings.passes.passes = {out.pass};
    out.settings.passes.verify_each = as_bool(member(json, "verify_each"));
    if (const Json* text = find_member(json, "replace_text")) out.settings.replace_text = as_string(*text);
    for (const auto& [name, list] : list_settings)
      if (const Json* values = find_member(json, name))
        for (const Json& value : as_array(*values)) (out.settings.*list).push_back(as_string(value));
    if (const Json* plugins = find_member(json, "plugins"))
      for (const Json& path : as_array(*plugins)) out.plugins.push_back(as_string(path));
    for (const auto& [symbol, value] : as_object(member(json, "shapes"))) out.shapes[symbol] = as_int(value);
    return out;
  } catch (const Error& error) {
    throw add_context(error, reproducer_name).in_file(model.info.path);
  }
}

CompileSettings replaying(const FailedPass& failed, const CompileSettings& user) {
  if (!find_pass(std::string_view(failed.pass).substr(0, failed.pass.find(':'))))
    throw usage_error("pass '" + failed.pass + "' is none of this program" +
                          (failed.plugins.empty() ? "" : ": it came with a plug-in"),
                      flags_of(failed.plugins));
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

// The values in one step of a run, as the host has them.
class Capture {
 public:
  Capture(const ttrt::Executor& executor, const StepRunner& steps, const std::vector<const ir::Value*>& wanted)
      : program_(executor.program()), steps_(steps), wanted_(wanted), found_(wanted.size()) {}

  void see(const ttrt::Instruction& done, const ttrt::Frame& frame) {
    if (!std::exchange(begun_, true)) begin(&frame);
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      for (const int slot : slots_of(*wanted_[i]))
        if (!found_[i] && std::ranges::count(done.results, slot) > 0) keep(i, frame[static_cast<std::size_t>(slot)]);
  }

  SafeTensors take() {
    if (!begun_) begin(nullptr);  // the first instruction failed
    SafeTensors out;
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (found_[i]) out.tensors["in" + std::to_string(i)] = own_weight(*found_[i]);
    return out;
  }

 private:
  // What no instruction of this run makes: inputs, weights and buffers, and what set-up made.
  void begin(const ttrt::Frame* frame) {
    const auto formal = ttrt::user_inputs(*program_.model);
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      for (std::size_t k = 0; k < formal.size(); ++k)
        if (formal[k].input->value.get() == wanted_[i]) keep(i, steps_.inputs().at(k));
      if (made_in_run(*wanted_[i]) || frame == nullptr) continue;
      for (const int slot : slots_of(*wanted_[i]))
        if (!found_[i]) keep(i, (*frame)[static_cast<std::size_t>(slot)]);
    }
  }

  // Its slot may hold what an earlier run left there.
  bool made_in_run(const ir::Value& value) const {
    const int slot = program_.slot_of(&value);
    return std::ranges::any_of(program_.main.instructions,
                               [&](const ttrt::Instruction& one) { return std::ranges::count(one.results, slot) > 0; });
  }

  // The value, and what it becomes on the device: a buffer or an input may be there and nowhere else.
  std::vector<int> slots_of(const ir::Value& value) const {
    std::vector<int> out = {program_.slot_of(&value)};
    for (const ir::Node* user : value.users())
      if (ttrt::role_of(user->op()) == ttrt::Role::to_device) out.push_back(program_.slot_of(user->result(0)));
    return out;
  }

  void keep(std::size_t i, const ttrt::RtValue& value) {
    const auto tensor = as_tensor(ttrt::to_host_value(value));
    if (!tensor) return;
    const ir::Type& type = wanted_[i]->type;
    found_[i] = ttrt::copy_of(type.is_tensor() && type.has_dtype ? convert(*tensor, type.dtype) : *tensor);
  }

  const ttrt::Program& program_;
  const StepRunner& steps_;
  const std::vector<const ir::Value*>& wanted_;
  std::vector<std::optional<ttrt::HostTensor>> found_;
  bool begun_ = false;
};

SafeTensors values_in_step(const std::shared_ptr<const ir::Model>& model, const std::vector<const ir::Value*>& wanted,
                           const std::vector<Case>& cases, std::size_t step, const ttrt::ExecutorOptions& options) {
  ttrt::Executor executor(model, options);
  StepRunner steps(executor, cases);
  for (std::size_t i = 0; i < step; ++i) steps.run(i);
  Capture capture(executor, steps, wanted);
  executor.set_observer([&](const ttrt::Instruction& done, const ttrt::Frame& frame) { capture.see(done, frame); });
  try {
    steps.run(step);
  } catch (const Error&) {  // of the node itself, as a rule; where it was one before it, inputs are missing
  }
  SafeTensors out = capture.take();
  const bool missing =
      out.tensors.size() < static_cast<std::size_t>(std::ranges::count_if(
                               wanted, [](const ir::Value* value) { return value->type.is_tensor(); }));
  if (!missing) return out;
  steps.run(step);  // says why
  throw Error(Exit::check_failed, model->info.path, "what the node is given in this run cannot be had");
}

// Buffers that the model writes are inputs: a later step has other values than the file.
void read_buffers(const ir::Model& model, Boundary& part) {
  std::erase_if(part.weights, [&](const ir::Value* value) {
    const bool written = std::ranges::any_of(model.graph->outputs(), [&](const ir::GraphOutput& output) {
      return output.kind != ir::OutputKind::user && output.target == ir::weight_input(value)->target;
    });
    if (written) part.inputs.push_back(value);
    return written;
  });
}

// What the manifest says of the device, and nothing of nodes that are not there.
void keep_arch(const ir::Model& from, ir::Model& to) {
  const auto manifest = from.extra.find(manifest_name);
  if (manifest == from.extra.end()) return;
  Json json = parse_json(manifest->second.str());
  for (const char* list : {"modules", "swapped", "precision", "fallbacks", "journal"})
    if (json.contains(list)) json[list] = Json::array();
  for (const char* gone : {"earlier", "seal", "placement", "summary"}) json.erase(gone);
  to.extra[std::string(manifest_name)] = json.dump(1);
}

}  // namespace

std::unique_ptr<ir::Model> node_reproducer(const std::shared_ptr<const ir::Model>& model, const NodeOfStep& node,
                                           const std::vector<Case>& cases, const ttrt::ExecutorOptions& options,
                                           double pcc) {
  const ir::Node* const wanted = outermost_node(*model, node.node);
  Boundary part = boundary_of(*model->graph, [&](const ir::Node& one) { return &one == wanted || feeds(one, wanted); });
  read_buffers(*model, part);
  part.outputs.clear();
  for (const auto& result : wanted->results())
    if (result->type.is_tensor()) part.outputs.push_back(result.get());
  std::shared_ptr<ir::Model> out = part_of(*model, part);
  keep_arch(*model, *out);
  embed_calls(*out, out, values_in_step(model, part.inputs, cases, node.step, options), pcc);
  return std::make_unique<ir::Model>(std::move(*out));
}

RunWatch::RunWatch(ttrt::Executor& executor, std::size_t cases) : executor_(executor), cases_(cases) {
  for (const auto* region : {&executor.program().setup, &executor.program().main})
    for (const ttrt::Instruction& one : region->instructions) order_.push_back(&one);
  executor.set_observer([this](const ttrt::Instruction& done, const ttrt::Frame&) {
    const auto at = std::ranges::find(order_, &done);
    if (at == order_.end()) return;  // in a region
    next_ = static_cast<std::size_t>(at - order_.begin()) + 1;
    if (next_ < order_.size()) return;
    ++runs_;
    next_ = executor_.program().setup.instructions.size();
  });
}

RunWatch::~RunWatch() { executor_.set_observer({}); }

std::optional<NodeOfStep> RunWatch::next() const {
  if (next_ >= order_.size()) return std::nullopt;
  return NodeOfStep{.node = node_name(*order_[next_]->node), .step = runs_ % cases_};
}

std::optional<NodeOfStep> failing_node(ttrt::Executor& executor, const std::vector<Case>& cases) {
  const RunWatch watch(executor, cases.size());
  executor.reset_state();
  try {
    StepRunner steps(executor, cases);
    for (std::size_t i = 0; i < cases.size(); ++i) steps.run(i);
  } catch (const Error&) {
    return watch.next();
  }
  return std::nullopt;
}

std::optional<NodeOfStep> falling_node(ttrt::Executor& executor, const std::vector<Case>& cases) {
  StepRunner steps(executor, cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    steps.run(i);
    for (const ttrt::FallbackFailure& failure : executor.fallback_failures())
      if (!failure.node.empty()) return NodeOfStep{.node = failure.node, .step = i};
  }
  return std::nullopt;
}

}  // namespace ttc
