// The tables of a .pt2's graph: what types its values have, by their names.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/json_text.h"

namespace ttc {

// The members of a graph that are such tables.
inline constexpr const char* pt2_value_tables[] = {"custom_obj_values", "sym_bool_values", "sym_float_values",
                                                   "sym_int_values", "tensor_values"};

// A type as a table has it, and its text. Thousands of values share one, so it is made once.
struct Pt2Type {
  explicit Pt2Type(Json of) : json(std::move(of)), text(json_text(json)) {}
  Json json;
  std::string text;
};

// What one of the tables says of a value.
struct Pt2TypeEntry {
  const char* table;
  std::string name;
  std::shared_ptr<const Pt2Type> type;
};
using Pt2TypeEntries = std::vector<Pt2TypeEntry>;

}  // namespace ttc
