// The user's replacement map: which modules become which TT modules, and how these compute.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "modules/module.h"

namespace ttc {

struct MapEntry {
  std::string key;                             // a class or "module:PATTERN", as user_names.h takes them
  std::string target;                          // "TTNNLinear", "tt.linear" or "tt.self_attention"
  const ttrt::ModuleRecord* module = nullptr;  // of the target, where it is a TT module
  ttrt::ModuleConfig config = {};              // what the user gave, over the module's preset
  std::string file = {};                       // that has the entry; "" where it was given by itself

  bool permits(std::string_view device_op) const;
  // Whether its modules are taken with all that is in them, and may become this one operator (ops/whole_modules.h).
  bool is_whole() const;
  bool becomes_one(std::string_view whole_op) const;
  std::string text() const { return key + "=" + target; }
  // As messages call it: with the flag that brought it.
  std::string asked() const { return (file.empty() ? "--replace " : "--replace-file " + file + ": ") + text(); }
};

// One pass over the model; of several entries that take a node the last counts. What an earlier map takes, later ones
// do not see.
using ReplacementMap = std::vector<MapEntry>;

// Throws ttc::Error (usage) where there is no such TT module or device operator, naming the nearest.
MapEntry map_entry(std::string key, std::string target, const ttrt::ModuleConfig& given = {});

// The entry that lets the node become `device_op`; nullptr where there is none. `declined` becomes why the first TT
// module that the maps name for it does not want it.
const MapEntry* find_entry(const std::vector<ReplacementMap>& maps, const ir::Node& node, std::string_view device_op,
                           Refusal* declined = nullptr);

// A module that an entry of the map took, and what has become of it.
struct Swap {
  std::string path, klass;
  std::string op;           // the device operator that it is, or that another one computes along
  std::size_t map = 0;      // the number of the map, from 0
  std::string key, target;  // of the entry
  bool operator==(const Swap&) const = default;
};

}  // namespace ttc
