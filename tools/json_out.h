// JSON for --json: member order as written, numbers that JSON has no form for as null.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/json_util.h"

namespace ttc {

// Infinite and NaN become null.
inline OrderedJson json_number(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}
// On standard output, indented; an object gets the warnings that were given, where there were any.
void print_json(OrderedJson value);

}  // namespace ttc
