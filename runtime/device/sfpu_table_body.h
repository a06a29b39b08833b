// The loops over all functions. Included last, after sfpu_powers_body.h.

TTRT_LANES U load(const float* at) {
  U x;
  std::memcpy(&x, at, sizeof(x));
  return x;
}
TTRT_LANES void store(U x, float* at) { std::memcpy(at, &x, sizeof(x)); }

template <U (*function)(U, const float*)>
void each(float* values, std::size_t n, const float* p) {
  std::size_t i = 0;
  for (; i + lane_count <= n; i += lane_count) store(function(load(values + i), p), values + i);
  if (i == n) return;
  float rest[lane_count] = {};
  std::memcpy(rest, values + i, (n - i) * 4);
  store(function(load(rest), p), rest);
  std::memcpy(values + i, rest, (n - i) * 4);
}

template <U (*function)(U, U)>
void each_pair(float* a, const float* b, std::size_t n) {
  std::size_t i = 0;
  for (; i + lane_count <= n; i += lane_count) store(function(load(a + i), load(b + i)), a + i);
  if (i == n) return;
  float x[lane_count] = {}, y[lane_count] = {};
  std::memcpy(x, a + i, (n - i) * 4);
  std::memcpy(y, b + i, (n - i) * 4);
  store(function(load(x), load(y)), x);
  std::memcpy(a + i, x, (n - i) * 4);
}

#define TTRT_SFPU_ROW(name) \
  { each<f_##name<false>>, each<f_##name<true>> }
#define TTRT_SFPU_PAIR(name) \
  { each_pair<f_##name<false>>, each_pair<f_##name<true>> }

// In the order of sfpu::Function and sfpu::Function2.
inline constexpr SfpuKernels kernels = {{TTRT_SFPU_ROW(abs),
                                         TTRT_SFPU_ROW(ceil),
                                         TTRT_SFPU_ROW(clamp),
                                         TTRT_SFPU_ROW(cos),
                                         TTRT_SFPU_ROW(elu),
                                         TTRT_SFPU_ROW(erf),
                                         TTRT_SFPU_ROW(exp),
                                         TTRT_SFPU_ROW(exp2),
                                         TTRT_SFPU_ROW(exp_approx),
                                         TTRT_SFPU_ROW(expm1),
                                         TTRT_SFPU_ROW(floor),
                                         TTRT_SFPU_ROW(gelu),
                                         TTRT_SFPU_ROW(gelu_approx),
                                         TTRT_SFPU_ROW(gelu_tanh),
                                         TTRT_SFPU_ROW(gez),
                                         TTRT_SFPU_ROW(gtz),
                                         TTRT_SFPU_ROW(hardsigmoid),
                                         TTRT_SFPU_ROW(leaky_relu),
                                         TTRT_SFPU_ROW(lez),
                                         TTRT_SFPU_ROW(log),
                                         TTRT_SFPU_ROW(log10),
                                         TTRT_SFPU_ROW(log1p),
                                         TTRT_SFPU_ROW(log2),
                                         TTRT_SFPU_ROW(log_sigmoid),
                                         TTRT_SFPU_ROW(ltz),
                                         TTRT_SFPU_ROW(mish),
                                         TTRT_SFPU_ROW(neg),
                                         TTRT_SFPU_ROW(nez),
                                         TTRT_SFPU_ROW(eqz),
                                         TTRT_SFPU_ROW(reciprocal),
                                         TTRT_SFPU_ROW(relu),
                                         TTRT_SFPU_ROW(relu_max),
                                         TTRT_SFPU_ROW(rsqrt),
                                         TTRT_SFPU_ROW(sigmoid),
                                         TTRT_SFPU_ROW(sigmoid_approx),
                                         TTRT_SFPU_ROW(sigmoid_fast_exp),
                                         TTRT_SFPU_ROW(sign),
                                         TTRT_SFPU_ROW(silu),
                                         TTRT_SFPU_ROW(sin),
                                         TTRT_SFPU_ROW(softplus),
                                         TTRT_SFPU_ROW(softsign),
                                         TTRT_SFPU_ROW(sqrt),
                                         TTRT_SFPU_ROW(square),
                                         TTRT_SFPU_ROW(tan),
                                         TTRT_SFPU_ROW(tanh),
                                         TTRT_SFPU_ROW(trunc),
                                         TTRT_SFPU_ROW(acos),
                                         TTRT_SFPU_ROW(asin),
                                         TTRT_SFPU_ROW(atan),
                                         TTRT_SFPU_ROW(cosh),
                                         TTRT_SFPU_ROW(power),
                                         TTRT_SFPU_ROW(power_int),
                                         TTRT_SFPU_ROW(round),
                                         TTRT_SFPU_ROW(selu),
                                         TTRT_SFPU_ROW(sinh)},
                                        {TTRT_SFPU_PAIR(divide), TTRT_SFPU_PAIR(maximum), TTRT_SFPU_PAIR(minimum)}};
static_assert(sizeof(kernels.functions) / sizeof(kernels.functions[0]) == sfpu_kernel_count);

#undef TTRT_SFPU_ROW
#undef TTRT_SFPU_PAIR
#undef TTRT_LANES
