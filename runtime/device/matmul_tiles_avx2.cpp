// Tiles as they are stored, of hosts with AVX2: they become panels of floats, or are multiplied by a few rows of
// floats, whose sums take a product after the other in the order of k, as those of panels do.
//
// A block's elements are integers times a power of two. Here they become floats of the integers, and the power goes to
// the row's value, which makes no difference to a product that is rounded once, with the sum that it is added to.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/intrinsics.h"
#include "device/matmul_each_column.h"
#include "device/matmul_tiles.h"

#if defined(__x86_64__)
namespace ttrt::detail {
namespace {

#define TTRT_AVX2 gnu::target("avx2,fma")
#define TTRT_INLINE TTRT_AVX2, gnu::always_inline

// What 32 columns of a k row hold, as a format's own order of columns gives it. Vectors with names, and no loops over
// them: an array whose indices a compiler knows only once it has unrolled loops stays in memory, where each product
// waits for the one before to be stored.
struct Line {
  __m256 a, b, c, d;

  template <int j>
  [[TTRT_INLINE]] __m256& at() {
    if constexpr (j == 0)
      return a;
    else if constexpr (j == 1)
      return b;
    else if constexpr (j == 2)
      return c;
    else
      return d;
  }
};
// Of one or two rows.
struct Lines {
  Line first, second;
};

[[TTRT_INLINE]] inline __m256 joined(const float* low, const float* high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}
[[TTRT_INLINE]] inline void part(__m256 v, float* low, float* high) {
  _mm_storeu_ps(low, _mm256_castps256_ps128(v));
  _mm_storeu_ps(high, _mm256_extractf128_ps(v, 1));
}
[[TTRT_INLINE]] inline __m256i joined(const std::byte* low, const std::byte* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
}
[[TTRT_INLINE]] inline __m256i everywhere(int word) { return _mm256_set1_epi32(word); }
[[TTRT_INLINE]] inline __m256 high_half(__m256i words) {
  return _mm256_castsi256_ps(_mm256_and_si256(words, everywhere(static_cast<int>(0xFFFF0000))));
}
[[TTRT_INLINE]] inline __m256 low_half(__m256i words) { return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16)); }

// a and b the even and the odd of columns 0 to 15, c and d of 16 to 31.
struct Halves {
  [[TTRT_INLINE]] static void load_face(const float* c, __m256& even, __m256& odd) {
    const __m256 low = joined(c, c + 8), high = joined(c + 4, c + 12);
    even = _mm256_shuffle_ps(low, high, 0x88);
    odd = _mm256_shuffle_ps(low, high, 0xDD);
  }
  [[TTRT_INLINE]] static void store_face(__m256 even, __m256 odd, float* c) {
    part(_mm256_unpacklo_ps(even, odd), c, c + 8);
    part(_mm256_unpackhi_ps(even, odd), c + 4, c + 12);
  }
  [[TTRT_INLINE]] static void load(const float* c, Line& line) {
    load_face(c, line.a, line.b);
    load_face(c + face_dim, line.c, line.d);
  }
  [[TTRT_INLINE]] static void store(const Line& line, float* c) {
    store_face(line.a, line.b, c);
    store_face(line.c, line.d, c + face_dim);
  }
};

// Loads or stores the sums of one or two rows.
template <typename Order, int rows>
[[TTRT_INLINE]] inline void load(const float* c, Lines& sums) {
  Order::load(c, sums.first);
  if constexpr (rows > 1) Order::load(c + tile_dim, sums.second);
}
template <typename Order, int rows>
[[TTRT_INLINE]] inline void store(const Lines& sums, float* c) {
  Order::store(sums.first, c);
  if constexpr (rows > 1) Order::store(sums.second, c + tile_dim);
}

// Products of a face's k rows, two halves of whose columns a sum each has.
template <int rows, bool lofi>
[[TTRT_INLINE]] inline void add_face(const std::byte* face, const float* values, std::int64_t stride, __m256& even0,
                                     __m256& odd0, __m256& even1, __m256& odd1) {
#pragma GCC unroll 4
  for (int k = 0; k < face_dim; ++k) {
    __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(face + k * 32));
    if (lofi) words = _mm256_and_si256(words, everywhere(static_cast<int>(keep_lofi | keep_lofi >> 16)));
    const __m256 even = low_half(words), odd = high_half(words), value = _mm256_broadcast_ss(values + k);
    even0 = _mm256_fmadd_ps(value, even, even0);
    odd0 = _mm256_fmadd_ps(value, odd, odd0);
    if constexpr (rows > 1) {
      const __m256 other = _mm256_broadcast_ss(values + stride + k);
      even1 = _mm256_fmadd_ps(other, even, even1);
      odd1 = _mm256_fmadd_ps(other, odd, odd1);
    }
  }
}

