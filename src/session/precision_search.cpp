// Precisions are rungs of a ladder, finest first. What a module alone adds to the noise is measured for the rungs whose
// weights have another format or whose sums another accumulation, and taken in equal shares from the measurement of all
// modules for the others. Sums in float32 are a rung of their own where they help all modules together: they take
// time, so they are taken only where they let something else be cheaper.
#include "session/precision_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "session/values.h"
#include "support/error.h"
#include "support/progress.h"

namespace ttc {
namespace {

struct Rung {
  std::string_view format, fidelity, fp32_acc = "library";
};
constexpr Rung precisions[] = {
    {"bfloat16", "HiFi4"}, {"bfloat16", "HiFi2"}, {"bfloat8_b", "HiFi2"}, {"bfloat8_b", "LoFi"}, {"bfloat4_b", "LoFi"}};
// Noise of sums in float32 over that of the op library's choice, below which they are a rung.
constexpr double worth_fp32_acc = 0.95;
constexpr std::string_view fp32 = "on";
constexpr std::size_t most_groups = 48;  // searched one by one
constexpr int most_mixes = 12;           // measured after the prediction
constexpr int most_savings = 8;          // measured after these, one module coarser each
// Bytes decide between mixes of the same device time only.
constexpr double cycles_per_byte = 1e-6;

double cost_of(double cycles, std::int64_t bytes) { return cycles + cycles_per_byte * static_cast<double>(bytes); }

// "encoder.layer.3.fc" -> "encoder.layer.*.fc"
std::string role_of(const std::string& path) {
  std::string out;
  for (std::size_t i = 0; i < path.size();) {
    std::size_t end = path.find('.', i);
    if (end == std::string::npos) end = path.size();
    const std::string part = path.substr(i, end - i);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    out += (out.empty() ? "" : ".") + (number ? "*" : part);
    i = end + 1;
  }
  return out;
}

// The same call with every tensor reversed along its last dim: other tokens, pixels and masks that belong together.
std::vector<Case> reversed(const std::vector<Case>& cases) {
  std::vector<Case> out = cases;
  for (Case& one : out) {
    one.expected.clear();
    one.baseline.clear();
    for (ttrt::RtValue& value : one.inputs) {
      const auto* tensor = value.get_if<ttrt::HostTensor>();
      if (tensor == nullptr || tensor->sizes.empty()) continue;
      ttrt::HostTensor copy = ttrt::copy_of(*tensor);
      const auto row = static_cast<std::size_t>(copy.sizes.back()),
                 size = static_cast<std::size_t>(size_of(copy.dtype));
      for (std::size_t at = 0; row > 0 && at < static_cast<std::size_t>(copy.nbytes()); at += row * size)
        for (std::size_t i = 0; i < row / 2; ++i)
          std::swap_ranges(copy.data + at + i * size, copy.data + at + (i + 1) * size,
                           copy.data + at + (row - 1 - i) * size);
      value = std::move(copy);
    }
  }
  return out;
}

// "layers.0.q_proj+k_proj+v_proj"
std::string name_of(const std::vector<std::string>& modules) {
  std::string out = modules.front();
  for (std::size_t i = 1; i < modules.size(); ++i) out += "+" + modules[i].substr(modules[i].rfind('.') + 1);
  return out;
}

class Searcher {
 public:
  Searcher(const ModelSource& source, const CompileSettings& settings, const SearchGoal& goal,
           const std::function<void(const SearchTrial&)>& told)
      : settings_(settings), goal_(goal), told_(told), trials_(source, {.pcc = -1}) {
    if (is_rewritten(*source.read()))
      throw usage_error(source.path() + " is rewritten already: its weights are packed and its products have a fidelity",
                        "search in the file that it was made of");
    calls_ = calls_of(source, settings);
    hold_back(source);
  }

  PrecisionSearch run() {
    measure_all();
    if (!goal_.met(base_))
      throw Error(Exit::check_failed, {},
                  "bfloat16 weights at HiFi4 miss the goal: PCC " + std::to_string(base_.pcc) + ", " +
                      std::to_string(base_.snr_db) + " dB",
                  "ttc compare --mode sel shows where it is lost; --activation-dtype float32 or --exclude may help");
    make_groups();
    measure_each();
    find_mix();
    mark_pareto();
    out_.least_cycles = least_cycles();
    out_.calls = calls_.size();
    out_.held_back_calls = held_back_.size();
    return std::move(out_);
  }

