// One way after the other, so that each differs from the model as it is in one thing.
#include "session/what_if.h"

#include <functional>
#include <map>

#include "executor/signature.h"
#include "support/progress.h"

namespace ttc {
namespace {

// Savings of less are not worth an advice.
constexpr double worth = 0.01;

class Ways {
 public:
  Ways(const ModelSource& source, const CompileSettings& settings, const std::string& dispatcher,
       const DeviceProfile& profile)
      : source_(source), settings_(for_trial(settings)), dispatcher_(dispatcher), profile_(profile) {}

  std::vector<WhatIf> run() {
    const Compiled own = compile_source(source_, settings_);
    boards(own);
    kernels(own);
    grids(own);
    batches(own);
    const std::unique_ptr<ir::Model> model = source_.read();
    if (!is_rewritten(*model)) choices();
    Phase phase("trying what else there is", ways_.size());
    for (Way& way : ways_) {
      phase.at(way.told.what);
      price(way);
      phase.advance();
    }
    together();
    std::vector<WhatIf> out;
    for (Way& way : ways_) out.push_back(std::move(way.told));
    return out;
  }

 private:
  struct Way {
    WhatIf told;
    bool own_board;  // what is priced on the model's own may become an advice
    std::function<DeviceProfile()> profile;
    std::function<void(CompileSettings&)> set = {};  // what of the settings is otherwise
    std::string dispatcher = {};                     // which one, where that is otherwise
  };

  void price(Way& way) const {
    const DeviceProfile p = way.profile();
    WhatIf& told = way.told;
    told.us = p.us, told.dram_peak = p.dram.peak, told.fits = p.dram.fits();
    told.samples_per_s = p.us > 0 ? static_cast<double>(p.samples) / p.us * 1e6 : 0;
    told.advice = way.own_board && told.fits && told.us < (1 - worth) * profile_.us;
  }
  void compile_as(const std::string& what, const std::string& flags, const std::function<void(CompileSettings&)>& set) {
    CompileSettings settings = settings_;
    set(settings);
    ways_.push_back({.told = {.what = what, .flags = flags},
                     .own_board = settings.arch == settings_.arch,
                     .profile = [this, settings] { return compiled_as(settings, dispatcher_); },
                     .set = set});
  }
  DeviceProfile compiled_as(const CompileSettings& settings, const std::string& dispatcher) const {
    const Compiled made = compile_source(source_, settings);
    return profile_device(*made.model, made.profile, made.shapes, dispatcher);
  }

  // The best advice of each flag, all at once, where that saves more than each.
  void together() {
    std::map<std::string, const Way*> best;  // by flag
    for (const Way& way : ways_) {
      if (!way.told.advice) continue;
      const Way*& known = best[way.told.flags.substr(0, way.told.flags.find(' '))];
      if (known == nullptr || way.told.us < known->told.us) known = &way;
    }
    if (best.size() < 2) return;
    CompileSettings settings = settings_;
    Way all{.told = {}, .own_board = true, .profile = {}, .set = {}, .dispatcher = dispatcher_};
    double least = profile_.us;
    for (const auto& [flag, way] : best) {
      all.told.what += (all.told.what.empty() ? "" : ", ") + way->told.what;
      all.told.flags += (all.told.flags.empty() ? "" : " ") + way->told.flags;
      if (way->set) way->set(settings);
      if (!way->dispatcher.empty()) all.dispatcher = way->dispatcher;
      least = std::min(least, way->told.us);
    }
    all.profile = [&] { return compiled_as(settings, all.dispatcher); };
    price(all);
    if (all.told.us < least) ways_.push_back(std::move(all));
  }

