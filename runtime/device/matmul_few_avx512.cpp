// Products of a few rows of bfloat16 with tiles as they are stored, of hosts with AVX512-BF16 and AVX512-VBMI.
#include "device/intrinsics.h"
#include "device/matmul_each_column.h"
#include "device/matmul_tiles.h"
#include "device/tile_decoders.h"

#if defined(__x86_64__)
namespace ttrt::detail {
namespace {

#define TTRT_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vbmi"

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

// How early tiles are brought (each_column()), those of bfloat16 into which cache (bring()), and whether their two
// halves of columns are read in turn.
struct Zen5 {
  static constexpr std::int64_t bfloat16 = 1, bfloat8_b = 4, bfloat4_b = 4;
  static constexpr int locality = 3;
  static constexpr bool in_turn = true;  // what waits for one sum's last product keeps less from being read
};
// Its second cache asks memory for more lines at once than its first, of lines one after the other.
struct Zen4 {
  static constexpr std::int64_t bfloat16 = 32, bfloat8_b = 4, bfloat4_b = 32;
  static constexpr int locality = 2;
  static constexpr bool in_turn = false;
};

template <int rows, typename Host>
[[gnu::target(TTRT_TARGET)]] bool times_bf16(const FewRows::Rows& x, const std::byte* tile, const std::byte* soon,
                                             float* c) {
  const __m512i turn = whole(places.words.data());
  const __m512i keep = _mm512_set1_epi32(static_cast<int>(x.lofi ? 0xFFF8FFF8 : 0xFFFFFFFF));
  Sums<1, rows> sum(c);
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k)
#pragma GCC unroll 16
    for (int step = 0; step < 16; ++step) {
      const int p = Host::in_turn ? step / 2 : step % 8, n = Host::in_turn ? step % 2 : step / 8;
      const int at = face_of(k, n) * 512 + p * 64;
      bring<Host::locality>(soon + at, 64);
      const __m512i words = pair_words(tile + at, turn, keep);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) sum.of[0][r][n] = times_pair(sum.of[0][r][n], row_of(x, r) + k * 16, p, words);
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
      for (int r = 0; r < rows; ++r) scale_row(row_of(x, r) + k * 16, power, of[i][r]);
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

using TimesTile = bool (*)(const FewRows::Rows& x, const std::byte* tile, const std::byte* soon, float* c);

template <TimesTile times>
std::int64_t one_by_one(const FewRows::Rows& x, const Column& column, float* c) {
  FewRows::Rows rows = x;
  std::int64_t k = 0;
  for (std::int64_t at = 0; k < column.k_tiles; ++k, at += column.row_bytes, ++rows.ranges) {
    if (!times(rows, column.tile + at, column.soon + at, c)) break;
    rows.values += tile_dim * sizeof(std::uint16_t);
  }
  return k;
}

template <typename Host, int rows, TimesTile times = times_bf16<rows, Host>>
constexpr FewRows::Kernel of_bf16 = each_column<2048, Host::bfloat16, 1, one_by_one<times>, one_by_one<times>>;
template <typename Decoder, std::int64_t early, int rows, int side = rows <= 2 ? 2 : 1>
constexpr FewRows::Kernel of_blocks =
    each_column<tile_size<Decoder>, early, side, one_by_one<times_blocks<Decoder, 1, rows>>,
                one_by_one<times_blocks<Decoder, side, rows>>>;

constexpr std::int64_t most_rows = 4;

template <typename Host>
FewRows::Kernel times(DataType b, std::int64_t rows) {
  constexpr std::int64_t of_bytes = Host::bfloat8_b, of_halves = Host::bfloat4_b;
  static constexpr FewRows::Kernel kernels[3][most_rows] = {
      {of_bf16<Host, 1>, of_bf16<Host, 2>, of_bf16<Host, 3>, of_bf16<Host, 4>},
      {of_blocks<Bytes, of_bytes, 1>, of_blocks<Bytes, of_bytes, 2>, of_blocks<Bytes, of_bytes, 3>,
       of_blocks<Bytes, of_bytes, 4>},
      {of_blocks<HalfBytes, of_halves, 1>, of_blocks<HalfBytes, of_halves, 2>, of_blocks<HalfBytes, of_halves, 3>,
       of_blocks<HalfBytes, of_halves, 4>}};
  return kernels[b == DataType::bfloat16 ? 0 : b == DataType::bfloat8_b ? 1 : 2][rows - 1];
}

#undef TTRT_TARGET

}  // namespace

const FewRows::Kernels few_rows_avx512{most_rows, 32, 2, read_pairs<false>, times<Zen5>};
// Going on with tiles of another row costs this processor as much as reading 13 KB: with rows as long as they can be it
// reads bfloat16 at 30 GB/s, in eight tasks at 22.
const FewRows::Kernels few_rows_zen4{.most_rows = most_rows,
                                     .columns_at_once = FewRows::most_columns,
                                     .value_bytes = 2,
                                     .read = read_pairs<false>,
                                     .times = times<Zen4>,
                                     .bfloat16 = {2, 1},
                                     .bfloat4_b = {2, 1}};

}  // namespace ttrt::detail
#endif