 private:
  // Modules that have one precision: those of one role, and those that the compile makes one product, which others
  // than equal ones would undo.
  struct Group {
    std::vector<std::string> modules;                        // paths or globs
    bool format = true, fidelity = false, fp32_acc = false;  // what there is a choice of
    std::vector<double> cost = {};                           // by rung
    std::vector<std::vector<double>> noise = {};             // by rung: what it adds to each output
  };
  using Mix = std::vector<std::size_t>;  // by group: a rung

  static void add_choice(const Rung& rung, const Group& of, std::vector<PrecisionChoice>& out) {
    const auto given = [](bool has_choice, std::string_view value) { return std::string(has_choice ? value : ""); };
    for (const std::string& module : of.modules)
      out.push_back({.module = module,
                     .format = given(of.format, rung.format),
                     .fidelity = given(of.fidelity, rung.fidelity),
                     .fp32_acc = given(of.fp32_acc, rung.fp32_acc)});
  }

  // Every third call, the last one first; where there is one only, a call made of it.
  void hold_back(const ModelSource& source) {
    Calls kept;
    for (std::size_t i = 0; i < calls_.size(); ++i)
      (calls_.size() > 1 && (calls_.size() - 1 - i) % 3 == 0 ? held_back_ : kept).push_back(std::move(calls_[i]));
    calls_ = std::move(kept);
    if (!held_back_.empty()) return;
    out_.made_held_back = true;
    held_back_.push_back(reversed(calls_.front()));
    expect_cpu(source.read(), held_back_.front());
  }

  const Score& measure(const CompileSettings& settings, const std::string& what) {
    phase_->at(what);
    SearchTrial trial{.what = what, .score = trials_.run(settings, calls_)};
    trial.met = goal_.met(trial.score);
    out_.trials.push_back(std::move(trial));
    if (told_) told_(out_.trials.back());
    phase_->advance();
    return out_.trials.back().score;
  }

  static std::string text_of(const Rung& rung, bool with_format) {
    return (with_format ? std::string(rung.format) + " " : "") + std::string(rung.fidelity) +
           (rung.fp32_acc == fp32 ? " fp32 sums" : "");
  }

  void measure_all() {
    const auto measured = [&](const Rung& rung) {
      const bool sums = settings_.fp32_acc.empty();  // what the user says of accumulation holds
      std::vector<PrecisionChoice> all;
      add_choice(rung, {.modules = {"*"}, .format = true, .fidelity = true, .fp32_acc = sums}, all);
      return measure(with_choice(settings_, all), "all " + text_of(rung, true));
    };
    const auto power = [](const Score& score) {
      double out = 0;
      for (const double one : score.noise) out += one;
      return out;
    };
    const auto add = [&](const Rung& rung, Score score) {
      ladder_.push_back(rung);
      uniform_.push_back(std::move(score));
    };
    phase_.emplace("measuring all modules in each precision", 2 * std::size(precisions));
    for (const Rung& rung : precisions) {
      Rung wide = rung;
      wide.fp32_acc = fp32;
      Score score = measured(rung);
      if (settings_.fp32_acc.empty())
        if (Score summed = measured(wide); power(summed) < worth_fp32_acc * power(score)) add(wide, std::move(summed));
      add(rung, std::move(score));
      if (!goal_.met(uniform_.front())) break;
    }
    base_ = uniform_.front();
  }

  // The modules with packed weights that a coarser precision makes cheaper, and first the rest: products without
  // weights.
  void make_groups() {
    std::map<std::vector<std::string>, std::size_t> number;
    const bool by_role = base_.modules.size() > most_groups;
    groups_.push_back({.modules = {"*"}, .format = false, .fidelity = true, .fp32_acc = settings_.fp32_acc.empty()});
    for (const Score& score : uniform_) groups_[0].cost.push_back(score.cycles);
    for (const auto& [path, cost] : base_.modules) {
      std::vector<std::string> names = cost.paths;
      if (by_role) std::ranges::transform(names, names.begin(), role_of);
      if (number.emplace(names, groups_.size()).second)
        groups_.push_back({.modules = names, .cost = std::vector<double>(ladder_.size(), 0.0)});
      Group& group = groups_[number[names]];
      group.fidelity = group.fidelity || cost.fidelity;
      group.fp32_acc = group.fp32_acc || (cost.fp32_acc && settings_.fp32_acc.empty());
      for (std::size_t r = 0; r < uniform_.size(); ++r) {
        const auto at = uniform_[r].modules.find(path);
        if (at == uniform_[r].modules.end()) continue;
        group.cost[r] += cost_of(at->second.cycles, at->second.bytes);
        groups_[0].cost[r] -= at->second.cycles;
      }
    }
    std::erase_if(groups_, [&](const Group& group) {
      return std::ranges::all_of(group.cost, [&](double cost) { return cost >= group.cost[0]; });
    });
  }

