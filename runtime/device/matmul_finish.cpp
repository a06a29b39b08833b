// Bias, activation and the roundings of a tile of sums.
#include "device/matmul_finish.h"

#include <algorithm>
#include <cstring>

#include "device/intrinsics.h"
#include "device/simd.h"
#include "device/tile_formats_device.h"

namespace ttrt {
namespace {

// As Dest gives a sum to what follows.
template <bool bits32>
[[gnu::always_inline]] inline float out_of_dest(float value) {
  return bits32 ? cut_tf32(value) : round_bf16_away(value);
}

template <bool bits32>
struct AddBias {
  [[gnu::always_inline]] static inline void run(float* values, const float* bias, std::int64_t count) {
    for (std::int64_t first = 0; first < count; first += 16) {
      float* v = values + first;
      const float* b = bias + first;
#pragma GCC unroll 1
      for (int i = 0; i < 16; ++i) v[i] = out_of_dest<bits32>(v[i]) + b[i];
    }
  }
};

// Sums, perhaps with a bias, to the bfloat16 that leaves: rounded, or what the activation makes of it rounded, which is
// looked up for a face as a whole, so that no value waits for the one before.
template <bool bits32, bool biased, bool activates>
struct ToBfloat16 {
  [[gnu::always_inline]] static inline void run(const float* sums, const float* bias, const std::uint16_t* activated,
                                                std::int64_t rows, std::uint16_t* out) {
    alignas(64) std::uint16_t face_bits[face_elements];
    for (std::int64_t face = 0; face < 4; ++face, sums += face_elements, out += face_elements) {
      const float* b = biased ? bias + face % 2 * 16 : nullptr;
      const std::int64_t count = std::clamp<std::int64_t>(rows - face / 2 * 16, 0, 16);
      std::uint16_t* bits = activates ? face_bits : out;
      for (std::int64_t at = 0; at < count * 16; at += 16) {
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) {
          const float sum = biased ? out_of_dest<bits32>(sums[at + i]) + b[i] : sums[at + i];
          bits[at + i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(round_bf16_away(sum)) >> 16);
        }
      }
      if constexpr (activates)
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < count * 16; ++i) out[i] = activated[bits[i]];
      std::fill_n(out + count * 16, (16 - count) * 16, std::uint16_t{0});
    }
  }
};

#if defined(__x86_64__)
#define TTRT_TARGET gnu::target("avx512f,avx512bw,avx512dq,avx512vl")

// The same as ToBfloat16, and what the activation makes of it looked up for the tile as a whole: so no value waits for
// the one before.
template <bool bits32, bool biased, bool activates>
[[TTRT_TARGET]] void to_bfloat16_avx512(const float* sums, const float* bias, const std::uint16_t* activated,
                                        std::int64_t rows, std::uint16_t* out) {
  alignas(64) std::uint16_t buffer[tile_elements];
  std::uint16_t* bits = activates ? buffer : out;
  for (std::int64_t face = 0; face < 4; ++face) {
    const __m512 b = biased ? _mm512_loadu_ps(bias + face % 2 * 16) : _mm512_setzero_ps();
    const std::int64_t count = std::clamp<std::int64_t>(rows - face / 2 * 16, 0, 16), at = face * face_elements;
#pragma GCC unroll 4
    for (std::int64_t row = 0; row < count; ++row) {
      const std::int64_t i = at + row * 16;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(bits + i), detail::sums_to_bfloat16<biased>(sums + i, b, bits32));
    }
    if constexpr (activates)
#pragma GCC unroll 16
      for (std::int64_t i = at; i < at + count * 16; ++i) out[i] = activated[bits[i]];
    std::fill_n(out + at + count * 16, (16 - count) * 16, std::uint16_t{0});
  }
}
#undef TTRT_TARGET
#endif

