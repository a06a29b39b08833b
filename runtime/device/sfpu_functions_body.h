// Activations, rounding, signs and trigonometry on lanes, and the table of all functions. Included after
// sfpu_exp_body.h. `p` holds the function's parameters.

// ---- error function and its kin

// Odd over even polynomial, both in x^2; the first coefficients are those of x and 1.
TTRT_LANES U rational_bf16(U x, U& denominator) {
  const U x2 = mul(x, x);
  denominator = poly(x2, 1.0F, 5.7439188334e-01F, 1.3675764810e-01F, 8.2844606784e-03F, 2.4813862145e-05F);
  return mul(poly(x2, 1.1280932447e+00F, 2.7609212279e-01F, 4.5400281738e-02F, 7.4481184425e-04F), x);
}
TTRT_LANES U rational_float(U x, U& denominator) {
  const U x2 = mul(x, x);
  denominator = poly(x2, 1.0F, 5.2367275953e-01F, 1.2961706519e-01F, 1.9642570987e-02F, 1.9545555115e-03F,
                     1.3179056987e-04F, 1.3156344494e-06F, -3.5153888689e-09F, -6.7350725691e-12F);
  return mul(poly(x2, 1.1283791065e+00F, 2.1477432549e-01F, 6.2133435160e-02F, 5.6230435148e-03F, 6.1307044234e-04F,
                  1.7678321456e-05F, 2.7384647439e-08F, -2.8632063387e-10F),
             x);
}
template <bool wide>
TTRT_LANES U erf_of(U x) {
  U d;
  const U n = wide ? rational_float(x, d) : rational_bf16(x, d);
  return held(mul(n, inverse<2>(d)), -1.0F, 1.0F);
}

template <bool wide>
TTRT_LANES U f_erf(U x, const float*) {
  return erf_of<wide>(held(x, -10.0F, 10.0F));  // no rounding: a 16-bit store cuts
}

// 2.78125 and up: x. From -3.125: x times the normal integral's polynomial. From -5.54: x exp(-x^2/2) times a
// polynomial, brought to multiples of 2^-25. Below: 0.
TTRT_LANES U gelu_bf16(U x) {
  const U x2 = mul(x, x);
  const U power = exp2_quadratic(mad(x2, num(-0.72134752044F), num(127.0F)), quadratic_c0);
  U tail = mul(power, poly(x, 3.0369991064e-01F, 9.5413386822e-02F, 1.3809983619e-02F, 7.5950479368e-04F));
  tail = sub(add(tail, num(0.375F)), num(0.375F));
  const U odd = poly(x2, 3.9894227818e-01F, -6.6361041488e-02F, 9.7720050615e-03F, -1.0717806322e-03F,
                     8.1812159812e-05F, -3.8082057209e-06F, 7.9821413868e-08F);
  U r = select(greater(x, num(-5.54259443F)), mul(x, tail), all(0));
  r = select(not_less(x, num(-3.125F)), mul(x, mad(x, odd, num(0.5F))), r);
  return select(not_less(x, num(2.78125F)), x, r);
}

TTRT_LANES U gelu_float(U x) {
  const U e = erf_of<true>(minimum(mul(x, num(0.7071067811865475F)), num(10.0F)));
  U r = mul(x, mad(num(0.5F), e, num(0.5F)));
  r = select(e == num(-1.0F), mul(x, num(2.9802322387695313e-08F)), r);
  return select(greater(x, num(-5.54259443F)), r, all(0));
}

template <bool wide>
TTRT_LANES U f_gelu(U x, const float*) {
  return wide ? gelu_float(x) : round_bf16(gelu_bf16(x));
}

// Six segments of |x| at 0.5, 1, 1.5, 2 and `last`: a |x| + b.
struct Segments {
  float a[6], b[6];
};
TTRT_LANES U segments(U x, float last, const Segments& s) {
  const U m = magnitude(x);
  U a = num(s.a[5]), b = num(s.b[5]);
  const float edges[5] = {0.5F, 1.0F, 1.5F, 2.0F, last};
  for (int i = 4; i >= 0; --i) {
    const Mask inside = (I)m < (I)num(edges[i]);
    a = select(inside, num(s.a[i]), a);
    b = select(inside, num(s.b[i]), b);
  }
  return mad(a, m, b);
}
// The coefficients' 16-bit encodings, decoded: sign, 5 exponent bits (bias 15, 31 means zero), 10 of mantissa.
constexpr float lut16(std::uint32_t code) {
  const std::uint32_t e = (code >> 10) & 31;
  return std::bit_cast<float>(((code & 0x8000) << 16) | ((e == 31 ? 0 : e + 112) << 23) | ((code & 0x3FF) << 13));
}

