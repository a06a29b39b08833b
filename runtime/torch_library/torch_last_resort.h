// LibTorch's dispatcher as the last resort of the dispatch tables.
#pragma once

namespace ttrt {

// Sets the functions of dispatch/last_resort.h and ops/named_call.h. Idempotent.
void install_torch_last_resort();

}  // namespace ttrt
