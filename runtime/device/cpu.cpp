// Detection of the instruction set, once per process.
#include "device/cpu.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ttrt {
namespace {

// The kernel saves the 8 KiB of AMX registers for processes only that ask it to.
bool may_use_tile_registers() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

Isa detect() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::portable;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  if (!avx512) return Isa::avx2;
  if (!__builtin_cpu_supports("avx512bf16")) return Isa::avx512;
  const bool amx = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
                   __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512fp16") &&
                   may_use_tile_registers();
  return amx ? Isa::amx_bf16 : Isa::avx512_bf16;
#else
  return Isa::portable;
#endif
}

Isa initial() {
  const char* wanted = std::getenv("TTRT_ISA");
  if (wanted != nullptr) {
    for (Isa level : {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16}) {
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
    case Isa::amx_bf16:
      return "amx_bf16";
  }
  return "";
}

ScopedIsa::ScopedIsa(Isa level) : before_(isa()) { current() = std::min(level, best_isa()); }
ScopedIsa::~ScopedIsa() { current() = before_; }

}  // namespace ttrt
