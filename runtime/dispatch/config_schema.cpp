// See config_schema.h.
#include "dispatch/config_schema.h"

#include <algorithm>
#include <array>
#include <regex>

#include "support/error.h"
#include "support/sha256.h"

namespace ttrt::dispatch {
namespace {

using Kind = DocNode::Kind;

// ---- vocabulary ----------------------------------------------------------------------------------------------------

struct FieldInfo {
  Field field;
  std::string_view name;
  FieldKind kind;
};

constexpr std::array fields = {
    FieldInfo{Field::batch_size, "batch_size", FieldKind::integer},
    FieldInfo{Field::seq_len_q, "seq_len_q", FieldKind::integer},
    FieldInfo{Field::seq_len_k, "seq_len_k", FieldKind::integer},
    FieldInfo{Field::head_dim, "head_dim", FieldKind::integer},
    FieldInfo{Field::num_heads, "num_heads", FieldKind::integer},
    FieldInfo{Field::num_kv_heads, "num_kv_heads", FieldKind::integer},
    FieldInfo{Field::tp_size, "tp_size", FieldKind::integer},
    FieldInfo{Field::pp_size, "pp_size", FieldKind::integer},
    FieldInfo{Field::m, "m", FieldKind::integer},
    FieldInfo{Field::k, "k", FieldKind::integer},
    FieldInfo{Field::n, "n", FieldKind::integer},
    FieldInfo{Field::dropout_p, "dropout_p", FieldKind::fraction},
    FieldInfo{Field::is_causal, "is_causal", FieldKind::boolean},
    FieldInfo{Field::enable_gqa, "enable_gqa", FieldKind::boolean},
    FieldInfo{Field::is_cuda_graph_capturing, "is_cuda_graph_capturing", FieldKind::boolean},
    FieldInfo{Field::requires_deterministic, "requires_deterministic", FieldKind::boolean},
    FieldInfo{Field::dtype, "dtype", FieldKind::text},
    FieldInfo{Field::weight_dtype, "weight_dtype", FieldKind::text},
    FieldInfo{Field::platform, "platform", FieldKind::text},
    FieldInfo{Field::layout, "layout", FieldKind::text},
    FieldInfo{Field::device, "device", FieldKind::text},
};

struct OperatorInfo {
  Operator op;
  std::string_view suffix;
};

// Longest first: _not_in before _in.
constexpr std::array operators = {
    OperatorInfo{Operator::not_in, "_not_in"}, OperatorInfo{Operator::match, "_match"},
    OperatorInfo{Operator::regex, "_regex"},   OperatorInfo{Operator::gte, "_gte"},
    OperatorInfo{Operator::lte, "_lte"},       OperatorInfo{Operator::in, "_in"},
    OperatorInfo{Operator::eq, "_eq"},         OperatorInfo{Operator::ne, "_ne"},
    OperatorInfo{Operator::gt, "_gt"},         OperatorInfo{Operator::lt, "_lt"},
};

std::vector<std::string> condition_names() {
  std::vector<std::string> out{"seq_len"};
  for (const FieldInfo& f : fields) out.emplace_back(f.name);
  return out;
}

std::span<const std::string_view> words_of(Field field) {
  static constexpr std::string_view dtypes[] = {"float16", "float32", "float64",   "bfloat16",  "int8",
                                                "int16",   "int32",   "int64",     "uint8",     "bool",
                                                "uint16",  "uint32",  "bfloat8_b", "bfloat4_b", "bfloat2_b"};
  static constexpr std::string_view platforms[] = {"cuda", "rocm", "cpu", "hpu", "xpu", "tt"};
  static constexpr std::string_view layouts[] = {"BSHD", "BHSD", "NHD", "HND"};
  if (field == Field::dtype || field == Field::weight_dtype) return dtypes;
  if (field == Field::platform) return platforms;
  if (field == Field::layout) return layouts;
  return {};
}

std::string list_of(std::span<const std::string_view> words) {
  std::string out;
  for (const std::string_view w : words) out += (out.empty() ? "" : ", ") + std::string(w);
  return out;
}

// ---- the checker ---------------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 7> sections{"version",       "defaults",      "dispatch_rules", "kernel_locks",
                                                   "kernel_denies", "kernel_allows", "fallback_chains"};
constexpr int max_priority = 1000;
constexpr std::size_t max_regex = 256;  // bytes: compiling recurses

class Checker {
 public:
  explicit Checker(ConfigCheck& out) : out_(out), document_(out.document) {}

