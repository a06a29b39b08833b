// inspect_text(): the description as a page for a terminal.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <sstream>

#include "report/inspect.h"

namespace ttc {
namespace {

std::string bytes_text(double bytes) {
  static constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

std::string short_class(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// "float32[2, s0, 64]", "int", "= 3"
std::string value_text(const Json& value) {
  std::string text;
  if (value.contains("shape") && value["shape"].is_array()) {
    for (const Json& size : value["shape"])
      text += (text.empty() ? "" : ", ") + (size.is_string() ? size.get<std::string>() : size.dump());
    text = "[" + text + "]";
  }
  if (value.contains("dtype") && value["dtype"].is_string()) text = value["dtype"].get<std::string>() + text;
  if (value.contains("type")) text += value["type"].get<std::string>();
  if (value.contains("fixed")) text += (text.empty() ? "= " : " = ") + value["fixed"].dump();
  return text.empty() ? "tensor" : text;
}

void write_signature(std::ostream& out, const Json& description) {
  for (const char* side : {"inputs", "outputs"}) {
    out << side << '\n';
    for (const Json& value : description[side]) {
      out << "  " << (value.contains("name") ? value["name"].get<std::string>() : "(constant)") << ": "
          << value_text(value);
      if (value.contains("kind") && value["kind"] != "user")
        out << "  " << value["kind"].get<std::string>() << " of " << value.value("target", "");
      out << '\n';
    }
  }
  if (!description["symbols"].empty()) out << "dynamic dims\n";
  for (const Json& symbol : description["symbols"]) {
    const auto bound = [&](const char* key, const char* none) {
      return symbol[key].is_null() ? std::string(none) : symbol[key].dump();
    };
    out << "  " << symbol["name"].get<std::string>() << " in [" << bound("min", "-inf") << ", " << bound("max", "inf")
        << "]";
    if (!symbol["example"].is_null()) out << ", exported with " << symbol["example"];
    out << '\n';
  }
}

void write_weights(std::ostream& out, const Json& weights) {
  out << "weights  " << bytes_text(weights["bytes"].get<double>());
  if (weights["absent"].get<bool>()) out << " (not in the file: it carries shapes only)";
  out << '\n';
  for (const char* kind : {"parameters", "buffers", "constants"}) {
    const Json& group = weights[kind];
    if (group["tensors"] == 0) continue;
    out << "  " << kind << ": " << group["tensors"] << " tensors, " << group["elements"] << " elements, "
        << bytes_text(group["bytes"].get<double>()) << '\n';
  }
  for (const Json& names : weights["tied"]) {
    out << "  one storage:";
    for (const Json& name : names) out << ' ' << name.get<std::string>();
    out << '\n';
  }
}

void write_modules(std::ostream& out, const Json& modules, bool verbose) {
  out << "modules\n";
  if (verbose) {
    for (const Json& module : modules) {
      const auto& path = module["path"].get_ref<const std::string&>();
      const auto depth = path.empty() ? 0 : 1 + std::count(path.begin(), path.end(), '.');
      out << std::string(2 + 2 * depth, ' ') << (path.empty() ? "(root)" : path.substr(path.rfind('.') + 1));
      if (const auto& type = module["class"].get_ref<const std::string&>(); !type.empty())
        out << ": " << short_class(type);
      if (module["parameters"] != 0)
        out << "  " << module["parameters"] << " parameters, " << bytes_text(module["bytes"].get<double>());
      out << '\n';
    }
    return;
  }
  std::map<std::string, int> classes;
  for (const Json& module : modules)
    if (const auto& type = module["class"].get_ref<const std::string&>(); !type.empty()) ++classes[type];
  for (const auto& [type, count] : classes) out << "  " << count << " x " << type << '\n';
}

std::string member_text(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return "";
  return object[key].is_string() ? object[key].get<std::string>() : object[key].dump();
}

void write_rewritten(std::ostream& out, const Json& manifest, bool verbose) {
  out << "rewritten by ttc " << member_text(manifest, "ttc") << " for " << member_text(manifest, "arch") << '\n';
  if (const auto summary = member_text(manifest, "summary"); !summary.empty()) out << "  " << summary << '\n';
  if (const auto activation = member_text(manifest, "activation"); !activation.empty())
    out << "  activations: " << activation << '\n';
  if (manifest.contains("input"))
    out << "  from " << member_text(manifest["input"], "format") << ", sha256 "
        << member_text(manifest["input"], "sha256") << '\n';
  const auto list = [&](const char* key) {
    return manifest.contains(key) && manifest[key].is_array() ? manifest[key] : Json::array();
  };
  std::map<std::string, int> formats;
  for (const Json& entry : list("precision"))
    ++formats[member_text(entry, "weight_format") + " " + member_text(entry, "fidelity")];
  for (const auto& [format, count] : formats) out << "  precision: " << count << " x " << format << '\n';
  for (const Json& entry : list("fallbacks"))
    out << "  on CPU: " << member_text(entry, "node") << " (" << member_text(entry, "op") << ") "
        << member_text(entry, "reason") << ": " << member_text(entry, "detail") << '\n';
  std::map<std::string, int> journal;
  for (const Json& entry : list("journal")) {
    if (verbose)
      out << "  " << member_text(entry, "pass") << ": " << member_text(entry, "rule") << " -> "
          << member_text(entry, "result") << "  " << member_text(entry, "module") << '\n';
    ++journal[member_text(entry, "pass")];
  }
  for (const Json& entry : list("earlier"))
    out << "  before that: " << member_text(entry, "summary") << ", "
        << (entry.contains("journal") ? entry["journal"].size() : 0) << " rewrites\n";
  if (!verbose)
    for (const auto& [pass, count] : journal) out << "  journal: " << count << " rewrites by " << pass << '\n';
}

}  // namespace

std::string inspect_text(const Json& description, bool verbose) {
  std::ostringstream out;
  out << description["file"].get<std::string>() << '\n' << "  " << description["format"].get<std::string>();
  if (!description["schema"].is_null()) out << ", schema " << description["schema"].get<std::string>();
  if (const auto torch = description["torch"].get<std::string>(); !torch.empty()) out << ", torch " << torch;
  if (const auto dialect = description["dialect"].get<std::string>(); !dialect.empty()) out << ", dialect " << dialect;
  if (!description["bytes"].is_null()) out << ", " << bytes_text(description["bytes"].get<double>());
  out << '\n';
  write_signature(out, description);
  write_weights(out, description["weights"]);
  write_modules(out, description["modules"], verbose);
  out << "nodes  " << description["nodes"] << '\n';
  for (const Json& op : description["ops"]) out << "  " << op["count"] << " x " << op["op"].get<std::string>() << '\n';
  if (!description["guards"].empty() && !verbose) out << "guards  " << description["guards"].size() << '\n';
  if (verbose)
    for (const Json& guard : description["guards"]) out << "guard  " << guard.get<std::string>() << '\n';
  for (const Json& extra : description["extra"])
    out << "extra  " << extra["name"].get<std::string>() << "  " << bytes_text(extra["bytes"].get<double>()) << '\n';
  if (!description["rewritten"].is_null()) write_rewritten(out, description["rewritten"], verbose);
  return out.str();
}

}  // namespace ttc
