// Patterns and names as options of the compiler.
#include "session/compile_settings.h"

#include "device/arch.h"
#include "ops/op.h"
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

void read_replace_text(std::string_view text, CompileOptions& options) {
  const Json map = parse_json(text);
  for (const auto& [from, to] : as_object(map)) options.replace.emplace_back(from, as_string(to));
}

void read_replace_file(const std::string& path, CompileOptions& options) {
  const auto file = MappedFile::open(path);
  try {
    read_replace_text({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, options);
  } catch (const Error& error) {
    throw error.in_file(path);
  }
}

}  // namespace

CompileOptions compile_options(const CompileSettings& settings) {
  CompileOptions options;
  if (!settings.arch.empty()) options.profile = ttrt::profile_from_argument(settings.arch);
  for (const std::string& text : settings.replace) {
    const std::size_t eq = text.rfind('=');
    if (eq == std::string::npos) throw usage_error("--replace " + text + ": expected CLASS=tt.OP");
    options.replace.emplace_back(text.substr(0, eq), text.substr(eq + 1));
  }
  if (!settings.replace_file.empty()) read_replace_file(settings.replace_file, options);
  if (!settings.replace_text.empty()) read_replace_text(settings.replace_text, options);
  for (const auto& [from, to] : options.replace)
    if (ttrt::find_op(to) == nullptr)
      throw usage_error("--replace " + from + "=" + to + ": there is no device op '" + to + "'", "ttc ops lists them");
  options.exclude = settings.exclude;
  for (const std::string& text : settings.weight_dtype) {
    const auto [glob, value] = glob_value(text);
    options.weight_format.emplace_back(glob, format(value, "--weight-dtype " + text));
  }
  options.activation = format(settings.activation_dtype, "--activation-dtype");
  if (ttrt::is_block_format(options.activation)) throw usage_error("--activation-dtype is bfloat16 or float32");
  for (const std::string& text : settings.fidelity) {
    const auto [glob, value] = glob_value(text);
    const auto fidelity = ttrt::math_fidelity_from_string(value);
    if (!fidelity && value != library_choice)
      throw usage_error("--fidelity " + text + ": expected LoFi, HiFi2, HiFi3, HiFi4 or library");
    options.fidelity.emplace_back(glob, fidelity);
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
  return options;
}

}  // namespace ttc
