// Passes: a name, a sentence, a function. One file each in passes/, which ends in TTC_REGISTER_PASS.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "device/arch.h"
#include "ir/model.h"
#include "ir/node_name.h"
#include "ops/op.h"
#include "pass/replacement_map.h"
#include "support/reason.h"

namespace ttc {

// A node that a pass left as it was although the node looked like its business, and why.
struct RefusalRecord {
  std::string pass;
  std::string node;  // name of the node's first result
  std::string op;
  std::string module;
  std::string source;
  Reason reason;
};

// One rewrite, for the journal.
struct MatchRecord {
  std::string pass;
  std::string rule;
  std::vector<std::string> nodes;  // names of the results that went or changed
  std::string result;              // name of the result that came; "" where none did
  std::string module;
};

// How many rewrites may still be made (--rewrite-limit); rewriter.h says what one is. Only a Rewriter's commit takes
// one.
class RewriteBudget {
 public:
  void limit(long most) { most_ = most; }  // negative: no limit
  long taken() const { return taken_; }

 private:
  friend class Rewriter;
  bool take() {
    if (most_ >= 0 && taken_ >= most_) return false;
    ++taken_;
    return true;
  }
  long most_ = -1, taken_ = 0;
};

// What the user asked of a compile; patterns are globs over nn.Module paths (later entries win).
struct CompileOptions {
  ttrt::ArchProfile profile = ttrt::default_profile();
  std::vector<ReplacementMap> replace;  // in the order of their passes; empty: everything
  std::vector<std::string> exclude;     // module globs
  std::vector<std::pair<std::string, ttrt::DataType>> weight_format;
  ttrt::DataType activation = ttrt::DataType::bfloat16;
  // nullopt: as the op library takes it by itself, which is so too where no entry matches.
  std::vector<std::pair<std::string, std::optional<ttrt::MathFidelity>>> fidelity;
  std::vector<std::pair<std::string, std::optional<bool>>> fp32_acc;
  std::vector<std::string> fallback_ops, fallback_modules, fallback_nodes;  // globs kept on the CPU
  bool require_full = false;
  // Values of free dims for counts, costs and placement; those not given take the lower bound of their range.
  ir::SymBinding shapes;
};

// A compute node of the canonical graph: what the counts of device and CPU nodes refer to. Node::origins are indices
// into PassContext::canonical.
struct CanonicalNode {
  std::shared_ptr<const ir::Provenance> provenance;
  std::string op;
  double flops = 0;  // multiplications and additions of matrix products, at PassContext::shapes
};

struct PassContext {
  PassContext(ir::Model& m, const CompileOptions& o);

  ir::Model& model;
  const CompileOptions& options;
  std::vector<RefusalRecord> refusals;
  std::vector<MatchRecord> matches;
  std::vector<CanonicalNode> canonical;  // filled by number-nodes
  ir::SymBinding shapes;                 // a value for every symbol
  RewriteBudget budget;
  bool changed = false;              // by the pass that runs: every commit sets it
  // By which entry of the map a node became a device operator, by node_name(): what it was decides, not what it is.
  std::map<std::string, const MapEntry*, std::less<>> taken;
  std::set<std::string_view> parts;  // of the pass that runs; empty: all
  bool wants(std::string_view part) const { return parts.empty() || parts.contains(part); }
  void refuse(std::string_view pass, const ir::Node& node, Reason reason);  // the first of a pass for a node counts
  bool has_refused(std::string_view pass, const ir::Node& node) const;
  // The entry of the maps by which the node is, or may become, `device_op`; nullptr where there is none.
  const MapEntry* entry_for(const ir::Node& node, std::string_view device_op) const;

 private:
  std::set<std::pair<std::string, std::string>> refused_;  // pass and node of `refusals`
};

using ir::node_name;
// Nodes of the graph and of all its regions.
std::size_t count_nodes(const ir::Graph& graph);

struct PassInfo {
  std::string_view name;     // kebab-case, equal to the file's name with '-' for '_'
  std::string_view summary;  // one sentence
  void (*run)(PassContext&);
  std::vector<std::string_view> parts = {};  // that can be run and switched off by themselves, as "pass:part"
};

void register_pass(const PassInfo& info);  // aborts on a duplicate name
const PassInfo* find_pass(std::string_view name);
std::vector<const PassInfo*> all_passes();  // sorted by name

struct PipelineStep {
  std::string_view pass;  // "name", or "name:part+part"
  std::string_view why;   // it stands where it stands
};
// The default order (src/pass/pipeline.cpp).
const std::vector<PipelineStep>& default_pipeline();
// Names that passes had, and what they are now.
const std::map<std::string_view, std::string_view>& former_names();

}  // namespace ttc

#define TTC_REGISTER_PASS(...) TTC_REGISTER_PASS_AS(__COUNTER__, __VA_ARGS__)
#define TTC_REGISTER_PASS_AS(number, ...) TTC_REGISTER_PASS_NAMED(number, __VA_ARGS__)
#define TTC_REGISTER_PASS_NAMED(number, ...)                                                          \
  namespace {                                                                                         \
  const bool ttc_pass_registered##number = (::ttc::register_pass(::ttc::PassInfo __VA_ARGS__), true); \
  }