// Face by face in the order of memory, which the processor then reads on by itself: that is a third faster on Zen 3
// than both halves of the columns in turn, with what is wanted next brought or without.
template <int rows, bool lofi>
[[TTRT_AVX2]] std::int64_t times_bf16(const FewRows::Rows& x, const Column& column, float* c) {
  Lines sums;
  load<Halves, rows>(c, sums);
  const auto* values = reinterpret_cast<const float*>(x.values);
  const std::byte* tile = column.tile;
  for (std::int64_t k_tile = 0; k_tile < column.k_tiles; ++k_tile, tile += column.row_bytes) {
    for (int half = 0; half < 2; ++half, values += face_dim) {
      const std::byte* faces = tile + half * 1024;
      add_face<rows, lofi>(faces, values, x.stride, sums.first.a, sums.first.b, sums.second.a, sums.second.b);
      add_face<rows, lofi>(faces + 512, values, x.stride, sums.first.c, sums.first.d, sums.second.c, sums.second.d);
    }
  }
  store<Halves, rows>(sums, c);
  return column.k_tiles;
}

// ---- blocks: columns 0 to 15 in the lower lane, 16 to 31 in the upper one ------------------------------------------

// [j] takes the bytes 4 j to 4 j + 3 of a lane apart: each is byte number `byte` of a word, whose others are zeros.
struct Picks {
  alignas(32) std::uint8_t of[4][32];
};
constexpr Picks picks(int byte) {
  Picks p{};
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 32; ++i) p.of[j][i] = static_cast<std::uint8_t>(i % 4 == byte ? 4 * j + i % 16 / 4 : 0x80);
  return p;
}
[[TTRT_INLINE]] inline __m256i table(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }

// Bytes of a sign and 7 bits, as integers times 2^24. a columns 0 to 3, and so on.
template <bool lofi>
struct Bytes {
  static constexpr int bytes = 256, rows_at_once = 1, one = 133 + 24, lowest = 31;
  static constexpr Picks columns = picks(3);
  __m256i least;

  [[TTRT_INLINE]] Bytes() : least(_mm256_setzero_si256()) {}
  [[TTRT_INLINE]] static void load(const float* c, Line& line) {
    line.a = joined(c, c + 16), line.b = joined(c + 4, c + 20);
    line.c = joined(c + 8, c + 24), line.d = joined(c + 12, c + 28);
  }
  [[TTRT_INLINE]] static void store(const Line& line, float* c) {
    part(line.a, c, c + 16), part(line.b, c + 4, c + 20);
    part(line.c, c + 8, c + 24), part(line.d, c + 12, c + 28);
  }
  [[TTRT_INLINE]] static __m256 values(__m256i integers, int j) {
    const __m256 all = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(integers, table(columns.of[j])));
    return lofi ? _mm256_and_ps(all, _mm256_castsi256_ps(everywhere(static_cast<int>(keep_lofi)))) : all;
  }
  // use.at<row, j>(values) for each vector, as soon as it is there: not many of them fit beside the sums.
  template <typename Use>
  [[TTRT_INLINE]] void decode(const std::byte* low, const std::byte* high, const Use& use) {
    const __m256i codes = joined(low, high);
    least = _mm256_min_epi8(least, codes);
    const __m256i integers = _mm256_sign_epi8(_mm256_and_si256(codes, _mm256_set1_epi8(0x7F)), codes);
    use.template at<0, 0>(values(integers, 0));
    use.template at<0, 1>(values(integers, 1));
    use.template at<0, 2>(values(integers, 2));
    use.template at<0, 3>(values(integers, 3));
  }
  // Whether the code "-0", which is an infinity, was among them.
  [[TTRT_INLINE]] bool has_infinity() const {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(least, _mm256_set1_epi8(-128))) != 0;
  }
};

// The two bytes of bfloat16 of a sign and three bits; "-0" is an infinity, which they have themselves.
struct Nibbles {
  alignas(32) std::uint8_t low[32], high[32];
};
constexpr Nibbles bytes_of_nibbles() {
  Nibbles t{};
  for (std::size_t i = 0; i < 32; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(i % 8)) >> 16 | i % 16 / 8 << 15;
    const std::uint32_t word = i % 16 == 8 ? 0xFF80 : bits;
    t.low[i] = static_cast<std::uint8_t>(word), t.high[i] = static_cast<std::uint8_t>(word >> 8);
  }
  return t;
}

