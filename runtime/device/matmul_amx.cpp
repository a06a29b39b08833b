// Blocks of 32 rows and 32 columns in the tile registers of AMX-BF16: two of rows, two of columns, four of sums, which
// are the four faces of a device tile. A few rows need but one register of rows and two of sums.
#include <cstring>

#include "device/intrinsics.h"
#include "device/matmul_beside.h"
#include "device/matmul_kernels.h"
#include "device/matmul_tiles.h"
#include "device/simd.h"
#include "device/tile_decoders.h"
#include "device/tile_formats.h"

namespace ttrt::detail {

namespace {

struct PackRows {
  [[gnu::always_inline]] static inline void run(const std::uint16_t* in, std::uint16_t keep, std::int64_t rows,
                                                std::uint16_t* out) {
    for (std::int64_t row = 0; row < rows; ++row, out += 32) {
      const std::uint16_t* line = in + row / 16 * 512 + row % 16 * 16;
#pragma GCC unroll 1
      for (int i = 0; i < 16; ++i) out[i] = line[i] & keep;
#pragma GCC unroll 1
      for (int i = 0; i < 16; ++i) out[16 + i] = line[face_elements + i] & keep;
    }
  }
};

}  // namespace

void pack_block_rows(const std::byte* tile, std::uint32_t keep, std::int64_t rows, std::int64_t valid_k,
                     std::byte* out) {
  vectorised<PackRows>(reinterpret_cast<const std::uint16_t*>(tile), static_cast<std::uint16_t>(keep), rows,
                       reinterpret_cast<std::uint16_t*>(out));
  for (std::int64_t row = 0; row < rows && valid_k < tile_dim; ++row)
    std::memset(out + row * 64 + valid_k * 2, 0, static_cast<std::size_t>(64 - valid_k * 2));
}

#if defined(__x86_64__)
namespace {

#define TTRT_TARGET "avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-bf16"

// The operand of ldtilecfg: palette 1, and for each register its rows and bytes of a row.
struct alignas(64) Shapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Shapes) == 64);
constexpr Shapes whole_registers;

// Sums are registers 0 to 3 in the order of the faces, rows 4 and 5, columns 6 and 7. A tile of k takes the registers'
// multiplier 64 cycles, in which the rest of the core has little else to do than `beside`.
template <bool works>
[[gnu::target(TTRT_TARGET)]] void add_whole(const std::byte* a, const std::byte* panel, std::int64_t k_tiles, bool add,
                                            float* c, Beside* beside) {
  if (add) {
    _tile_loadd(0, c, 64);
    _tile_loadd(1, c + face_elements, 64);
    _tile_loadd(2, c + 2 * face_elements, 64);
    _tile_loadd(3, c + 3 * face_elements, 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const auto tiles = static_cast<std::uint32_t>(k_tiles), each = works ? (beside->left() + tiles - 1) / tiles : 0;
  for (std::int64_t k = 0; k < k_tiles; ++k, a += 2048, panel += 2048) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, panel, 128);
    _tile_loadd(7, panel + 64, 128);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + 1024, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    if constexpr (works) beside->some(each);
  }
  _tile_stored(0, c, 64);
  _tile_stored(1, c + face_elements, 64);
  _tile_stored(2, c + 2 * face_elements, 64);
  _tile_stored(3, c + 3 * face_elements, 64);
}

