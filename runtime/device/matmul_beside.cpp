// What is left of the work beside a product when somebody waits for it.
#include "device/matmul_beside.h"

namespace ttrt::detail {

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void Beside::finish() {
  if (to_round_ > 0) round_some(to_round_);
  while (to_look_up_ > 0) look_up();
}
#else
void Beside::finish() {}
#endif

}  // namespace ttrt::detail
