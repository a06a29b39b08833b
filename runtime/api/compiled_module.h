// TT modules of records (modules/module.h): the module's graph, compiled with the record's precision.
#pragma once

#include "api/module.h"

namespace ttrt {

struct ModuleRecord;

// Throws ttc::Error for a module whose graph there is none of.
std::shared_ptr<Module> compiled_module(const TorchModule& source, const ModuleRecord& record,
                                        const ModuleOptions& options);

}  // namespace ttrt
