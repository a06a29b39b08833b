// Panels and products of a few rows with the words that device/tile_decoders.h makes.
#include "device/matmul_tiles.h"

#include <algorithm>
#include <cstring>

#include "device/cpu.h"
#include "device/intrinsics.h"
#include "device/matmul_kernels.h"
#include "device/tile_decoders.h"
#include "device/tile_formats.h"
#include "support/error.h"

namespace ttrt::detail {

#if defined(__x86_64__)
namespace {

#define TTRT_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi"

// ---- panels --------------------------------------------------------------------------------------------------------

[[gnu::target(TTRT_TARGET)]] void fill_bf16(const std::byte* tile, std::uint32_t keep, std::uint32_t* panel) {
  const __m512i turn = whole(places.words.data());
  const __m512i both = _mm512_set1_epi32(static_cast<int>((keep & 0xFFFF0000) | keep >> 16));
  for (int face = 0; face < 4; ++face)
    for (int p = 0; p < 8; ++p)
      _mm512_storeu_si512(panel + (face / 2 * 8 + p) * 32 + face % 2 * 16,
                          pair_words(tile + face * 512 + p * 64, turn, both));
}

template <typename Decoder>
[[gnu::target(TTRT_TARGET)]] bool fill_blocks(const std::byte* tile, std::uint32_t keep, std::uint32_t* panel) {
  if (!exponents_within(tile, Decoder::lowest, highest_exponent)) return false;
  Decoder decoder(keep == keep_lofi);
  const __m512i value = _mm512_set1_epi16(0x7FFF);
  const __m256i one = _mm256_set1_epi16(static_cast<short>(Decoder::one));
  __mmask32 infinities = 0;
  for (int face = 0; face < 4; ++face) {
    const __m128i stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tile + face * 16));
    alignas(32) std::uint32_t powers[8];  // of k and k + 1
    _mm256_store_si256(reinterpret_cast<__m256i*>(powers),
                       _mm256_slli_epi16(_mm256_sub_epi16(_mm256_cvtepu8_epi16(stored), one), 7));
    std::uint32_t* out = panel + face / 2 * 256 + face % 2 * 16;
    const auto scaled = [&](__m512i words, int pair) __attribute__((always_inline, target(TTRT_TARGET))) {
      if constexpr (std::is_same_v<Decoder, HalfBytes>)
        infinities |= _mm512_cmpeq_epi16_mask(words, _mm512_set1_epi16(static_cast<short>(0xFF80)));
      const __m512i power = _mm512_set1_epi32(static_cast<int>(powers[pair]));
      _mm512_storeu_si512(out + pair * 32,
                          _mm512_mask_add_epi16(words, _mm512_test_epi16_mask(words, value), words, power));
    };
    for (int step = 0; step < 4; ++step) {
      const Words words =
          decoder.decode(tile + block_exponents + face * Decoder::face_bytes + step * Decoder::step_bytes);
      scaled(words.first, 2 * step);
      scaled(words.second, 2 * step + 1);
    }
  }
  return !decoder.has_infinity() && infinities == 0;
}

constexpr std::int64_t most_in_registers = 4;

// ---- few rows ------------------------------------------------------------------------------------------------------

struct [[gnu::may_alias]] Pair {
  std::uint16_t of[2];
};

// Compilers load the pair by an instruction of its own, and have the core look less far ahead in memory.
[[gnu::target(TTRT_TARGET), gnu::always_inline]] inline __m512 times_pair(__m512 sum, const std::uint16_t* x, int pair,
                                                                          __m512i words) {
  asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(words), "m"(*reinterpret_cast<const Pair*>(x + 2 * pair)));
  return sum;
}

// [tile][row][half of its columns]
template <int tiles, int rows>
struct Sums {
  __m512 of[tiles][rows][2];