[[gnu::target(TTRT_TARGET)]] void add_upper(const std::byte* a, const std::byte* panel, std::int64_t k_tiles, bool add,
                                            float* c) {
  if (add) {
    _tile_loadd(0, c, 64);
    _tile_loadd(1, c + face_elements, 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  for (std::int64_t k = 0; k < k_tiles; ++k, a += 2048, panel += 2048) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, panel, 128);
    _tile_loadd(7, panel + 64, 128);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
  _tile_stored(0, c, 64);
  _tile_stored(1, c + face_elements, 64);
}

void add_block(const std::byte* a, const void* panel, std::int64_t k_tiles, std::int64_t rows, bool add, float* c,
               Beside* beside) {
  const auto* columns = static_cast<const std::byte*>(panel);
  // What follows computes with all of a tile: no leftovers that could be denormal.
  if (rows <= 16 && !add) std::memset(c + 2 * face_elements, 0, 2 * face_elements * sizeof(float));
  if (rows <= 16) return add_upper(a, columns, k_tiles, add, c);
  if (beside != nullptr && beside->has_work()) return add_whole<true>(a, columns, k_tiles, add, c, beside);
  add_whole<false>(a, columns, k_tiles, add, c, nullptr);
}

// ---- few rows ------------------------------------------------------------------------------------------------------

#define TTRT_DECODE_FP16 gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512fp16"), gnu::always_inline

// Bytes whose integers a conversion makes. The exponent field of float16(256 i), moved to that of bfloat16, spells
// i * 2 ^ -104, and leaves zero what it is.
struct ConvertedBytes {
  static constexpr int face_bytes = 256, step_bytes = 64, one = 133 - 104, lowest = 7;
  __m512i arrange[2], magnitude, upper, least;

  [[TTRT_DECODE_FP16]] explicit ConvertedBytes(bool lofi)
      : arrange{whole(places.pair_bytes[0].data()), whole(places.pair_bytes[1].data())},
        magnitude(_mm512_set1_epi16(0x7F00)),
        upper(_mm512_set1_epi16(static_cast<short>(lofi ? 0x8007 : 0x8000))),
        least(_mm512_setzero_si512()) {}
  [[TTRT_DECODE_FP16]] __m512i convert(__m512i words) const {
    const __m512i half = _mm512_castph_si512(_mm512_cvtepu16_ph(_mm512_and_si512(words, magnitude)));
    return _mm512_ternarylogic_epi32(upper, words, _mm512_srli_epi16(half, 3), 0xCA);  // the sign; zeros for LoFi
  }
  [[TTRT_DECODE_FP16]] Words decode(const std::byte* codes) {
    constexpr __mmask64 high_bytes = 0xAAAAAAAAAAAAAAAA;
    const __m512i stored = _mm512_loadu_si512(codes);
    least = _mm512_min_epi8(least, stored);
    return {convert(_mm512_maskz_permutexvar_epi8(high_bytes, arrange[0], stored)),
            convert(_mm512_maskz_permutexvar_epi8(high_bytes, arrange[1], stored))};
  }
  [[TTRT_DECODE_FP16]] bool has_infinity() const { return _mm512_cmpeq_epi8_mask(least, _mm512_set1_epi8(-128)) != 0; }
};

#undef TTRT_TARGET
#define TTRT_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512fp16,amx-tile,amx-bf16"

// A tile as words, and the rows that they are multiplied by: for columns 0 to 15, and for 16 to 31.
struct Made {
  alignas(64) std::byte words[2048];
  alignas(64) std::uint16_t scaled[2][FewRows::most][32];
  const std::uint16_t* rows[2];
  std::int64_t stride;
};

struct WholeWords {
  static constexpr std::int64_t bytes = 2048;
  __m512i turn, keep;

  [[gnu::target(TTRT_TARGET), gnu::always_inline]] explicit WholeWords(bool lofi)
      : turn(whole(places.words.data())), keep(_mm512_set1_epi32(static_cast<int>(lofi ? 0xFFF8FFF8 : 0xFFFFFFFF))) {}
  [[gnu::target(TTRT_TARGET), gnu::always_inline]] bool make(const FewRows::Rows& x, std::int64_t k_tile,
                                                             const std::byte* tile, Made& made) {
    for (int face = 0; face < 4; ++face)
      for (int p = 0; p < 8; ++p)
        _mm512_store_si512(made.words + face % 2 * 1024 + (face / 2 * 8 + p) * 64,
                           pair_words(tile + face * 512 + p * 64, turn, keep));
    made.rows[0] = made.rows[1] = row_of(x, 0) + k_tile * tile_dim;
    made.stride = x.stride;
    return true;
  }
};

template <typename Decoder>
struct BlockWords {
  static constexpr std::int64_t bytes = tile_size<Decoder>;
  bool lofi;

  [[gnu::target(TTRT_TARGET), gnu::always_inline]] explicit BlockWords(bool l) : lofi(l) {}
  [[gnu::target(TTRT_TARGET), gnu::always_inline]] bool make(const FewRows::Rows& x, std::int64_t k_tile,
                                                             const std::byte* tile, Made& made) {
    if (!takes_power<Decoder>(x.ranges[k_tile], tile)) return false;
    Decoder decoder(lofi);
    for (int face = 0; face < 4; ++face) {
      std::byte* out = made.words + face % 2 * 1024 + face / 2 * 512;
      const std::byte* codes = tile + block_exponents + face * Decoder::face_bytes;
#pragma GCC unroll 4
      for (int step = 0; step < 4; ++step, out += 128) {
        const Words words = decoder.decode(codes + step * Decoder::step_bytes);
        _mm512_store_si512(out, words.first);
        _mm512_store_si512(out + 64, words.second);
      }
    }
    const __m512i field = _mm512_set1_epi16(0x7F80);
    for (int half = 0; half < 2; ++half) {
      const auto exponents = [&](int face) __attribute__((always_inline, target(TTRT_TARGET))) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(tile + face * 16));
      };
      const __m256i stored = _mm256_inserti128_si256(_mm256_castsi128_si256(exponents(half)), exponents(half + 2), 1);
      const __m512i power =
          _mm512_slli_epi16(_mm512_sub_epi16(_mm512_cvtepu8_epi16(stored), _mm512_set1_epi16(Decoder::one)), 7);
      for (int row = 0; row < x.count; ++row) {
        const __m512i v = _mm512_loadu_si512(row_of(x, row) + k_tile * tile_dim);
        _mm512_store_si512(made.scaled[half][row], _mm512_maskz_add_epi16(_mm512_test_epi16_mask(v, field), v, power));
      }
      made.rows[half] = made.scaled[half][0];
    }
    made.stride = 32;
    return !decoder.has_infinity();
  }
};