using Bfloat16Tile = void (*)(const float*, const float*, const std::uint16_t*, std::int64_t, std::uint16_t*);
template <bool bits32, bool biased, bool activates>
void bfloat16_tile(const float* sums, const float* bias, const std::uint16_t* activated, std::int64_t rows,
                   std::uint16_t* out) {
#if defined(__x86_64__)
  if (isa() >= Isa::avx512) return to_bfloat16_avx512<bits32, biased, activates>(sums, bias, activated, rows, out);
#endif
  vectorised<ToBfloat16<bits32, biased, activates>>(sums, bias, activated, rows, out);
}

template <bool bits32>
struct AddBiasToRows {
  [[gnu::always_inline]] static inline void run(float* tile, const float* bias) {
    for (int face = 0; face < 4; ++face) {
      const float* b = bias + face % 2 * 16;
      for (int row = 0; row < 16; ++row, tile += 16) {
#pragma GCC unroll 1
        for (int i = 0; i < 16; ++i) tile[i] = out_of_dest<bits32>(tile[i]) + b[i];
      }
    }
  }
};

template <bool bits32>
struct AddToAll {
  [[gnu::always_inline]] static inline void run(float* values, std::int64_t count, float bias) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = out_of_dest<bits32>(values[i]) + bias;
  }
};

struct RoundAway {
  [[gnu::always_inline]] static inline void run(float* values) {
    for (int i = 0; i < tile_elements; ++i) values[i] = round_bf16_away(values[i]);
  }
};

struct RoundNearestEven {
  [[gnu::always_inline]] static inline void run(float* values) {
    for (int i = 0; i < tile_elements; ++i) values[i] = bf16_to_f32(f32_to_bf16(values[i]));
  }
};

struct LookUp {
  [[gnu::always_inline]] static inline void run(float* values, const std::uint16_t* activated) {
    for (int i = 0; i < tile_elements; ++i) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(round_bf16_away(values[i])) >> 16;
      values[i] = bf16_to_f32(activated[bits]);
    }
  }
};

// A table takes as long as 64 tiles, once for a product.
constexpr std::int64_t worth_a_table = 256 * tile_elements;

bool is_plain_bf16(const MatmulSpec& spec) { return spec.out == DataType::bfloat16 && !spec.activation; }

}  // namespace

namespace detail {

void add_bias(float* values, const float* bias, std::int64_t count, bool bits32) {
  bits32 ? vectorised<AddBias<true>>(values, bias, count) : vectorised<AddBias<false>>(values, bias, count);
}

void add_bias_to_rows(float* tile, const float* bias, bool bits32) {
  bits32 ? vectorised<AddBiasToRows<true>>(tile, bias) : vectorised<AddBiasToRows<false>>(tile, bias);
}

std::vector<std::uint16_t> activated_values(const MatmulSpec& spec) {
  if (!spec.activation || dest_of(spec.config) != Dest::bits16 || spec.batch * spec.m * spec.n < worth_a_table)
    return {};
  constexpr std::uint32_t patterns = 1 << 16;
  std::vector<std::uint16_t> out(patterns + 1);
  for (std::uint32_t first = 0; first < patterns; first += tile_elements) {
    float values[tile_elements];
    for (std::uint32_t i = 0; i < tile_elements; ++i) values[i] = bf16_to_f32(static_cast<std::uint16_t>(first + i));
    spec.activation(values);
    for (float& value : values) value = bf16_to_f32(f32_to_bf16(value));
    if (spec.out == DataType::bfloat16) {
      pack_finished(spec, values, reinterpret_cast<std::byte*>(out.data() + first));
    } else {
      for (std::uint32_t i = 0; i < tile_elements; ++i) out[first + i] = f32_to_bf16(values[i]);
    }
  }
  return out;
}

void finish_values(const MatmulSpec& spec, std::span<const std::uint16_t> activated, float* values) {
  if (!activated.empty()) return vectorised<LookUp>(values, activated.data());
  const bool dest16 = dest_of(spec.config) == Dest::bits16;
  if (dest16 && !is_plain_bf16(spec)) vectorised<RoundAway>(values);
  if (!spec.activation) return;
  spec.activation(std::span<float>(values, tile_elements));
  if (dest16) vectorised<RoundNearestEven>(values);
}

void pack_finished(const MatmulSpec& spec, const float* values, std::byte* tile) {
  // Rounding to 16-bit Dest and the packer's rounding from 32 bits are the same to bfloat16: once is enough.
  pack_dest(spec.out, is_plain_bf16(spec) ? Dest::bits32 : dest_of(spec.config), values, tile);
}

void pack_finished_rows(const MatmulSpec& spec, const float* values, std::span<std::byte* const> tiles) {
  // bfloat16 is packed value by value, wherever they are to lie.
  alignas(64) std::uint16_t packed[tile_elements];
  const bool whole = spec.out == DataType::bfloat16;
  if (whole) pack_finished(spec, values, reinterpret_cast<std::byte*>(packed));
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const std::int64_t first = static_cast<std::int64_t>(i) * spec.m;
    if (whole) {
      std::memset(tiles[i], 0, sizeof(packed));
      copy_tile_rows(packed, first, spec.m, reinterpret_cast<std::uint16_t*>(tiles[i]), 0);
    } else {
      alignas(64) float tile[tile_elements] = {};
      copy_tile_rows(values, first, spec.m, tile, 0);
      pack_finished(spec, tile, tiles[i]);
    }
  }
}

}  // namespace detail

