// Checking a document, section by section.
#include "dispatch/config_schema.h"

#include <algorithm>
#include <array>

#include "support/error.h"
#include "support/sha256.h"

namespace ttrt::dispatch {
namespace {

using Kind = DocNode::Kind;

constexpr std::array<std::string_view, 8> sections{"version",         "defaults",         "dispatch_rules",
                                                   "kernel_locks",    "kernel_denies",    "kernel_allows",
                                                   "fallback_chains", "static_kernel_map"};
constexpr std::array<std::string_view, 2> hot_sections{"kernels", "dispatch"};
constexpr int max_priority = 1000;
constexpr std::size_t max_regex = 256;  // bytes: compiling recurses

std::string list_of(std::span<const std::string_view> words) {
  std::string out;
  for (const std::string_view w : words) out += (out.empty() ? "" : ", ") + std::string(w);
  return out;
}

std::vector<std::string> strings(std::span<const std::string_view> words) { return {words.begin(), words.end()}; }

bool has_any(const DocNode& root, std::span<const std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return root.find(key) != nullptr; });
}

class Checker {
 public:
  explicit Checker(ConfigCheck& out) : out_(out), document_(out.document) {}

  void check(const DocNode& root, DocumentKind kind) {
    const bool hot = kind == DocumentKind::hot_reload;
    if (!root.is(Kind::map))
      return error(
          "",
          hot ? "the document must be a map with kernels, dispatch or dispatch_rules" : "the document must be a map",
          root);
    std::vector<std::string_view> known(sections.begin(), sections.end());
    if (hot) known.insert(known.end(), hot_sections.begin(), hot_sections.end());
    known_keys(root, "", known);
    if (hot && !has_any(root, known))
      issue(out_.errors, "", "the document needs kernels, dispatch or dispatch_rules", root, false);
    if (hot) check_hot(root);
    if (hot && !has_any(root, sections)) return;
    check_version(root);
    if (const DocNode* node = section(root, "defaults", Kind::map)) check_defaults(*node);
    if (const DocNode* node = section(root, "dispatch_rules", Kind::list)) check_rules(*node);
    check_map(root, "kernel_locks", document_.locks);
    check_globs(root, "kernel_denies", document_.filter.denies);
    check_globs(root, "kernel_allows", document_.filter.allows);
    if (const DocNode* node = section(root, "fallback_chains", Kind::map)) check_chains(*node);
    check_map(root, "static_kernel_map", document_.static_kernels);
  }

 private:
  void issue(std::vector<ConfigIssue>& to, std::string path, std::string message, const DocNode& node,
             bool show = true) {
    to.push_back(
        {.path = std::move(path), .message = std::move(message), .value = show ? node.shown() : "", .line = node.line});
  }
  void error(std::string path, std::string message, const DocNode& node) {
    issue(out_.errors, std::move(path), std::move(message), node);
  }
  bool refuse(const std::string& path, std::string message, const DocNode& node) {
    error(path, std::move(message), node);
    return false;
  }

  void known_keys(const DocNode& map, const std::string& path, std::span<const std::string_view> known) {
    for (const auto& [key, value] : map.members)
      if (std::find(known.begin(), known.end(), key) == known.end())
        issue(out_.warnings, path.empty() ? key : path + "." + key, "unknown key" + suggestion(key, strings(known)),
              value, false);
  }

  // nullptr where the section is missing or wrong.
  const DocNode* section(const DocNode& root, const std::string& name, Kind kind) {
    const DocNode* node = root.find(name);
    if (node == nullptr || node->is(kind)) return node;
    error(name, "must be " + std::string(to_string(kind)), *node);
    return nullptr;
  }

  void check_version(const DocNode& root) {
    const DocNode* version = root.find("version");
    if (version == nullptr)
      issue(out_.errors, "version", "is required, write version: \"1.0\"", root, false);
    else if (!version->is(Kind::string))
      error("version", "must be a string, write version: \"1.0\"", *version);
    else if (version->text != "1.0")
      error("version", "must be \"1.0\"", *version);
  }

  bool check_text(const DocNode& node, const std::string& path, std::string& to) {
    if (!node.is(Kind::string) || node.text.empty()) return refuse(path, "must be a string that is not empty", node);
    to = node.text;
    return true;
  }
  std::optional<NamedKernel> named(const std::string& operation, const DocNode& node, const std::string& path) {
    NamedKernel out{.operation = operation, .kernel = {}, .path = path, .line = node.line};
    if (!check_text(node, path, out.kernel)) return std::nullopt;
    return out;
  }

  void check_priority(const DocNode& node, const std::string& path, int& to) {
    if (!node.is(Kind::integer) || node.integer < 0 || node.integer > max_priority)
      return error(path, "must be an integer from 0 to " + std::to_string(max_priority), node);
    to = static_cast<int>(node.integer);
  }

  void check_defaults(const DocNode& node) {
    static constexpr std::string_view known[] = {"fallback_policy", "default_priority"};
    known_keys(node, "defaults", known);
    if (const DocNode* policy = node.find("fallback_policy"))
      document_.fallback_policy = named("*", *policy, "defaults.fallback_policy");
    if (const DocNode* priority = node.find("default_priority"))
      check_priority(*priority, "defaults.default_priority", document_.default_priority);
  }

