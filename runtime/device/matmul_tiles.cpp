// A block's elements are integers times a power of two. Integers of up to 7 bits are bfloat16 numbers, so a table
// lookup makes them, byte by byte; the power goes to the exponent of the element (panels) or, once for 16 columns, to
// the row's value (few rows): a product of bfloat16 numbers is exact in float32, whichever factor has the power.
#include "device/matmul_tiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "device/cpu.h"
#include "device/intrinsics.h"
#include "device/tile_formats.h"
#include "support/error.h"

namespace ttrt::detail {

#if defined(__x86_64__)
namespace {

#define TTRT_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi"

constexpr int face_of(int k_half, int n_half) { return k_half * 2 + n_half; }

// Exponent of the element 1 of a block, less its stored exponent, and the smallest stored exponent with which no
// element of the block is denormal.
template <DataType dtype>
constexpr int one_at = dtype == DataType::bfloat8_b ? -6 : -2;
template <DataType dtype>
constexpr int lowest_exponent = 1 - one_at<dtype>;
constexpr int highest_exponent = 254;

// Bytes of bfloat16(i), i from 0, their bits beyond `keep` cut.
struct Table {
  alignas(64) std::array<std::uint8_t, 128> high{}, low{};
};
constexpr Table integers(std::uint32_t keep, int count, int period) {
  Table t;
  for (int i = 0; i < 128; ++i) {
    const int code = i % period, magnitude = code % count;
    std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude)) & keep;
    if (code >= count) bits = magnitude == 0 ? 0xFF800000 : bits | 0x80000000;
    t.high[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(bits >> 24);
    t.low[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(bits >> 16);
  }
  return t;
}
constexpr std::uint32_t keep_lofi = 0xFFF80000, keep_all = 0xFFFFC000;
constexpr Table magnitudes[2] = {integers(keep_all, 128, 128), integers(keep_lofi, 128, 128)};
constexpr Table nibbles = integers(keep_all, 8, 16);  // with their signs; three bits are kept by every fidelity

// Where the bytes of four k rows of 16 columns go, so that unpacking low and high bytes of each lane makes words of
// (k, k + 1): lane j has columns 4 j to 4 j + 3, first of k rows 0 and 1, then of 2 and 3.
struct Places {
  alignas(64) std::array<std::uint8_t, 64> bytes{}, nibble_bytes{}, nibble_shifts{};
  alignas(64) std::array<std::uint16_t, 32> words{};
};
constexpr Places places = [] {
  Places p;
  for (int lane = 0; lane < 4; ++lane) {
    for (int i = 0; i < 16; ++i) {
      const int row = i / 8 * 2 + i % 2, column = lane * 4 + i % 8 / 2;
      const auto at = static_cast<std::size_t>(lane * 16 + i);
      p.bytes[at] = static_cast<std::uint8_t>(row * 16 + column);
      // Each 8 bytes first get the four bytes that hold their nibbles: two columns of a row a byte.
      const int source_row = i / 8 * 2 + i % 4 / 2, source_byte = lane * 2 + i % 2;
      p.nibble_bytes[at] = static_cast<std::uint8_t>(source_row * 8 + source_byte);
      p.nibble_shifts[at] = static_cast<std::uint8_t>((i % 2 * 2 + i % 8 / 4) * 8 + i % 8 / 2 % 2 * 4);
    }
  }
  for (int n = 0; n < 16; ++n) {
    p.words[static_cast<std::size_t>(2 * n)] = static_cast<std::uint16_t>(n);
    p.words[static_cast<std::size_t>(2 * n + 1)] = static_cast<std::uint16_t>(16 + n);
  }
  return p;
}();

[[gnu::target(TTRT_TARGET), gnu::always_inline]] inline __m512i whole(const void* p) { return _mm512_load_si512(p); }

// Constants of a format, in registers.
template <DataType dtype>
struct Decoder;

// Two words (k, k + 1) of 16 columns each: k rows 0, 1 and 2, 3 of the four at `codes`.
struct Words {
  __m512i first, second;
};

template <>
struct Decoder<DataType::bfloat8_b> {
  static constexpr int face_bytes = 256, step_bytes = 64;
  __m512i high0, high1, low0, low1, arrange, sign, least;