// a columns 0, 4, 8, 12, and so on. Every fidelity keeps three bits.
struct HalfBytes {
  static constexpr int bytes = 128, rows_at_once = 2, one = 129, lowest = 3;
  static constexpr Nibbles nibbles = bytes_of_nibbles();

  [[TTRT_INLINE]] static void turn(Line& l) {
    const __m256 a = _mm256_unpacklo_ps(l.a, l.b), b = _mm256_unpackhi_ps(l.a, l.b);
    const __m256 c = _mm256_unpacklo_ps(l.c, l.d), d = _mm256_unpackhi_ps(l.c, l.d);
    l.a = _mm256_shuffle_ps(a, c, 0x44), l.b = _mm256_shuffle_ps(a, c, 0xEE);
    l.c = _mm256_shuffle_ps(b, d, 0x44), l.d = _mm256_shuffle_ps(b, d, 0xEE);
  }
  [[TTRT_INLINE]] static void load(const float* c, Line& line) {
    Bytes<false>::load(c, line);
    turn(line);
  }
  [[TTRT_INLINE]] static void store(Line line, float* c) {
    turn(line);
    Bytes<false>::store(line, c);
  }
  // What a byte's lower or upper halves are, of both rows: the columns j and j + 2.
  template <int j, typename Use>
  [[TTRT_INLINE]] static void halves(__m256i index, const Use& use) {
    const __m256i lows = _mm256_shuffle_epi8(table(nibbles.low), index);
    const __m256i highs = _mm256_shuffle_epi8(table(nibbles.high), index);
    const __m256i first = _mm256_unpacklo_epi8(lows, highs), second = _mm256_unpackhi_epi8(lows, highs);
    use.template at<0, j>(low_half(first));
    use.template at<0, j + 2>(high_half(first));
    use.template at<1, j>(low_half(second));
    use.template at<1, j + 2>(high_half(second));
  }
  template <typename Use>
  [[TTRT_INLINE]] static void decode(const std::byte* first, const std::byte* second, const Use& use) {
    const __m256i codes = joined(first, second), nibble = _mm256_set1_epi8(0x0F);
    halves<0>(_mm256_and_si256(codes, nibble), use);
    halves<1>(_mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble), use);
  }
  [[TTRT_INLINE]] static bool has_infinity() { return false; }
};

template <typename Decoder>
constexpr std::int64_t tile_size = block_exponents + 4 * Decoder::bytes;

// Whether a block's power can go to these rows: their exponent fields with it on them stay within 1 and 254.
template <typename Decoder>
[[TTRT_INLINE]] inline bool takes_power(FewRows::Range range, const std::byte* tile) {
  const int lowest = std::max(Decoder::lowest, 1 + Decoder::one - range.smallest);
  const int highest = std::min(254, 254 + Decoder::one - range.largest);
  if (range.largest == 255 || lowest > highest) return false;
  const __m256i low = _mm256_set1_epi8(static_cast<char>(lowest)), high = _mm256_set1_epi8(static_cast<char>(highest));
  __m256i same = _mm256_set1_epi8(-1);
  for (int i = 0; i < block_exponents; i += 32) {
    const __m256i e = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tile + i));
    same = _mm256_and_si256(same, _mm256_cmpeq_epi8(_mm256_min_epu8(_mm256_max_epu8(e, low), high), e));
  }
  return _mm256_movemask_epi8(same) == -1;
}

// [i] the exponents 4 i to 4 i + 3 of a lane, where a float has its own but for a shift by 7.
inline constexpr Picks powers = picks(2);

// The powers of two of four k rows in both halves of the columns, whose exponents a lane of `stored` has.
template <typename Decoder>
[[TTRT_INLINE]] inline __m256 powers_of(__m256i stored, int four) {
  const __m256i fields = _mm256_slli_epi32(_mm256_shuffle_epi8(stored, table(powers.of[four])), 7);
  return _mm256_castsi256_ps(_mm256_add_epi32(fields, everywhere((127 - Decoder::one) * (1 << 23))));
}

// The value of a lane that is its number i, everywhere in the lane.
[[TTRT_INLINE]] inline __m256 one_of_four(__m256 lanes, int i) {
  switch (i) {
    case 0:
      return _mm256_permute_ps(lanes, 0x00);
    case 1:
      return _mm256_permute_ps(lanes, 0x55);
    case 2:
      return _mm256_permute_ps(lanes, 0xAA);
    default:
      return _mm256_permute_ps(lanes, 0xFF);
  }
}

