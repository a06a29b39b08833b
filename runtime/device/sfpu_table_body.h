// The loops over all functions. Included last, after sfpu_special_body.h.

TTRT_LANES U load(const float* at) {
  U x;
  std::memcpy(&x, at, sizeof(x));
  return x;
}
TTRT_LANES void store(U x, float* at) { std::memcpy(at, &x, sizeof(x)); }

// One copy of the function's instructions: the last values go through a whole vector of their own.
template <U (*function)(U, const float*)>
void each(float* values, std::size_t n, const float* p) {
  float rest[lane_count] = {};
  for (std::size_t i = 0; i < n; i += lane_count) {
    const bool whole = n - i >= lane_count;
    float* at = whole ? values + i : rest;
    if (!whole) std::memcpy(rest, values + i, (n - i) * 4);
    store(function(load(at), p), at);
    if (!whole) std::memcpy(values + i, rest, (n - i) * 4);
  }
}

template <U (*function)(U, U)>
void each_pair(float* a, const float* b, std::size_t n) {
  float x[lane_count] = {}, y[lane_count] = {};
  for (std::size_t i = 0; i < n; i += lane_count) {
    const bool whole = n - i >= lane_count;
    float* to = whole ? a + i : x;
    const float* from = whole ? b + i : y;
    if (!whole) {
      std::memcpy(x, a + i, (n - i) * 4);
      std::memcpy(y, b + i, (n - i) * 4);
    }
    store(function(load(to), load(from)), to);
    if (!whole) std::memcpy(a + i, x, (n - i) * 4);
  }
}

// In the order of sfpu::Function and sfpu::Function2, by the width of Dest.
inline constexpr SfpuKernels kernels = {{
#define TTRT_SFPU_KERNELS_one(name) {each<f_##name>, each<f_##name>}
#define TTRT_SFPU_KERNELS_two(name) {each<f_##name<false>>, each<f_##name<true>>}
#define TTRT_SFPU(name, widths) TTRT_SFPU_KERNELS_##widths(name),
#define TTRT_SFPU_COMPOSITE(name)
#include "device/sfpu_functions.def"
#undef TTRT_SFPU
#undef TTRT_SFPU_COMPOSITE
#undef TTRT_SFPU_KERNELS_one
#undef TTRT_SFPU_KERNELS_two
                                        },
                                        {
#define TTRT_SFPU_KERNELS_one(name) {each_pair<f_##name>, each_pair<f_##name>}
#define TTRT_SFPU_KERNELS_two(name) {each_pair<f_##name<false>>, each_pair<f_##name<true>>}
#define TTRT_SFPU_PAIR(name, widths) TTRT_SFPU_KERNELS_##widths(name),
#include "device/sfpu_pairs.def"
#undef TTRT_SFPU_PAIR
#undef TTRT_SFPU_KERNELS_one
#undef TTRT_SFPU_KERNELS_two
                                        }};

#undef TTRT_LANES