[[gnu::target(TTRT_TARGET), gnu::always_inline]] inline void multiply(const Made& made) {
  _tile_loadd(4, made.rows[0], made.stride * 2);
  _tile_loadd(6, made.words, 64);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(5, made.rows[1], made.stride * 2);
  _tile_loadd(7, made.words + 1024, 64);
  _tile_dpbf16ps(1, 5, 7);
}

// A column after the other, whose sums stay in registers. A tile is made while the one before it, whose words have then
// left the core's store buffer, is multiplied.
template <typename Maker>
[[gnu::target(TTRT_TARGET)]] FewRows::Added few_times_tiles(const FewRows::Rows& x, const FewRows::Tiles& tiles,
                                                            float* c) {
  FewRows::Added added{};
  Made made[2];
  Maker maker(x.lofi);
  const Made* ready = nullptr;
  for (std::int64_t i = 0; i < tiles.columns; ++i, c += x.count * tile_dim) {
    std::int64_t k = 0;
    for (; k < tiles.k_tiles; ++k) {
      const std::int64_t at = k * tiles.row_bytes + i * Maker::bytes;
      bring(tiles.ahead + at, Maker::bytes);
      Made& next = made[k % 2];
      if (!maker.make(x, k, tiles.first + at, next)) break;
      if (k == 0) {
        _tile_loadd(0, c, 128);
        _tile_loadd(1, c + 16, 128);
      } else {
        multiply(*ready);
      }
      ready = &next;
    }
    added[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(k);
    if (k == 0) continue;
    multiply(*ready);
    _tile_stored(0, c, 128);
    _tile_stored(1, c + 16, 128);
  }
  return added;
}

[[gnu::target(TTRT_TARGET)]] void begin() { _tile_loadconfig(&whole_registers); }
[[gnu::target(TTRT_TARGET)]] void end() { _tile_release(); }

FewRows::Kernel few_times(DataType b, std::int64_t /*rows*/) {
  if (b == DataType::bfloat16) return few_times_tiles<WholeWords>;
  return b == DataType::bfloat8_b ? few_times_tiles<BlockWords<ConvertedBytes>>
                                  : few_times_tiles<BlockWords<HalfBytes>>;
}

// The rows' registers have `rows` rows.
[[gnu::target("avx512f,amx-tile,amx-bf16")]] void begin_few(int rows) {
  static constexpr auto shapes = [] {
    std::array<Shapes, FewRows::most + 1> by_rows;
    for (std::size_t n = 0; n < by_rows.size(); ++n)
      for (int sums_or_rows : {0, 1, 4, 5}) by_rows[n].rows[sums_or_rows] = static_cast<std::uint8_t>(n);
    return by_rows;
  }();
  _tile_loadconfig(&shapes[static_cast<std::size_t>(rows)]);
}

#undef TTRT_TARGET

}  // namespace

const BlockKernel amx_block{begin, add_block, end};

const FewRows::Kernels few_rows_amx{FewRows::most, 8, 2, read_pairs<true>, few_times, begin_few, end};

#endif

}  // namespace ttrt::detail
