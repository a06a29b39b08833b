// Two runs of a model, each from its own values, node by node: the device against the references of its ops on the CPU,
// or one numerics against the other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/metrics.h"
#include "executor/executor.h"
#include "session/cases.h"

namespace ttc {

// What each node of the subject sees, and is compared with. The names are TT-Symbiote's run modes.
enum class CompareMode : std::uint8_t {
  dpl,                // values of its own run; the reference has values of its own too
  sel,                // values of its own run, as does the reference of each op
  dpl_no_error_prop,  // what the references of the ops before it gave, rounded to the device's formats
};
CompareMode compare_mode(std::string_view name);  // "dpl-no-error-prop"; throws ttc::Error (usage)
std::string_view to_string(CompareMode mode);
std::vector<std::string> compare_modes();

// What the node's values have to reach where nobody says: the PCC of its weights' format, of attention, of norms, else
// of bfloat16.
double pcc_expected_of(const ir::Node& node);

struct CompareOptions {
  CompareMode mode = CompareMode::dpl;
  bool by_module = false;          // the last node of each module instead of every node
  bool every_kind = false;         // nodes that LibTorch runs too, not only device ops
  std::optional<double> pcc = {};  // what every row must reach; none: pcc_expected_of its node
  std::optional<double> max_rel = {};
};

// A node whose values both runs have, or an output ("outN", op "output").
struct CompareRow {
  std::string node, op, module = {}, source = {};
  ttrt::Metrics metrics;
  double threshold = 0;  // of its PCC
  bool pass = false;
  std::string note = {};  // of positions that differ (index_notes.h)
};

struct Comparison {
  std::vector<CompareRow> rows;  // in the order of the run; with several cases their names stand before the nodes'
  // Index of the first row below a threshold and of the one with the lowest PCC; none where all pass, where there is no
  // row.
  std::optional<std::size_t> first_failure, worst;
};

// Runs the cases in two executors (in modes other than dpl the reference's outputs alone are looked at), of one model
// or of two whose nodes of the same name are compared. Throws what running them throws.
Comparison compare_runs(ttrt::Executor& subject, ttrt::Executor& reference, const std::vector<Case>& cases,
                        const CompareOptions& options = {});
// The same of two that it makes for `model`.
Comparison compare_runs(const std::shared_ptr<const ir::Model>& model, const std::vector<Case>& cases,
                        const ttrt::ExecutorOptions& subject, const ttrt::ExecutorOptions& reference,
                        const CompareOptions& options = {});

}  // namespace ttc