// Products with the k row `k` of four, and the one behind it, onto their sums.
template <int rows>
struct AddProducts {
  __m256 first, second;  // four values of each row, as of the lower 16 columns and as of the upper ones
  Lines& sums;
  int k;

  template <int row, int j>
  [[TTRT_INLINE]] void at(__m256 b) const {
    sums.first.at<j>() = _mm256_fmadd_ps(one_of_four(first, k + row), b, sums.first.at<j>());
    if constexpr (rows > 1) sums.second.at<j>() = _mm256_fmadd_ps(one_of_four(second, k + row), b, sums.second.at<j>());
  }
};

template <typename Decoder, int rows>
[[TTRT_AVX2]] std::int64_t times_blocks(const FewRows::Rows& x, const Column& column, float* c) {
  constexpr std::int64_t row_bytes = Decoder::bytes / face_dim;
  Lines sums;
  load<Decoder, rows>(c, sums);
  const auto* values = reinterpret_cast<const float*>(x.values);
  const std::byte *tile = column.tile, *soon = column.soon;
  Decoder decoder;
  std::int64_t k_tile = 0;
  for (; k_tile < column.k_tiles; ++k_tile, tile += column.row_bytes, soon += column.row_bytes) {
    bring<3>(soon, block_exponents);
    if (!takes_power<Decoder>(x.ranges[k_tile], tile)) break;
    for (int half = 0; half < 2; ++half) {
      const std::byte* exponents = tile + face_of(half, 0) * face_dim;
      const __m256i stored = joined(exponents, exponents + face_dim);
      const std::int64_t codes_at = block_exponents + face_of(half, 0) * Decoder::bytes;
      for (std::int64_t at = codes_at; at < codes_at + 2 * Decoder::bytes; at += 64) bring<3>(soon + at, 64);
      const std::byte* codes = tile + codes_at;
      for (int four = 0; four < 4; ++four, codes += 4 * row_bytes, values += 4) {
        const __m256 power = powers_of<Decoder>(stored, four);
        const auto scaled = [&](const float* four_values) __attribute__((always_inline, target("avx2,fma"))) {
          return _mm256_mul_ps(_mm256_broadcast_ps(reinterpret_cast<const __m128*>(four_values)), power);
        };
        const __m256 first = scaled(values), second = rows > 1 ? scaled(values + x.stride) : first;
#pragma GCC unroll 4
        for (int k = 0; k < 4; k += Decoder::rows_at_once)
          decoder.decode(codes + k * row_bytes, codes + Decoder::bytes + k * row_bytes,
                         AddProducts<rows>{first, second, sums, k});
      }
    }
    if (decoder.has_infinity())  // `c` is what it was: the tiles above this one again
      return times_blocks<Decoder, rows>(x, {column.tile, column.soon, k_tile, column.row_bytes}, c);
  }
  store<Decoder, rows>(sums, c);
  return k_tile;
}

// ---- panels --------------------------------------------------------------------------------------------------------

[[TTRT_AVX2]] void fill_bf16(const std::byte* tile, std::uint32_t keep, float* panel) {
  const __m256i kept = everywhere(static_cast<int>(keep));
  for (int face = 0; face < 4; ++face) {
    float* out = panel + face / 2 * face_dim * tile_dim + face % 2 * face_dim;
#pragma GCC unroll 4
    for (int k = 0; k < face_dim; ++k, out += tile_dim) {
      for (int i = 0; i < 2; ++i) {
        const auto* words = reinterpret_cast<const __m128i*>(tile + face * 512 + k * 32 + i * 16);
        const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(words)), 16);
        _mm256_storeu_ps(out + i * 8, _mm256_castsi256_ps(_mm256_and_si256(bits, kept)));
      }
    }
  }
}

struct TimesPower {
  __m256 power;
  Lines& lines;
  int k;

  template <int row, int j>
  [[TTRT_INLINE]] void at(__m256 b) const {
    (row == 0 ? lines.first : lines.second).at<j>() = _mm256_mul_ps(b, one_of_four(power, k + row));
  }
};