  void boards(const Compiled& own) {
    for (const char* board : {"e150", "n150", "p150"}) {
      const ttrt::ArchProfile& arch = ttrt::find_profile(board);
      if (arch.name == own.profile.name) continue;
      compile_as("on " + arch.name, "--arch " + arch.name, [&arch](CompileSettings& s) { s.arch = arch.name; });
    }
  }
  void kernels(const Compiled& own) {
    if (dispatcher_.empty())
      ways_.push_back({.told = {.what = "optimized kernels", .flags = "--dispatcher optimized"},
                       .own_board = true,
                       .profile = [&] { return profile_device(*own.model, own.profile, own.shapes, "optimized"); },
                       .dispatcher = "optimized"});
  }
  void grids(const Compiled& own) {
    ttrt::ArchProfile half = own.profile;
    half.grid_x = (half.grid_x + 1) / 2;
    ways_.push_back(
        {.told = {.what = "on a grid of " + std::to_string(half.grid_x) + "x" + std::to_string(half.grid_y)},
         .own_board = false,
         .profile = [this, &own, half] { return profile_device(*own.model, half, own.shapes, dispatcher_); }});
  }
  // The symbol of the first dim of the first tensor that the user gives, where it is free.
  void batches(const Compiled& own) {
    for (const ir::GraphInput& input : own.model->graph->inputs()) {
      const ir::Type& type = input.value->type;
      if (input.kind != ir::InputKind::user || !type.is_tensor() || !type.has_shape || type.sizes.empty()) continue;
      if (!type.sizes[0].is_symbol()) return;
      const std::string symbol = type.sizes[0].name();
      const auto range = own.model->ranges.find(symbol);
      for (const std::int64_t times : {2, 8}) {
        const std::int64_t size = times * profile_.samples;
        if (range != own.model->ranges.end() && range->second.max && size > *range->second.max) break;
        ir::SymBinding shapes = own.shapes;
        shapes[symbol] = size;
        ways_.push_back(
            {.told = {.what = "a batch of " + std::to_string(size)},
             .own_board = false,
             .profile = [this, &own, shapes] { return profile_device(*own.model, own.profile, shapes, dispatcher_); }});
      }
      return;
    }
  }
  void choices() {
    for (const char* format : {"bfloat8_b", "bfloat4_b"})
      compile_as("weights in " + std::string(format), "--weight-dtype '*=" + std::string(format) + "'",
                 [format](CompileSettings& s) { s.weight_dtype.push_back("*=" + std::string(format)); });
    for (const char* fidelity : {"LoFi", "HiFi2", "HiFi4"})
      compile_as("products in " + std::string(fidelity), "--fidelity '*=" + std::string(fidelity) + "'",
                 [fidelity](CompileSettings& s) { s.fidelity.push_back("*=" + std::string(fidelity)); });
    for (const char* on : {"on", "off"})
      compile_as("sums in float32 " + std::string(on), "--fp32-acc '*=" + std::string(on) + "'",
                 [on](CompileSettings& s) { s.fp32_acc.push_back("*=" + std::string(on)); });
    compile_as("activations in float32", "--activation-dtype float32",
               [](CompileSettings& s) { s.activation_dtype = "float32"; });
    compile_as("projections and gates not fused", "--disable fuse-projections,fuse-gate-up", [](CompileSettings& s) {
      s.passes.disable.insert(s.passes.disable.end(), {"fuse-projections", "fuse-gate-up"});
    });
  }

  const ModelSource& source_;
  CompileSettings settings_;
  const std::string dispatcher_;
  const DeviceProfile& profile_;
  std::vector<Way> ways_;
};

}  // namespace

std::vector<WhatIf> what_ifs(const ModelSource& source, const CompileSettings& settings, const std::string& dispatcher,
                             const DeviceProfile& profile) {
  return Ways(source, settings, dispatcher, profile).run();
}

OrderedJson to_json(const std::vector<WhatIf>& ways, const DeviceProfile& profile) {
  OrderedJson out = OrderedJson::array();
  for (const WhatIf& way : ways)
    out.push_back({{"what", way.what},
                   {"flags", way.flags},
                   {"us", way.us},
                   {"saves_us", profile.us - way.us},
                   {"samples_per_s", way.samples_per_s},
                   {"dram_peak", way.dram_peak},
                   {"fits", way.fits},
                   {"advice", way.advice}});
  return out;
}

}  // namespace ttc
