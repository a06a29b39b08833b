// What the maps have done: which modules they took, what of them the device refused; and the names that modules have.
#pragma once

#include "pass/compile.h"

namespace ttc {

// Modules that entries of the maps took, in the order of the graph, each once for an entry. An activation that became
// a part of its layer is there where an entry names it.
std::vector<Swap> collect_swaps(const PassContext& context);

// "" or, for the first entry without fallback one of whose modules the device refused, in whole or in part, why.
std::string unmet_entry(const PassContext& context, const CompileResult& result);

// Gives nodes of modules that the model holds under several names all of these: those whose class and tensors are the
// same.
void name_shared_modules(ir::Model& model);

}  // namespace ttc