  void check_rules(const DocNode& list) {
    for (std::size_t i = 0; i < list.items.size(); ++i)
      check_rule(list.items[i], "dispatch_rules[" + std::to_string(i) + "]");
  }

  void check_rule(const DocNode& node, const std::string& path) {
    if (!node.is(Kind::map)) return error(path, "must be a map", node);
    static constexpr std::string_view known[] = {"operation", "kernel", "priority", "conditions"};
    known_keys(node, path, known);
    ConfigRule rule{.named = {}, .priority = document_.default_priority, .line = node.line};
    std::string operation;
    if (const DocNode* name = required(node, path, "operation")) check_text(*name, path + ".operation", operation);
    if (const DocNode* kernel = required(node, path, "kernel"))
      if (auto one = named(operation, *kernel, path + ".kernel")) rule.named = std::move(*one);
    if (const DocNode* priority = node.find("priority")) check_priority(*priority, path + ".priority", rule.priority);
    if (const DocNode* conditions = node.find("conditions")) {
      if (conditions->is(Kind::map))
        check_conditions(*conditions, path + ".conditions", rule.conditions);
      else
        error(path + ".conditions", "must be a map", *conditions);
    }
    document_.rules.push_back(std::move(rule));
  }

  const DocNode* required(const DocNode& map, const std::string& path, const char* key) {
    const DocNode* node = map.find(key);
    if (node == nullptr) issue(out_.errors, path + "." + key, "is required", map, false);
    return node;
  }

  // ---- conditions --------------------------------------------------------------------------------------------------

  void check_conditions(const DocNode& map, const std::string& path, std::vector<Condition>& to) {
    for (const auto& [key, value] : map.members) {
      Condition condition(key);
      if (condition.field) {
        if (!check_condition(value, path + "." + key, condition)) continue;
        condition.compile();
        to.push_back(std::move(condition));
        continue;
      }
      const std::vector<std::string> names = field_names();
      const std::string close = ttc::nearest(condition.field_name, names.data(), names.size());
      error(path + "." + key,
            "unknown condition field" +
                (close.empty() ? "" : "; did you mean '" + close + key.substr(condition.field_name.size()) + "'?"),
            value);
    }
  }

  bool check_condition(const DocNode& value, const std::string& path, Condition& condition) {
    const FieldKind kind = condition.field->kind;
    const bool takes_list = condition.op == Operator::in || condition.op == Operator::not_in;
    const bool bare = path.ends_with("." + condition.field_name);
    if (value.is(Kind::list) && bare && kind == FieldKind::text) {
      condition.op = Operator::in;
    } else if (takes_list != value.is(Kind::list)) {
      const std::string instead = bare ? "; a list is for " + condition.field_name + "_in" : "";
      return refuse(path, takes_list ? "must be a list" : "takes one value" + instead, value);
    }
    if (condition.op == Operator::match || condition.op == Operator::regex)
      return check_pattern(value, path, condition);
    if (kind == FieldKind::text && condition.op >= Operator::gt && condition.op <= Operator::lte)
      issue(out_.warnings, path, "a text is never greater or less than another: this condition never holds", value);
    bool good = true;
    if (value.is(Kind::list)) {
      for (std::size_t i = 0; i < value.items.size(); ++i)
        good &= check_value(value.items[i], path + "[" + std::to_string(i) + "]", condition);
    } else {
      good = check_value(value, path, condition);
    }
    return good;
  }

  bool check_pattern(const DocNode& value, const std::string& path, Condition& condition) {
    if (condition.field->kind != FieldKind::text)
      return refuse(path, "patterns are for dtype, platform, layout and device", value);
    if (!value.is(Kind::string)) return refuse(path, "must be a string", value);
    condition.values.push_back(value);
    if (condition.op != Operator::regex) return true;
    if (value.text.size() > max_regex)
      return refuse(path, "a regular expression is at most " + std::to_string(max_regex) + " characters long", value);
    try {
      condition.pattern = std::make_shared<const std::regex>(value.text, std::regex::ECMAScript);
      return true;
    } catch (const std::regex_error& bad) {
      return refuse(path, "is no regular expression: " + std::string(bad.what()), value);
    }
  }

  bool check_value(const DocNode& value, const std::string& path, Condition& condition) {
    const std::string wrong = wrong_value(value, *condition.field);
    if (!wrong.empty()) return refuse(path, wrong, value);
    condition.values.push_back(value);
    return true;
  }