  [[gnu::target(TTRT_TARGET), gnu::always_inline]] explicit Decoder(bool lofi)
      : high0(whole(magnitudes[lofi].high.data())),
        high1(whole(magnitudes[lofi].high.data() + 64)),
        low0(whole(magnitudes[lofi].low.data())),
        low1(whole(magnitudes[lofi].low.data() + 64)),
        arrange(whole(places.bytes.data())),
        sign(_mm512_set1_epi8(-128)),
        least(_mm512_setzero_si512()) {}
  [[gnu::target(TTRT_TARGET), gnu::always_inline]] Words decode(const std::byte* codes) {
    const __m512i stored = _mm512_loadu_si512(codes);
    least = _mm512_min_epi8(least, stored);
    const __m512i code = _mm512_permutexvar_epi8(arrange, stored);
    const __m512i high = _mm512_ternarylogic_epi32(_mm512_permutex2var_epi8(high0, code, high1), code, sign, 0xF8);
    const __m512i low = _mm512_permutex2var_epi8(low0, code, low1);
    return {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
  }
  // Whether the code "-0", which is an infinity, was among them.
  [[gnu::target(TTRT_TARGET), gnu::always_inline]] bool has_infinity() const {
    return _mm512_cmpeq_epi8_mask(least, sign) != 0;
  }
};

template <>
struct Decoder<DataType::bfloat4_b> {
  static constexpr int face_bytes = 128, step_bytes = 32;
  __m512i high, low, arrange, shifts, mask, infinity;
  __mmask64 infinities = 0;

