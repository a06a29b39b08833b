// The cheapest mix of weight formats, fidelities and accumulation, module by module, that reaches an accuracy.
//
// All modules at each precision are measured first, then each module alone at the coarser ones; noise powers add up, so
// a mix can be predicted. Modules are refined where that takes most noise away for the device time it costs, until the
// prediction holds; the mix is then measured, on calls that the search has not seen too, and refined on where it
// misses.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "session/trial.h"

namespace ttc {

struct SearchGoal {
  std::optional<double> min_pcc = {}, min_snr_db = {}, max_top1_drop = {};
  bool met(const Score& score) const;
};

struct PrecisionChoice {
  std::string module;  // a path, a glob where modules of one role are searched together, "*" for the rest
  // As --weight-dtype, --fidelity and --fp32-acc take them; "": nothing there has a choice of it. Accumulation stands
  // with each module or, where the op library's choice is good everywhere, with none.
  std::string format, fidelity, fp32_acc = {};
};

// A mix that was measured.
struct SearchTrial {
  std::string what;  // "all bfloat8_b HiFi2", "model.fc1 bfloat4_b LoFi", "mix 3"
  Score score;
  bool met = false;
  bool pareto = false;  // no other is better in accuracy, device time and bytes
};

struct PrecisionSearch {
  std::vector<PrecisionChoice> choice;
  std::vector<SearchTrial> trials;  // in order; those of one module alone among them
  Score seen, held_back;            // of the choice
  std::size_t calls = 0, held_back_calls = 0;
  double least_cycles = 0;      // of any mix: of each module, and of the rest, on the rung that makes it fastest
  bool made_held_back = false;  // the calls held back are the recorded ones with their last dims reversed
  // Whether no mix takes less device time than the choice, however coarse.
  bool is_fastest() const { return seen.cycles <= least_cycles * (1 + 1e-9); }
};

// `told` is called after each trial. Throws Error: usage without a goal, check_failed where the finest precision misses
// it, and what compiling or running the model throws.
PrecisionSearch search_precision(const ModelSource& source, const CompileSettings& settings, const SearchGoal& goal,
                                 const std::function<void(const SearchTrial&)>& told = {});
// The settings with the choice.
CompileSettings with_choice(CompileSettings settings, const std::vector<PrecisionChoice>& choice);
// Flags for --options that give the same compile.
std::string options_text(const std::vector<PrecisionChoice>& choice);

}  // namespace ttc
