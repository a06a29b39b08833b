// Runs passes in order, with the instrumentation that the debug flags ask for.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "pass/pass.h"

namespace ttc {

struct PassStep {
  const PassInfo* info = nullptr;
  std::vector<std::string_view> parts = {};  // in the pass's order; empty: all
  std::string_view why = {};                 // in the default pipeline
  std::string name() const;                  // "decompose:checks+rnn"
};

// Passes are named "name" or "name:part+part"; names that passes had before are taken as well.
struct PassManagerOptions {
  std::vector<std::string> passes;  // in this order; empty: default_pipeline()
  std::vector<std::string> disable;
  std::vector<std::string> dump_before;  // pass names, "all"
  std::vector<std::string> dump_after;   // pass names, "all", "change"
  std::string dump_dir;                  // one file per dump; empty: dumps go to `log`
  bool print_pipeline = false;
  bool time_passes = false;
  bool stats = false;
  bool verify_each = false;
  std::string stop_after;
  long rewrite_limit = -1;
  std::ostream* log = nullptr;  // nullptr: standard error
  // Told of a pass that throws, or breaks the graph under verify_each, with the model as it was before that pass and
  // the values of its symbols. The error follows. Costs a copy of the graph before each pass.
  std::function<void(const PassStep& step, const ir::Model& before, const ir::SymBinding& shapes, const char* error)>
      on_failure = {};
};

struct PassReport {
  std::string name;
  bool changed = false;
  double ms = 0;
  std::size_t nodes_before = 0, nodes_after = 0;
  std::size_t matched = 0, refused = 0;
};

// The passes that would run, in order. Throws ttc::Error (usage), naming the nearest pass, for a name nobody
// registered and for a part that a pass has not.
std::vector<PassStep> select_passes(const PassManagerOptions& options);
// Names of passes in the options that have no effect, for those passes are not among the ones that would run.
std::vector<std::string> idle_names(const PassManagerOptions& options);
// Throws ttc::Error (exit code 70) naming the pass that broke the IR under verify_each; what dumps cannot write is an
// Error too.
std::vector<PassReport> run_passes(PassContext& context, const PassManagerOptions& options);

}  // namespace ttc