  [[gnu::target(TTRT_TARGET), gnu::always_inline]] explicit Decoder(bool)
      : high(whole(nibbles.high.data())),
        low(whole(nibbles.low.data())),
        arrange(whole(places.nibble_bytes.data())),
        shifts(whole(places.nibble_shifts.data())),
        mask(_mm512_set1_epi8(15)),
        infinity(_mm512_set1_epi8(-1)) {}
  [[gnu::target(TTRT_TARGET), gnu::always_inline]] Words decode(const std::byte* codes) {
    const __m512i stored = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
    const __m512i spread = _mm512_permutexvar_epi8(arrange, stored);
    const __m512i code = _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, spread), mask);
    const __m512i h = _mm512_shuffle_epi8(high, code), l = _mm512_shuffle_epi8(low, code);
    return {_mm512_unpacklo_epi8(l, h), _mm512_unpackhi_epi8(l, h)};
  }
  // The words themselves have it.
  [[gnu::target(TTRT_TARGET), gnu::always_inline]] bool has_infinity() const { return false; }
};

// Two k rows of a face of bfloat16.
[[gnu::target(TTRT_TARGET), gnu::always_inline]] inline __m512i pair_words(const std::byte* rows, __m512i turn,
                                                                           __m512i keep) {
  return _mm512_and_si512(_mm512_permutexvar_epi16(turn, _mm512_loadu_si512(rows)), keep);
}

[[gnu::target(TTRT_TARGET), gnu::always_inline]] inline bool exponents_within(const std::byte* tile, int lowest,
                                                                              int highest) {
  const __m512i e = _mm512_loadu_si512(tile);
  if (lowest > highest) return false;
  return (_mm512_cmplt_epu8_mask(e, _mm512_set1_epi8(static_cast<char>(lowest))) |
          _mm512_cmpgt_epu8_mask(e, _mm512_set1_epi8(static_cast<char>(highest)))) == 0;
}

// ---- panels --------------------------------------------------------------------------------------------------------

[[gnu::target(TTRT_TARGET)]] void fill_bf16(const std::byte* tile, std::uint32_t keep, std::uint32_t* panel) {
  const __m512i turn = whole(places.words.data());
  const __m512i both = _mm512_set1_epi32(static_cast<int>((keep & 0xFFFF0000) | keep >> 16));
  for (int face = 0; face < 4; ++face)
    for (int p = 0; p < 8; ++p)
      _mm512_storeu_si512(panel + (face / 2 * 8 + p) * 32 + face % 2 * 16,
                          pair_words(tile + face * 512 + p * 64, turn, both));
}

template <DataType dtype>
[[gnu::target(TTRT_TARGET)]] bool fill_blocks(const std::byte* tile, std::uint32_t keep, std::uint32_t* panel) {
  if (!exponents_within(tile, lowest_exponent<dtype>, highest_exponent)) return false;
  Decoder<dtype> decoder(keep == keep_lofi);
  const __m512i value = _mm512_set1_epi16(0x7FFF);
  const __m256i one = _mm256_set1_epi16(static_cast<short>(127 - one_at<dtype>));
  __mmask32 infinities = 0;
  for (int face = 0; face < 4; ++face) {
    const __m128i stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tile + face * 16));
    alignas(32) std::uint32_t powers[8];  // of k and k + 1
    _mm256_store_si256(reinterpret_cast<__m256i*>(powers),
                       _mm256_slli_epi16(_mm256_sub_epi16(_mm256_cvtepu8_epi16(stored), one), 7));
    std::uint32_t* out = panel + face / 2 * 256 + face % 2 * 16;
    const auto scaled = [&](__m512i words, int pair) __attribute__((always_inline, target(TTRT_TARGET))) {
      if constexpr (dtype == DataType::bfloat4_b)
        infinities |= _mm512_cmpeq_epi16_mask(words, _mm512_set1_epi16(static_cast<short>(0xFF80)));
      const __m512i power = _mm512_set1_epi32(static_cast<int>(powers[pair]));
      _mm512_storeu_si512(out + pair * 32,
                          _mm512_mask_add_epi16(words, _mm512_test_epi16_mask(words, value), words, power));
    };
    for (int step = 0; step < 4; ++step) {
      const Words words = decoder.decode(tile + block_exponents + face * Decoder<dtype>::face_bytes +
                                         step * Decoder<dtype>::step_bytes);
      scaled(words.first, 2 * step);
      scaled(words.second, 2 * step + 1);
    }
  }
  return !decoder.has_infinity() && infinities == 0;
}

// ---- few rows ------------------------------------------------------------------------------------------------------

[[gnu::target(TTRT_TARGET), gnu::always_inline]] inline __m512 times_pair(__m512 sum, const std::uint16_t* x, int pair,
                                                                          __m512i words) {
  int both;
  std::memcpy(&both, x + 2 * pair, 4);
  return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(both), (__m512bh)words);
}

template <int rows>
[[gnu::target(TTRT_TARGET)]] bool times_bf16(const std::uint16_t* x, std::int64_t stride, FewRows::Range,
                                             const std::byte* tile, bool lofi, float* c) {
  const __m512i turn = whole(places.words.data());
  const __m512i keep = _mm512_set1_epi32(static_cast<int>(lofi ? 0xFFF8FFF8 : 0xFFFFFFFF));
  __m512 sum[rows][2];
  for (int r = 0; r < rows; ++r)
    for (int n = 0; n < 2; ++n) sum[r][n] = _mm512_loadu_ps(c + r * 32 + n * 16);
  for (int k = 0; k < 2; ++k)
    for (int p = 0; p < 8; ++p)
      for (int n = 0; n < 2; ++n) {
        const __m512i words = pair_words(tile + face_of(k, n) * 512 + p * 64, turn, keep);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) sum[r][n] = times_pair(sum[r][n], x + r * stride + k * 16, p, words);
      }
  for (int r = 0; r < rows; ++r)
    for (int n = 0; n < 2; ++n) _mm512_storeu_ps(c + r * 32 + n * 16, sum[r][n]);
  return true;
}