  // Modules take their time one after the other, whatever precision the others have.
  double least_cycles() const {
    std::map<std::string, double> modules;
    double rest = std::numeric_limits<double>::infinity();
    for (const Score& score : uniform_) {
      double own = score.cycles;
      for (const auto& [path, cost] : score.modules) {
        own -= cost.cycles;
        const auto known = modules.emplace(path, cost.cycles).first;
        known->second = std::min(known->second, cost.cycles);
      }
      rest = std::min(rest, own);
    }
    for (const auto& [path, cycles] : modules) rest += cycles;
    return rest;
  }

  // Whether a group on this rung differs from one on the rung before in what its own measurement tells.
  bool is_another(const Group& group, std::size_t r) const {
    const auto part = [&](std::size_t at) { return group.format ? ladder_[at].format : ladder_[at].fidelity; };
    return part(r) != part(r - 1) || (group.fp32_acc && ladder_[r].fp32_acc != ladder_[r - 1].fp32_acc);
  }

  // What each group alone adds to each output's noise. Rungs at which all modules together meet the goal need no
  // measurement of their own.
  void measure_each() {
    for (std::size_t r = 1; r < ladder_.size(); ++r)
      if (goal_.met(uniform_[r])) coarsest_met_ = r;
    std::uint64_t alone = 0;
    for (const Group& group : groups_)
      for (std::size_t r = coarsest_met_ + 1; r < ladder_.size(); ++r) alone += is_another(group, r);
    phase_.emplace("measuring each module alone", alone);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      Group& group = groups_[g];
      group.noise.assign(ladder_.size(), std::vector<double>(base_.noise.size(), 0.0));
      for (std::size_t r = 1; r < ladder_.size(); ++r) {
        if (is_another(group, r) && r > coarsest_met_)
          group.noise[r] = measured_alone(g, r);
        else if (group.format || r <= coarsest_met_)
          group.noise[r] = added(uniform_[r].noise, base_.noise, static_cast<double>(groups_.size()));
        else
          group.noise[r] = group.noise[r - 1];
      }
    }
  }

  std::vector<double> measured_alone(std::size_t g, std::size_t r) {
    Mix mix(groups_.size(), 0);
    mix[g] = r;
    const Score& score = measure(with_choice(settings_, choice_of(mix)),
                                 name_of(groups_[g].modules) + " " + text_of(ladder_[r], groups_[g].format));
    return added(score.noise, base_.noise, 1);
  }

  // The part of what `noise` has over `base`.
  static std::vector<double> added(const std::vector<double>& noise, const std::vector<double>& base, double parts) {
    std::vector<double> out(base.size());
    for (std::size_t i = 0; i < base.size(); ++i)
      out[i] = i < noise.size() ? std::max(0.0, noise[i] - base[i]) / parts : std::numeric_limits<double>::infinity();
    return out;
  }

  // Noise that the goal allows in each output: a correlation of 1 - e is a noise of about 2 e of the signal.
  double allowed() const {
    double out = std::numeric_limits<double>::infinity();
    if (goal_.min_pcc) out = std::min(out, 2 * (1 - *goal_.min_pcc));
    if (goal_.min_snr_db) out = std::min(out, std::pow(10.0, -*goal_.min_snr_db / 10));
    // How rows are ordered cannot be predicted: the noise of the coarsest precision that kept them is a start.
    if (!std::isfinite(out))
      for (const double noise : uniform_[coarsest_met_].noise) out = std::min(out, 2 * noise);
    return out;
  }

