// Reads the tensors of a torch.save blob with LibTorch's unpickler, which builds tensors and containers and refuses
// every other class.
#pragma once

#include <map>
#include <string>

#include "ir/model.h"

namespace ttc {

// The blob is a dictionary from names to tensors (or parameters). Tensors that share a storage share an ir::Storage.
// Throws ttc::Error (bad_file, without a file name) for anything else.
std::map<std::string, ir::Weight> read_pickled_tensors(std::string blob);

}  // namespace ttc
