// A way is tried by compiling with its flags behind the user's own.
#include "session/fit_options.h"

#include <algorithm>

namespace ttc {
namespace {

FitOption tried(const ModelSource& source, const CompileSettings& settings, std::string flags) {
  const Compiled made = compile_source(source, settings);
  const DeviceProfile profile = profile_device(*made.model, made.profile, made.shapes);
  return {.flags = std::move(flags), .needed = profile.dram.peak, .there = profile.dram.bytes, .us = profile.us};
}

}  // namespace

std::vector<FitOption> fit_options(const ModelSource& source, const CompileSettings& settings) {
  const std::unique_ptr<ir::Model> model = source.read();
  const ttrt::ArchProfile own = profile_for(*model, settings.arch);
  std::vector<std::string> formats{""};
  if (!is_rewritten(*model)) formats.insert(formats.end(), {"bfloat8_b", "bfloat4_b"});
  std::vector<FitOption> out;
  const auto add = [&](const std::string& format, const std::string& arch) {
    CompileSettings way = for_trial(settings);
    std::string flags;
    if (!format.empty()) way.weight_dtype.push_back("*=" + format), flags = "--weight-dtype '*=" + format + "'";
    if (!arch.empty()) way.arch = arch, flags += (flags.empty() ? "--arch " : " --arch ") + arch;
    out.push_back(tried(source, way, flags));
    return out.back().fits();
  };
  // On the board itself the first format that suffices; other boards with as little change.
  for (std::size_t i = 1; i < formats.size(); ++i)
    if (add(formats[i], "")) break;
  for (const ttrt::ArchProfile& board : ttrt::arch_profiles()) {
    if (board.name == own.name || board.dram_banks * board.dram_bank_bytes <= own.dram_banks * own.dram_bank_bytes)
      continue;
    for (const std::string& format : formats)
      if (add(format, board.name)) break;
  }
  return out;
}

OrderedJson to_json(const std::vector<FitOption>& options) {
  OrderedJson out = OrderedJson::array();
  for (const FitOption& one : options)
    out.push_back(
        {{"flags", one.flags}, {"needed", one.needed}, {"there", one.there}, {"fits", one.fits()}, {"us", one.us}});
  return out;
}

}  // namespace ttc
