// What tiles of weights hold, in registers, as pairs of bfloat16: for device/matmul_tiles.cpp, matmul_few_avx512.cpp
// and matmul_amx.cpp.
//
// A block's elements are integers times a power of two. Integers of up to 7 bits are bfloat16 numbers, so a table or a
// conversion makes them; the power goes to the exponent of the element (panels) or, once for 16 columns, to the row's
// value (few rows): a product of bfloat16 numbers is exact in float32, whichever factor has the power.
#pragma once

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "device/intrinsics.h"
#include "device/matmul_each_column.h"
#include "device/matmul_tiles.h"
#include "device/tile_formats.h"

namespace ttrt::detail {

constexpr int highest_exponent = 254;

// Bytes of bfloat16(i), i from 0, their bits beyond `keep` cut.
struct Table {
  alignas(64) std::array<std::uint8_t, 128> high{}, low{};
};
constexpr Table integers(std::uint32_t keep) {
  Table t;
  for (std::size_t i = 0; i < 128; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(i)) & keep;
    t.high[i] = static_cast<std::uint8_t>(bits >> 24);
    t.low[i] = static_cast<std::uint8_t>(bits >> 16);
  }
  return t;
}
inline constexpr Table magnitudes[2] = {integers(keep_all), integers(keep_lofi)};

// bfloat16 of the codes of bfloat4_b, a sign and three bits, twice; every fidelity keeps three bits. "-0" is an
// infinity.
struct alignas(64) Nibbles {
  std::array<std::uint16_t, 32> words{};
};
inline constexpr Nibbles nibbles = [] {
  Nibbles t;
  for (std::size_t i = 0; i < 32; ++i) {
    const auto value = static_cast<float>(i % 8);
    const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    t.words[i] = i % 16 == 8 ? 0xFF80 : static_cast<std::uint16_t>(bits | (i % 16 / 8) << 15);
  }
  return t;
}();

// Where the words (k, k + 1) of 16 columns have their codes.
struct Places {
  alignas(64) std::array<std::uint8_t, 64> bytes{}, pair_bytes[2]{}, nibble_bytes{};
  alignas(64) std::array<std::uint16_t, 32> words{}, nibble_shifts{};
};
inline constexpr Places places = [] {
  Places p;
  for (std::size_t i = 0; i < 64; ++i) {
    // Of four k rows, so that unpacking low and high bytes of each lane makes words: lane j has columns 4 j to
    // 4 j + 3, first of k rows 0 and 1, then of 2 and 3.
    p.bytes[i] = static_cast<std::uint8_t>((i % 16 / 8 * 2 + i % 2) * 16 + i / 16 * 4 + i % 8 / 2);
    // Of k rows 0 and 1, and of 2 and 3, in the high byte of each word.
    for (std::size_t pair = 0; pair < 2; ++pair)
      p.pair_bytes[pair][i] = static_cast<std::uint8_t>((pair * 2 + i / 2 % 2) * 16 + i / 4);
    // Of 8 bytes a row: the byte of two columns, of k rows 0 and 1 low, of 2 and 3 high.
    p.nibble_bytes[i] = static_cast<std::uint8_t>((i % 2 * 2 + i / 2 % 2) * 8 + i / 8);
  }
  for (std::size_t i = 0; i < 32; ++i) {
    p.words[i] = static_cast<std::uint16_t>(i % 2 * 16 + i / 2);
    p.nibble_shifts[i] = static_cast<std::uint16_t>(i / 2 % 2 * 4);
  }
  return p;
}();

#define TTRT_DECODE gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi"), gnu::always_inline

[[TTRT_DECODE]] inline __m512i whole(const void* p) { return _mm512_load_si512(p); }

// Two words (k, k + 1) of 16 columns each: k rows 0, 1 and 2, 3 of the four that are decoded.
struct Words {
  __m512i first, second;
};

// Integers of blocks by tables, constants in registers. `one`: the stored exponent of a block whose codes are these
// bfloat16 numbers. `lowest`: the smallest that makes no denormal number.
struct Bytes {
  static constexpr int face_bytes = 256, step_bytes = 64, one = 133, lowest = 7;
  __m512i high0, high1, low0, low1, arrange, sign, least;

