// Detection of the instruction set, once per process.
#include "device/cpu.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace ttrt {
namespace {

Isa detect() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::portable;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  if (!avx512) return Isa::avx2;
  return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
#else
  return Isa::portable;
#endif
}

Isa initial() {
  const char* wanted = std::getenv("TTRT_ISA");
  if (wanted != nullptr) {
    for (Isa level : {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
      if (to_string(level) == wanted) return std::min(level, best_isa());
    }
  }
  return best_isa();
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> level{initial()};
  return level;
}

}  // namespace

Isa best_isa() {
  static const Isa best = detect();
  return best;
}

Isa isa() { return current().load(std::memory_order_relaxed); }

std::string_view to_string(Isa level) {
  switch (level) {
    case Isa::portable:
      return "portable";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
  }
  return "";
}

ScopedIsa::ScopedIsa(Isa level) : before_(isa()) { current() = std::min(level, best_isa()); }
ScopedIsa::~ScopedIsa() { current() = before_; }

}  // namespace ttrt