TTRT_LANES U f_gelu_approx(U x, const float*) {
  constexpr Segments s = {{lut16(0x322B), lut16(0x37E7), lut16(0x38F3), lut16(0x38E1), lut16(0x3852), lut16(0x3800)},
                          {lut16(0x86D8), lut16(0xB122), lut16(0xB479), lut16(0xB437), lut16(0xAFA4), lut16(0x7C00)}};
  return add(mul(x, num(0.5F)), segments(x, 3.0F, s));
}

// ---- sigmoid and its kin

template <bool wide, bool blackhole = false>
TTRT_LANES U logistic(U x) {
  constexpr int steps = wide ? 2 : 1;
  const U below = add(num(1.0F), wide ? exp_float(negate(x)) : exp_bf16(negate(x)));
  if constexpr (blackhole) return inverse_blackhole<steps>(below);
  return inverse<steps>(below);
}
template <bool wide, bool blackhole = false>
TTRT_LANES U f_sigmoid(U x, const float*) {
  const U r = logistic<wide, blackhole>(x);
  return wide ? r : round_bf16(r);
}
template <bool wide>
TTRT_LANES U f_sigmoid_blackhole(U x, const float*) {
  return f_sigmoid<wide, true>(x, nullptr);
}
template <bool wide, bool blackhole = false>
TTRT_LANES U f_silu(U x, const float*) {
  const U r = mul(x, logistic<wide, blackhole>(x));
  return wide ? r : round_bf16(r);
}
template <bool wide>
TTRT_LANES U f_silu_blackhole(U x, const float*) {
  return f_silu<wide, true>(x, nullptr);
}
// Three segments at 1 and 2, odd around (0, 0.5); their coefficients have 4 mantissa bits.
TTRT_LANES U f_sigmoid_approx(U x, const float*) {
  const U m = magnitude(x);
  const Mask first = (I)m < (I)num(1.0F), second = (I)m < (I)num(2.0F);
  const U a = select(first, num(0.2265625F), select(second, num(0.265625F), all(0)));
  const U b = select(first, all(0), select(second, num(-0.046875F), num(0.5F)));
  return add(copy_sign(mad(a, m, b), x), num(0.5F));
}
// What a value becomes when Dest holds it between two instructions' loops.
template <bool wide>
TTRT_LANES U through_dest(U x) {
  return wide ? x : x & 0xFFFF0000;
}
template <bool wide>
TTRT_LANES U f_sigmoid_fast_exp(U x, const float*) {
  const U e = through_dest<wide>(exp_schraudolph(negate(x)));
  return f_reciprocal<wide>(through_dest<wide>(add(num(1.0F), e)), nullptr);
}

// t / (t + 1) of t = (exp(|2x|) - 1) / 2: a reciprocal from a magic first guess, the quotient corrected by its
// residual. From |x| of 21 on 1, below 2^-12 x.
TTRT_LANES U tanh_float(U x) {
  const U i = to_magnitude(mul(x, num(2.0F * 1.442695F)), 255);
  const U a = magnitude(add(x, x));
  const U f = mad(from_int(i), num(-0.6931471805599453F), a);
  U r = poly(f, 0.5F, 1.666667163e-1F, 4.166680202e-2F, 8.331298828e-3F, 1.393318176e-3F, 1.974105835e-04F);
  r = mad(r, mul(f, f), f);
  const U scale = (i + 126) << 23;
  const U t = mad(r, scale, sub(scale, num(0.5F))), t1 = add(t, num(1.0F));
  const U guess = 0xFEF30000 - t1;  // of -1 / t1
  const U error = mad(t1, guess, num(1.0F));
  const U inverse = mad(guess, mad(error, error, error), guess);
  const U quotient = mul(t, inverse);
  const U near = select(raw_exponent(x) >= 115, mad(mad(t1, quotient, t), inverse, quotient), x);
  const U far = mad(a - 1, num(0.0F), num(1.0F));  // 1, or NaN for a NaN
  return copy_sign(select(i < 61, near, far), x);
}
TTRT_LANES U tanh_bf16(U x) {
  const U r =
      poly(magnitude(x), 0.0F, 0.999004364013671875F, 3.0897438526153564453125e-2F, -0.4890659749507904052734375F,
           0.281917631626129150390625F, -6.6649019718170166015625e-2F, 5.876733921468257904052734375e-3F);
  return copy_sign(minimum(r, num(1.0F)), x);
}
template <bool wide>
TTRT_LANES U f_tanh(U x, const float*) {
  return wide ? tanh_float(x) : round_bf16(tanh_bf16(x));
}

