// Compiling: runs the passes, counts what came of it, and writes the manifest into the model.
#pragma once

#include <functional>

#include "ir/manifest_name.h"
#include "ir/node_counts.h"
#include "pass/manager.h"

namespace ttc {

struct ModuleReport {
  std::string path, klass, op, weight_format, fidelity;
  bool operator==(const ModuleReport&) const = default;
};

// A compute node that stays on the CPU.
struct Fallback {
  std::string node, op, module;
  Reason reason;
  std::string source;
};

// Names follow the JSON of `ttc compile`.
struct CompileResult {
  std::string arch;
  ir::NodeCounts nodes;
  struct {
    double total = 0, device = 0;
  } flops;
  std::vector<ModuleReport> modules;
  std::vector<Swap> swaps;  // by the maps
  std::vector<Fallback> fallbacks;
  struct {
    std::size_t count = 0;
    std::int64_t bytes = 0;
  } transfers;  // per execution; constants are not counted
  struct {
    std::int64_t bytes_in = 0, bytes_out = 0;
  } weights;
  struct {
    std::int64_t l1_peak = 0, dram_peak = 0;
    std::int64_t dram_streamed = 0;  // the peak where weights are there only while a node reads them
    std::int64_t l1 = 0, dram = 0;   // what there is
    bool fits() const { return l1_peak <= l1 && dram_peak <= dram; }
    bool streamed() const { return !fits() && l1_peak <= l1 && dram_streamed <= dram; }
  } memory;  // l1 per core, dram of all banks
  std::vector<PassReport> passes;
  std::vector<RefusalRecord> refusals;
  std::vector<MatchRecord> matches;

  // Where a pattern fitted in part and nothing else took the node: what the recognising passes refused.
  std::vector<RefusalRecord> near_misses() const;
  // "it needs 2.0 GiB of DRAM, n150 has 1.0 GiB"; "" where it fits.
  std::string shortage() const;
  // "41/44 nodes on device, 3 on CPU [gelu x2: Unimplemented, ...], 4 transfers, 1.2 MiB", and what does not fit, or
  // not at once.
  std::string summary() const;
  // An object with the members above but refusals and matches, and the near misses.
  std::string json() const;
};

// What a rewritten model needs of the device's memory: `streamed` where weights are there only while an op reads them.
struct MemoryNeed {
  std::int64_t l1 = 0, dram = 0, streamed = 0;
};

// Facts that the caller knows.
struct CompileInput {
  // Of the file, in hex: asked for when the manifest is read or written, which may be after the caller's end.
  std::function<std::string()> sha256 = {};
  // Which kernels serve the ops decides, which passes do not know; without it, the need is not known and all fits.
  std::function<MemoryNeed(const ir::Model& model, const ir::SymBinding& shapes)> memory = {};
};

// Rewrites `model` in place. Throws ttc::Error with Exit::unsupported, json() its report, under options.require_full
// where nodes stay on the CPU or it does not fit the device's memory; and what run_passes throws.
CompileResult compile(ir::Model& model, const CompileOptions& options, const PassManagerOptions& passes = {},
                      const CompileInput& input = {});

}  // namespace ttc
