// Entries, and which of them takes a node.
#include "pass/replacement_map.h"

#include <algorithm>

#include "ops/whole_modules.h"
#include "pass/user_names.h"
#include "support/error.h"

namespace ttc {

bool MapEntry::is_whole() const { return module != nullptr ? module->whole : ttrt::is_whole_module(target); }

bool MapEntry::becomes_one(std::string_view whole_op) const {
  return module != nullptr ? std::ranges::find(module->as_one, whole_op) != module->as_one.end() : target == whole_op;
}

bool MapEntry::permits(std::string_view device_op) const {
  if (is_whole()) return true;
  return module != nullptr ? module->permits(device_op) : target == device_op;
}

MapEntry map_entry(std::string key, std::string target, const ttrt::ModuleConfig& given) {
  const ttrt::ModuleRecord* module = ttrt::find_module(target);
  if (module == nullptr && ttrt::find_op(target) == nullptr && !ttrt::is_whole_module(target)) {
    std::vector<std::string> known;
    for (const ttrt::ModuleRecord* one : ttrt::all_modules()) known.emplace_back(one->name);
    for (const ttrt::OpRecord* one : ttrt::all_ops()) known.emplace_back(one->name);
    for (const ttrt::WholeModule& one : ttrt::whole_modules()) known.emplace_back(one.name);
    const std::string close = nearest(target, known.data(), known.size());
    throw usage_error(key + "=" + target + ": there is no TT module or device op '" + target + "'",
                      close.empty() ? "ttc modules and ttc ops list them" : "did you mean '" + close + "'?");
  }
  return {.key = std::move(key),
          .target = std::move(target),
          .module = module,
          .config = module != nullptr ? given.over(module->preset) : given};
}

const MapEntry* find_entry(const std::vector<ReplacementMap>& maps, const ir::Node& node, std::string_view device_op,
                           Refusal* declined) {
  for (const ReplacementMap& map : maps)
    for (auto entry = map.rbegin(); entry != map.rend(); ++entry) {
      if (!entry->permits(device_op) || !names_module(entry->key, *node.provenance)) continue;
      Refusal refused = entry->module != nullptr ? entry->module->refusal(node) : std::nullopt;
      if (!refused) return &*entry;
      if (declined != nullptr && !*declined) *declined = std::move(refused);
    }
  return nullptr;
}

}  // namespace ttc
