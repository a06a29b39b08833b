// Strips of a tile of rows times a panel of floats, of hosts with AVX2.
//
// Of 16 registers 12 have sums: a sum takes a product when it has taken the one before, four or five cycles later, and
// a core begins two products a cycle. They are 3 rows by 32 columns, which takes the fewest instructions (7 loads for
// 12 products), and 5 rows by 16 columns, twice, for what threes leave. Fewer instructions count where the core runs
// another program at the same time and decodes in turn for both: one thread of a Zen 3 then kept 80 % of its rate where
// 5 and 6 rows by 16 columns, k by k, had kept 65 %.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "device/intrinsics.h"
#include "device/matmul_kernels.h"
#include "device/tile_formats.h"

#if defined(__x86_64__)
namespace ttrt::detail {
namespace {

#define TTRT_AVX2 gnu::target("avx2,fma")

// Where a row begins in a tile of floats, those of a and sums, which has faces of 16 x 16.
constexpr std::int64_t row_at(std::int64_t row) { return row * face_dim + (row & face_dim) * face_dim; }
// And from there, a vector of its sums.
constexpr std::int64_t vector_at(int v) { return v / 2 * face_elements + v % 2 * 8; }

// `rows` rows by 8 * `vectors` columns, of which the first `upper` are in the upper half of a tile if one is.
template <int rows, int vectors, int upper, bool cuts>
struct Strip {
  static constexpr std::int64_t at(int r) { return r * face_dim + (r < upper ? 0 : face_elements); }

  __m256 sums[rows][vectors];
  __m256 keep;

  [[TTRT_AVX2, gnu::always_inline]] __m256 value(const float* a, int r) const {
    const __m256 x = _mm256_broadcast_ss(a + at(r));
    return cuts ? _mm256_and_ps(x, keep) : x;
  }

  // Products of `steps` of k, whose values the rows have one after the other. What is fewer waits in registers.
  template <int steps>
  [[TTRT_AVX2, gnu::always_inline]] void add(const float* a, const float* panel) {
#pragma GCC unroll 4
    for (int i = 0; i < steps; ++i, ++a, panel += tile_dim) {
      if constexpr (rows < vectors) {
        __m256 x[rows];
#pragma GCC unroll 5
        for (int r = 0; r < rows; ++r) x[r] = value(a, r);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          const __m256 b = _mm256_loadu_ps(panel + v * 8);
#pragma GCC unroll 5
          for (int r = 0; r < rows; ++r) sums[r][v] = _mm256_fmadd_ps(x[r], b, sums[r][v]);
        }
      } else {
        __m256 b[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) b[v] = _mm256_loadu_ps(panel + v * 8);
#pragma GCC unroll 5
        for (int r = 0; r < rows; ++r) {
          const __m256 x = value(a, r);
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) sums[r][v] = _mm256_fmadd_ps(x, b[v], sums[r][v]);
        }
      }
    }
  }
};

// `a`, `c`: the strip's first row, of c from the strip's first column on.
template <int rows, int vectors, bool cuts, int upper = rows>
[[TTRT_AVX2]] void add_strip(const float* a, const float* next, const float* panel, std::int64_t k, std::uint32_t keep,
                             bool add, float* c) {
  Strip<rows, vectors, upper, cuts> strip;
  strip.keep = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(keep)));
#pragma GCC unroll 5
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      strip.sums[r][v] = add ? _mm256_loadu_ps(c + strip.at(r) + vector_at(v)) : _mm256_setzero_ps();
  }
  for (std::int64_t done = 0; done < k; done += face_dim) {
    const std::int64_t face = done / tile_dim * tile_elements + done / face_dim % 2 * face_elements;
    const float* x = a + face;
#pragma GCC unroll 5
    for (int r = 0; r < rows; ++r) __builtin_prefetch(next + face + r * face_dim, 0, 3);
    std::int64_t left = std::min<std::int64_t>(k - done, face_dim);
    for (; left >= 4; left -= 4, x += 4, panel += 4 * tile_dim) strip.template add<4>(x, panel);
    for (; left > 0; --left, ++x, panel += tile_dim) strip.template add<1>(x, panel);
  }
#pragma GCC unroll 5
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) _mm256_storeu_ps(c + strip.at(r) + vector_at(v), strip.sums[r][v]);
  }
}

// How many rows of so many go together: fives where threes leave some, then threes.
constexpr int most_parts = 11;
using Parts = std::array<std::int8_t, most_parts>;
constexpr Parts parts_of(int rows) {
  Parts parts{};
  std::size_t count = 0;
  const auto take = [&](int part) { parts[count++] = static_cast<std::int8_t>(part), rows -= part; };
  while (rows == 5 || rows == 7 || (rows > 7 && rows % 3 != 0)) take(5);
  while (rows >= 3 && rows % 3 == 0) take(3);
  while (rows > 0) take(std::min(rows, 2));
  return parts;
}
constexpr auto parts = [] {
  std::array<Parts, tile_dim + 1> of{};
  for (int rows = 1; rows <= tile_dim; ++rows) of[static_cast<std::size_t>(rows)] = parts_of(rows);
  return of;
}();

template <bool cuts>
void add_parts(const float* tile, const float* panel, std::int64_t k, std::uint32_t keep, int rows, bool add,
               float* sums, std::int64_t ahead) {
  int first = 0;
  for (const int part : parts[static_cast<std::size_t>(rows)]) {
    const float* a = tile + row_at(first);
    float* c = sums + row_at(first);
    const float* next = first + part < rows ? tile + row_at(first + part) : tile + ahead;
    switch (part) {
      case 5:  // the first ten rows at most
        add_strip<5, 2, cuts>(a, next, panel, k, keep, add, c);
        add_strip<5, 2, cuts>(a, next, panel + face_dim, k, keep, add, c + face_elements);
        break;
      case 3:
        (first == 14   ? add_strip<3, 4, cuts, 2>
         : first == 15 ? add_strip<3, 4, cuts, 1>
                       : add_strip<3, 4, cuts>)(a, next, panel, k, keep, add, c);
        break;
      case 2:
        add_strip<2, 4, cuts>(a, next, panel, k, keep, add, c);
        break;
      case 1:
        add_strip<1, 4, cuts>(a, next, panel, k, keep, add, c);
        break;
      default:
        return;
    }
    first += part;
  }
}

#undef TTRT_AVX2

}  // namespace

void strip_avx2(const std::byte* a, const void* panel, std::int64_t k, std::uint32_t keep, int rows, bool add, float* c,
                std::int64_t ahead, Beside* /*beside*/) {
  (keep == keeps_all ? add_parts<false> : add_parts<true>)(reinterpret_cast<const float*>(a),
                                                           static_cast<const float*>(panel), k, keep, rows, add, c,
                                                           ahead / 4);
}

}  // namespace ttrt::detail
#endif
