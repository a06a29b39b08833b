// The functions behind the element-wise ops of one tensor (unary.cpp): of one float and the call's numbers in schema
// order. The first ones vectorise, the rest call the C library for one element at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/simd.h"
#include "ops/vmath.h"

namespace ttrt::ops {

using Params = std::array<float, 4>;

// ---- functions that vectorise

// NOLINTBEGIN: one line each, all of the same form
[[gnu::always_inline]] inline float f_relu(float x, const float*) { return x > 0.0F ? x : 0.0F; }
[[gnu::always_inline]] inline float f_gelu(float x, const float*) { return vgelu(x); }
[[gnu::always_inline]] inline float f_gelu_tanh(float x, const float*) { return vgelu_tanh(x); }
[[gnu::always_inline]] inline float f_silu(float x, const float*) { return vsilu(x); }
[[gnu::always_inline]] inline float f_sigmoid(float x, const float*) { return vsigmoid(x); }
[[gnu::always_inline]] inline float f_tanh(float x, const float*) { return vtanh(x); }
[[gnu::always_inline]] inline float f_exp(float x, const float*) { return vexp(x); }
[[gnu::always_inline]] inline float f_log(float x, const float*) { return vlog(x); }
[[gnu::always_inline]] inline float f_sqrt(float x, const float*) { return std::sqrt(x); }
[[gnu::always_inline]] inline float f_rsqrt(float x, const float*) { return vrsqrt(x); }
[[gnu::always_inline]] inline float f_neg(float x, const float*) { return vbits(ubits(x) ^ 0x80000000); }
[[gnu::always_inline]] inline float f_abs(float x, const float*) { return vabs(x); }
[[gnu::always_inline]] inline float f_reciprocal(float x, const float*) { return 1.0F / x; }
[[gnu::always_inline]] inline float f_square(float x, const float*) { return x * x; }
[[gnu::always_inline]] inline float f_cube(float x, const float*) { return x * x * x; }
[[gnu::always_inline]] inline float f_erf(float x, const float*) { return verf(x); }
[[gnu::always_inline]] inline float f_sign(float x, const float*) { return x > 0.0F ? 1.0F : x < 0.0F ? -1.0F : 0.0F; }
[[gnu::always_inline]] inline float f_leaky_relu(float x, const float* p) { return x > 0.0F ? x : x * p[0]; }
[[gnu::always_inline]] inline float f_elu(float x, const float* p) {
  const float low = p[0] * p[1] * (vexp(x * p[2]) - 1.0F);
  return x > 0.0F ? x * p[1] : low;
}
// beta, threshold
[[gnu::always_inline]] inline float f_softplus(float x, const float* p) {
  const float z = x * p[0];
  const float y = (vmax(z, 0.0F) + vlog(1.0F + vexp(-vabs(z)))) / p[0];
  return z > p[1] ? x : y;
}
[[gnu::always_inline]] inline float f_clamp(float x, const float* p) { return vmin(vmax(x, p[0]), p[1]); }
[[gnu::always_inline]] inline float f_hardsigmoid(float x, const float*) {
  return vmin(vmax(x + 3.0F, 0.0F), 6.0F) / 6.0F;
}
[[gnu::always_inline]] inline float f_hardswish(float x, const float*) {
  return x * vmin(vmax(x + 3.0F, 0.0F), 6.0F) / 6.0F;
}
// tanh(log(1 + e^x)) = 1 - 2 / ((1 + e^x)^2 + 1)
[[gnu::always_inline]] inline float f_mish(float x, const float*) {
  const float e = 1.0F + vexp(vmin(x, 30.0F));
  return x * (1.0F - 2.0F / (e * e + 1.0F));
}

// ---- functions of the C library, one element at a time

inline float f_log2(float x, const float*) { return std::log2(x); }
inline float f_log10(float x, const float*) { return std::log10(x); }
inline float f_log1p(float x, const float*) { return std::log1p(x); }
inline float f_exp2(float x, const float*) { return std::exp2(x); }
inline float f_expm1(float x, const float*) { return std::expm1(x); }
inline float f_asin(float x, const float*) { return std::asin(x); }
inline float f_acos(float x, const float*) { return std::acos(x); }
inline float f_atan(float x, const float*) { return std::atan(x); }
inline float f_sinh(float x, const float*) { return std::sinh(x); }
inline float f_cosh(float x, const float*) { return std::cosh(x); }
inline float f_floor(float x, const float*) { return std::floor(x); }
inline float f_ceil(float x, const float*) { return std::ceil(x); }
inline float f_trunc(float x, const float*) { return std::trunc(x); }
inline float f_round(float x, const float*) { return std::nearbyint(x); }
inline float f_pow(float x, const float* p) { return std::pow(x, p[0]); }
inline float f_asinh(float x, const float*) { return std::asinh(x); }
inline float f_acosh(float x, const float*) { return std::acosh(x); }
inline float f_atanh(float x, const float*) { return std::atanh(x); }
inline float f_erfc(float x, const float*) { return std::erfc(x); }
inline float f_lgamma(float x, const float*) { return static_cast<float>(std::lgamma(static_cast<double>(x))); }
inline float f_frac(float x, const float*) { return x - std::trunc(x); }
inline float f_sinc(float x, const float*) {
  const double z = 3.14159265358979323846 * static_cast<double>(x);
  return x == 0.0F ? 1.0F : static_cast<float>(std::sin(z) / z);
}
// log(sigmoid(x)) = min(x, 0) - log(1 + exp(-|x|))
inline float f_log_sigmoid(float x, const float*) { return std::min(x, 0.0F) - std::log1p(std::exp(-std::fabs(x))); }
inline float f_isinf(float x, const float*) { return std::isinf(x) ? 1.0F : 0.0F; }
inline float f_isnan(float x, const float*) { return std::isnan(x) ? 1.0F : 0.0F; }
// What NaN, infinity and -infinity become.
inline float f_nan_to_num(float x, const float* p) {
  if (std::isnan(x)) return p[0];
  return std::isinf(x) ? (x > 0.0F ? p[1] : p[2]) : x;
}
// A first guess from an approximation of erf by exp, then Newton's method.
inline float f_erfinv(float x, const float*) {
  const double y = x;
  if (std::fabs(y) >= 1.0) return std::fabs(y) > 1.0 ? std::nanf("") : std::copysign(inf_f, x);
  const double log1 = std::log1p(-y * y), a = 2.0 / (3.14159265358979323846 * 0.147) + log1 / 2.0;
  double z = std::copysign(std::sqrt(std::sqrt(a * a - log1 / 0.147) - a), y);
  for (int i = 0; i < 3; ++i) z -= (std::erf(z) - y) * std::exp(z * z) * 0.88622692545275801365;
  return static_cast<float>(z);
}
// NOLINTEND

}  // namespace ttrt::ops
