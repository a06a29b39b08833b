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

struct CompareOptions {
  bool by_module = false;   // the last node of each module instead of every node
  bool every_kind = false;  // nodes that LibTorch runs too, not only device ops
  double pcc = 0.99;        // what every row must reach
  std::optional<double> max_rel = {};
};

// A node whose values both runs have, or an output ("outN", op "output").
struct CompareRow {
  std::string node, op, module;
  ttrt::Metrics metrics;
  bool pass = false;
};

struct Comparison {
  std::vector<CompareRow> rows;  // in the order of the run; with several cases their names stand before the nodes'
  // Index of the first row below a threshold and of the one with the lowest PCC; none where all pass, where there is no
  // row.
  std::optional<std::size_t> first_failure, worst;
};

// Runs the cases in two executors, of one model or of two whose nodes of the same name are compared. Throws what
// running them throws.
Comparison compare_runs(ttrt::Executor& subject, ttrt::Executor& reference, const std::vector<Case>& cases,
                        const CompareOptions& options = {});
// The same of two that it makes for `model`.
Comparison compare_runs(const std::shared_ptr<const ir::Model>& model, const std::vector<Case>& cases,
                        const ttrt::ExecutorOptions& subject, const ttrt::ExecutorOptions& reference,
                        const CompareOptions& options = {});

}  // namespace ttc
