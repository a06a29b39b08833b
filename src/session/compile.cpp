// Shapes that a file lacks come from --shape, recorded inputs or the first call; free dims take theirs from the same.
#include "session/compile.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "executor/signature.h"
#include "formats/safetensors.h"
#include "ops/plugin.h"
#include "pass/conversions.h"
#include "session/device_profile.h"
#include "session/input_maker.h"
#include "session/input_places.h"
#include "session/reproducer.h"
#include "shapes/shape_prop.h"
#include "support/atomic_file.h"
#include "support/error.h"

namespace ttc {
namespace {

std::optional<std::int64_t> integer_in(const ir::Weight& tensor) {
  if (tensor.numel() != 1) return std::nullopt;
  const auto [owner, data] = tensor.storage->load();
  const std::byte* at = data + tensor.storage_offset * size_of(tensor.dtype);
  std::int64_t wide = 0;
  std::int32_t narrow = 0;
  if (tensor.dtype == DType::i64) std::memcpy(&wide, at, sizeof wide);
  if (tensor.dtype == DType::i32) std::memcpy(&narrow, at, sizeof narrow), wide = narrow;
  return tensor.dtype == DType::i64 || tensor.dtype == DType::i32 ? std::optional(wide) : std::nullopt;
}

std::map<std::string, InputShape> given_shapes(const ir::Model& model, const CompileSettings& settings,
                                               const Notes& notes) {
  std::map<std::string, InputShape> out;
  const auto inputs = ttrt::user_inputs(model);
  const auto position = [&](const std::string& name) { return ttrt::user_input_index(model, name); };
  if (!settings.io.empty())
    for (const auto& [name, tensor] : read_safetensors(settings.io).tensors) {
      // A sequence of calls has the shapes of its first.
      const int i = position(name.starts_with("step0.") ? name.substr(6) : name);
      if (i < 0) continue;
      InputShape& shape = out[inputs[static_cast<std::size_t>(i)].name];
      shape = {.sizes = tensor.sizes, .dtype = tensor.dtype};
      if (inputs[static_cast<std::size_t>(i)].input->value->type.kind == ir::TypeKind::integer)
        shape.integer = integer_in(tensor);
    }
  std::set<std::string> seen;
  for (const std::string& text : settings.shapes) {
    const auto [name, sizes] = split_assignment(text, "--shape");
    const InputShape given = parse_shape(sizes, "--shape " + text);
    if (const auto item = InputPlaces(model, {}).find(name); position(name) < 0 && item) {
      const auto& whole = inputs[item->index];
      notes.warning("--shape " + text + " has no effect: '" + whole.name + "' is " + whole.input->value->type.str() +
                    ", whose items have their shapes at each run");
      continue;
    }
    const auto& input = inputs[input_index(model, name, "--shape")];
    const ir::Type& type = input.input->value->type;
    if (!seen.insert(input.name).second) throw usage_error("--shape gives input '" + input.name + "' twice");
    if (given.dtype && type.has_dtype && *given.dtype != type.dtype)
      throw usage_error("--shape " + text + ": the model takes " + type.str());
    InputShape& shape = out[input.name];
    shape = {.sizes = given.sizes, .dtype = given.dtype ? given.dtype : shape.dtype};
  }
  return out;
}

// Numbers that a model without shapes is specialised to, or that its free dims follow. Of other inputs the compiled
// model has no value: every run gives its own.
void given_numbers(const ir::Model& model, const CompileSettings& settings, bool specialises,
                   std::map<std::string, InputShape>& shapes, const Notes& notes) {
  const auto inputs = ttrt::user_inputs(model);
  const InputPlaces places(model, {});
  std::set<std::string> seen;
  for (const std::string& text : settings.inputs) {
    const auto [name, value] = split_assignment(text, "--input");
    const auto place = places.find(name);
    const auto& input = inputs[place ? place->index : input_index(model, name, "--input")];
    const ir::Type& type = input.input->value->type;
    if (type.kind != ir::TypeKind::integer || (!specialises && !type.sym)) {
      notes.warning("--input " + text + " has no effect: nothing is compiled for the value of '" + input.name + "' (" +
                        type.str() + ")",
                    "each run takes its own: ttc run --input " + text);
      continue;
    }
    std::int64_t number = 0;
    const char *begin = value.data(), *end = begin + value.size();
    if (begin == end || std::from_chars(begin, end, number).ptr != end)
      throw usage_error("--input " + text + ": expected an integer");
    if (!seen.insert(input.name).second) throw usage_error("--input gives input '" + input.name + "' twice");
    shapes[input.name].integer = number;
  }
}

// For inputs that have no number yet: the ones that the model compares them with.
void likely_numbers(const ir::Model& model, std::map<std::string, InputShape>& shapes, const Notes& notes) {
  for (const auto& input : ttrt::user_inputs(model)) {
    if (input.input->value->type.kind != ir::TypeKind::integer || shapes[input.name].integer) continue;
    const std::int64_t likely = ttrt::likely_integer(*input.input->value);
    if (likely == 0) {
      shapes.erase(input.name);
      continue;
    }
    shapes[input.name].integer = likely;
    notes("note: compiled for " + input.name + " = " + std::to_string(likely) +
          ", the number that the model compares it with most often; --input " + input.name + "=N chooses another");
  }
}

// Symbols of the input shapes, from the sizes given.
void bind_dims(const ir::Model& model, const std::map<std::string, InputShape>& shapes, ir::SymBinding& binding) {
  for (const auto& input : ttrt::user_inputs(model)) {
    const auto given = shapes.find(input.name);
    const ir::Type& type = input.input->value->type;
    if (given == shapes.end()) continue;
    if (given->second.integer && type.sym && type.sym->is_symbol())
      binding.emplace(type.sym->name(), *given->second.integer);
    if (!type.has_shape) continue;
    if (given->second.sizes.size() != type.sizes.size())
      throw usage_error("--shape " + input.name + ": the model takes " + type.str());
    for (std::size_t d = 0; d < type.sizes.size(); ++d) {
      const std::int64_t size = given->second.sizes[d];
      if (type.sizes[d].is_number() && type.sizes[d].number() != size)
        throw usage_error("--shape " + input.name + ": the model takes " + type.str());
      if (!type.sizes[d].is_symbol()) continue;
      ttrt::check_range(model, input.name, d, type.sizes[d].name(), size);
      if (const std::int64_t known = binding.emplace(type.sizes[d].name(), size).first->second; known != size)
        throw usage_error("--shape " + input.name + ": dim " + std::to_string(d) + " is " + std::to_string(size) +
                          " where another input of the same free dim has " + std::to_string(known));
    }
  }
}

// The model, and where the settings or the file give shapes, these propagated or bound into `options`.
std::unique_ptr<ir::Model> read_with_shapes(const ModelSource& source, const CompileSettings& settings,
                                            CompileOptions& options, const Notes& notes) {
  std::unique_ptr<ir::Model> model = source.read();
  auto shapes = given_shapes(*model, settings, notes);
  given_numbers(*model, settings, !has_shapes(*model), shapes, notes);
  if (!has_shapes(*model)) {
    if (!shapes.empty()) likely_numbers(*model, shapes, notes);
    if (shapes.empty()) {
      if (!is_rewritten(*model))  // else it is decided what goes there
        notes.warning(source.path() + " carries no shapes, without which next to nothing goes to the device",
                      "give --shape NAME=8x128 or --io FILE");
      return model;
    }
    const ShapeReport report = propagate_shapes(*model, shapes);
    for (const std::string& line : report.notes) notes.in_detail("note: " + line);
    options.shapes.insert(report.symbols.begin(), report.symbols.end());
  }
  bind_dims(*model, shapes, options.shapes);
  return model;
}

// Shapes of the first case, for models that carry none and for the values of free dims.
void apply_shapes(ir::Model& model, const InputOptions& inputs, CompileOptions& options) {
  const std::vector<Case> cases = load_cases(model, inputs, true);
  const auto formal = ttrt::user_inputs(model);
  std::map<std::string, InputShape> shapes;
  bool missing = false;
  for (std::size_t i = 0; i < formal.size(); ++i) {
    const ir::Type& type = formal[i].input->value->type;
    missing = missing || (type.is_tensor() && !type.has_shape);
    if (const auto* tensor = cases[0].inputs[i].get_if<ttrt::HostTensor>())
      shapes[formal[i].name] = {.sizes = tensor->sizes, .dtype = tensor->dtype};
    if (const auto* number = cases[0].inputs[i].get_if<std::int64_t>())
      shapes[formal[i].name] = {.sizes = {}, .dtype = {}, .integer = *number};
  }
  if (missing) {
    const ShapeReport report = propagate_shapes(model, shapes);
    options.shapes.insert(report.symbols.begin(), report.symbols.end());
  }
  options.shapes.merge(ttrt::bind_symbols(model, cases[0].inputs));
}

}  // namespace

namespace {

// What the settings ask of a model that was rewritten before: its device operators are what they are.
void warn_of_rewritten(const ModelSource& source, const CompileSettings& settings, const Notes& notes) {
  std::string idle;
  const auto add = [&](bool given, const char* flag) {
    if (given) idle += (idle.empty() ? "" : ", ") + std::string(flag);
  };
  add(!settings.replace.empty(), "--replace");
  add(!settings.replace_file.empty(), "--replace-file");
  add(!settings.exclude.empty(), "--exclude");
  add(!settings.weight_dtype.empty(), "--weight-dtype");
  add(settings.activation_dtype != CompileSettings().activation_dtype, "--activation-dtype");
  add(!settings.fidelity.empty(), "--fidelity");
  add(!settings.fp32_acc.empty(), "--fp32-acc");
  add(!settings.fallback_op.empty(), "--fallback-op");
  add(!settings.fallback_module.empty(), "--fallback-module");
  add(!settings.fallback_node.empty(), "--fallback-node");
  if (!idle.empty())
    notes.warning(source.path() + " was rewritten before: " + idle + " cannot change what is on the device already",
                  "compile the file that was exported");
}

// "map 1: ViTAttention=TTNNViTSelfAttention: 2 modules"
void tell_swaps(const CompileOptions& options, const std::vector<Swap>& swaps, const Notes& notes) {
  for (std::size_t map = 0; map < options.replace.size(); ++map)
    for (const MapEntry& entry : options.replace[map]) {
      const auto taken = std::ranges::count_if(swaps, [&](const Swap& swap) {
        return swap.map == map && swap.key == entry.key && swap.target == entry.target;
      });
      if (taken > 0)
        notes("map " + std::to_string(map + 1) + ": " + entry.text() + ": " + std::to_string(taken) +
              (taken == 1 ? " module" : " modules"));
    }
}

bool puts_on_device(const PassManagerOptions& passes) {
  for (const PassStep& step : select_passes(passes))
    if (step.info->name == "replace" || step.info->name == "place") return true;
  return false;
}

// With what writes the reproducer where a pass fails. The arguments are kept by reference.
PassManagerOptions reproducing(const CompileSettings& settings, const ttrt::ArchProfile& profile, const Notes& notes) {
  PassManagerOptions out = settings.passes;
  if (settings.reproducer.empty()) return out;
  check_output(settings.reproducer);
  out.on_failure = [&](const PassStep& step, const ir::Model& before, const ir::SymBinding& shapes, const char* error) {
    const std::vector<std::string> plugins = ttrt::open_plugins();
    write_pass_reproducer(settings.reproducer, before,
                          {.pass = step.name(),
                           .error = error,
                           .settings = settings,
                           .shapes = shapes,
                           .profile = profile,
                           .plugins = plugins});
    std::string again = "ttc check " + settings.reproducer;
    for (const std::string& path : plugins) again += " --plugin " + path;
    notes("wrote " + settings.reproducer + ": the graph before pass " + step.name() + ", weights and flags; " + again +
          " runs the pass on it again");
  };
  return out;
}

std::function<MemoryNeed(const ir::Model&, const ir::SymBinding&)> memory_on(const ttrt::ArchProfile& arch) {
  return [&arch](const ir::Model& model, const ir::SymBinding& shapes) { return memory_need(model, arch, shapes); };
}

}  // namespace

Compiled compile_source(const ModelSource& source, const CompileSettings& given, const Notes& notes, bool to_save) {
  Compiled out;
  CompileSettings settings = given;
  CompileOptions options = compile_options(settings);
  out.model = read_with_shapes(source, settings, options, notes);
  const std::optional<FailedPass> failed = replayed_pass(*out.model);
  if (failed) {
    notes("note: " + source.path() + " replays pass " + failed->pass + ", which failed: " + failed->error);
    settings = replaying(*failed, given);
    options = compile_options(settings);
    options.shapes = failed->shapes;
    out.model->extra.clear();
  }
  options.profile = failed && given.arch.empty() ? failed->profile : profile_for(*out.model, settings.arch);
  out.profile = options.profile, out.shapes = options.shapes;
  const bool rewritten = is_rewritten(*out.model);
  if (std::ranges::any_of(out.model->weights,
                          [](const auto& w) { return w.second.storage && w.second.storage->absent(); }))
    notes.warning(source.path() + " carries no weights, so what comes of it has none and cannot run",
                  "compile the model's own file");
  const bool names_nodes = !options.fallback_nodes.empty();
  out.names.collect(*out.model->graph, names_nodes);
  if (!options.replace.empty() && !out.names.has_modules())
    notes("note: " + source.path() + " names no modules: the classes of the map were found by what nodes compute");
  CompileInput facts{.memory = memory_on(options.profile)};
  if (to_save) facts.sha256 = [hash = source.begin_hash()] { return hash.get(); };
  out.result = compile(*out.model, options, reproducing(settings, options.profile, notes), facts);
  out.names.collect(*out.model->graph, names_nodes);
  if (!settings.reproducer.empty()) notes("note: no pass failed; " + settings.reproducer + " was not written");
  if (failed) return out;
  tell_swaps(options, out.result.swaps, notes);
  if (rewritten) {
    warn_of_rewritten(source, settings, notes);
  } else {
    if (!puts_on_device(settings.passes))
      notes.warning("none of the passes that were run puts anything on the device", "replace and place do");
    for (const UserNames::Idle& one : out.names.idle(options, *out.model, out.result.swaps))
      notes.warning(one.text(), one.hint);
  }
  for (const std::string& one : idle_names(settings.passes)) notes.warning(one);
  return out;
}

bool has_shapes(const ir::Model& model) {
  for (const auto& input : model.graph->inputs())
    if (input.kind == ir::InputKind::user && input.value->type.is_tensor() && !input.value->type.has_shape)
      return false;
  return true;
}

ir::SymBinding given_sizes(const ir::Model& model, const CompileSettings& settings) {
  ir::SymBinding out;
  bind_dims(model, given_shapes(model, settings, {}), out);
  return out;
}

std::string report_json(const CompileResult& result, const ir::Model& model) {
  auto out = nlohmann::ordered_json::parse(result.json());
  out["conversions"] = nlohmann::ordered_json::array();
  for (const Conversion& one : conversions(model))
    out["conversions"].push_back(
        {{"from", torch_name(one.from)}, {"to", torch_name(one.to)}, {"checked", one.checked}});
  return out.dump();
}

std::shared_ptr<const ir::Model> compiled_for(const ModelSource& source, const InputOptions& inputs,
                                              const std::string& arch, const Notes& notes) {
  std::unique_ptr<ir::Model> model = source.read();
  if (is_rewritten(*model)) return model;
  CompileOptions options;
  options.profile = profile_for(*model, arch);
  apply_shapes(*model, inputs, options);
  const CompileResult result = compile(*model, options, {}, {.memory = memory_on(options.profile)});
  const std::string converted = conversions_text(*model);
  notes("compiled in memory with default options: " + result.summary() + (converted.empty() ? "" : "; " + converted));
  return model;
}

}  // namespace ttc
