// A rewritten model as Google's Model Explorer opens it: a JSON file of graph collections. Modules are namespaces,
// nodes have their place and why, format, time and bound, edges their shapes.
#pragma once

#include <string>

#include "pass/compile.h"
#include "session/device_profile.h"

namespace ttc {

// `profile`: of the same model.
OrderedJson explorer_graph(const ir::Model& model, const CompileResult& result, const DeviceProfile& profile,
                           const std::string& label);

}  // namespace ttc
