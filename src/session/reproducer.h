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
};
// Throws Error (usage) where the file cannot be written.
void write_pass_reproducer(const std::string& path, const ir::Model& before, const FailedPass& failed);
// What the file that became this model replays; none where it is no reproducer. Throws Error (bad_file).
std::optional<FailedPass> replayed_pass(const ir::Model& model);
// Its settings, and the user's own over them.
CompileSettings replaying(const FailedPass& failed, const CompileSettings& user);

// ---- a node: a model of it alone, which carries its call along (kept.h) ---------------------------------------------

// Its inputs are what the node reads in a run of the first case as `options` say, its expected outputs what the node's
// reference, or LibTorch, gives for them; `pcc` is what they have to reach. A node in a region is there with the node
// that has the region. Throws Error (usage) where the model has no such node, and what running it up to there throws.
std::unique_ptr<ir::Model> node_reproducer(const std::shared_ptr<const ir::Model>& model, const std::string& node,
                                           const std::vector<Case>& cases, const ttrt::ExecutorOptions& options,
                                           double pcc = 0.99);
// The node with which a run of the cases ends in an error; "" where it does not.
std::string failing_node(ttrt::Executor& executor, const std::vector<Case>& cases);

}  // namespace ttc