  void check(const DocNode& root, std::span<const std::string_view> also) {
    if (!root.is(Kind::map)) return error("", "the document must be a map", root);
    std::vector<std::string_view> known(sections.begin(), sections.end());
    known.insert(known.end(), also.begin(), also.end());
    known_keys(root, "", known);
    check_version(root);
    if (const DocNode* node = section(root, "defaults", Kind::map)) check_defaults(*node);
    if (const DocNode* node = section(root, "dispatch_rules", Kind::list)) check_rules(*node);
    if (const DocNode* node = section(root, "kernel_locks", Kind::map)) check_locks(*node);
    if (const DocNode* node = section(root, "kernel_denies", Kind::list))
      check_globs(*node, "kernel_denies", document_.denies);
    if (const DocNode* node = section(root, "kernel_allows", Kind::list))
      check_globs(*node, "kernel_allows", document_.allows);
    if (const DocNode* node = section(root, "fallback_chains", Kind::map)) check_chains(*node);
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

  void known_keys(const DocNode& map, const std::string& path, std::span<const std::string_view> known) {
    for (const auto& [key, value] : map.members) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::vector<std::string> names(known.begin(), known.end());
      issue(out_.warnings, path.empty() ? key : path + "." + key, "unknown key" + suggestion(key, names), value, false);
    }
  }

  // nullptr where the section is missing or wrong.
  const DocNode* section(const DocNode& root, const char* name, Kind kind) {
    const DocNode* node = root.find(name);
    if (node == nullptr || node->is(kind)) return node;
    error(name, "must be " + std::string(to_string(kind)), *node);
    return nullptr;
  }

  void check_version(const DocNode& root) {
    const DocNode* version = root.find("version");
    if (version == nullptr) {
      issue(out_.errors, "version", "is required, write version: \"1.0\"", root, false);
    } else if (!version->is(Kind::string)) {
      error("version", "must be a string, write version: \"1.0\"", *version);
    } else if (version->text != "1.0") {
      error("version", "must be \"1.0\"", *version);
    }
  }

  bool check_text(const DocNode& node, const std::string& path, std::string& to) {
    if (!node.is(Kind::string) || node.text.empty()) {
      error(path, "must be a string that is not empty", node);
      return false;
    }
    to = node.text;
    return true;
  }

  void check_priority(const DocNode& node, const std::string& path, int& to) {
    if (!node.is(Kind::integer) || node.integer < 0 || node.integer > max_priority)
      return error(path, "must be an integer from 0 to " + std::to_string(max_priority), node);
    to = static_cast<int>(node.integer);
  }