  // "" where the value is right for the field. Booleans pass as 0 and 1 where integers are asked for.
  static std::string wrong_value(const DocNode& value, const Field& field) {
    switch (field.kind) {
      case FieldKind::integer:
        if (value.is(Kind::boolean) || (value.is(Kind::integer) && value.integer >= 0)) return "";
        return "must be an integer that is not negative";
      case FieldKind::fraction:
        if (value.is(Kind::boolean)) return "";
        if ((value.is(Kind::integer) || value.is(Kind::number)) && value.number >= 0 && value.number <= 1) return "";
        return "must be a number from 0 to 1";
      case FieldKind::boolean:
        return value.is(Kind::boolean) ? "" : "must be true or false";
      case FieldKind::text: {
        if (!value.is(Kind::string)) return "must be a string";
        if (!field.words) return "";
        const auto words = field.words();
        if (std::find(words.begin(), words.end(), value.text) != words.end()) return "";
        return "must be one of " + list_of(words) + suggestion(value.text, strings(words));
      }
    }
    return "";
  }

  // ---- the other sections ------------------------------------------------------------------------------------------

  void check_map(const DocNode& root, const std::string& name, std::vector<NamedKernel>& to) {
    if (const DocNode* map = section(root, name, Kind::map))
      for (const auto& [key, value] : map->members)
        if (auto one = named(key, value, name + "." + key)) to.push_back(std::move(*one));
  }

  void check_globs(const DocNode& root, const std::string& name, std::vector<Policy::Rule>& to) {
    const DocNode* list = section(root, name, Kind::list);
    for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      std::string glob;
      if (check_text(list->items[i], name + "[" + std::to_string(i) + "]", glob)) to.push_back({.kernel = glob});
    }
  }

  void check_chains(const DocNode& map) {
    for (const auto& [key, value] : map.members) {
      const std::string path = "fallback_chains." + key;
      if (!value.is(Kind::list)) {
        error(path, "must be a list of kernels", value);
        continue;
      }
      std::vector<NamedKernel>& chain = document_.chains.emplace_back();
      for (std::size_t i = 0; i < value.items.size(); ++i)
        if (auto one = named(key, value.items[i], path + "[" + std::to_string(i) + "]"))
          chain.push_back(std::move(*one));
    }
  }

  void check_hot(const DocNode& root) {
    if (const DocNode* kernels = section(root, "kernels", Kind::map))
      for (const auto& [operation, entry] : kernels->members) {
        const std::string path = "kernels." + operation;
        if (!entry.is(Kind::map)) {
          error(path, "must be a map, as in {kernel: ID}", entry);
          continue;
        }
        static constexpr std::string_view known[] = {"kernel"};
        known_keys(entry, path, known);
        const DocNode* kernel = entry.find("kernel");
        if (kernel == nullptr) {
          issue(out_.warnings, path, "names no kernel", entry, false);
        } else if (auto one = named(operation, *kernel, path + ".kernel")) {
          document_.hot_kernels.push_back(std::move(*one));
        }
      }
    const DocNode* dispatch = section(root, "dispatch", Kind::map);
    if (dispatch == nullptr) return;
    static constexpr std::string_view known[] = {"mode"};
    known_keys(*dispatch, "dispatch", known);
    static constexpr std::string_view modes[] = {"static", "dynamic", "hot_reload", "config", "auto"};
    const DocNode* mode = dispatch->find("mode");
    if (mode != nullptr &&
        (!mode->is(Kind::string) || std::find(std::begin(modes), std::end(modes), mode->text) == std::end(modes)))
      error("dispatch.mode",
            "must be static, dynamic, hot_reload, config or auto" + suggestion(mode->text, strings(modes)), *mode);
  }

  ConfigCheck& out_;
  ConfigDocument& document_;
};

}  // namespace

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::string hint = did_you_mean(word, candidates);
  return hint.empty() ? "" : "; " + hint;
}

std::vector<const NamedKernel*> ConfigDocument::named_kernels() const {
  std::vector<const NamedKernel*> out;
  if (fallback_policy) out.push_back(&*fallback_policy);
  for (const ConfigRule& rule : rules) out.push_back(&rule.named);
  for (const auto* list : {&locks, &static_kernels, &hot_kernels})
    for (const NamedKernel& one : *list) out.push_back(&one);
  for (const auto& chain : chains)
    for (const NamedKernel& one : chain) out.push_back(&one);
  return out;
}

StaticMap ConfigDocument::static_map() const {
  StaticMap out;
  for (const NamedKernel& one : static_kernels) out[one.operation] = one.kernel;
  return out;
}

std::string ConfigIssue::text() const {
  std::string out = line > 0 ? "line " + std::to_string(line) + ": " : "";
  if (!path.empty()) out += path + ": ";
  out += message;
  if (!value.empty()) out += " (got: " + value + ")";
  return out;
}

std::string content_hash(const DocNode& root) {
  const std::string text = root.canonical();
  return ttc::sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

ConfigCheck check_config(const DocNode& root, DocumentKind kind) {
  ConfigCheck out;
  out.document.full_hash = content_hash(root);
  if (!root.is(Kind::null) || kind == DocumentKind::hot_reload) Checker(out).check(root, kind);
  return out;
}

std::string issues_text(std::span<const ConfigIssue> issues) {
  std::string out;
  for (const ConfigIssue& issue : issues) out += (out.empty() ? "" : "\n") + issue.text();
  return out;
}

}  // namespace ttrt::dispatch
