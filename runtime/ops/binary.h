// Element-wise functions of two tensors that broadcast, or of a tensor and a number. Each is a BinaryOp, stated once
// beside its functions: in a table of binary_*.cpp, or in a file of its own. binary.cpp makes the op's record of it.
//
// Sums and differences go through the matrix unit and round ties away from zero, everything else through the vector
// unit and rounds to nearest even; a zero factor gives zero in bfloat16, whatever the other is. A number meets bfloat16
// tensors as a bfloat16. Comparisons and logic give 1 and 0 in the operands' format; those of integers in the format
// that the call names. Arithmetic of integers is exact (integers.h).
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ops/exact_util.h"
#include "ops/integers.h"
#include "ops/narrow.h"
#include "ops/op.h"
#include "ops/simd.h"

namespace ttrt::ops {

// ---- functions -----------------------------------------------------------------------------------------------------

using PairScalar = float (*)(float a, float b);
using PairFunction = void (*)(const float* a, const float* b, float* out);  // 1024 values

template <PairScalar f>
struct PairMap {
  [[gnu::always_inline]] static inline void run(const float* a, const float* b, float* out) {
    for (int i = 0; i < tile_elements; ++i) out[i] = f(a[i], b[i]);
  }
};
// Compiled for every instruction set; f and all it calls must be always_inline.
template <PairScalar f>
void vectorised_pair(const float* a, const float* b, float* out) {
  vectorised<PairMap<f>>(a, b, out);
}
// One pair after the other: functions of the C library.
template <PairScalar f>
void plain_pair(const float* a, const float* b, float* out) {
  for (int i = 0; i < tile_elements; ++i) out[i] = f(a[i], b[i]);
}

// The same in one pass over the first n values of bfloat16 tiles, a multiple of 16. `out` may be an operand.
using TilePairFunction = void (*)(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out, std::int64_t n);

template <PairScalar f, Rounding rounding>
struct TilePairMap {
  [[gnu::always_inline]] static inline void run(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
                                                std::int64_t n) {
    std::int64_t i = 0;
    for (; i + 32 <= n; i += 32) line<16>(a + i, b + i, out + i);
    if (i < n) line<8>(a + i, b + i, out + i);
  }
  // Two values to a word: nothing has to be moved between lanes.
  template <int words>
  [[gnu::always_inline]] static inline void line(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out) {
    using Word [[gnu::may_alias]] = std::uint32_t;
    const auto *x = reinterpret_cast<const Word*>(a), *y = reinterpret_cast<const Word*>(b);
    std::uint32_t z[words];
#pragma GCC unroll 1
    for (int i = 0; i < words; ++i) {
      const std::uint32_t low = narrow_word<rounding>(f(as_float(x[i] << 16), as_float(y[i] << 16)));
      const std::uint32_t high = narrow_word<rounding>(f(as_float(x[i] & 0xFFFF0000), as_float(y[i] & 0xFFFF0000)));
      z[i] = low >> 16 | high;
    }
    std::memcpy(out, z, sizeof z);
  }
  [[gnu::always_inline]] static inline float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
};
template <PairScalar f, Rounding rounding>
void vectorised_tile_pair(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out, std::int64_t n) {
  vectorised<TilePairMap<f, rounding>>(a, b, out, n);
}

// ---- lowering ------------------------------------------------------------------------------------------------------

// (a, b) or (a, None, scalar), then alpha where it is not 1.
LowerResult lower_operands(const LowerContext& context);
// A number next to integers: int32 must hold it.
ttc::Refusal check_integer(const ttc::ir::Arg& number);
// int64 results are checked to fit, int32 results wrap as ATen's do.
LowerResult lower_integers(const LowerContext& context);
// Floats or integers.
LowerResult lower_arithmetic(const LowerContext& context);

// ---- ops -----------------------------------------------------------------------------------------------------------

struct BinaryOp {
  enum class Kind : std::uint8_t { arithmetic, comparison, logic, bits };
  enum class Alpha : std::uint8_t { none, of_a, of_b };  // which operand ATen's alpha is a factor of

  std::string_view name;              // "tt.add"
  std::string_view summary;           // a formula
  std::string_view tensor_aten;       // of two tensors, or of a tensor and a number given as one
  std::string_view scalar_aten = "";  // of a tensor and a number; "" where there is none
  Kind kind = Kind::arithmetic;
  LowerResult (*lower)(const LowerContext&) = lower_arithmetic;
  std::vector<Lowering> more = {};  // other ATen operators that are this op; without a function of their own: `lower`
  PairFunction function = nullptr;  // nullptr: of integers only
  PairFunction of_bfloat16 = nullptr;  // instead of `function`
  // Of two bfloat16 tensors of the same sizes, f(0, 0) being 0.
  TilePairFunction of_bfloat16_tiles = nullptr;
  std::optional<exact::Binary> exact = std::nullopt;
  std::string_view no_exact_kernel = "";  // why `exact` is not there
  IntegerPairFunction integers = nullptr;
  Rounding rounding = Rounding::even;
  Alpha alpha = Alpha::none;
  std::string_view mode = "";  // ATen's rounding_mode
  double instructions = 4;     // of the vector unit, for 32 elements
  // Cases: range of the values, the second operand of integers less than 7, and cases beside those that all ops have.
  std::string_view range = "normal";
  bool shifts = false;
  std::vector<OpCase> more_cases = {};
  std::string_view special_values = "";  // OpRecord::special_values
  std::string_view python = {};          // TT-NN's name, where it is not the record's own
};

void register_binary(std::span<const BinaryOp> ops);

}  // namespace ttrt::ops

// `table`: an array of BinaryOp, of static storage.
#define TTRT_REGISTER_BINARY(table)                                            \
  namespace {                                                                  \
  const bool registered_##table = (::ttrt::ops::register_binary(table), true); \
  }