// exp(-a) for a > 5, by a Taylor polynomial.
template <bool wide>
TTRT_LANES U exp_tail(U x) {
  const U biased = add(mul(x, num(log2_e)), num(rounding_bias));
  const U k = sub(biased, num(rounding_bias));
  U r = mad(k, num(-0.6931152343750000F), x);
  r = mad(k, num(-3.19461832987e-05F), r);
  const U y =
      wide ? poly(r, 1.0F, 1.0F, 0.5F, 0.166666667F, 0.0416666667F, 0.00833333333F, 0.00138888889F, 0.000198412698F)
           : poly(r, 1.0F, 1.0F, 0.5F, 0.166666667F, 0.0416666667F, 0.00833333333F);
  const I e = raw_exponent(y) + (I)(biased - std::bit_cast<std::uint32_t>(rounding_bias));
  return select(e > 0, set_exponent(y, e), all(0));
}

// max(t, 0) + log(1 + exp(-|t|)) of t = beta x, below the threshold. bfloat16: the second term is 0 from |t| > 5.
template <bool wide>
TTRT_LANES U f_softplus(U x, const float* p) {
  const U t = mul(num(p[0]), x);
  const U a = magnitude(t);
  const Mask far = greater(a, num(5.0F));
  U rest;
  if constexpr (wide) {
    rest = poly(a, 6.9310557842e-01F, -4.9926245213e-01F, 1.2186349183e-01F, 5.6753782555e-03F, -1.0528374463e-02F,
                2.7290175203e-03F, -3.4358495031e-04F, 2.1285692128e-05F, -4.8245715334e-07F);
    const U e = exp_tail<true>(negate(a));
    rest = select(far, mul(e, mad(e, mad(e, num(0.333333343F), num(-0.5F)), num(1.0F))), rest);
  } else {
    rest = poly(a, 6.9423984729e-01F, -5.0932420424e-01F, 1.4279095486e-01F, -1.3000584069e-02F, -1.8627923291e-03F,
                5.0152968088e-04F, -3.1273466851e-05F);
    rest = select(far, all(0), rest);
  }
  U r = mul(num(p[1]), add(maximum(t, all(0)), rest));
  if constexpr (!wide) r = round_bf16(r);
  return select(less(t, num(p[2])), r, x);
}

// -softplus(-x): a polynomial within 4 of zero, -exp(-x) (the fast exponential) above, x below.
template <bool wide>
TTRT_LANES U f_log_sigmoid(U x, const float*) {
  const U n = negate(x);
  const U near = negate(poly(n, 0.6924354434013367F, 0.49275708198547363F, 0.12142381817102432F, 0.0031102809589356184F,
                             -0.00330807245336473F, -0.00028794066747650504F, 5.3185409342404455e-05F,
                             7.1853546614875086e-06F, 7.4961114648886e-08F));
  const U e = through_dest<wide>(exp_schraudolph(n));
  const U r = select(less(n, num(4.0F)), near, x);
  return select(less(n, num(-4.0F)), negate(e), r);
}

template <bool wide>
TTRT_LANES U f_mish(U x, const float*) {
  const U u = wide ? exp_float(x) : round_bf16(exp_bf16(x));
  const U n = mul(u, add(u, num(2.0F))), v = add(u, num(1.0F));
  const U d = mad(v, v, num(1.0F));
  U r = mul(x, mul(n, wide ? inverse<2>(d) : inverse<1>(d)));
  r = select(less(x, num(8.0F)), r, x);
  return wide ? r : round_bf16(r);
}

TTRT_LANES U f_softsign(U x, const float*) { return mul(x, inverse<2>(add(magnitude(x), num(1.0F)))); }

// ---- piecewise functions

TTRT_LANES Mask is_nan(U x) { return magnitude(x) > infinity; }
TTRT_LANES U f_relu(U x, const float*) { return maximum(x, all(0)); }
TTRT_LANES U held_to(U x, float top) {
  const U r = select(greater(x, num(top)), num(top), x);
  return select(negative(r), all(0), r);
}
TTRT_LANES U f_relu_max(U x, const float* p) { return held_to(x, p[0]); }
TTRT_LANES U f_clamp(U x, const float* p) { return minimum(maximum(x, num(p[0])), num(p[1])); }
TTRT_LANES U f_leaky_relu(U x, const float* p) { return select(negative(x), mul(x, num(p[0])), x); }
template <bool wide>
TTRT_LANES U f_elu(U x, const float* p) {
  const U r = select(negative(x), mul(num(p[0]), expm1_negative<wide>(x)), x);
  return wide ? r : round_bf16(r);
}
TTRT_LANES U f_hardsigmoid(U x, const float*) { return held_to(mad(x, num(0.1666666716337204F), num(0.5F)), 1.0F); }
// ---- signs, comparisons with zero, rounding to integers