  std::vector<double> predicted(const Mix& mix) const {
    std::vector<double> out = base_.noise;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += groups_[g].noise[mix[g]][i];
    return out;
  }

  // Noise over the limit, summed over the outputs.
  static double excess(const std::vector<double>& noise, double limit) {
    double out = 0;
    for (const double one : noise) out += std::max(0.0, std::min(one, 1e6) - limit);
    return out;
  }

  // Refines where most excess goes for the cost, no further than the rung that is fine enough for all modules together;
  // false where nothing finer is left.
  bool refine(Mix& mix, double limit) const {
    double best = -1;
    std::size_t which = 0, rung = 0;
    const double before = excess(predicted(mix), limit);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (std::size_t r = coarsest_met_; r < mix[g]; ++r) {
        Mix trial = mix;
        trial[g] = r;
        const double gain = before - excess(predicted(trial), limit);
        const double price = std::max(groups_[g].cost[r] - groups_[g].cost[mix[g]], 1e-9);
        if (gain / price > best) best = gain / price, which = g, rung = r;
      }
    if (best < 0) return false;
    mix[which] = rung;
    return true;
  }

  Mix predicted_mix(double limit) const {
    Mix mix(groups_.size(), ladder_.size() - 1);
    while (excess(predicted(mix), limit) > 0 && refine(mix, limit)) {
    }
    return mix;
  }

  std::vector<PrecisionChoice> choice_of(const Mix& mix) const {
    std::vector<PrecisionChoice> out;
    bool sums = false;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      add_choice(ladder_[mix[g]], groups_[g], out);
      sums = sums || out.back().fp32_acc == fp32;
    }
    if (!sums)
      for (PrecisionChoice& one : out) one.fp32_acc.clear();
    return out;
  }

  struct Found {
    Mix mix;
    Score seen, held_back;
    double cost() const { return cost_of(seen.cycles, seen.bytes); }
  };

  // The mix, where it meets the goal on calls that were seen and on those that were not.
  std::optional<Found> try_mix(const Mix& mix) {
    bool& good = tried_[mix] = false;
    const CompileSettings settings = with_choice(settings_, choice_of(mix));
    const Score seen = measure(settings, "mix " + std::to_string(++mixes_));
    if (!goal_.met(seen)) return std::nullopt;
    const Score unseen = trials_.run(settings, held_back_);
    if (!goal_.met(unseen)) {
      out_.trials.back().met = false;
      return std::nullopt;
    }
    good = true;
    return Found{mix, seen, unseen};
  }

  // The limit of the prediction is tightened where the measurement misses the goal, and loosened where it meets it.
  void find_mix() {
    double low = 0, high = std::numeric_limits<double>::infinity(), limit = allowed();
    std::optional<Found> best;
    phase_.emplace("measuring mixes", most_mixes);
    for (int number = 1; number <= most_mixes; ++number) {
      const Mix mix = predicted_mix(limit);
      bool good = false;
      if (const auto known = tried_.find(mix); known != tried_.end()) {
        good = known->second;
      } else {
        const std::optional<Found> found = try_mix(mix);
        good = found.has_value();
        if (found && (!best || found->cost() < best->cost())) best = found;
      }
      (good ? low : high) = limit;
      if (std::isfinite(high) && low > 0 && high / low < 1.1) break;
      limit = !std::isfinite(high) ? limit * 2 : low > 0 ? std::sqrt(low * high) : limit / 2;
    }
    for (std::size_t r = coarsest_met_ + 1; r-- > 0;) {  // a precision for all may be cheaper, and is the last resort
      const Mix mix(groups_.size(), r);
      if (tried_.contains(mix) || (best && cost_of(uniform_[r].cycles, uniform_[r].bytes) >= best->cost())) continue;
      if (auto found = try_mix(mix)) {
        best = found;
        break;
      }
    }
    if (!best)
      throw Error(Exit::check_failed, {}, "no precision meets the goal on calls that the search had not seen",
                  "record more calls with --io, or lower the goal");
    save_more(*best);
    out_.choice = choice_of(best->mix);
    out_.seen = best->seen;
    out_.held_back = best->held_back;
  }

