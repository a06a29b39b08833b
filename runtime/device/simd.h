// One copy of a kernel per instruction set: vectorised<K>(args...) calls K::run compiled for what isa() says.
// K::run and all it calls must be always_inline. The library is compiled with -ffp-contract=off, so every copy gives
// the same bits. For .cpp files.
#pragma once

#include "device/cpu.h"

namespace ttrt {

#if defined(__x86_64__)
template <typename K, typename... Args>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,prefer-vector-width=512")]] void run_avx512(
    Args... args) {
  K::run(args...);
}
template <typename K, typename... Args>
[[gnu::target("avx2,fma")]] void run_avx2(Args... args) {
  K::run(args...);
}
#endif

template <typename K, typename... Args>
void vectorised(Args... args) {
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return run_avx512<K>(args...);
  if (isa() == Isa::avx2) return run_avx2<K>(args...);
#endif
  K::run(args...);
}

}  // namespace ttrt