  [[gnu::target(TTRT_TARGET), gnu::always_inline]] explicit Sums(const float* c) {
    for (int t = 0; t < tiles; ++t)
      for (int r = 0; r < rows; ++r)
        for (int n = 0; n < 2; ++n) of[t][r][n] = _mm512_loadu_ps(c + (t * rows + r) * 32 + n * 16);
  }
  [[gnu::target(TTRT_TARGET), gnu::always_inline]] void store(float* c) const {
    for (int t = 0; t < tiles; ++t)
      for (int r = 0; r < rows; ++r)
        for (int n = 0; n < 2; ++n) _mm512_storeu_ps(c + (t * rows + r) * 32 + n * 16, of[t][r][n]);
  }
};

// What follows brings a line of what lies at `soon` with each one that it reads, in the same place: a core's caches
// then wait for memory all the time.

// Of both halves of the columns in turn: what waits for one sum's last product keeps less from being read.
template <int rows>
[[gnu::target(TTRT_TARGET)]] bool times_bf16(const FewRows::Rows& x, const std::byte* tile, const std::byte* soon,
                                             float* c) {
  const __m512i turn = whole(places.words.data());
  const __m512i keep = _mm512_set1_epi32(static_cast<int>(x.lofi ? 0xFFF8FFF8 : 0xFFFFFFFF));
  Sums<1, rows> sum(c);
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k)
#pragma GCC unroll 16
    for (int step = 0; step < 16; ++step) {
      const int p = step / 2, n = step % 2, at = face_of(k, n) * 512 + p * 64;
      bring<3>(soon + at, 64);
      const __m512i words = pair_words(tile + at, turn, keep);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r)
        sum.of[0][r][n] = times_pair(sum.of[0][r][n], x.values + r * x.stride + k * 16, p, words);
    }
  sum.store(c);
  return true;
}

// 16 values times 2 ^ (stored exponent - one), zeros and denormals becoming zeros.
[[gnu::target(TTRT_TARGET), gnu::always_inline]] inline void scale_row(const std::uint16_t* x, __m256i power,
                                                                       std::uint16_t* out) {
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  const __mmask16 numbers = _mm256_test_epi16_mask(v, _mm256_set1_epi16(0x7F80));
  _mm256_store_si256(reinterpret_cast<__m256i*>(out), _mm256_maskz_add_epi16(numbers, v, power));
}

// Of the faces beside each other in `tiles` tiles, 16 k rows from 16 k: the rows' values, each times the power of its
// k row in the face.
template <typename Decoder, int tiles, int rows>
struct Scaled {
  alignas(32) std::uint16_t of[2 * tiles][rows][16];

  [[gnu::target(TTRT_TARGET), gnu::always_inline]] Scaled(const FewRows::Rows& x, const std::byte* tile, int k) {
    for (int i = 0; i < 2 * tiles; ++i) {
      const __m128i stored =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(tile + i / 2 * tile_size<Decoder> + face_of(k, i % 2) * 16));
      const __m256i power =
          _mm256_slli_epi16(_mm256_sub_epi16(_mm256_cvtepu8_epi16(stored), _mm256_set1_epi16(Decoder::one)), 7);
      for (int r = 0; r < rows; ++r) scale_row(x.values + r * x.stride + k * 16, power, of[i][r]);
    }
  }
};

// Tiles beside each other, so that there are four sums or more: one takes a product when it has taken the one before,
// six cycles later.
template <typename Decoder, int tiles, int rows>
[[gnu::target(TTRT_TARGET)]] bool times_blocks(const FewRows::Rows& x, const std::byte* tile, const std::byte* soon,
                                               float* c) {
  constexpr std::int64_t size = tile_size<Decoder>;
  for (int t = 0; t < tiles; ++t) {
    bring(soon + t * size, block_exponents);
    if (!takes_power<Decoder>(*x.ranges, tile + t * size)) return false;
  }
  Decoder decoder(x.lofi);
  Sums<tiles, rows> sum(c);
  for (int k = 0; k < 2; ++k) {
    const Scaled<Decoder, tiles, rows> scaled(x, tile, k);
#pragma GCC unroll 4
    for (int step = 0; step < 4; ++step)
#pragma GCC unroll 4
      for (int i = 0; i < 2 * tiles; ++i) {
        const int t = i / 2, n = i % 2;
        const std::int64_t at =
            t * size + block_exponents + face_of(k, n) * Decoder::face_bytes + step * Decoder::step_bytes;
        if (at % 64 == 0) bring(soon + at, 64);
        const Words words = decoder.decode(tile + at);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r)
          sum.of[t][r][n] = times_pair(sum.of[t][r][n], scaled.of[i][r], 2 * step, words.first);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r)
          sum.of[t][r][n] = times_pair(sum.of[t][r][n], scaled.of[i][r], 2 * step + 1, words.second);
      }
  }
  if (decoder.has_infinity()) return false;
  sum.store(c);
  return true;
}

