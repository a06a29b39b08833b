// One file that replays what failed, by itself: a pass with the graph before it and what the user had asked for, or a
// node with what it was given.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "executor/executor.h"
#include "session/cases.h"
#include "session/compile_settings.h"

namespace ttc {

// ---- a pass: the text of the graph before it, weights and settings included -----------------------------------------

struct FailedPass {
  std::string pass, error;
  CompileSettings settings;    // of the compile, with this pass alone
  ir::SymBinding shapes = {};  // values of symbols
  ttrt::ArchProfile profile = {};
  std::vector<std::string> plugins = {};  // that were loaded
};
// Throws Error (usage) where the file cannot be written.
void write_pass_reproducer(const std::string& path, const ir::Model& before, const FailedPass& failed);
// What the file that became this model replays; none where it is no reproducer. Throws Error (bad_file).
std::optional<FailedPass> replayed_pass(const ir::Model& model);
// Its settings, and the user's own over them. Throws Error (usage) where nobody has brought the pass.
CompileSettings replaying(const FailedPass& failed, const CompileSettings& user);

// ---- a node: a model of it alone, which carries its call along (kept.h) ---------------------------------------------

// A node in one of the cases that are run one after the other.
struct NodeOfStep {
  std::string node;
  std::size_t step = 0;
};
// Its inputs are what the node reads in that step when the cases are run as `options` say, its expected outputs what
// the node's reference, or LibTorch, gives for them; `pcc` is what they have to reach. A node in a region is there with
// the node that has the region. Throws Error (usage) where the model has no such node, and what running it up to there
// throws.
std::unique_ptr<ir::Model> node_reproducer(const std::shared_ptr<const ir::Model>& model, const NodeOfStep& node,
                                           const std::vector<Case>& cases, const ttrt::ExecutorOptions& options,
                                           double pcc = 0.99);
// How far an executor that runs the cases in turn, from the first again after the last, has come. Is its observer.
class RunWatch {
 public:
  RunWatch(ttrt::Executor& executor, std::size_t cases);
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;
  // The node that comes next; where a run ended early, that with which it did. None where the model has no node.
  std::optional<NodeOfStep> next() const;

 private:
  ttrt::Executor& executor_;
  const std::size_t cases_;
  std::size_t runs_ = 0, next_ = 0;
  std::vector<const ttrt::Instruction*> order_;
};
// The node with which running the cases ends in an error.
std::optional<NodeOfStep> failing_node(ttrt::Executor& executor, const std::vector<Case>& cases);
// The first one that falls back to the CPU.
std::optional<NodeOfStep> falling_node(ttrt::Executor& executor, const std::vector<Case>& cases);

}  // namespace ttc
