// The CONFIG document: its schema, checked as a whole so that every problem is reported, each with path and line.
//
//   version: "1.0"
//   defaults: {fallback_policy: KERNEL, default_priority: 0..1000}
//   dispatch_rules: [{operation: GLOB, kernel: KERNEL, priority: 0..1000, conditions: {FIELD[_OPERATOR]: VALUE}}]
//   kernel_locks: {OPERATION or GLOB: KERNEL}
//   kernel_denies, kernel_allows: [GLOB]
//   fallback_chains: {OPERATION or GLOB: [KERNEL]}
//
// This header knows texts only; config_rules.h compiles them against contexts and kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/document.h"

namespace ttrt::dispatch {

// ---- conditions ----------------------------------------------------------------------------------------------------

enum class Field : std::uint8_t {
  batch_size,
  seq_len_q,
  seq_len_k,
  head_dim,
  num_heads,
  num_kv_heads,
  tp_size,
  pp_size,
  m,
  k,
  n,          // integers from 0
  dropout_p,  // in [0, 1]
  is_causal,
  enable_gqa,
  is_cuda_graph_capturing,
  requires_deterministic,  // booleans
  dtype,
  weight_dtype,
  platform,
  layout,
  device,  // texts
};
enum class FieldKind : std::uint8_t { integer, fraction, boolean, text };
FieldKind kind_of(Field field);
std::string_view to_string(Field field);
// By its name; seq_len stands for seq_len_q.
std::optional<Field> field_from_string(std::string_view name);

enum class Operator : std::uint8_t { eq, ne, gt, gte, lt, lte, in, not_in, match, regex };
std::string_view to_string(Operator op);

struct ConditionKey {
  Field field;
  Operator op;
};
// "batch_size_gte": the longest suffix that is an operator, none is eq. nullopt where the rest is no field.
std::optional<ConditionKey> parse_condition_key(std::string_view key);

struct ConditionText {
  Field field = Field::batch_size;
  Operator op = Operator::eq;
  std::string field_name;       // as written: seq_len stays seq_len
  std::vector<DocNode> values;  // one; any number for in and not_in
  int line = 0;
};

// ---- the document --------------------------------------------------------------------------------------------------

struct RuleText {
  std::string operation, kernel;
  int priority = 50;
  std::vector<ConditionText> conditions;
  int line = 0, kernel_line = 0;
};

struct NamedKernel {
  std::string pattern, kernel;
  int line = 0;
};

struct ChainText {
  std::string pattern;
  std::vector<std::pair<std::string, int>> kernels;  // with lines
};

struct ConfigDocument {
  std::string full_hash;        // SHA-256 over the key-sorted content, 64 hex digits
  std::string hash;             // its first 16
  std::string fallback_policy;  // "" for none
  int fallback_policy_line = 0;
  int default_priority = 50;
  std::vector<RuleText> rules;  // in file order
  std::vector<NamedKernel> locks;
  std::vector<std::string> denies, allows;
  std::vector<ChainText> chains;
};

struct ConfigIssue {
  std::string path, message, value;  // value: "" where there is none to show
  int line = 0;
  // "path: message (got: value)", with "line 3: " before it where the line is known.
  std::string text() const;
};

struct ConfigCheck {
  ConfigDocument document;  // of use where there are no errors
  std::vector<ConfigIssue> errors, warnings;
};

// A null root is an empty configuration. `also` names further keys of the top level that others read.
ConfigCheck check_config(const DocNode& root, std::span<const std::string_view> also = {});
// Whether a document has any key of this schema.
bool has_config_keys(const DocNode& root);
// One line an issue, behind "file: ".
std::string issues_text(std::span<const ConfigIssue> issues, const std::string& file);
// "; did you mean 'x'?" or "".
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace ttrt::dispatch