// 16 values times 2 ^ (stored exponent - one), zeros and denormals becoming zeros.
[[gnu::target(TTRT_TARGET), gnu::always_inline]] inline void scale_row(const std::uint16_t* x, __m256i power,
                                                                       std::uint16_t* out) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  const __mmask16 numbers = _mm256_test_epi16_mask(v, _mm256_set1_epi16(0x7F80));
  _mm256_store_si256(reinterpret_cast<__m256i*>(out), _mm256_maskz_add_epi16(numbers, v, power));
}

template <DataType dtype, int rows>
[[gnu::target(TTRT_TARGET)]] bool times_blocks(const std::uint16_t* x, std::int64_t stride, FewRows::Range range,
                                               const std::byte* tile, bool lofi, float* c) {
  constexpr int one = 127 - one_at<dtype>;
  // A value's exponent field with the power on it stays within 1 and 254.
  if (!exponents_within(tile, std::max(lowest_exponent<dtype>, 1 + one - range.smallest),
                        range.largest == 255 ? -1 : std::min(highest_exponent, 254 + one - range.largest)))
    return false;
  Decoder<dtype> decoder(lofi);
  __m512 sum[rows][2];
  for (int r = 0; r < rows; ++r)
    for (int n = 0; n < 2; ++n) sum[r][n] = _mm512_loadu_ps(c + r * 32 + n * 16);
  for (int face = 0; face < 4; ++face) {
    const int n = face % 2;
    const __m128i stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tile + face * 16));
    const __m256i power = _mm256_slli_epi16(_mm256_sub_epi16(_mm256_cvtepu8_epi16(stored), _mm256_set1_epi16(one)), 7);
    alignas(32) std::uint16_t scaled[rows][16];
    for (int r = 0; r < rows; ++r) scale_row(x + r * stride + face / 2 * 16, power, scaled[r]);
    const std::byte* codes = tile + block_exponents + face * Decoder<dtype>::face_bytes;
#pragma GCC unroll 4
    for (int step = 0; step < 4; ++step) {
      const Words words = decoder.decode(codes + step * Decoder<dtype>::step_bytes);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) sum[r][n] = times_pair(sum[r][n], scaled[r], 2 * step, words.first);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) sum[r][n] = times_pair(sum[r][n], scaled[r], 2 * step + 1, words.second);
    }
  }
  if (decoder.has_infinity()) return false;
  for (int r = 0; r < rows; ++r)
    for (int n = 0; n < 2; ++n) _mm512_storeu_ps(c + r * 32 + n * 16, sum[r][n]);
  return true;
}

[[gnu::target(TTRT_TARGET)]] FewRows::Range range_of(const std::uint16_t* x, FewRows::Range known) {
  const __m512i fields = _mm512_srli_epi16(_mm512_slli_epi16(_mm512_loadu_si512(x), 1), 8);
  const __mmask32 numbers = _mm512_test_epi16_mask(fields, fields);
  alignas(64) std::uint16_t least[32], most[32];
  _mm512_store_si512(least, _mm512_mask_mov_epi16(_mm512_set1_epi16(255), numbers, fields));
  _mm512_store_si512(most, fields);
  for (int i = 0; i < 32; ++i) {
    known.smallest = static_cast<std::uint8_t>(std::min<std::uint16_t>(known.smallest, least[i]));
    known.largest = static_cast<std::uint8_t>(std::max<std::uint16_t>(known.largest, most[i]));
  }
  return known;
}

bool is_fast_host() {
  static const bool has = best_isa() == Isa::avx512_bf16 && __builtin_cpu_supports("avx512vbmi");
  return has && isa() == Isa::avx512_bf16;
}

#undef TTRT_TARGET

}  // namespace

