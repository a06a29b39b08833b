// Register-blocked strips of 8 rows by 32 columns and the panel layout they read; those of AVX2 are in
// device/matmul_strip_avx2.cpp.
#include "device/matmul_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/cpu.h"
#include "device/matmul_beside.h"
#include "device/matmul_tiles.h"
#include "device/simd.h"
#include "device/tile_formats.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ttrt::detail {
namespace {

// Calls step(first row of a in the face, number of k in it) for every k face of a tile row half.
template <int element_bytes, typename F>
[[gnu::always_inline]] inline void for_each_face(const std::byte* a, std::int64_t k, F step) {
  for (std::int64_t done = 0; done < k; done += face_dim) {
    const std::int64_t face = done / face_dim;
    const std::byte* row = a + (face / 2) * tile_elements * element_bytes + (face % 2) * face_elements * element_bytes;
    step(row, static_cast<int>(std::min<std::int64_t>(k - done, face_dim)));
  }
}

void strip_portable(const std::byte* a, const void* panel, std::int64_t k, std::uint32_t keep, int rows, bool add,
                    float* c, std::int64_t /*ahead*/, Beside* /*beside*/) {
  for (int r = 0; r < rows; ++r) {
    float sum[32] = {};
    if (add) {
      std::copy_n(c + r * 16, 16, sum);
      std::copy_n(c + 256 + r * 16, 16, sum + 16);
    }
    const float* b = static_cast<const float*>(panel);
    for_each_face<4>(a + r * 64, k, [&](const std::byte* face_row, int count) {
      for (int i = 0; i < count; ++i, b += 32) {
        std::uint32_t u;
        std::memcpy(&u, face_row + 4 * i, 4);
        const float x = std::bit_cast<float>(u & keep);
        for (int n = 0; n < 32; ++n) sum[n] += x * b[n];
      }
    });
    std::copy_n(sum, 16, c + r * 16);
    std::copy_n(sum + 16, 16, c + 256 + r * 16);
  }
}

#if defined(__x86_64__)

template <int rows>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"), gnu::always_inline]] inline void bf16_face(
    const std::byte* a, const std::uint32_t* b, int pairs, __m512i keep, std::int64_t ahead, __m512 (&left)[rows],
    __m512 (&right)[rows]) {
  if (ahead != 0) {
    for (int line = 0; line < 4; ++line) __builtin_prefetch(a + ahead + line * 64, 0, 3);
  }
#pragma GCC unroll 2
  for (int p = 0; p < pairs; ++p) {
    const __m512bh b0 = (__m512bh)_mm512_loadu_si512(b + p * 32);
    const __m512bh b1 = (__m512bh)_mm512_loadu_si512(b + p * 32 + 16);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      int word;
      std::memcpy(&word, a + r * 32 + p * 4, 4);
      const __m512bh x = (__m512bh)_mm512_and_si512(_mm512_set1_epi32(word), keep);
      left[r] = _mm512_dpbf16_ps(left[r], x, b0);
      right[r] = _mm512_dpbf16_ps(right[r], x, b1);
    }
  }
}

template <int rows, bool works>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]] void strip_bf16_rows(const std::byte* a,
                                                                                      const void* panel, std::int64_t k,
                                                                                      std::uint32_t keep, bool add,
                                                                                      float* c, std::int64_t ahead,
                                                                                      Beside* beside) {
  __m512 left[rows], right[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    left[r] = add ? _mm512_loadu_ps(c + r * 16) : _mm512_setzero_ps();
    right[r] = add ? _mm512_loadu_ps(c + 256 + r * 16) : _mm512_setzero_ps();
  }
  const __m512i keep_all = _mm512_set1_epi32(static_cast<int>(keep));
  const auto* b = static_cast<const std::uint32_t*>(panel);
  std::int64_t face = 0;
  for (; (face + 1) * face_dim <= k; ++face, b += 256) {
    bf16_face<rows>(a + (face / 2) * 2048 + (face % 2) * 512, b, 8, keep_all, ahead, left, right);
    if constexpr (works) beside->some(1);
  }
  const int rest = static_cast<int>(k - face * face_dim);
  if (rest > 0) {
    bf16_face<rows>(a + (face / 2) * 2048 + (face % 2) * 512, b, (rest + 1) / 2, keep_all, ahead, left, right);
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    _mm512_storeu_ps(c + r * 16, left[r]);
    _mm512_storeu_ps(c + 256 + r * 16, right[r]);
  }
}

