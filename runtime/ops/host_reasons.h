// Why ATen operators that no record serves stay on the host: a sentence for each family of them.
#pragma once

#include <string_view>

namespace ttrt {

// Of "aten.nonzero.default": "the size of its result depends on values". "" for operators that nobody thought of.
std::string_view host_reason(std::string_view op);

}  // namespace ttrt