bool fill_pairs_from_tile(DataType dtype, const std::byte* tile, std::uint32_t keep, std::uint32_t* panel) {
  if (!is_fast_host()) return false;
  switch (dtype) {
    case DataType::bfloat16:
      fill_bf16(tile, keep, panel);
      return true;
    case DataType::bfloat8_b:
      return fill_blocks<DataType::bfloat8_b>(tile, keep, panel);
    case DataType::bfloat4_b:
      return fill_blocks<DataType::bfloat4_b>(tile, keep, panel);
    default:
      return false;
  }
}

bool FewRows::takes(DataType b) {
  return is_fast_host() && (b == DataType::bfloat16 || b == DataType::bfloat8_b || b == DataType::bfloat4_b);
}

FewRows::FewRows(DataType b, std::int64_t rows, std::int64_t k, std::uint32_t keep_a, std::uint32_t keep_b)
    : rows_(rows),
      stride_(round_up(k, tile_dim)),
      ahead_lines_((tile_bytes(b) + 63) / 64),
      keep_a_(keep_a),
      lofi_(keep_b == keep_lofi),
      values_(static_cast<std::size_t>(rows * stride_)),
      ranges_(static_cast<std::size_t>(stride_ / tile_dim)) {
  TTC_CHECK(takes(b) && rows >= 1 && rows <= most, "a few rows, and tiles that are taken");
  static constexpr Kernel kernels[3][most] = {
      {times_bf16<1>, times_bf16<2>, times_bf16<3>, times_bf16<4>},
      {times_blocks<DataType::bfloat8_b, 1>, times_blocks<DataType::bfloat8_b, 2>, times_blocks<DataType::bfloat8_b, 3>,
       times_blocks<DataType::bfloat8_b, 4>},
      {times_blocks<DataType::bfloat4_b, 1>, times_blocks<DataType::bfloat4_b, 2>, times_blocks<DataType::bfloat4_b, 3>,
       times_blocks<DataType::bfloat4_b, 4>}};
  kernel_ = kernels[b == DataType::bfloat16 ? 0 : b == DataType::bfloat8_b ? 1 : 2][rows - 1];
}

void FewRows::read(const std::byte* tiles) {
  const auto* in = reinterpret_cast<const std::uint16_t*>(tiles);
  const auto keep = static_cast<std::uint16_t>(keep_a_);
  for (std::int64_t t = 0; t < stride_ / tile_dim; ++t) {
    Range range{255, 0};
    for (std::int64_t r = 0; r < rows_; ++r) {
      std::uint16_t* out = values_.data() + r * stride_ + t * tile_dim;
      for (int i = 0; i < 32; ++i)
        out[i] = static_cast<std::uint16_t>(in[t * tile_elements + i / 16 * face_elements + r * 16 + i % 16] & keep);
      range = range_of(out, range);
    }
    ranges_[static_cast<std::size_t>(t)] = range;
  }
}

bool FewRows::times_tile(std::int64_t k_tile, const std::byte* tile, const std::byte* ahead, float* c) const {
  for (std::int64_t line = 0; line < ahead_lines_; ++line) __builtin_prefetch(ahead + line * 64);
  return kernel_(values_.data() + k_tile * tile_dim, stride_, ranges_[static_cast<std::size_t>(k_tile)], tile, lofi_,
                 c);
}

#else

bool fill_pairs_from_tile(DataType, const std::byte*, std::uint32_t, std::uint32_t*) { return false; }
bool FewRows::takes(DataType) { return false; }
FewRows::FewRows(DataType, std::int64_t, std::int64_t, std::uint32_t, std::uint32_t) {
  TTC_CHECK(false, "no format is taken here");
}
void FewRows::read(const std::byte*) {}
bool FewRows::times_tile(std::int64_t, const std::byte*, const std::byte*, float*) const { return false; }

#endif

}  // namespace ttrt::detail
