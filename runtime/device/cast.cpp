// See cast.h. The common pairs have a loop of their own; all others go through a wide element (double or int64) in
// chunks that stay in cache, so there is one decoder and one encoder per type instead of one loop per pair.
#include "device/cast.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "device/cpu.h"
#include "device/tile_formats.h"

namespace ttrt {
namespace {

using ttc::DType;

constexpr std::int64_t chunk = 256;

// Layout of the 8-bit floats: exponent and mantissa bits, bias, and what lies past the largest finite value.
struct Float8 {
  int mantissa_bits;
  int bias;
  int largest;            // code of the largest finite magnitude
  std::uint8_t overflow;  // code (without sign) that larger magnitudes become
  bool negative_zero;     // fnuz kinds use 0x80 for NaN
};

constexpr Float8 float8_of(DType dtype) {
  switch (dtype) {
    case DType::f8e5m2:
      return {2, 15, 0x7b, 0x7c, true};
    case DType::f8e4m3fnuz:
      return {3, 8, 0x7f, 0x80, false};
    case DType::f8e5m2fnuz:
      return {2, 16, 0x7f, 0x80, false};
    default:
      return {3, 7, 0x7e, 0x7f, true};  // f8e4m3fn
  }
}

double float8_magnitude(const Float8& f, int code) {
  const int exponent = code >> f.mantissa_bits;
  const int mantissa = code & ((1 << f.mantissa_bits) - 1);
  if (exponent == 0) return std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  return std::ldexp(mantissa + (1 << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
}

double decode_float8(DType dtype, std::uint8_t code) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (dtype == DType::f8e8m0) return code == 0xff ? nan : std::ldexp(1.0, code - 127);
  const Float8 f = float8_of(dtype);
  if (!f.negative_zero && code == 0x80) return nan;
  const int magnitude = code & 0x7f;
  const double sign = code & 0x80 ? -1.0 : 1.0;
  if (magnitude > f.largest) {
    const bool infinity = dtype == DType::f8e5m2 && magnitude == 0x7c;
    return infinity ? sign * std::numeric_limits<double>::infinity() : nan;
  }
  return sign * float8_magnitude(f, magnitude);
}

std::uint8_t encode_float8(DType dtype, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (dtype == DType::f8e8m0) {  // the exponent alone, rounded on the mantissa's top bit
    const std::uint32_t exponent = (bits >> 23) & 0xff;
    if (exponent == 0xff) return 0xff;
    const bool up = (bits & 0x400000) != 0 && (exponent > 0 || (bits & 0x3fffff) != 0);
    return static_cast<std::uint8_t>(exponent + up);
  }
  const Float8 f = float8_of(dtype);
  const std::uint8_t sign = bits >> 31 ? 0x80 : 0;
  if (std::isnan(value)) return f.negative_zero ? static_cast<std::uint8_t>(sign | 0x7f) : 0x80;
  const double magnitude = std::fabs(value);
  int low = 0, high = f.largest;  // the largest code whose value does not exceed the magnitude
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (float8_magnitude(f, middle) <= magnitude) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const double below = float8_magnitude(f, low), above = float8_magnitude(f, low + 1);
  const double rest = (magnitude - below) - (above - magnitude);
  const int code = rest > 0 || (rest == 0 && (low & 1)) ? low + 1 : low;
  if (code > f.largest) return f.negative_zero ? static_cast<std::uint8_t>(sign | f.overflow) : f.overflow;
  if (code == 0 && !f.negative_zero) return 0;
  return static_cast<std::uint8_t>(sign | code);
}

template <typename T>
T load(const std::byte* p, std::int64_t i) {
  T value;
  std::memcpy(&value, p + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* p, std::int64_t i, T value) {
  std::memcpy(p + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

template <typename T, typename Wide>
void widen(const std::byte* src, Wide* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<Wide>(load<T>(src, i));
}

void decode_float(const std::byte* src, DType from, double* out, std::int64_t n) {
  switch (from) {
    case DType::f16:
      return widen<_Float16>(src, out, n);
    case DType::f32:
      return widen<float>(src, out, n);
    case DType::f64:
      return widen<double>(src, out, n);
    case DType::bf16:
      for (std::int64_t i = 0; i < n; ++i) out[i] = bf16_to_f32(load<std::uint16_t>(src, i));
      return;
    default:
      for (std::int64_t i = 0; i < n; ++i) out[i] = decode_float8(from, load<std::uint8_t>(src, i));
  }
}

// uint64 keeps its bits; encode_int is told.
void decode_int(const std::byte* src, DType from, std::int64_t* out, std::int64_t n) {
  switch (from) {
    case DType::boolean:
      for (std::int64_t i = 0; i < n; ++i) out[i] = load<std::uint8_t>(src, i) != 0;
      return;
    case DType::u8:
      return widen<std::uint8_t>(src, out, n);
    case DType::i8:
      return widen<std::int8_t>(src, out, n);
    case DType::i16:
      return widen<std::int16_t>(src, out, n);
    case DType::u16:
      return widen<std::uint16_t>(src, out, n);
    case DType::i32:
      return widen<std::int32_t>(src, out, n);
    case DType::u32:
      return widen<std::uint32_t>(src, out, n);
    default:
      return widen<std::int64_t>(src, out, n);
  }
}

template <typename Wide>
void encode_float(const Wide* in, std::byte* dst, DType to, std::int64_t n) {
  switch (to) {
    case DType::f64:
      for (std::int64_t i = 0; i < n; ++i) store(dst, i, static_cast<double>(in[i]));
      return;
    case DType::f32:
      for (std::int64_t i = 0; i < n; ++i) store(dst, i, static_cast<float>(in[i]));
      return;
    case DType::f16:
      for (std::int64_t i = 0; i < n; ++i) store(dst, i, static_cast<_Float16>(static_cast<float>(in[i])));
      return;
    case DType::bf16:
      for (std::int64_t i = 0; i < n; ++i) store(dst, i, f32_to_bf16(static_cast<float>(in[i])));
      return;
    default:
      for (std::int64_t i = 0; i < n; ++i) store(dst, i, encode_float8(to, static_cast<float>(in[i])));
  }
}

template <typename T>
void narrow(const std::int64_t* in, std::byte* dst, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) store(dst, i, static_cast<T>(in[i]));
}

void encode_int(const std::int64_t* in, std::byte* dst, DType to, std::int64_t n) {
  switch (ttc::size_of(to)) {
    case 1:
      if (to != DType::boolean) return narrow<std::uint8_t>(in, dst, n);
      for (std::int64_t i = 0; i < n; ++i) store(dst, i, static_cast<std::uint8_t>(in[i] != 0));
      return;
    case 2:
      return narrow<std::uint16_t>(in, dst, n);
    case 4:
      return narrow<std::uint32_t>(in, dst, n);
    default:
      return narrow<std::int64_t>(in, dst, n);
  }
}

std::int64_t truncate(double value) {
  constexpr double limit = 9223372036854775808.0;
  return value >= -limit && value < limit ? static_cast<std::int64_t>(value) : std::numeric_limits<std::int64_t>::min();
}

void cast_real_chunk(const std::byte* src, DType from, std::byte* dst, DType to, std::int64_t n) {
  std::array<double, chunk> real;
  std::array<std::int64_t, chunk> integer;
  if (ttc::is_floating(from)) {
    decode_float(src, from, real.data(), n);
    if (ttc::is_floating(to)) return encode_float(real.data(), dst, to, n);
    const bool to_bool = to == DType::boolean;
    for (std::int64_t i = 0; i < n; ++i) integer[i] = to_bool ? !(real[i] == 0) : truncate(real[i]);
    return encode_int(integer.data(), dst, to, n);
  }
  decode_int(src, from, integer.data(), n);
  if (!ttc::is_floating(to)) return encode_int(integer.data(), dst, to, n);
  if (from != DType::u64) return encode_float(integer.data(), dst, to, n);
  std::array<std::uint64_t, chunk> natural;
  std::copy_n(integer.begin(), n, natural.begin());
  encode_float(natural.data(), dst, to, n);
}

void cast_real(const std::byte* src, DType from, std::byte* dst, DType to, std::int64_t n) {
  const int from_size = ttc::size_of(from), to_size = ttc::size_of(to);
  for (std::int64_t i = 0; i < n; i += chunk)
    cast_real_chunk(src + i * from_size, from, dst + i * to_size, to, std::min(chunk, n - i));
}

DType component(DType dtype) {
  switch (dtype) {
    case DType::c32:
      return DType::f16;
    case DType::c64:
      return DType::f32;
    case DType::c128:
      return DType::f64;
    default:
      return dtype;
  }
}

void cast_complex(const std::byte* src, DType from, std::byte* dst, DType to, std::int64_t n) {
  const DType part_from = component(from), part_to = component(to);
  if (ttc::is_complex(from) && ttc::is_complex(to)) return cast_real(src, part_from, dst, part_to, 2 * n);
  const int from_size = ttc::size_of(part_from), to_size = ttc::size_of(part_to);
  if (ttc::is_complex(to)) {
    for (std::int64_t i = 0; i < n; ++i) {
      cast_real(src + i * from_size, from, dst + 2 * i * to_size, part_to, 1);
      std::memset(dst + (2 * i + 1) * to_size, 0, static_cast<std::size_t>(to_size));
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    cast_real(src + 2 * i * from_size, part_from, dst + i * to_size, to, 1);
    if (to != DType::boolean) continue;
    std::uint8_t imaginary;
    cast_real(src + (2 * i + 1) * from_size, part_from, reinterpret_cast<std::byte*>(&imaginary), to, 1);
    if (imaginary) dst[i] = std::byte{1};
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2,f16c")]] std::int64_t f16_to_f32_eights(const _Float16* src, float* dst, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i))));
  return i;
}

[[gnu::target("avx2,f16c")]] std::int64_t f32_to_f16_eights(const float* src, _Float16* dst, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i), half);
  }
  return i;
}
#endif

void f16_to_f32(const _Float16* src, float* dst, std::int64_t n) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (isa() >= Isa::avx2) i = f16_to_f32_eights(src, dst, n);
#endif
  for (; i < n; ++i) dst[i] = src[i];
}

void f32_to_f16(const float* src, _Float16* dst, std::int64_t n) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (isa() >= Isa::avx2) i = f32_to_f16_eights(src, dst, n);
#endif
  for (; i < n; ++i) dst[i] = static_cast<_Float16>(src[i]);
}

}  // namespace

void cast(const std::byte* src, DType from, std::byte* dst, DType to, std::int64_t n) {
  if (n == 0) return;
  if (from == to) {
    std::memcpy(dst, src, static_cast<std::size_t>(n * ttc::size_of(from)));
  } else if (ttc::is_complex(from) || ttc::is_complex(to)) {
    cast_complex(src, from, dst, to, n);
  } else if (from == DType::f32 && to == DType::bf16) {
    convert_to_bf16(reinterpret_cast<const float*>(src), reinterpret_cast<std::uint16_t*>(dst), n);
  } else if (from == DType::bf16 && to == DType::f32) {
    convert_from_bf16(reinterpret_cast<const std::uint16_t*>(src), reinterpret_cast<float*>(dst), n);
  } else if (from == DType::f16 && to == DType::f32) {
    f16_to_f32(reinterpret_cast<const _Float16*>(src), reinterpret_cast<float*>(dst), n);
  } else if (from == DType::f32 && to == DType::f16) {
    f32_to_f16(reinterpret_cast<const float*>(src), reinterpret_cast<_Float16*>(dst), n);
  } else {
    cast_real(src, from, dst, to, n);
  }
}

}  // namespace ttrt
