// See compile_flags.h.
#include "compile_flags.h"

#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>

#include "formats/safetensors.h"
#include "shapes/shape_prop.h"
#include "model_io.h"
#include "pass/conversions.h"
#include "executor/signature.h"
#include "support/error.h"
#include "support/json_util.h"
#include "support/mapped_file.h"

namespace ttc {
namespace {

// "GLOB=value"; a value alone holds for every module.
std::pair<std::string, std::string> glob_value(const std::string& text) {
  const std::size_t eq = text.rfind('=');
  if (eq == std::string::npos) return {"*", text};
  return {text.substr(0, eq), text.substr(eq + 1)};
}

ttrt::DataType format(const std::string& name, const std::string& flag) {
  const auto format = ttrt::data_type_from_string(name);
  if (format && ttrt::is_float_format(*format)) return *format;
  throw usage_error(flag + ": unknown format '" + name + "'",
                    "the formats are bfloat16, bfloat8_b, bfloat4_b and float32");
}

bool on_off(const std::string& text, const std::string& flag) {
  if (text == "on" || text == "true" || text == "1") return true;
  if (text == "off" || text == "false" || text == "0") return false;
  throw usage_error(flag + ": '" + text + "' is neither on nor off");
}

void read_replace_file(const std::string& path, CompileOptions& options) {
  const auto file = MappedFile::open(path);
  try {
    const Json map = parse_json({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
    for (const auto& [from, to] : as_object(map)) options.replace.emplace_back(from, as_string(to));
  } catch (const Error& error) {
    throw error.in_file(path);
  }
}

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

std::map<std::string, InputShape> given_shapes(const ir::Model& model, const CompileFlags& flags) {
  std::map<std::string, InputShape> out;
  const auto inputs = ttrt::user_inputs(model);
  const auto position = [&](const std::string& name) { return ttrt::user_input_index(model, name); };
  if (!flags.io.empty())
    for (const auto& [name, tensor] : read_safetensors(flags.io).tensors) {
      // A sequence of calls has the shapes of its first.
      const int i = position(name.starts_with("step0.") ? name.substr(6) : name);
      if (i < 0) continue;
      InputShape& shape = out[inputs[static_cast<std::size_t>(i)].name];
      shape = {.sizes = tensor.sizes, .dtype = tensor.dtype};
      if (inputs[static_cast<std::size_t>(i)].input->value->type.kind == ir::TypeKind::integer)
        shape.integer = integer_in(tensor);
    }
  for (const std::string& text : flags.shapes) {
    const std::size_t eq = text.find('=');
    const int i = eq == std::string::npos ? -1 : position(text.substr(0, eq));
    if (i < 0)
      throw usage_error("--shape " + text + ": the model has no such input",
                        "the shapes of inputs are given as NAME=8x128");
    InputShape& shape = out[inputs[static_cast<std::size_t>(i)].name];
    const InputShape given = parse_shape(text.substr(eq + 1), "--shape " + text);
    shape = {.sizes = given.sizes, .dtype = given.dtype ? given.dtype : shape.dtype};
  }
  return out;
}

// Numbers that the model takes: those given, else the ones it compares its inputs with.
void given_numbers(const ir::Model& model, const CompileFlags& flags, std::map<std::string, InputShape>& shapes,
                   const Globals& globals) {
  const auto inputs = ttrt::user_inputs(model);
  for (const std::string& text : flags.inputs) {
    const std::size_t eq = text.find('=');
    const int i = eq == std::string::npos ? -1 : ttrt::user_input_index(model, text.substr(0, eq));
    if (i < 0 || inputs[static_cast<std::size_t>(i)].input->value->type.kind != ir::TypeKind::integer)
      throw usage_error("--input " + text + ": the model has no such input, or it is no integer",
                        "compile takes --input NAME=16000 for inputs that are integers");
    std::int64_t number = 0;
    const char *begin = text.data() + eq + 1, *end = text.data() + text.size();
    if (begin == end || std::from_chars(begin, end, number).ptr != end)
      throw usage_error("--input " + text + ": expected an integer");
    shapes[inputs[static_cast<std::size_t>(i)].name].integer = number;
  }
  for (const auto& input : inputs) {
    if (input.input->value->type.kind != ir::TypeKind::integer || shapes[input.name].integer) continue;
    const std::int64_t likely = ttrt::likely_integer(*input.input->value);
    if (likely == 0) {
      shapes.erase(input.name);
      continue;
    }
    shapes[input.name].integer = likely;
    note(globals, "note: compiled for " + input.name + " = " + std::to_string(likely) +
                      ", the number that the model compares it with most often; --input " + input.name +
                      "=N chooses another");
  }
}

bool has_shapes(const ir::Model& model) {
  for (const auto& input : model.graph->inputs())
    if (input.kind == ir::InputKind::user && input.value->type.is_tensor() && !input.value->type.has_shape)
      return false;
  return true;
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

}  // namespace

void add_compile_flags(FlagSet& app, CompileFlags& flags) {
  const auto list = [&](const char* name, std::vector<std::string>& into, const char* help) {
    app.add_option(name, into, help).repeatable();
  };
  const auto names = [&](const char* name, std::vector<std::string>& into, const char* help) {
    app.add_option(name, into, help).separated().repeatable();
  };
  app.add_option("model", flags.model, "A .pt2 or TorchScript file").required();
  app.add_option("--arch", flags.arch, "An architecture profile (ttc archs) or a profile file");
  list("--replace", flags.replace, "CLASS=tt.OP or module:GLOB=tt.OP; everything that can be where none is given");
  app.add_option("--replace-file", flags.replace_file, "The same as a JSON object");
  list("--exclude", flags.exclude, "Modules (glob) that stay as they are; their children are still visited");
  list("--weight-dtype", flags.weight_dtype, "GLOB=FORMAT: bfloat16, bfloat8_b, bfloat4_b or float32");
  app.add_option("--activation-dtype", flags.activation, "bfloat16 or float32");
  list("--fidelity", flags.fidelity, "GLOB=LoFi|HiFi2|HiFi3|HiFi4");
  list("--fp32-acc", flags.fp32_acc, "GLOB=on|off: accumulate in float32");
  list("--fallback-op", flags.fallback_op, "Ops (glob) kept on the CPU");
  list("--fallback-module", flags.fallback_module, "Modules (glob) kept on the CPU");
  list("--fallback-node", flags.fallback_node, "Nodes (glob) kept on the CPU");
  app.add_flag("--require-full", flags.require_full, "Fail (exit code 3) where anything stays on the CPU");
  list("--shape", flags.shapes,
       "NAME=8x128 or NAME=i64:8x128: sizes of free dims, for placement and for models without shapes");
  list("--input", flags.inputs, "NAME=16000: the number that a TorchScript model is compiled for, where it takes one");
  app.add_option("--io", flags.io, "Take the shapes from these inputs (safetensors)");
  names("--passes", flags.passes.passes, "Run these passes, in this order");
  names("--disable", flags.passes.disable, "Leave these passes out");
  app.add_option("--dump-dir", flags.passes.dump_dir, "Write dumps here, one file each");
  names("--dump-before", flags.passes.dump_before, "Dump the graph before these passes, or 'all'");
  names("--dump-after", flags.passes.dump_after, "Dump the graph after these passes, 'all' or 'change'");
  app.add_flag("--print-pipeline", flags.passes.print_pipeline, "Print the passes that run");
  app.add_flag("--time-passes", flags.passes.time_passes, "Print the time of each pass");
  app.add_flag("--stats", flags.passes.stats, "Print what each pass matched and refused");
  app.add_flag("--verify-each", flags.passes.verify_each, "Verify the graph after each pass");
  app.add_option("--stop-after", flags.passes.stop_after, "The last pass to run");
  app.add_option("--rewrite-limit", flags.passes.rewrite_limit, "At most so many rewrites");
}

CompileOptions compile_options(const CompileFlags& flags) {
  CompileOptions options;
  options.arch = flags.arch;
  for (const std::string& text : flags.replace) {
    const std::size_t eq = text.rfind('=');
    if (eq == std::string::npos) throw usage_error("--replace " + text + ": expected CLASS=tt.OP");
    options.replace.emplace_back(text.substr(0, eq), text.substr(eq + 1));
  }
  if (!flags.replace_file.empty()) read_replace_file(flags.replace_file, options);
  for (const auto& [from, to] : options.replace)
    if (ttrt::find_op(to) == nullptr)
      throw usage_error("--replace " + from + "=" + to + ": there is no device op '" + to + "'", "ttc ops lists them");
  options.exclude = flags.exclude;
  for (const std::string& text : flags.weight_dtype) {
    const auto [glob, value] = glob_value(text);
    options.weight_format.emplace_back(glob, format(value, "--weight-dtype " + text));
  }
  options.activation = format(flags.activation, "--activation-dtype");
  if (ttrt::is_block_format(options.activation)) throw usage_error("--activation-dtype is bfloat16 or float32");
  for (const std::string& text : flags.fidelity) {
    const auto [glob, value] = glob_value(text);
    const auto fidelity = ttrt::math_fidelity_from_string(value);
    if (!fidelity) throw usage_error("--fidelity " + text + ": expected LoFi, HiFi2, HiFi3 or HiFi4");
    options.fidelity.emplace_back(glob, *fidelity);
  }
  for (const std::string& text : flags.fp32_acc) {
    const auto [glob, value] = glob_value(text);
    options.fp32_acc.emplace_back(glob, on_off(value, "--fp32-acc " + text));
  }
  options.fallback_ops = flags.fallback_op;
  options.fallback_modules = flags.fallback_module;
  options.fallback_nodes = flags.fallback_node;
  options.require_full = flags.require_full;
  ttrt::profile_from_argument(flags.arch);  // a wrong name is an error before any work
  return options;
}

std::unique_ptr<ir::Model> load_to_compile(const CompileFlags& flags, CompileOptions& options, const Globals& globals) {
  std::unique_ptr<ir::Model> model = load(flags.model);
  auto shapes = given_shapes(*model, flags);
  if (!has_shapes(*model)) {
    if (!shapes.empty() || !flags.inputs.empty()) given_numbers(*model, flags, shapes, globals);
    if (shapes.empty()) {
      note(globals, "note: " + flags.model +
                        " carries no shapes; give --shape NAME=8x128 or --io FILE to place more of it on the device");
      return model;
    }
    const ShapeReport report = propagate_shapes(*model, shapes);
    for (const std::string& line : report.notes)
      if (globals.verbose > 0) note(globals, "note: " + line);
    options.shapes.insert(report.symbols.begin(), report.symbols.end());
  }
  bind_dims(*model, shapes, options.shapes);
  return model;
}

OrderedJson conversions_json(const ir::Model& model) {
  OrderedJson out = OrderedJson::array();
  for (const Conversion& one : conversions(model))
    out.push_back({{"from", torch_name(one.from)}, {"to", torch_name(one.to)}, {"checked", one.checked}});
  return out;
}

}  // namespace ttc
