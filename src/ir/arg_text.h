// An argument as the printer writes it.
#pragma once

#include <string>

#include "ir/arg.h"

namespace ttc::ir {

std::string arg_text(const Arg& arg);  // "%x", "[1, 2]", "\"exact\""

}  // namespace ttc::ir