void strip_bf16(const std::byte* a, const void* panel, std::int64_t k, std::uint32_t keep, int rows, bool add, float* c,
                std::int64_t ahead, Beside* beside) {
  if (rows == 1) return strip_bf16_rows<1, false>(a, panel, k, keep, add, c, ahead, beside);
  if (rows <= 4) return strip_bf16_rows<4, false>(a, panel, k, keep, add, c, ahead, beside);
  // The last rows of a matrix that is no multiple of 8 high, often one of many.
  if (rows == 5) return strip_bf16_rows<5, false>(a, panel, k, keep, add, c, ahead, beside);
  if (rows == 6) return strip_bf16_rows<6, false>(a, panel, k, keep, add, c, ahead, beside);
  if (rows == 7) return strip_bf16_rows<7, false>(a, panel, k, keep, add, c, ahead, beside);
  if (beside != nullptr && beside->has_work())
    return strip_bf16_rows<8, true>(a, panel, k, keep, add, c, ahead, beside);
  strip_bf16_rows<8, false>(a, panel, k, keep, add, c, ahead, beside);
}

// `cuts`: `keep` has bits of rows to cut, which takes as many slots as half of the products.
template <int rows, bool cuts>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void strip_avx512_rows(const std::byte* a, const void* panel,
                                                                             std::int64_t k, std::uint32_t keep,
                                                                             bool add, float* c) {
  __m512 left[rows], right[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    left[r] = add ? _mm512_loadu_ps(c + r * 16) : _mm512_setzero_ps();
    right[r] = add ? _mm512_loadu_ps(c + 256 + r * 16) : _mm512_setzero_ps();
  }
  const __m512i keep_all = _mm512_set1_epi32(static_cast<int>(keep));
  const auto* b = static_cast<const float*>(panel);
  for (std::int64_t done = 0; done < k; done += face_dim) {
    const std::byte* row = a + (done / 32) * 4096 + (done / 16 % 2) * 1024;
    const int count = static_cast<int>(std::min<std::int64_t>(k - done, face_dim));
    for (int i = 0; i < count; ++i, b += 32) {
      const __m512 b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + 16);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        int word;
        std::memcpy(&word, row + r * 64 + i * 4, 4);
        const __m512i bits = _mm512_set1_epi32(word);
        const __m512 x = _mm512_castsi512_ps(cuts ? _mm512_and_si512(bits, keep_all) : bits);
        left[r] = _mm512_fmadd_ps(x, b0, left[r]);
        right[r] = _mm512_fmadd_ps(x, b1, right[r]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    _mm512_storeu_ps(c + r * 16, left[r]);
    _mm512_storeu_ps(c + 256 + r * 16, right[r]);
  }
}

template <bool cuts>
void strip_avx512_of(const std::byte* a, const void* panel, std::int64_t k, std::uint32_t keep, int rows, bool add,
                     float* c) {
  if (rows == 1) return strip_avx512_rows<1, cuts>(a, panel, k, keep, add, c);
  if (rows <= 4) return strip_avx512_rows<4, cuts>(a, panel, k, keep, add, c);
  strip_avx512_rows<8, cuts>(a, panel, k, keep, add, c);
}

void strip_avx512(const std::byte* a, const void* panel, std::int64_t k, std::uint32_t keep, int rows, bool add,
                  float* c, std::int64_t /*ahead*/, Beside* /*beside*/) {
  (keep == keeps_all ? strip_avx512_of<false> : strip_avx512_of<true>)(a, panel, k, keep, rows, add, c);
}

#endif

// --- panels
// -------------------------------------------------------------------------------------------------------------

// Face of [k, n] (or [n, k]) as 16x16 elements; `out` is the first of its 16 (floats) or 8 (pairs) panel rows of 32.
void fill_pairs(const std::uint16_t* face, bool rows_are_k, std::uint16_t keep, std::uint32_t* out) {
  if (rows_are_k) {
    for (int p = 0; p < 8; ++p) {
      const std::uint16_t* even = face + 32 * p;
      for (int n = 0; n < 16; ++n) {
        const auto low = static_cast<std::uint32_t>(even[n] & keep),
                   high = static_cast<std::uint32_t>(even[16 + n] & keep);
        out[p * 32 + n] = low | high << 16;
      }
    }
    return;
  }
  const std::uint32_t both = keep | static_cast<std::uint32_t>(keep) << 16;
#if defined(__x86_64__)
  // 4x4 blocks of pairs, turned in registers every x86-64 has.
  const __m128i mask = _mm_set1_epi32(static_cast<int>(both));
  for (int n = 0; n < 16; n += 4) {
    for (int p = 0; p < 8; p += 4) {
      const auto row = [&](int i) {
        return _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(face + 16 * (n + i) + 2 * p)), mask);
      };
      const __m128i r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
      const __m128i a = _mm_unpacklo_epi32(r0, r1), b = _mm_unpacklo_epi32(r2, r3);
      const __m128i c = _mm_unpackhi_epi32(r0, r1), d = _mm_unpackhi_epi32(r2, r3);
      const auto store = [&](int i, __m128i v) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + (p + i) * 32 + n), v);
      };
      store(0, _mm_unpacklo_epi64(a, b));
      store(1, _mm_unpackhi_epi64(a, b));
      store(2, _mm_unpacklo_epi64(c, d));
      store(3, _mm_unpackhi_epi64(c, d));
    }
  }
