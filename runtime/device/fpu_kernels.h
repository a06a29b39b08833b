// Inner loops of the matrix unit's element-wise operations, one copy per instruction set. Used by device/fpu*.cpp only.
#pragma once

#include <cstdint>

namespace ttrt::fpu {

enum class Kind : std::uint8_t { add, sub, mul };
// What add(), sub() and mul() of device/fpu.h were given.
struct Job {
  Kind kind;
  const float *a, *b;
  float* dest;
  std::int64_t n;
  int phases;  // of a product
  bool dest32, accumulate;
};

void run_portable(const Job& job);
void run_avx2(const Job& job);
void run_avx512(const Job& job);

}  // namespace ttrt::fpu