using Times = bool (*)(const FewRows::Rows& x, const std::byte* tile, const std::byte* soon, float* c);

// `side` columns at once where so many are left, one tile of them below the other: each row of tiles is a stream that
// the processor reads on by itself, and four of them keep the memory busier than one. (Measured on Zen 5, as is what is
// brought: tiles that are `early` further on in their row.)
template <std::int64_t bytes, std::int64_t early, int side, Times times_one, Times times_side>
FewRows::Added each_tile(const FewRows::Rows& x, const FewRows::Tiles& tiles, float* c) {
  static_assert(block_exponents % 64 == 0 && bytes % 64 == 0, "lines are brought in their places");
  FewRows::Added added{};
  const std::int64_t line = x.count * tile_dim;
  for (std::int64_t i = 0, width = 0; i < tiles.columns; i += width, c += width * line) {
    width = i + side <= tiles.columns ? side : 1;
    const std::int64_t at = i * bytes, soon = (i + early) * bytes;
    const std::byte* next = i + early < tiles.columns ? tiles.first + soon : tiles.ahead + soon - tiles.columns * bytes;
    FewRows::Rows rows = x;
    std::int64_t k = 0;
    for (std::int64_t row = 0; k < tiles.k_tiles; ++k, row += tiles.row_bytes, rows.values += tile_dim, ++rows.ranges)
      if (!(width == side ? times_side : times_one)(rows, tiles.first + row + at, next + row, c)) break;
    std::fill_n(added.begin() + i, width, static_cast<std::uint8_t>(k));
  }
  return added;
}

template <int rows>
constexpr FewRows::Kernel of_bf16 = each_tile<2048, 1, 1, times_bf16<rows>, times_bf16<rows>>;
template <typename Decoder, int rows, int side = rows <= 2 ? 2 : 1>
constexpr FewRows::Kernel of_blocks =
    each_tile<tile_size<Decoder>, 4, side, times_blocks<Decoder, 1, rows>, times_blocks<Decoder, side, rows>>;

[[gnu::target(TTRT_TARGET), gnu::always_inline]] inline std::uint8_t smallest(__m512i words) {
  const __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(words), _mm512_extracti64x4_epi64(words, 1));
  const __m128i eight = _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  return static_cast<std::uint8_t>(_mm_cvtsi128_si32(_mm_minpos_epu16(eight)));
}

// Rows of a tile of `in`, of faces or of rows of 32, as [row][stride] and-ed with `keep`.
[[gnu::target(TTRT_TARGET)]] FewRows::Range read_tile(const std::uint16_t* in, bool blocks, std::int64_t rows,
                                                      std::uint16_t keep, std::uint16_t* out, std::int64_t stride) {
  const __m512i kept = _mm512_set1_epi16(static_cast<short>(keep)), most = _mm512_set1_epi16(255);
  __m512i least = most, complement = most;  // of exponent fields; 255 less the largest
  for (std::int64_t r = 0; r < rows; ++r, out += stride) {
    const std::uint16_t* row = in + (blocks ? r * 32 : r * 16);
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + (blocks ? 16 : face_elements)));
    const __m512i values = _mm512_and_si512(_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1), kept);
    _mm512_storeu_si512(out, values);
    const __m512i fields = _mm512_srli_epi16(_mm512_slli_epi16(values, 1), 8);
    least = _mm512_mask_min_epu16(least, _mm512_test_epi16_mask(fields, fields), least, fields);
    complement = _mm512_min_epu16(complement, _mm512_sub_epi16(most, fields));
  }
  return {smallest(least), static_cast<std::uint8_t>(255 - smallest(complement))};
}

