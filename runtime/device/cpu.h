// Which instruction set the device's kernels use. Every kernel that has a fast path has a portable one too, gives the
// same bits on all of them, and asks isa() once per call.
#pragma once

#include <cstdint>
#include <string_view>

namespace ttrt {

// Ordered: a machine that has one level has all below it.
//   avx2: AVX2, FMA, F16C.  avx512: F, BW, DQ, VL, CD.  avx512_bf16: the former and AVX512-BF16 (vdpbf16ps).
//   amx_bf16: the former, AVX512-VBMI, AVX512-FP16 and AMX-BF16 (tdpbf16ps), whose registers the process was granted.
enum class Isa : std::uint8_t { portable, avx2, avx512, avx512_bf16, amx_bf16 };

// The best level of this machine.
Isa best_isa();
// The level in use: best_isa(), unless the environment variable TTRT_ISA (one of the names above) or ScopedIsa lowers
// it.
Isa isa();
std::string_view to_string(Isa isa);

// Lowers isa() for tests and benchmarks while it lives. Process-wide: use it while no kernel runs on other threads.
class ScopedIsa {
 public:
  explicit ScopedIsa(Isa level);  // a level the machine lacks gives the best it has
  ~ScopedIsa();
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;

 private:
  Isa before_;
};

}  // namespace ttrt