  [[TTRT_DECODE]] explicit Bytes(bool lofi)
      : high0(whole(magnitudes[lofi].high.data())),
        high1(whole(magnitudes[lofi].high.data() + 64)),
        low0(whole(magnitudes[lofi].low.data())),
        low1(whole(magnitudes[lofi].low.data() + 64)),
        arrange(whole(places.bytes.data())),
        sign(_mm512_set1_epi8(-128)),
        least(_mm512_setzero_si512()) {}
  [[TTRT_DECODE]] Words decode(const std::byte* codes) {
    const __m512i stored = _mm512_loadu_si512(codes);
    least = _mm512_min_epi8(least, stored);
    const __m512i code = _mm512_permutexvar_epi8(arrange, stored);
    const __m512i high = _mm512_ternarylogic_epi32(_mm512_permutex2var_epi8(high0, code, high1), code, sign, 0xF8);
    const __m512i low = _mm512_permutex2var_epi8(low0, code, low1);
    return {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
  }
  // Whether the code "-0", which is an infinity, was among them.
  [[TTRT_DECODE]] bool has_infinity() const { return _mm512_cmpeq_epi8_mask(least, sign) != 0; }
};

struct HalfBytes {
  static constexpr int face_bytes = 128, step_bytes = 32, one = 129, lowest = 3;
  __m512i table, arrange, shifts;

  [[TTRT_DECODE]] explicit HalfBytes(bool)
      : table(whole(nibbles.words.data())),
        arrange(whole(places.nibble_bytes.data())),
        shifts(whole(places.nibble_shifts.data())) {}
  [[TTRT_DECODE]] Words decode(const std::byte* codes) const {
    const __m512i stored = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
    const __m512i index = _mm512_srlv_epi16(_mm512_permutexvar_epi8(arrange, stored), shifts);
    return {_mm512_permutexvar_epi16(index, table), _mm512_permutexvar_epi16(_mm512_srli_epi16(index, 8), table)};
  }
  // The words themselves have it.
  [[TTRT_DECODE]] bool has_infinity() const { return false; }
};

template <typename Decoder>
constexpr std::int64_t tile_size = block_exponents + 4 * Decoder::face_bytes;

// Two k rows of a face of bfloat16.
[[TTRT_DECODE]] inline __m512i pair_words(const std::byte* rows, __m512i turn, __m512i keep) {
  return _mm512_and_si512(_mm512_permutexvar_epi16(turn, _mm512_loadu_si512(rows)), keep);
}

[[TTRT_DECODE]] inline bool exponents_within(const std::byte* tile, int lowest, int highest) {
  const __m512i e = _mm512_loadu_si512(tile);
  if (lowest > highest) return false;
  return (_mm512_cmplt_epu8_mask(e, _mm512_set1_epi8(static_cast<char>(lowest))) |
          _mm512_cmpgt_epu8_mask(e, _mm512_set1_epi8(static_cast<char>(highest)))) == 0;
}

inline const std::uint16_t* row_of(const FewRows::Rows& x, std::int64_t row) {
  return reinterpret_cast<const std::uint16_t*>(x.values) + row * x.stride;
}

// Whether a block's power can go to these rows: their exponent fields with it on them stay within 1 and 254.
template <typename Decoder>
[[TTRT_DECODE]] inline bool takes_power(FewRows::Range range, const std::byte* tile) {
  constexpr int one = Decoder::one;
  return exponents_within(tile, std::max(Decoder::lowest, 1 + one - range.smallest),
                          range.largest == 255 ? -1 : std::min(highest_exponent, 254 + one - range.largest));
}

// The smallest of words that are no more than 255.
[[TTRT_DECODE]] inline std::uint8_t smallest(__m512i words) {
  const __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(words), _mm512_extracti64x4_epi64(words, 1));
  const __m128i eight = _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  return static_cast<std::uint8_t>(_mm_cvtsi128_si32(_mm_minpos_epu16(eight)));
}

// FewRows::Kernels::read of bfloat16: of a tile of faces, or of rows of 32 k.
template <bool blocks>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]] FewRows::Range read_pairs(
    const std::byte* tile, std::int64_t rows, std::uint32_t keep, std::byte* out, std::int64_t stride) {
  constexpr std::int64_t row_bytes = blocks ? 64 : 32, second_half = blocks ? 32 : face_elements * 2;
  const __m512i kept = _mm512_set1_epi32(static_cast<int>(keep)), most = _mm512_set1_epi16(255);
  __m512i least = most, complement = most;  // of exponent fields; 255 less the largest
  for (std::int64_t r = 0; r < rows; ++r, tile += row_bytes, out += stride * 2) {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tile));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tile + second_half));
    const __m512i values = _mm512_and_si512(_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1), kept);
    _mm512_storeu_si512(out, values);
    const __m512i fields = _mm512_srli_epi16(_mm512_slli_epi16(values, 1), 8);
    least = _mm512_mask_min_epu16(least, _mm512_test_epi16_mask(fields, fields), least, fields);
    complement = _mm512_min_epu16(complement, _mm512_sub_epi16(most, fields));
  }
  return {smallest(least), static_cast<std::uint8_t>(255 - smallest(complement))};
}

}  // namespace ttrt::detail

#endif
