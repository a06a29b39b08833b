// Where the passes of plug-ins run: the default order names only those of the tree.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "pass/pass.h"

namespace ttc {

// From now on `pass` runs before the first pass called `before` of the default order, whatever parts of it stand there.
// Several before the same one run in the order of these calls. Texts live as long as the process.
void run_pass_before(std::string_view pass, std::string_view before);
// All of them, {pass, before}.
const std::vector<std::pair<std::string_view, std::string_view>>& passes_of_plugins();

}  // namespace ttc

#define TTC_RUN_PASS_BEFORE(pass, before)                                        \
  namespace {                                                                    \
  const bool ttc_pass_placed = (::ttc::run_pass_before((pass), (before)), true); \
  }
