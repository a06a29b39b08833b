// See hot_reload.h. This file: what a document may say, and the version it makes.
#include <algorithm>

#include "dispatch/execute.h"
#include "dispatch/hot_reload.h"
#include "support/sha256.h"

namespace ttrt::dispatch {
namespace {

using Kind = DocNode::Kind;

constexpr std::array<std::string_view, 2> hot_keys{"kernels", "dispatch"};
constexpr std::array<std::string_view, 5> mode_words{"static", "dynamic", "hot_reload", "config", "auto"};

ConfigIssue issue(std::string path, std::string message, const DocNode& node, bool show = true) {
  return {.path = std::move(path), .message = std::move(message), .value = show ? node.shown() : "", .line = node.line};
}

void check_kernels(const DocNode& kernels, std::vector<ConfigIssue>& errors, std::vector<ConfigIssue>& warnings) {
  if (!kernels.is(Kind::map)) {
    errors.push_back(issue("kernels", "must be a map", kernels));
    return;
  }
  for (const auto& [operation, entry] : kernels.members) {
    const std::string path = "kernels." + operation;
    if (!entry.is(Kind::map)) {
      errors.push_back(issue(path, "must be a map, as in {kernel: ID}", entry));
      continue;
    }
    const DocNode* kernel = entry.find("kernel");
    if (kernel == nullptr) warnings.push_back(issue(path, "names no kernel", entry, false));
    if (kernel != nullptr && (!kernel->is(Kind::string) || kernel->text.empty()))
      errors.push_back(issue(path + ".kernel", "must be a string that is not empty", *kernel));
    static const std::vector<std::string> known{"kernel"};
    for (const auto& [key, value] : entry.members)
      if (key != "kernel")
        warnings.push_back(issue(path + "." + key, "unknown key" + suggestion(key, known), value, false));
  }
}

void check_dispatch(const DocNode& dispatch, std::vector<ConfigIssue>& errors, std::vector<ConfigIssue>& warnings) {
  if (!dispatch.is(Kind::map)) {
    errors.push_back(issue("dispatch", "must be a map", dispatch));
    return;
  }
  static const std::vector<std::string> known{"mode"};
  for (const auto& [key, value] : dispatch.members)
    if (key != "mode")
      warnings.push_back(issue("dispatch." + key, "unknown key" + suggestion(key, known), value, false));
  const DocNode* mode = dispatch.find("mode");
  if (mode == nullptr) return;
  const std::vector<std::string> words(mode_words.begin(), mode_words.end());
  if (!mode->is(Kind::string) || std::find(words.begin(), words.end(), mode->text) == words.end())
    errors.push_back(issue(
        "dispatch.mode", "must be static, dynamic, hot_reload, config or auto" + suggestion(mode->text, words), *mode));
}

void check_top_level(const DocNode& data, std::vector<ConfigIssue>& errors, std::vector<ConfigIssue>& warnings) {
  if (!data.is(Kind::map)) {
    errors.push_back(issue("", "the document must be a map with kernels, dispatch or dispatch_rules", data));
    return;
  }
  if (has_config_keys(data)) return;
  static const std::vector<std::string> known{"kernels", "dispatch", "dispatch_rules"};
  if (data.find("kernels") == nullptr && data.find("dispatch") == nullptr)
    errors.push_back(issue("", "the document needs kernels, dispatch or dispatch_rules", data, false));
  for (const auto& [key, value] : data.members)
    if (std::find(hot_keys.begin(), hot_keys.end(), key) == hot_keys.end())
      warnings.push_back(issue(key, "unknown key" + suggestion(key, known), value, false));
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : "\n") + line;
  return out;
}

}  // namespace

double HotReloadDispatcher::unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string HotReloadDispatcher::hash_of(const DocNode& data) {
  const std::string text = data.canonical();
  return ttc::sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

DocNode HotReloadDispatcher::parse_file(const std::string& path) const {
  return reader_.read(path, document_format(path));
}

std::vector<std::string> HotReloadDispatcher::problems(const DocNode& data, const std::string& path,
                                                       std::vector<std::string>& warnings,
                                                       ConfigDocument& document) const {
  std::vector<ConfigIssue> errors, notes;
  check_top_level(data, errors, notes);
  if (const DocNode* kernels = data.find("kernels")) check_kernels(*kernels, errors, notes);
  if (const DocNode* dispatch = data.find("dispatch")) check_dispatch(*dispatch, errors, notes);
  if (has_config_keys(data)) {
    ConfigCheck check = check_config(data, hot_keys);
    errors.insert(errors.end(), check.errors.begin(), check.errors.end());
    notes.insert(notes.end(), check.warnings.begin(), check.warnings.end());
    document = std::move(check.document);
  }
  std::vector<std::string> out;
  for (const ConfigIssue& error : errors) out.push_back(error.text());
  for (const ConfigIssue& note : notes) warnings.push_back((path.empty() ? "" : path + ": ") + note.text());
  std::vector<Validator> validators;
  {
    const std::lock_guard lock(mutex_);
    validators = validators_;
  }
  for (const Validator& validator : validators) try {
      for (std::string& message : validator(data)) out.push_back(std::move(message));
    } catch (...) {
      out.push_back("a validator failed: " + error_text(std::current_exception()));
    }
  return out;
}

// Throws HotReloadError. With validate off only what cannot be used at all is refused.
std::shared_ptr<ConfigVersion> HotReloadDispatcher::make_version(const DocNode& data, const std::string& path,
                                                                 bool validate) const {
  auto version = std::make_shared<ConfigVersion>();
  ConfigDocument document;
  if (validate) {
    const std::vector<std::string> errors = problems(data, path, version->warnings, document);
    if (!errors.empty()) throw HotReloadError(joined(errors), path);
  } else if (has_config_keys(data)) {
    ConfigCheck check = check_config(data, hot_keys);
    if (!check.errors.empty()) throw HotReloadError(issues_text(check.errors, ""), path);
    document = std::move(check.document);
  }
  std::vector<ConfigIssue> missing;
  if (const DocNode* kernels = data.find("kernels"))
    for (const auto& [operation, entry] : kernels->members) {
      const DocNode* kernel = entry.find("kernel");
      if (kernel == nullptr || !kernel->is(Kind::string) || kernel->text.empty()) continue;
      version->kernels[Symbol(operation)] = Symbol(kernel->text);
      if (kernels_.find(Symbol(kernel->text)) == nullptr)
        missing.push_back(
            issue("kernels." + operation + ".kernel",
                  "no kernel is called '" + kernel->text + "'" + suggestion(kernel->text, kernels_.kernel_ids()),
                  *kernel, false));
    }
  if (has_config_keys(data)) {
    version->rules = std::make_shared<ConfigRules>(std::move(document), 0, 1.0, clock_);
    for (ConfigIssue& rule : version->rules->missing_kernels(kernels_)) missing.push_back(std::move(rule));
  }
  if (options_.strict_kernels && !missing.empty()) throw HotReloadError(issues_text(missing, ""), path);
  for (const ConfigIssue& kernel : missing)
    version->warnings.push_back((path.empty() ? "" : path + ": ") + kernel.text());
  version->config_hash = version->rules != nullptr ? version->rules->document().full_hash : hash_of(data);
  version->timestamp = unix_time();
  version->data = data;
  version->path = path;
  return version;
}

}  // namespace ttrt::dispatch