  void check_defaults(const DocNode& node) {
    static constexpr std::string_view known[] = {"fallback_policy", "default_priority"};
    known_keys(node, "defaults", known);
    if (const DocNode* policy = node.find("fallback_policy");
        policy != nullptr && check_text(*policy, "defaults.fallback_policy", document_.fallback_policy))
      document_.fallback_policy_line = policy->line;
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
    RuleText rule{.operation = {},
                  .kernel = {},
                  .priority = document_.default_priority,
                  .conditions = {},
                  .line = node.line,
                  .kernel_line = node.line};
    if (const DocNode* operation = required(node, path, "operation"))
      check_text(*operation, path + ".operation", rule.operation);
    if (const DocNode* kernel = required(node, path, "kernel")) {
      check_text(*kernel, path + ".kernel", rule.kernel);
      rule.kernel_line = kernel->line;
    }
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

  void check_conditions(const DocNode& map, const std::string& path, std::vector<ConditionText>& to) {
    for (const auto& [key, value] : map.members) {
      const auto parsed = parse_condition_key(key);
      if (!parsed) {
        error(path + "." + key, "unknown condition field" + field_suggestion(key), value);
        continue;
      }
      ConditionText condition{
          .field = parsed->field, .op = parsed->op, .field_name = field_part(key), .values = {}, .line = value.line};
      if (check_condition(value, path + "." + key, condition)) to.push_back(std::move(condition));
    }
  }

  static std::string field_part(std::string_view key) {
    if (field_from_string(key)) return std::string(key);
    for (const OperatorInfo& o : operators)
      if (key.ends_with(o.suffix)) return std::string(key.substr(0, key.size() - o.suffix.size()));
    return std::string(key);
  }

  static std::string field_suggestion(std::string_view key) {
    const std::vector<std::string> names = condition_names();
    const std::string field = field_part(key);
    const std::string close = ttc::nearest(field, names.data(), names.size());
    if (close.empty()) return "";
    return "; did you mean '" + close + std::string(key.substr(field.size())) + "'?";
  }

  bool check_condition(const DocNode& value, const std::string& path, ConditionText& condition) {
    const FieldKind kind = kind_of(condition.field);
    const bool takes_list = condition.op == Operator::in || condition.op == Operator::not_in;
    const bool bare = path.ends_with("." + condition.field_name);
    if (value.is(Kind::list) && bare && kind == FieldKind::text) {
      condition.op = Operator::in;
    } else if (takes_list != value.is(Kind::list)) {
      error(path,
            takes_list ? "must be a list"
                       : "takes one value" + std::string(bare ? "; a list is for " + condition.field_name + "_in" : ""),
            value);
      return false;
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

  bool check_pattern(const DocNode& value, const std::string& path, ConditionText& condition) {
    if (kind_of(condition.field) != FieldKind::text) {
      error(path, "patterns are for dtype, platform, layout and device", value);
      return false;
    }
    if (!value.is(Kind::string)) {
      error(path, "must be a string", value);
      return false;
    }
    if (condition.op == Operator::regex && !check_regex(value, path)) return false;
    condition.values.push_back(value);
    return true;
  }

  bool check_regex(const DocNode& value, const std::string& path) {
    if (value.text.size() > max_regex) {
      error(path, "a regular expression is at most " + std::to_string(max_regex) + " characters long", value);
      return false;
    }
    try {
      const std::regex compiled(value.text, std::regex::ECMAScript);
      return true;
    } catch (const std::regex_error& bad) {
      error(path, "is no regular expression: " + std::string(bad.what()), value);
      return false;
    }
  }

  bool check_value(const DocNode& value, const std::string& path, ConditionText& condition) {
    const std::string wrong = wrong_value(value, condition.field);
    if (!wrong.empty()) {
      error(path, wrong, value);
      return false;
    }
    condition.values.push_back(value);
    return true;
  }

  // "" where the value is right for the field. Booleans pass as 0 and 1 where integers are asked for.
  static std::string wrong_value(const DocNode& value, Field field) {
    switch (kind_of(field)) {
      case FieldKind::integer:
        if (value.is(Kind::boolean) || (value.is(Kind::integer) && value.integer >= 0)) return "";
        return "must be an integer that is not negative";
      case FieldKind::fraction:
        if (value.is(Kind::boolean) || (value.is_numeric() && value.number >= 0 && value.number <= 1)) return "";
        return "must be a number from 0 to 1";
      case FieldKind::boolean:
        return value.is(Kind::boolean) ? "" : "must be true or false";
      case FieldKind::text: {
        if (!value.is(Kind::string)) return "must be a string";
        const auto words = words_of(field);
        if (words.empty() || std::find(words.begin(), words.end(), value.text) != words.end()) return "";
        const std::vector<std::string> names(words.begin(), words.end());
        return "must be one of " + list_of(words) + suggestion(value.text, names);
      }
    }
    return "";
  }

  // ---- the other sections ------------------------------------------------------------------------------------------

  void check_locks(const DocNode& map) {
    for (const auto& [key, value] : map.members) {
      NamedKernel lock{.pattern = key, .kernel = {}, .line = value.line};
      if (check_text(value, "kernel_locks." + key, lock.kernel)) document_.locks.push_back(std::move(lock));
    }
  }

  void check_globs(const DocNode& list, const std::string& path, std::vector<std::string>& to) {
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      std::string glob;
      if (check_text(list.items[i], path + "[" + std::to_string(i) + "]", glob)) to.push_back(std::move(glob));
    }
  }

  void check_chains(const DocNode& map) {
    for (const auto& [key, value] : map.members) {
      const std::string path = "fallback_chains." + key;
      if (!value.is(Kind::list)) {
        error(path, "must be a list of kernels", value);
        continue;
      }
      ChainText chain{.pattern = key, .kernels = {}};
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        std::string kernel;
        if (check_text(value.items[i], path + "[" + std::to_string(i) + "]", kernel))
          chain.kernels.emplace_back(std::move(kernel), value.items[i].line);
      }
      document_.chains.push_back(std::move(chain));
    }
  }

  ConfigCheck& out_;
  ConfigDocument& document_;
};

std::string hash_of(const DocNode& root) {
  const std::string text = root.canonical();
  return ttc::sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

// ---- names ---------------------------------------------------------------------------------------------------------

FieldKind kind_of(Field field) { return fields[static_cast<std::size_t>(field)].kind; }
std::string_view to_string(Field field) { return fields[static_cast<std::size_t>(field)].name; }

std::optional<Field> field_from_string(std::string_view name) {
  if (name == "seq_len") return Field::seq_len_q;
  for (const FieldInfo& f : fields)
    if (f.name == name) return f.field;
  return std::nullopt;
}

std::string_view to_string(Operator op) {
  for (const OperatorInfo& o : operators)
    if (o.op == op) return o.suffix.substr(1);
  return "";
}

std::optional<ConditionKey> parse_condition_key(std::string_view key) {
  if (const auto field = field_from_string(key)) return ConditionKey{*field, Operator::eq};
  for (const OperatorInfo& o : operators) {
    if (!key.ends_with(o.suffix)) continue;
    if (const auto field = field_from_string(key.substr(0, key.size() - o.suffix.size())))
      return ConditionKey{*field, o.op};
  }
  return std::nullopt;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::string close = ttc::nearest(word, candidates.data(), candidates.size());
  return close.empty() ? "" : "; did you mean '" + close + "'?";
}

// ---- checking ------------------------------------------------------------------------------------------------------

std::string ConfigIssue::text() const {
  std::string out = line > 0 ? "line " + std::to_string(line) + ": " : "";
  if (!path.empty()) out += path + ": ";
  out += message;
  if (!value.empty()) out += " (got: " + value + ")";
  return out;
}

ConfigCheck check_config(const DocNode& root, std::span<const std::string_view> also) {
  ConfigCheck out;
  out.document.full_hash = hash_of(root);
  out.document.hash = out.document.full_hash.substr(0, 16);
  if (!root.is(Kind::null)) Checker(out).check(root, also);
  return out;
}

bool has_config_keys(const DocNode& root) {
  return std::any_of(sections.begin(), sections.end(), [&](std::string_view key) { return root.find(key) != nullptr; });
}

std::string issues_text(std::span<const ConfigIssue> issues, const std::string& file) {
  std::string out;
  for (const ConfigIssue& issue : issues)
    out += (out.empty() ? "" : "\n") + (file.empty() ? "" : file + ": ") + issue.text();
  return out;
}

}  // namespace ttrt::dispatch
