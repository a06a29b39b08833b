// Inner loops of the matrix unit's element-wise operations and sums, one copy per instruction set. Used by
// device/fpu*.cpp only.
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

// Sums of eight products each with one scaler, as device/matmul_exact.h says: bit 10 of sums[phase][group] weighs
// 2^(exponents[phase][group] - 127); both are 0 where nothing is left.
struct Groups {
  Groups(int the_phases, float by, bool in_srca) : phases(the_phases), scaler(by), srca(in_srca) {}

  // Vectors of groups are taken whole, up to this many.
  static constexpr int most = 64, vector = 16;
  int count = 0;
  const int phases;
  const float scaler;
  const bool srca;                    // the values, and the scaler in SrcB; else the other way around
  alignas(64) float values[8][most];  // [k][group]
  alignas(64) std::int32_t sums[4][most], exponents[4][most];
};
void sum_portable(Groups& groups);
void sum_avx2(Groups& groups);
void sum_avx512(Groups& groups);

}  // namespace ttrt::fpu
