// Patterns and names as options of the compiler.
#include "session/compile_settings.h"

#include "device/arch.h"
#include "ops/op.h"
#include "pass/user_names.h"
#include "support/error.h"
#include "support/glob.h"
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
  if (format && ttrt::info(*format).for_weights) return *format;
  throw usage_error(flag + ": " + (format ? "no weights are packed in '" : "unknown format '") + name + "'",
                    "the formats are " + ttrt::weight_format_names());
}

// What the op library takes by itself.
constexpr std::string_view library_choice = "library";

bool on_off(const std::string& text, const std::string& flag) {
  if (text == "on" || text == "true" || text == "1") return true;
  if (text == "off" || text == "false" || text == "0") return false;
  throw usage_error(flag + ": '" + text + "' is neither on nor off nor library");
}

ttrt::DataType activation_format(const std::string& name, const std::string& flag) {
  const ttrt::DataType out = format(name, flag);
  if (ttrt::is_block_format(out)) throw usage_error(flag + " is bfloat16 or float32");
  return out;
}

std::optional<ttrt::MathFidelity> fidelity_named(const std::string& name, const std::string& flag) {
  const auto fidelity = ttrt::math_fidelity_from_string(name);
  if (!fidelity && name != library_choice) throw usage_error(flag + ": expected LoFi, HiFi2, HiFi3, HiFi4 or library");
  return fidelity;
}

std::string text_of(const OrderedJson& value, const std::string& what) {
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (!value.is_string()) throw usage_error(what + ": expected a text, found " + value.type_name());
  return value.get<std::string>();
}

MapEntry entry_of(const std::string& key, const OrderedJson& value) {
  if (key.empty()) throw usage_error("an entry without a name for what it replaces");
  if (!value.is_object()) return map_entry(key, text_of(value, key));
  ttrt::ModuleConfig config;
  std::string target;
  for (const auto& [name, given] : value.items()) {
    const std::string what = key + ", " + name, text = text_of(given, what);
    if (name == "op")
      target = text;
    else if (name == "weight_dtype")
      config.weight = format(text, what);
    else if (name == "activation_dtype")
      config.activation = activation_format(text, what);
    else if (name == "fidelity")
      config.fidelity = fidelity_named(text, what);
    else if (name == "fp32_acc")
      config.fp32_acc = text == library_choice ? std::nullopt : std::optional(on_off(text, what));
    else if (name == "fallback")
      config.fallback = on_off(text, what);
    else
      throw usage_error(key + ": there is no '" + name + "'",
                        "there are op, weight_dtype, activation_dtype, fidelity, fp32_acc and fallback");
  }
  if (target.empty()) throw usage_error(key + ": no \"op\" says what it becomes");
  return map_entry(key, target, config);
}

void read_map(const OrderedJson& map, CompileOptions& options) {
  if (!map.is_object())
    throw usage_error(std::string("expected an object, or a list of them, found ") + map.type_name());
  if (map.empty()) throw usage_error("a map without entries replaces nothing");
  ReplacementMap& made = options.replace.emplace_back();
  for (const auto& [key, value] : map.items()) made.push_back(entry_of(key, value));
}

void read_replace_text(std::string_view text, CompileOptions& options) {
  const OrderedJson maps = parse_ordered_json(text);
  if (!maps.is_array() || maps.empty()) return read_map(maps, options);
  for (const OrderedJson& map : maps) read_map(map, options);
}

void read_replace_file(const std::string& path, CompileOptions& options) {
  const auto file = MappedFile::open(path);
  const std::size_t before = options.replace.size();
  try {
    read_replace_text({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, options);
  } catch (const Error& error) {
    throw bad_file(path, error.what(), error.hint());
  }
  for (std::size_t map = before; map < options.replace.size(); ++map)
    for (MapEntry& entry : options.replace[map]) entry.file = path;
}

// A regular expression that is none is an error of the command line, not of the first name it meets.
void check_patterns(const CompileOptions& options) {
  const auto check = [](std::string_view pattern) { glob_match(pattern, ""); };
  for (const auto* list : {&options.exclude, &options.fallback_modules, &options.fallback_ops, &options.fallback_nodes})
    for (const std::string& pattern : *list) check(pattern);
  const auto check_keys = [&](const auto& entries) {
    for (const auto& [pattern, value] : entries) check(pattern);
  };
  check_keys(options.weight_format), check_keys(options.fidelity), check_keys(options.fp32_acc);
  for (const ReplacementMap& map : options.replace)
    for (const MapEntry& entry : map) names_module(entry.key, {});
}

}  // namespace

CompileSettings for_trial(CompileSettings settings) {
  settings.require_full = false;
  settings.reproducer.clear();
  PassManagerOptions& passes = settings.passes;
  passes.dump_before.clear(), passes.dump_after.clear(), passes.dump_dir.clear();
  passes.print_pipeline = passes.time_passes = passes.stats = false;
  return settings;
}

CompileOptions compile_options(const CompileSettings& settings) {
  CompileOptions options;
  if (!settings.arch.empty()) options.profile = ttrt::profile_from_argument(settings.arch);
  if (!settings.replace.empty()) options.replace.emplace_back();
  for (const std::string& text : settings.replace) {
    const std::size_t eq = text.rfind('=');
    if (eq == std::string::npos || eq == 0)
      throw usage_error("--replace " + text + ": expected CLASS=TT_MODULE or CLASS=tt.OP");
    try {
      options.replace.back().push_back(map_entry(text.substr(0, eq), text.substr(eq + 1)));
    } catch (const Error& error) {
      throw add_context(error, "--replace");
    }
  }
  if (!settings.replace_file.empty()) read_replace_file(settings.replace_file, options);
  if (!settings.replace_text.empty()) read_replace_text(settings.replace_text, options);
  options.exclude = settings.exclude;
  for (const std::string& text : settings.weight_dtype) {
    const auto [glob, value] = glob_value(text);
    options.weight_format.emplace_back(glob, format(value, "--weight-dtype " + text));
  }
  options.activation = activation_format(settings.activation_dtype, "--activation-dtype");
  for (const std::string& text : settings.fidelity) {
    const auto [glob, value] = glob_value(text);
    options.fidelity.emplace_back(glob, fidelity_named(value, "--fidelity " + text));
  }
  for (const std::string& text : settings.fp32_acc) {
    const auto [glob, value] = glob_value(text);
    std::optional<bool> on;
    if (value != library_choice) on = on_off(value, "--fp32-acc " + text);
    options.fp32_acc.emplace_back(glob, on);
  }
  options.fallback_ops = settings.fallback_op;
  options.fallback_modules = settings.fallback_module;
  options.fallback_nodes = settings.fallback_node;
  options.require_full = settings.require_full;
  check_patterns(options);
  return options;
}

}  // namespace ttc