#else
  for (int n = 0; n < 16; ++n) {
    for (int p = 0; p < 8; ++p) {
      const std::uint32_t low = face[16 * n + 2 * p], high = face[16 * n + 2 * p + 1];
      out[p * 32 + n] = (low | high << 16) & both;
    }
  }
#endif
}

void fill_floats(const float* face, bool rows_are_k, std::uint32_t keep, std::uint32_t* out) {
  std::uint32_t words[face_elements];
  std::memcpy(words, face, sizeof(words));
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) out[(rows_are_k ? i : j) * 32 + (rows_are_k ? j : i)] = words[i * 16 + j] & keep;
  }
}

constexpr MatmulKernels portable_floats{Operand::floats, 8, strip_portable};
#if defined(__x86_64__)
constexpr MatmulKernels avx2_floats{Operand::floats, tile_dim, strip_avx2};
constexpr MatmulKernels avx512_floats{Operand::floats, 8, strip_avx512};
constexpr MatmulKernels avx512_pairs{Operand::bf16_pairs, 8, strip_bf16};
constexpr MatmulKernels amx_pairs{Operand::bf16_pairs, 8, strip_bf16, &amx_block};
#endif

}  // namespace

const MatmulKernels& matmul_kernels(bool bf16_exact) {
#if defined(__x86_64__)
  if (bf16_exact && isa() == Isa::amx_bf16) return amx_pairs;
  if (bf16_exact && isa() == Isa::avx512_bf16) return avx512_pairs;
  if (isa() >= Isa::avx512) return avx512_floats;
  if (isa() == Isa::avx2) return avx2_floats;
#endif
  (void)bf16_exact;
  return portable_floats;
}

namespace {

struct CutFloats {
  [[gnu::always_inline]] static inline void run(const float* in, std::int64_t n, std::uint32_t keep, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(in[i]) & keep);
  }
};
struct CutBfloat16 {
  [[gnu::always_inline]] static inline void run(const std::uint16_t* in, std::int64_t n, std::uint32_t keep,
                                                float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(in[i]) << 16 & keep);
  }
};