bool is_fast_host() {
  static const bool has = best_isa() >= Isa::avx512_bf16 && __builtin_cpu_supports("avx512vbmi");
  return has && isa() >= Isa::avx512_bf16;
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
      return fill_blocks<Bytes>(tile, keep, panel);
    case DataType::bfloat4_b:
      return fill_blocks<HalfBytes>(tile, keep, panel);
    default:
      return false;
  }
}

bool FewRows::takes(DataType b, std::int64_t rows) {
  if (!is_fast_host() || rows < 1 || rows > (isa() == Isa::amx_bf16 ? most : most_in_registers)) return false;
  return b == DataType::bfloat16 || b == DataType::bfloat8_b || b == DataType::bfloat4_b;
}

FewRows::FewRows(DataType b, std::int64_t rows, std::int64_t k, std::uint32_t keep_a, std::uint32_t keep_b)
    : rows_(rows),
      stride_(round_up(k, tile_dim)),
      keep_a_(keep_a),
      lofi_(keep_b == keep_lofi),
      blocks_(isa() == Isa::amx_bf16),
      values_(static_cast<std::size_t>(rows * stride_)),
      ranges_(static_cast<std::size_t>(stride_ / tile_dim)) {
  TTC_CHECK(takes(b, rows), "a few rows, and tiles that are taken");
  static constexpr Kernel kernels[3][most_in_registers] = {
      {of_bf16<1>, of_bf16<2>, of_bf16<3>, of_bf16<4>},
      {of_blocks<Bytes, 1>, of_blocks<Bytes, 2>, of_blocks<Bytes, 3>, of_blocks<Bytes, 4>},
      {of_blocks<HalfBytes, 1>, of_blocks<HalfBytes, 2>, of_blocks<HalfBytes, 3>, of_blocks<HalfBytes, 4>}};
  kernel_ = blocks_ ? few_rows_amx(b)
                    : kernels[b == DataType::bfloat16    ? 0
                              : b == DataType::bfloat8_b ? 1
                                                         : 2][rows - 1];
}

void FewRows::read(const std::byte* tiles) {
  const auto* in = reinterpret_cast<const std::uint16_t*>(tiles);
  const auto keep = static_cast<std::uint16_t>(keep_a_);
  for (std::int64_t t = 0; t < stride_ / tile_dim; ++t, in += tile_elements)
    ranges_[static_cast<std::size_t>(t)] = read_tile(in, blocks_, rows_, keep, values_.data() + t * tile_dim, stride_);
}

FewRows::Added FewRows::times_tiles(std::int64_t k_tile, const Tiles& tiles, float* c) const {
  return kernel_({values_.data() + k_tile * tile_dim, stride_, static_cast<int>(rows_), lofi_, ranges_.data() + k_tile},
                 tiles, c);
}

void FewRows::begin() const {
  if (blocks_) begin_few_rows_amx(static_cast<int>(rows_));
}

void FewRows::end() const {
  if (blocks_) amx_block.end();
}

#else

bool fill_pairs_from_tile(DataType, const std::byte*, std::uint32_t, std::uint32_t*) { return false; }
bool FewRows::takes(DataType, std::int64_t) { return false; }
FewRows::FewRows(DataType, std::int64_t, std::int64_t, std::uint32_t, std::uint32_t) {
  TTC_CHECK(false, "no format is taken here");
}
void FewRows::read(const std::byte*) {}
FewRows::Added FewRows::times_tiles(std::int64_t, const Tiles&, float*) const { return {}; }
void FewRows::begin() const {}
void FewRows::end() const {}

#endif

}  // namespace ttrt::detail
