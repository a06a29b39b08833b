// Elementary functions as branch-free float code that the compiler vectorises. Errors are a few float ulp unless said
// otherwise, far below bfloat16's. Constants: S. Moshier's Cephes library (exp, log, tanh, sin, cos); the erfc fit is
// the Chebyshev one with fractional error below 1.2e-7 that Numerical Recipes tabulates. For .cpp files.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ttrt::ops {

inline constexpr float inf_f = std::numeric_limits<float>::infinity();

[[gnu::always_inline]] inline float vbits(std::uint32_t u) { return std::bit_cast<float>(u); }
[[gnu::always_inline]] inline std::uint32_t ubits(float x) { return std::bit_cast<std::uint32_t>(x); }
[[gnu::always_inline]] inline float vabs(float x) { return vbits(ubits(x) & 0x7FFFFFFF); }
[[gnu::always_inline]] inline float vcopysign(float magnitude, float sign) {
  return vbits((ubits(magnitude) & 0x7FFFFFFF) | (ubits(sign) & 0x80000000));
}
// max and min that keep the compiler's vector forms: the second operand where either is NaN.
[[gnu::always_inline]] inline float vmax(float a, float b) { return a > b ? a : b; }
[[gnu::always_inline]] inline float vmin(float a, float b) { return a < b ? a : b; }

// exp of -88 to 89, finite where the result is, in two steps: a normal number's exponent takes the power of two as an
// integer. Loops over either step overlap more of it than one over both.
struct ExpParts {
  float rest;
  std::uint32_t power;
};
[[gnu::always_inline]] inline ExpParts vexp_parts(float c) {
  const float shifted = c * 1.44269504088896341F + 12582912.0F;  // 1.5 * 2^23: rounds to an integer in the low bits
  const float n = shifted - 12582912.0F;
  // The low 9 bits of 1.5 * 2^23 are zero.
  return {(c - n * 0.693359375F) - n * -2.12194440e-4F, ubits(shifted) << 23};
}
[[gnu::always_inline]] inline float vexp_join(float r, std::uint32_t power) {
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  return vbits(ubits(p) + power);
}
[[gnu::always_inline]] inline float vexp_inside(float c) {
  const ExpParts parts = vexp_parts(c);
  return vexp_join(parts.rest, parts.power);
}
// 0 below -87.3 (no denormals), infinity above 88.72; NaN gives NaN.
[[gnu::always_inline]] inline float vexp(float x) {
  const float y = vexp_inside(vmin(vmax(x, -88.0F), 89.0F));
  const float low = x < -87.33654F ? 0.0F : y;
  const float high = x > 88.72283F ? inf_f : low;
  return x != x ? x : high;
}
// The same for what is at most 88 or NaN; `inside`: vexp_inside(x), which below -88 has no meaning and is not taken.
[[gnu::always_inline]] inline float vexp_low(float x, float inside) {
  const float low = x < -87.33654F ? 0.0F : inside;
  return x != x ? x : low;
}
[[gnu::always_inline]] inline float vexp_low(float x) { return vexp_low(x, vexp_inside(x)); }

// -infinity at 0, NaN below.
[[gnu::always_inline]] inline float vlog(float x) {
  const std::uint32_t u = ubits(x);
  // m in [sqrt(1/2), sqrt(2)), x = m * 2^e.
  const std::uint32_t t = u - 0x3F3504F3U;
  const auto e = static_cast<float>(static_cast<std::int32_t>(t) >> 23);
  const float m = vbits((t & 0x7FFFFF) + 0x3F3504F3U) - 1.0F;
  const float z = m * m;
  float p = 7.0376836292e-2F;
  p = p * m - 1.1514610310e-1F;
  p = p * m + 1.1676998740e-1F;
  p = p * m - 1.2420140846e-1F;
  p = p * m + 1.4249322787e-1F;
  p = p * m - 1.6668057665e-1F;
  p = p * m + 2.0000714765e-1F;
  p = p * m - 2.4999993993e-1F;
  p = p * m + 3.3333331174e-1F;
  float y = p * m * z + e * -2.12194440e-4F - 0.5F * z;
  y = m + y + e * 0.693359375F;
  y = x == inf_f ? inf_f : y;
  y = x < std::numeric_limits<float>::min() ? -inf_f : y;
  y = x < 0.0F ? std::numeric_limits<float>::quiet_NaN() : y;
  return x != x ? x : y;
}

