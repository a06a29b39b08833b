// Passes: a name, a sentence, a function. One file each in passes/, which ends in TTC_REGISTER_PASS.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "ops/op.h"
#include "support/reason.h"

namespace ttc {

// A node that a pass left as it was although the node looked like its business, and why.
struct RefusalRecord {
  std::string pass;
  std::string node;            // name of the node's first result
  std::string op;
  std::string module;
  std::string source;
  Reason reason;
};

// A pattern that was rewritten, for the journal.
struct MatchRecord {
  std::string pass;
  std::string rule;
  std::vector<std::string> nodes;   // names of the results that went
  std::string result;               // name of the result that came
  std::string module;
};

// What the user asked of a compile; patterns are globs over nn.Module paths (later entries win).
struct CompileOptions {
  std::string arch = "n150";
  std::vector<std::pair<std::string, std::string>> replace;        // "torch.nn.Linear" or "module:GLOB" -> "tt.linear"; empty: everything
  std::vector<std::string> exclude;                                 // module globs
  std::vector<std::pair<std::string, ttrt::DataType>> weight_format;
  ttrt::DataType activation = ttrt::DataType::bfloat16;
  std::vector<std::pair<std::string, ttrt::MathFidelity>> fidelity;
  std::vector<std::pair<std::string, bool>> fp32_acc;
  std::vector<std::string> fallback_ops, fallback_modules, fallback_nodes;   // globs kept on the CPU
  bool require_full = false;
};

struct PassContext {
  ir::Model& model;
  const CompileOptions& options;
  std::vector<RefusalRecord> refusals;
  std::vector<MatchRecord> matches;
  // Rewrites still allowed (--rewrite-limit); every rewrite asks allow_rewrite() first.
  long rewrite_limit = -1;
  long rewrites = 0;
  bool allow_rewrite() {
    if (rewrite_limit >= 0 && rewrites >= rewrite_limit) return false;
    ++rewrites;
    return true;
  }
  void refuse(std::string_view pass, const ir::Node& node, Reason reason);
  void matched(std::string_view pass, std::string_view rule, std::vector<std::string> nodes, const ir::Node& result);
};

struct PassInfo {
  std::string_view name;       // kebab-case, equal to the file's name with '-' for '_'
  std::string_view summary;    // one sentence
  bool (*run)(PassContext&);   // true where the graph changed
};

void register_pass(const PassInfo& info);              // aborts on a duplicate name
const PassInfo* find_pass(std::string_view name);
std::vector<const PassInfo*> all_passes();             // sorted by name
// The default order (src/pass/pipeline.cpp).
const std::vector<std::string_view>& default_pipeline();

}  // namespace ttc

#define TTC_REGISTER_PASS(...)                                                         \
  namespace {                                                                          \
  const bool ttc_pass_registered = (::ttc::register_pass(::ttc::PassInfo __VA_ARGS__), true); \
  }
