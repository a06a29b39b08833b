// The configuration document: its schema, checked as a whole so that every problem is reported, each with path and
// line.
//
//   version: "1.0"
//   defaults: {fallback_policy: KERNEL, default_priority: 0..1000}
//   dispatch_rules: [{operation: GLOB, kernel: KERNEL, priority: 0..1000, conditions: {FIELD[_OPERATOR]: VALUE}}]
//   kernel_locks: {OPERATION or GLOB: KERNEL}
//   kernel_denies, kernel_allows: [GLOB]
//   fallback_chains: {OPERATION or GLOB: [KERNEL]}
//   static_kernel_map: {OPERATION: KERNEL}          the kernels of STATIC, and of AUTO where it has the operation
//
// or, without a version, HOT_RELOAD's: kernels: {OPERATION: {kernel: KERNEL}}, dispatch: {mode: MODE}; or both in one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dispatch/conditions.h"
#include "dispatch/selection.h"

namespace ttrt::dispatch {

// A kernel that the document names for an operation, and where.
struct NamedKernel {
  std::string operation;  // a name or glob; "*" where the kernel serves whatever it can
  std::string kernel, path;
  int line = 0;
};

struct ConfigRule {
  NamedKernel named;
  int priority = 50;
  std::vector<Condition> conditions = {};
  int line = 0;
};

struct ConfigDocument {
  std::string full_hash;  // content_hash()
  int default_priority = 50;
  std::optional<NamedKernel> fallback_policy;
  std::vector<ConfigRule> rules;   // in file order
  std::vector<NamedKernel> locks;  // in file order
  Policy filter;                   // denies and allows
  std::vector<std::vector<NamedKernel>> chains;
  std::vector<NamedKernel> static_kernels, hot_kernels;

  std::string hash() const { return full_hash.substr(0, 16); }
  std::vector<const NamedKernel*> named_kernels() const;
  StaticMap static_map() const;
};

struct ConfigIssue {
  std::string path = {}, message, value = {};  // value: "" where there is none to show
  int line = 0;
  // "path: message (got: value)", with "line 3: " before it where the line is known.
  std::string text() const;
};

struct ConfigCheck {
  ConfigDocument document;  // of use where there are no errors
  std::vector<ConfigIssue> errors, warnings;
};

// Which of the two documents is asked for: CONFIG's alone, or either.
enum class DocumentKind : std::uint8_t { config, hot_reload };
// A null root is an empty configuration for CONFIG.
ConfigCheck check_config(const DocNode& root, DocumentKind kind = DocumentKind::config);
// SHA-256 over the key-sorted content, 64 hex digits.
std::string content_hash(const DocNode& root);
// One line an issue.
std::string issues_text(std::span<const ConfigIssue> issues);
// "; did you mean 'x'?" or "".
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace ttrt::dispatch