[[gnu::always_inline]] inline float vsigmoid(float x) {
  const float e = vexp_low(-vabs(x));
  const float s = 1.0F / (1.0F + e);
  const float y = x >= 0.0F ? s : e * s;
  return x != x ? x : y;
}

[[gnu::always_inline]] inline float vtanh(float x) {
  const float a = vabs(x);
  const float z = x * x;
  float p = -5.70498872745e-3F;
  p = p * z + 2.06390887954e-2F;
  p = p * z - 5.37397155531e-2F;
  p = p * z + 1.33314422036e-1F;
  p = p * z - 3.33332819422e-1F;
  const float small = p * z * x + x;
  const float large = vcopysign(1.0F - 2.0F / (vexp(2.0F * a) + 1.0F), x);
  const float y = a < 0.625F ? small : large;
  return x != x ? x : y;
}

// Relative error below 2e-6 where the result is normal.
[[gnu::always_inline]] inline float verfc(float x) {
  const float z = vabs(x);
  const float t = 1.0F / (1.0F + 0.5F * z);
  float p = 0.17087277F;
  p = p * t - 0.82215223F;
  p = p * t + 1.48851587F;
  p = p * t - 1.13520398F;
  p = p * t + 0.27886807F;
  p = p * t - 0.18628806F;
  p = p * t + 0.09678418F;
  p = p * t + 0.37409196F;
  p = p * t + 1.00002368F;
  p = p * t - 1.26551223F;
  const float tail = t * vexp_low(p - z * z);
  return x >= 0.0F ? tail : 2.0F - tail;
}

[[gnu::always_inline]] inline float verf(float x) {
  const float z = x * x;
  // Taylor series, for |x| < 0.5.
  float p = 2.0F / (13.0F * 720.0F * 1.7724538509F);
  p = p * z - 2.0F / (11.0F * 120.0F * 1.7724538509F);
  p = p * z + 2.0F / (9.0F * 24.0F * 1.7724538509F);
  p = p * z - 2.0F / (7.0F * 6.0F * 1.7724538509F);
  p = p * z + 2.0F / (5.0F * 2.0F * 1.7724538509F);
  p = p * z - 2.0F / (3.0F * 1.7724538509F);
  p = p * z + 2.0F / 1.7724538509F;
  const float large = vcopysign(1.0F - verfc(vabs(x)), x);
  const float y = vabs(x) < 0.5F ? p * x : large;
  return x != x ? x : y;
}

[[gnu::always_inline]] inline float vgelu(float x) {
  const float y = 0.5F * x * verfc(x * -0.70710678118654752F);
  return x < -13.5F ? 0.0F : y;
}

// 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3)
[[gnu::always_inline]] inline float vgelu_tanh(float x) {
  const float y = x * vsigmoid(1.5957691216057308F * (x + 0.044715F * x * x * x));
  return x < -25.0F ? 0.0F : y;
}

[[gnu::always_inline]] inline float vsilu(float x) {
  const float y = x * vsigmoid(x);
  return x == -inf_f ? 0.0F : y;
}

// 1 / sqrt(x) as the vector unit computes it: two steps from a magic first guess; 0 gives infinity of its sign,
// negative numbers NaN, denormals (zero in products, not in the guess) about 3e19. Where the unit's multiply-add rounds
// its product (27 bits), 5 % of results are the neighbour's.
[[gnu::always_inline]] inline float vrsqrt(float x) {
  const std::uint32_t u = ubits(x), from_infinity = 0x7F800000U - u;
  const float factor = (u & 0x7F800000) == 0 ? 0.0F : x;
  float y = vbits(0x5F1110A0U - (u >> 1));
  const float c = -y * (factor * y);
  y = y * (c * (2.2533049F + c) + 2.2825186F);
  const float rest = __builtin_fmaf(-y, factor * y, 1.0F);
  const float root = rest * (0.5F * y) + y;
  const float r = from_infinity != 0 && (u & 0x7FFFFFFF) != 0 ? root : vbits(from_infinity);
  return u > 0x80000000U ? std::numeric_limits<float>::quiet_NaN() : r;
}

}  // namespace ttrt::ops
