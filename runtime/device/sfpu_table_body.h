// The loops over all functions. Included last, after sfpu_powers_body.h.

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

#define TTRT_SFPU_ROW(name) \
  { each<f_##name<false>>, each<f_##name<true>> }
#define TTRT_SFPU_PAIR(name) \
  { each_pair<f_##name<false>>, each_pair<f_##name<true>> }
// The same for both widths of Dest.
#define TTRT_SFPU_SAME_ROW(name) \
  { each<f_##name>, each<f_##name> }
#define TTRT_SFPU_SAME_PAIR(name) \
  { each_pair<f_##name>, each_pair<f_##name> }

// In the order of sfpu::Function and sfpu::Function2.
inline constexpr SfpuKernels kernels = {
    {TTRT_SFPU_SAME_ROW(abs),
     TTRT_SFPU_SAME_ROW(ceil),
     TTRT_SFPU_SAME_ROW(clamp),
     TTRT_SFPU_ROW(cos),
     TTRT_SFPU_ROW(elu),
     TTRT_SFPU_ROW(erf),
     TTRT_SFPU_ROW(exp),
     TTRT_SFPU_ROW(exp2),
     TTRT_SFPU_SAME_ROW(exp_approx),
     TTRT_SFPU_ROW(expm1),
     TTRT_SFPU_SAME_ROW(floor),
     TTRT_SFPU_ROW(gelu),
     TTRT_SFPU_SAME_ROW(gelu_approx),
     TTRT_SFPU_ROW(gelu_tanh),
     TTRT_SFPU_SAME_ROW(gez),
     TTRT_SFPU_SAME_ROW(gtz),
     TTRT_SFPU_SAME_ROW(hardsigmoid),
     TTRT_SFPU_SAME_ROW(leaky_relu),
     TTRT_SFPU_SAME_ROW(lez),
     TTRT_SFPU_ROW(log),
     TTRT_SFPU_ROW(log10),
     TTRT_SFPU_ROW(log1p),
     TTRT_SFPU_ROW(log2),
     TTRT_SFPU_ROW(log_sigmoid),
     TTRT_SFPU_SAME_ROW(ltz),
     TTRT_SFPU_ROW(mish),
     TTRT_SFPU_SAME_ROW(neg),
     TTRT_SFPU_SAME_ROW(nez),
     TTRT_SFPU_SAME_ROW(eqz),
     TTRT_SFPU_ROW(reciprocal),
     TTRT_SFPU_SAME_ROW(relu),
     TTRT_SFPU_SAME_ROW(relu_max),
     TTRT_SFPU_ROW(rsqrt),
     TTRT_SFPU_ROW(sigmoid),
     TTRT_SFPU_SAME_ROW(sigmoid_approx),
     TTRT_SFPU_ROW(sigmoid_fast_exp),
     TTRT_SFPU_SAME_ROW(sign),
     TTRT_SFPU_ROW(silu),
     TTRT_SFPU_ROW(sin),
     TTRT_SFPU_ROW(softplus),
     TTRT_SFPU_SAME_ROW(softsign),
     TTRT_SFPU_ROW(sqrt),
     TTRT_SFPU_ROW(square),
     TTRT_SFPU_ROW(tan),
     TTRT_SFPU_ROW(tanh),
     TTRT_SFPU_SAME_ROW(trunc),
     TTRT_SFPU_ROW(acos),
     TTRT_SFPU_ROW(asin),
     TTRT_SFPU_ROW(atan),
     TTRT_SFPU_ROW(cosh),
     TTRT_SFPU_ROW(power),
     TTRT_SFPU_SAME_ROW(power_int),
     TTRT_SFPU_SAME_ROW(round),
     TTRT_SFPU_ROW(selu),
     TTRT_SFPU_ROW(sinh)},
    {TTRT_SFPU_PAIR(divide), TTRT_SFPU_SAME_PAIR(maximum), TTRT_SFPU_SAME_PAIR(minimum)}};
static_assert(sizeof(kernels.functions) / sizeof(kernels.functions[0]) == sfpu_kernel_count);

#undef TTRT_SFPU_ROW
#undef TTRT_SFPU_PAIR
#undef TTRT_SFPU_SAME_ROW
#undef TTRT_SFPU_SAME_PAIR
#undef TTRT_LANES