void matmul_add_bias(const MatmulSpec& spec, float bias, std::span<float> sums) {
  const auto count = static_cast<std::int64_t>(sums.size());
  dest_of(spec.config) == Dest::bits32 ? vectorised<AddToAll<true>>(sums.data(), count, bias)
                                       : vectorised<AddToAll<false>>(sums.data(), count, bias);
}

void matmul_finish(const MatmulSpec& spec, float* sums, std::int64_t rows, std::byte* tile) {
  detail::matmul_finish(spec, {}, nullptr, sums, rows, tile);
}

bool detail::matmul_finish_beside(const MatmulSpec& spec, std::span<const std::uint16_t> activated, const float* bias,
                                  const float* sums, std::byte* tile, Beside& beside) {
  if (spec.out != DataType::bfloat16 || (spec.activation && activated.empty())) return false;
  beside.round({sums, bias, dest_of(spec.config) == Dest::bits32}, activated.empty() ? nullptr : activated.data(),
               reinterpret_cast<std::uint16_t*>(tile));
  return true;
}

void detail::matmul_finish(const MatmulSpec& spec, std::span<const std::uint16_t> activated, const float* bias,
                           float* sums, std::int64_t rows, std::byte* tile) {
  const bool bits32 = dest_of(spec.config) == Dest::bits32;
  if (spec.out == DataType::bfloat16 && (!spec.activation || !activated.empty())) {
    auto* out = reinterpret_cast<std::uint16_t*>(tile);
    if (!activated.empty())
      return (bias != nullptr ? bfloat16_tile<false, true, true>
                              : bfloat16_tile<false, false, true>)(sums, bias, activated.data(), rows, out);
    if (bias == nullptr) return bfloat16_tile<false, false, false>(sums, nullptr, nullptr, rows, out);
    return (bits32 ? bfloat16_tile<true, true, false> : bfloat16_tile<false, true, false>)(sums, bias, nullptr, rows,
                                                                                           out);
  }
  if (bias != nullptr) add_bias_to_rows(sums, bias, bits32);
  finish_values(spec, activated, sums);
  for (std::int64_t r = rows; r < tile_dim; ++r) {
    float* row = sums + r / 16 * 512 + r % 16 * 16;
    std::fill_n(row, 16, 0.0F);
    std::fill_n(row + face_elements, 16, 0.0F);
  }
  pack_finished(spec, sums, tile);
}

}  // namespace ttrt