// Calls f(first element, count) for what faces have of the first rows of a tile.
template <typename F>
void for_each_part(std::int64_t rows, F f) {
  if (rows == tile_dim) return f(0, tile_elements);
  for (std::int64_t face = 0; face < 4; ++face) {
    const std::int64_t of_face = std::clamp(rows - face / 2 * face_dim, std::int64_t{0}, face_dim);
    if (of_face > 0) f(face * face_elements, of_face * face_dim);
  }
}

}  // namespace

void float_rows(DataType dtype, const std::byte* tile, std::int64_t rows, std::uint32_t keep, std::byte* out) {
  auto* to = reinterpret_cast<float*>(out);
  if (dtype == DataType::bfloat16) {
    const auto* from = reinterpret_cast<const std::uint16_t*>(tile);
    return for_each_part(
        rows, [&](std::int64_t at, std::int64_t n) { vectorised<CutBfloat16>(from + at, n, keep, to + at); });
  }
  alignas(64) float values[tile_elements];
  const float* from = values;
  if (dtype == DataType::float32)
    from = reinterpret_cast<const float*>(tile);
  else
    unpack_tile(dtype, tile, values);
  for_each_part(rows, [&](std::int64_t at, std::int64_t n) { vectorised<CutFloats>(from + at, n, keep, to + at); });
}

void fill_panel(Operand operand, const PanelTile& tile, const std::byte* bytes, void* panel_rows) {
  auto* out = static_cast<std::uint32_t*>(panel_rows);
  const bool pairs = operand == Operand::bf16_pairs;
  if (tile.rows_are_k && tile.valid_k >= tile_dim) {
    auto* floats = static_cast<float*>(panel_rows);
    if (pairs ? fill_pairs_from_tile(tile.dtype, bytes, tile.keep, out)
              : fill_floats_from_tile(tile.dtype, bytes, tile.keep, floats))
      return;
    // A panel of floats is the tile as a row-major matrix; only float32 has bits that HiFi cuts.
    const bool whole_bits = tile.dtype != DataType::float32 && (tile.keep | 0xFFFFC000) == tile.keep;
    if (!pairs && whole_bits) return unpack_region(tile.dtype, bytes, floats, tile_dim, tile_dim, tile_dim);
  }
  alignas(64) std::uint16_t unpacked[tile_elements];
  alignas(64) float whole[tile_elements];
  const auto* half = reinterpret_cast<const std::uint16_t*>(bytes);
  if (!pairs) {
    unpack_tile(tile.dtype, bytes, whole);
  } else if (tile.dtype != DataType::bfloat16) {
    unpack_tile_bf16(tile.dtype, bytes, unpacked);
    half = unpacked;
  }
  for (int face = 0; face < 4; ++face) {
    const int k_face = tile.rows_are_k ? face / 2 : face % 2, n_face = tile.rows_are_k ? face % 2 : face / 2;
    if (pairs) {
      std::uint32_t* rows = out + k_face * 8 * 32 + n_face * 16;
      fill_pairs(half + face * face_elements, tile.rows_are_k, static_cast<std::uint16_t>(tile.keep >> 16), rows);
    } else {
      fill_floats(whole + face * face_elements, tile.rows_are_k, tile.keep, out + k_face * 16 * 32 + n_face * 16);
    }
  }
  if (tile.valid_k >= tile_dim) return;
  if (!pairs) {
    std::memset(out + tile.valid_k * 32, 0, static_cast<std::size_t>((tile_dim - tile.valid_k) * 128));
    return;
  }
  if (tile.valid_k % 2 == 1) {
    for (int n = 0; n < 32; ++n) out[tile.valid_k / 2 * 32 + n] &= 0xFFFF;
  }
  const std::int64_t first = (tile.valid_k + 1) / 2;
  std::memset(out + first * 32, 0, static_cast<std::size_t>((16 - first) * 128));
}

}  // namespace ttrt::detail