  // What is predicted may be a little off: the modules that save most for their noise are tried one rung coarser, as
  // long as that holds.
  void save_more(Found& best) {
    struct Saving {
      std::size_t group, rung;
      double worth;
    };
    std::vector<Saving> savings;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      for (std::size_t r = best.mix[g] + 1; r < ladder_.size(); ++r) {
        const double saved = group.cost[best.mix[g]] - group.cost[r];
        double noise = 1e-12;
        for (std::size_t i = 0; i < base_.noise.size(); ++i)
          noise += std::max(0.0, group.noise[r][i] - group.noise[best.mix[g]][i]);
        if (saved > 0) savings.push_back({g, r, saved / noise});
        if (saved > 0) break;
      }
    }
    std::ranges::sort(savings, [](const Saving& a, const Saving& b) { return a.worth > b.worth; });
    const int most = mixes_ + most_savings;
    phase_.emplace("measuring mixes with one module coarser", std::min<std::size_t>(savings.size(), most_savings));
    for (const Saving& saving : savings) {
      Mix mix = best.mix;
      mix[saving.group] = saving.rung;
      if (mixes_ == most) break;
      if (tried_.contains(mix)) continue;
      if (auto found = try_mix(mix); found && found->cost() < best.cost()) best = std::move(*found);
    }
  }

  void mark_pareto() {
    for (SearchTrial& one : out_.trials) {
      const Score& a = one.score;
      one.pareto = std::ranges::none_of(out_.trials, [&](const SearchTrial& other) {
        const Score& b = other.score;
        return b.pcc >= a.pcc && b.cycles <= a.cycles && b.bytes <= a.bytes &&
               (b.pcc > a.pcc || b.cycles < a.cycles || b.bytes < a.bytes);
      });
    }
  }

  const CompileSettings settings_;
  const SearchGoal& goal_;
  const std::function<void(const SearchTrial&)>& told_;
  Trials trials_;
  std::optional<Phase> phase_;  // of the search
  Calls calls_, held_back_;
  std::vector<Rung> ladder_;
  std::vector<Score> uniform_;  // by rung, of all modules
  Score base_;
  std::vector<Group> groups_;
  std::size_t coarsest_met_ = 0;  // the last rung at which all modules together meet the goal
  std::map<Mix, bool> tried_;     // whether the goal was met
  int mixes_ = 0;                 // measured
  PrecisionSearch out_;
};

}  // namespace

bool SearchGoal::met(const Score& score) const {
  return (!min_pcc || score.pcc >= *min_pcc) && (!min_snr_db || score.snr_db >= *min_snr_db) &&
         (!max_top1_drop || 1 - score.top1 <= *max_top1_drop);
}

PrecisionSearch search_precision(const ModelSource& source, const CompileSettings& settings, const SearchGoal& goal,
                                 const std::function<void(const SearchTrial&)>& told) {
  if (!goal.min_pcc && !goal.min_snr_db && !goal.max_top1_drop)
    throw usage_error("a search for precision needs a goal", "--min-pcc, --min-snr or --max-top1-drop gives one");
  try {
    return Searcher(source, settings, goal, told).run();
  } catch (const Error& error) {
    throw error.file().empty() ? error.in_file(source.path()) : error;
  }
}

CompileSettings with_choice(CompileSettings settings, const std::vector<PrecisionChoice>& choice) {
  for (const PrecisionChoice& one : choice) {
    if (!one.format.empty()) settings.weight_dtype.push_back(one.module + "=" + one.format);
    if (!one.fidelity.empty()) settings.fidelity.push_back(one.module + "=" + one.fidelity);
    if (!one.fp32_acc.empty()) settings.fp32_acc.push_back(one.module + "=" + one.fp32_acc);
  }
  return settings;
}

std::string options_text(const std::vector<PrecisionChoice>& choice) {
  const auto list = [&](const std::string& flag, std::string PrecisionChoice::* value) {
    std::string items;
    for (const PrecisionChoice& one : choice)
      if (!(one.*value).empty()) items += (items.empty() ? "\"" : ", \"") + one.module + "=" + one.*value + "\"";
    return items.empty() ? "" : flag + " = [" + items + "]\n";
  };
  return "# ttc compile MODEL -o OUT --options THIS\n" + list("weight-dtype", &PrecisionChoice::format) +
         list("fidelity", &PrecisionChoice::fidelity) + list("fp32-acc", &PrecisionChoice::fp32_acc);
}

}  // namespace ttc
