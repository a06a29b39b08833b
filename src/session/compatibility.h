// Which modules the device has, and which the host served in runs: TT-Symbiote's compatibility report, and what of it
// nobody expected.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"

namespace ttc {

// A compute node that the host served, or that a compile left to it.
struct HostNode {
  std::string node, op;
  std::string module, klass;  // of the nn.Module, "Linear"; node and operator where the file names no module
  std::string reason;
  bool planned = true;   // the rewritten model has it on the CPU; false: the device should have served it
  bool expected = true;  // by the list, or where there is none, because it was planned
  std::shared_ptr<const ir::Provenance> where = {};
};

struct Compatibility {
  std::string model_class;                        // "" where the file does not say
  std::map<std::string, std::string> swapped;     // module path to class
  std::map<std::string, std::int64_t> successes;  // module path to the runs in which the device served all of it
  std::vector<HostNode> host;                     // in the order of the program
  std::int64_t runs = 0;                          // 0: nothing ran, and `host` is what was planned
  std::vector<std::string> no_longer = {};        // entries of the list that name nothing of `host`

  std::vector<std::string> regressions() const;  // the classes of what nobody expected, sorted
  // {modules_swapped{by_class, by_module}, runtime_observed{successes_by_class, fallbacks_by_class,
  // fallbacks_by_module}, regressions, summary{}, fallbacks[{node, op, module, class, reason, planned, expected}],
  // no_longer}: successes are runs, by_class otherwise counts modules.
  std::string json() const;
};

// Of a rewritten model before it runs.
Compatibility placement_of(const ir::Model& model);

// Watches the runs of one executor.
class RunLedger {
 public:
  void observe(const ttrt::Executor& executor);  // after each run
  // What is planned, and what the runs added to it: kernels that failed or were taken out, runs that the host repeated.
  Compatibility report(const ttrt::Executor& executor) const;

 private:
  std::map<std::string, std::int64_t> whole_;  // by module path: runs in which the device served all of it
  std::int64_t runs_ = 0;
};

// What may be left to the host: a JSON list of classes or module:GLOBs as --replace takes them, module paths, operators
// and nodes (globs); or an earlier report, whose fallbacks they are.
class ExpectedFallbacks {
 public:
  // Throws Error (bad_file) for what is neither.
  static ExpectedFallbacks read(const std::string& path);
  static ExpectedFallbacks of(const std::vector<std::string>& names);
  // Sets `expected` of each node and `no_longer`.
  void judge(Compatibility& compatibility) const;

 private:
  struct Entry {
    std::string name;        // "": by the two below
    std::string module, op;  // of an earlier report; op "": any of that module
    bool covers(const HostNode& node) const;
    std::string text() const { return !name.empty() ? name : module + (op.empty() ? "" : " (" + op + ")"); }
  };
  std::vector<Entry> entries_;
};

}  // namespace ttc