TTRT_LANES U f_abs(U x, const float*) { return magnitude(x); }
TTRT_LANES U f_neg(U x, const float*) { return negate(x); }
template <bool wide>
TTRT_LANES U f_square(U x, const float*) {
  const U r = mul(x, x);
  return wide ? r : round_bf16_even(r);
}
TTRT_LANES Mask is_zero(U x) { return magnitude(x) == 0; }
TTRT_LANES U truth(Mask m) { return (U)m & std::bit_cast<std::uint32_t>(1.0F); }
TTRT_LANES U f_sign(U x, const float*) { return select(is_zero(x), all(0), copy_sign(num(1.0F), x)); }
TTRT_LANES U f_eqz(U x, const float*) { return truth(is_zero(x)); }
TTRT_LANES U f_nez(U x, const float*) { return truth(~is_zero(x)); }
TTRT_LANES U f_ltz(U x, const float*) { return truth(negative(x)); }
TTRT_LANES U f_gtz(U x, const float*) { return truth((I)x > 0); }
TTRT_LANES U f_lez(U x, const float*) { return truth((I)x <= 0); }
TTRT_LANES U f_gez(U x, const float*) { return truth(~negative(x)); }

TTRT_LANES U truncated(U x) {
  const I e = exponent(x);
  const U mask = select(e < 23, (all(0) - 1) << ((U)(23 - e) & 31), all(0xFFFFFFFF));
  return x & select(e < 0, all(sign_bit), mask);
}
TTRT_LANES U f_trunc(U x, const float*) { return truncated(x); }
TTRT_LANES U f_floor(U x, const float*) {
  const U t = truncated(x);
  return select(negative(x) & (t != x), add(t, num(-1.0F)), t);
}
TTRT_LANES U f_ceil(U x, const float*) {
  const U t = truncated(x);
  return select(~negative(x) & (t != x), add(t, num(1.0F)), t);
}

// ---- trigonometry: x less j times pi (pi/2) in four parts, then an odd polynomial

TTRT_LANES U less_parts(U x, U j, float p0, float p1, float p2, float p3) {
  x = mad(j, num(p0), x);
  x = mad(j, num(p1), x);
  x = mad(j, num(p2), x);
  return mad(j, num(p3), x);
}
template <bool wide>
TTRT_LANES U sine_of(U a, U sign) {
  const U s = mul(a, a);
  a ^= sign;
  U r = wide ? poly(s, -0x1.55554cp-3F, 0x1.110edap-7F, -0x1.9f70fp-13F, 0x1.5dc908p-19F)
             : poly(s, -0x1.5554a4p-3F, 0x1.10c2a2p-7F, -0x1.8b10a4p-13F);
  r = mad(r, mul(a, s), a);
  return wide ? r : round_bf16(r);
}
inline constexpr float over_pi = 0.31830987334251404F;
template <bool wide>
TTRT_LANES U f_sin(U x, const float*) {
  const U biased = mad(x, num(over_pi), num(rounding_bias));
  const U j = sub(biased, num(rounding_bias));
  return sine_of<wide>(less_parts(x, j, -0x1.92p+1F, -0x1.fbp-11F, -0x1.51p-21F, -0x1.0b4612p-33F), biased << 31);
}
template <bool wide>
TTRT_LANES U f_cos(U x, const float*) {
  const U biased = add(mad(x, num(over_pi), num(0.5F)), num(rounding_bias));
  const U j = mad(add(biased, num(-rounding_bias)), num(2.0F), num(-1.0F));
  return sine_of<wide>(less_parts(x, j, -0x1.92p+0F, -0x1.fbp-12F, -0x1.51p-22F, -0x1.0b4612p-34F), biased << 31);
}

// tan on [-pi/4, pi/4], or -1 / tan in odd quadrants.
template <bool wide>
TTRT_LANES U f_tan(U x, const float*) {
  const U biased = mad(x, num(0.6366197466850281F), num(rounding_bias));
  const U j = add(biased, num(-rounding_bias));
  const U a = less_parts(x, j, -0x1.92p+0F, -0x1.fbp-12F, -0x1.51p-22F, -0x1.0b4612p-34F);
  const U s = mul(a, a);
  const Mask odd = (biased & 1) != 0;
  if constexpr (wide) {
    U t = poly(s, 0x1.555556p-2F, 0x1.111072p-3F, 0x1.ba5716p-5F, 0x1.620abcp-6F, 0x1.4787dp-7F, 0x1.2b404p-10F,
               0x1.fa9f82p-9F);
    t = mul(t, s);
    const U r = mad(t, a, a);
    const U lost = mad(t, a, mad(num(-1.0F), r, a));
    const U y = negate(copy_sign(inverse<1>(r), r));
    return select(odd, mad(mad(lost, y, mad(r, y, num(1.0F))), y, y), r);
  } else {
    const U t = mul(poly(s, 0x1.55953p-2F, 0x1.02b98p-3F, 0x1.4f1f4ep-4F), s);
    const U r = mad(t, a, a);
    return round_bf16(select(odd, negate(inverse<1>(r)), r));
  }
}