template <typename Decoder>
[[TTRT_AVX2]] bool fill_blocks(const std::byte* tile, float* panel) {
  constexpr std::int64_t row_bytes = Decoder::bytes / face_dim;
  constexpr FewRows::Range of_nothing{254, 1};
  if (!takes_power<Decoder>(of_nothing, tile)) return false;
  Decoder decoder;
  for (int half = 0; half < 2; ++half) {
    const std::byte* exponents = tile + face_of(half, 0) * face_dim;
    const __m256i stored = joined(exponents, exponents + face_dim);
    const std::byte* codes = tile + block_exponents + face_of(half, 0) * Decoder::bytes;
    for (int four = 0; four < 4; ++four, codes += 4 * row_bytes) {
      const __m256 power = powers_of<Decoder>(stored, four);
#pragma GCC unroll 4
      for (int k = 0; k < 4; k += Decoder::rows_at_once) {
        Lines b;
        decoder.decode(codes + k * row_bytes, codes + Decoder::bytes + k * row_bytes, TimesPower{power, b, k});
        store<Decoder, Decoder::rows_at_once>(b, panel);
        panel += Decoder::rows_at_once * tile_dim;
      }
    }
  }
  return !decoder.has_infinity();
}

// ---- kernels of few rows -------------------------------------------------------------------------------------------

template <Times full, Times lofi>
std::int64_t in_fidelity(const FewRows::Rows& x, const Column& column, float* c) {
  return (x.lofi ? lofi : full)(x, column, c);
}

// Two rows at a time, for whose sums there are registers; the next two find the tiles in the cache.
template <Times one, Times two>
std::int64_t in_twos(const FewRows::Rows& x, const Column& column, float* c) {
  FewRows::Rows rows = x;
  std::int64_t added = 0;
  for (int r = 0; r < x.count; r += 2, rows.values += 2 * x.stride * 4, c += 2 * tile_dim)
    added = (r + 1 < x.count ? two : one)(rows, column, c);
  return added;  // by all rows alike
}

// [whether more than one row]
template <std::int64_t bytes, std::int64_t early, Times one, Times two>
constexpr FewRows::Kernel kernels[2] = {each_column<bytes, early, 1, one, one>,
                                        each_column<bytes, early, 1, in_twos<one, two>, in_twos<one, two>>};

template <int rows>
constexpr Times bf16 = in_fidelity<times_bf16<rows, false>, times_bf16<rows, true>>;
template <int rows>
constexpr Times bytes = in_fidelity<times_blocks<Bytes<false>, rows>, times_blocks<Bytes<true>, rows>>;

FewRows::Kernel times(DataType b, std::int64_t rows) {
  const bool several = rows > 1;
  if (b == DataType::bfloat16) return kernels<2048, 1, bf16<1>, bf16<2>>[several];
  if (b == DataType::bfloat8_b) return kernels<tile_size<Bytes<false>>, 4, bytes<1>, bytes<2>>[several];
  return kernels<tile_size<HalfBytes>, 4, times_blocks<HalfBytes, 1>, times_blocks<HalfBytes, 2>>[several];
}

[[TTRT_AVX2]] FewRows::Range read(const std::byte* tile, std::int64_t rows, std::uint32_t keep, std::byte* out,
                                  std::int64_t stride) {
  std::uint32_t least = 255, largest = 0;
  for (std::int64_t r = 0; r < rows; ++r, tile += face_dim * 4, out += stride * 4) {
    std::uint32_t line[tile_dim];
    std::memcpy(line, tile, sizeof(line) / 2);
    std::memcpy(line + face_dim, tile + face_elements * 4, sizeof(line) / 2);
    for (std::uint32_t& word : line) {
      word &= keep;
      const std::uint32_t field = word >> 23 & 0xFF;
      least = std::min(least, word << 1 == 0 ? 255U : field);
      largest = std::max(largest, field);
    }
    std::memcpy(out, line, sizeof(line));
  }
  return {static_cast<std::uint8_t>(least), static_cast<std::uint8_t>(largest)};
}

#undef TTRT_INLINE
#undef TTRT_AVX2

}  // namespace

bool fill_floats_avx2(DataType dtype, const std::byte* tile, std::uint32_t keep, float* panel) {
  switch (dtype) {
    case DataType::bfloat16:
      fill_bf16(tile, keep, panel);
      return true;
    case DataType::bfloat8_b:
      return keep == keep_lofi ? fill_blocks<Bytes<true>>(tile, panel) : fill_blocks<Bytes<false>>(tile, panel);
    case DataType::bfloat4_b:
      return fill_blocks<HalfBytes>(tile, panel);
    default:
      return false;
  }
}

// More rows are as soon multiplied by panels.
const FewRows::Kernels few_rows_avx2{4, 32, 4, read, times};

}  // namespace ttrt::detail
#endif
