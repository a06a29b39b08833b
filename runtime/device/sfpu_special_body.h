// Inverse hyperbolic functions, cube root, digamma, shrinking functions, tests and steps on lanes.
// Included after sfpu_pairs_body.h.

// ---- inverse hyperbolic functions, through the logarithm of 1 + x

TTRT_LANES U plain_root_of(U x, int steps) {
  const U half = add_exponent(x, -1);
  U y = 0x5F1110A0 - (x >> 1);
  for (int i = 0; i < steps; ++i) y = mul(y, sub(num(1.5F), mul(mul(half, y), y)));
  U a = mul(x, y);
  a = mad(mul(num(0.5F), sub(x, mul(a, a))), y, a);
  return select(is_zero(x), all(0), a);
}
inline constexpr float squares_overflow = 268435456.0F;  // 2^28
inline constexpr float log_2 = 0.6931471805599453F;

template <bool wide>
TTRT_LANES U f_acosh(U x, const float*) {
  const U below = add(x, num(-1.0F));
  const Mask far = not_less(x, num(squares_overflow));
  const U near = add(below, plain_root_of(mul(add(x, num(1.0F)), below), wide ? 3 : 2));
  U r = log1p_of<wide>(through_dest<wide>(select(far, below, near)));
  r = select(far, add(r, num(log_2)), r);
  r = select(less(x, num(1.0F)), all(quiet_nan), r);
  r = select(sub(x, num(1.0F)) == 0, all(0), r);
  return wide ? r : round_bf16(r);
}

template <bool wide>
TTRT_LANES U f_asinh(U x, const float*) {
  const U a = magnitude(x), s = mul(x, x);
  const Mask far = not_less(a, num(squares_overflow)), middle = not_less(a, num(0.75F));
  const U root = plain_root_of(mad(x, x, num(1.0F)), wide ? 3 : 2);
  const U near = mad(s, positive_inverse<wide>(add(num(1.0F), root)), a);
  const U arg = select(far, add(a, num(-1.0F)), select(middle, near, all(0)));
  U r = log1p_of<wide>(through_dest<wide>(arg));
  r = select(far, add(r, num(log_2)), r);
  const U p = poly(s, 1.0F, -1.666652262e-01F, 7.495806366e-02F, -4.417778924e-02F, 2.785361186e-02F, -1.484858524e-02F,
                   4.375355784e-03F);
  r = copy_sign(select(middle, r, mul(a, p)), x);
  return wide ? r : round_bf16(r);
}

template <bool wide>
TTRT_LANES U f_atanh(U x, const float*) {
  const Mask outside = not_less(magnitude(x), num(1.0F));
  const U a = select(outside, all(0), magnitude(x));
  const U arg = mul(add(a, a), positive_inverse<wide>(sub(num(1.0F), a)));
  U r = copy_sign(mul(num(0.5F), log1p_of<wide>(through_dest<wide>(arg))), x);
  const U edge = sub(magnitude(x), num(1.0F));
  r = select((I)edge > 0, all(quiet_nan), select(edge == 0, copy_sign(all(infinity), x), r));
  return wide ? r : round_bf16(r);
}

// ---- cube root from a magic first guess of its inverse

template <bool wide>
TTRT_LANES U f_cbrt(U a, const float*) {
  constexpr float third = -0x1.555556p-10F;  // -1/3 in 256
  const U x = magnitude(a);
  const U f = mad(from_int(x), num(third), num(1418472267.0F / 256.0F + 8388608.0F));
  U y = f << 8;
  if constexpr (wide) {
    U c = mul(mul(x, y), mul(y, y));
    y = mul(y, mad(c, mad(num(0x1.04cdb2p-1F), c, num(-0x1.403e6cp0F)), num(0x1.c09806p0F)));
    U d = mul(x, mul(y, y));
    c = mad(d, y, num(-1.0F));
    const U t = mad(c, num(-0x1.555556p-2F), num(1.0F));
    return mul(copy_sign(d, a), mul(t, t));
  } else {
    const U d = mul(x, mul(y, y)), c = mul(d, y);
    const U t = mad(c, mad(num(0x1.04cdb2p-1F), c, num(-0x1.403e6cp0F)), num(0x1.c09806p0F));
    return round_bf16(mul(copy_sign(d, a), mul(t, t)));
  }
}

// ---- digamma: one rational function, a series of Bernoulli numbers above 102

// A cubic of the significand.
TTRT_LANES U short_log(U x) {
  const U m = set_exponent(x, I{} + 127);
  const U series = poly(m, -0x1.952992p+0F, 0x2.4f5388p+0F, -0xd.e712ap-4F, 0x2.44734p-4F);
  return select(is_zero(x), all(infinity | sign_bit), mad(signed_from_int(exponent(x)), num(0.692871F), series));
}
TTRT_LANES U f_digamma(U x, const float*) {
  const U n = poly(x, -3.3767190625e+05F, -6.0287050000e+05F, 2.1532992188e+05F, 2.1398454688e+05F, 1.9496867188e+04F,
                   2.4847094727e+02F, 8.7151519954e-02F);
  const U d =
      poly(x, 1.0F, 3.3760150000e+05F, 4.0892268750e+05F, 9.9775718750e+04F, 5.1246479492e+03F, 4.1351390839e+01F);
  const U quotient = mul(n, inverse<2>(d));
  const U rational = select(is_nan(quotient), copy_sign(all(infinity), n ^ d), quotient);
  const U r = inverse<2>(x), r2 = mul(r, r);
  const U bernoulli = sub(num(0.0833333333F), mul(r2, num(0.0083333333F)));
  const U series = sub(sub(short_log(x), mul(r, num(0.5F))), mul(r2, bernoulli));
  return select(greater(x, num(102.0F)), select(x == infinity, x, series), rational);
}

// ---- a modified Bessel function, log odds

// A polynomial in the square.
TTRT_LANES U f_i0(U x, const float*) {
  return poly(mul(x, x), 1.0F, 0.25F, 0.015625F, 0.0004340277778F, 0.000006781684028F, 6.78E-08F, 4.71E-10F, 2.40E-12F,
              9.39E-15F, 2.90E-17F, 7.24E-20F, 1.50E-22F);
}

// log(x / (1 - x)), each step stored.
template <bool wide>
TTRT_LANES U f_logit(U x, const float*) {
  const U rest = through_dest<wide>(sub(num(1.0F), x));
  return f_log<wide>(through_dest<wide>(f_divide<wide>(x, rest)), nullptr);
}

// ---- activations in pieces

// alpha p[0] for x > 0, p[1] below; beta 1/2.
template <bool wide>
TTRT_LANES U f_xielu(U x, const float* p) {
  const U half = mul(num(0.5F), x);
  const U above = mad(mul(num(p[0]), x), x, half);
  const U tiny = sub(num(-0.0000009999995427F), x);
  const U series = mul(mul(x, x), poly(x, 0.500000059604644775390625F, 0.16666667163372039794921875F,
                                       4.16650883853435516357421875e-2F, 8.333188481628894805908203125e-3F,
                                       1.400390756316483020782470703125e-3F, 1.99588379473425447940826416015625e-4F));
  const U turns = mul(x, num(log2_e)), z = maximum(num(-126.5F), turns);
  const U biased = add(z, num(rounding_bias)), k = sub(biased, num(rounding_bias));
  U r = mad(k, num(-0.6931152343750000F), x);
  r = mad(k, num(-3.19461832987e-05F), r);
  const U e = poly(r, 1.0F, 1.0F, 0.5F, 1.0F / 6.0F, 1.0F / 24.0F, 1.0F / 120.0F, 1.0F / 720.0F, 1.0F / 5040.0F);
  const U power = set_exponent(e, raw_exponent(e) + (I)(biased - std::bit_cast<std::uint32_t>(rounding_bias)));
  const U large = sub(sub(select(less(turns, num(-126.5F)), all(0), power), num(1.0F)), x);
  const Mask positive = (I)x > 0;
  U term = select(greater(x, num(-0.5F)), series, large);
  term = select(not_less(x, num(-1e-6F)), tiny, term);
  const U y = select(positive, above, mad(num(p[1]), term, half));
  return wide ? y : round_bf16(y);
}

template <bool wide>
TTRT_LANES U f_celu(U x, const float* p) {
  const U low = mul(num(p[0]), expm1_negative<wide>(mul(num(1.0F / p[0]), x)));
  const U r = select(negative(x), low, x);
  return wide ? r : round_bf16(r);
}
TTRT_LANES U f_hardmish(U x, const float*) { return mul(x, held(mad(x, num(0.5F), num(1.0F)), 0.0F, 1.0F)); }
// Zero from -p[0] to p[0].
TTRT_LANES U f_hardshrink(U x, const float* p) { return select(greater(magnitude(x), num(p[0])), x, all(0)); }
TTRT_LANES U f_softshrink(U x, const float* p) {
  const U r = select(greater(x, num(p[0])), sub(x, num(p[0])), all(0));
  return select(less(x, num(-p[0])), add(x, num(p[0])), r);
}
// p[1] where x is not above p[0].
TTRT_LANES U f_threshold(U x, const float* p) { return select(greater(x, num(p[0])), x, num(p[1])); }
// p[0] at zero.
TTRT_LANES U f_heaviside(U x, const float* p) { return select(is_zero(x), num(p[0]), truth((I)x > 0)); }
TTRT_LANES U f_rad2deg(U x, const float*) { return mul(x, num(57.29577951308232F)); }
TTRT_LANES U f_deg2rad(U x, const float*) { return mul(x, num(0.017453292519943295F)); }

// ---- tests

TTRT_LANES U f_signbit(U x, const float*) { return truth((I)x < 0); }
TTRT_LANES U f_isfinite(U x, const float*) { return truth(raw_exponent(x) != 255); }
TTRT_LANES U f_is_infinite(U x, const float*) { return truth(magnitude(x) == infinity); }
TTRT_LANES U f_is_nan(U x, const float*) { return truth(is_nan(x)); }
// Of the bits: -0 is not zero here.
TTRT_LANES U f_zero_bits(U x, const float*) { return truth(x == 0); }
TTRT_LANES U f_frac(U x, const float*) { return sub(x, truncated(x)); }

// ---- error functions' kin, Bessel, gamma

// 1 - erf(|x|) as two rational functions, up to 2.5 and up to 5, and 2 less that for negative x; a 16-bit store cuts.
TTRT_LANES U f_erfc(U x, const float*) {
  const U a = minimum(magnitude(x), num(5.0F));
  const Mask far = not_less(a, num(2.5F));
  const U n = select(
      far, poly(a, -2.5655237550e-05F, 2.1275576728e-05F, -6.6162156145e-06F, 9.1439767402e-07F, -4.7387182178e-08F),
      poly(a, 1.0000233650e+00F, -1.3375675678e+00F, 6.8185544014e-01F, -1.5691982210e-01F, 1.3746744953e-02F));
  const U d = select(
      far,
      poly(a, 1.0F, -1.6457208991e-01F, -2.0572184026e-01F, -1.3888636231e-01F, 1.2677097321e-01F, -2.1375391632e-02F),
      poly(a, 1.0F, -2.0801517367e-01F, 4.3667086959e-01F, -3.4568668343e-03F, 2.5104774162e-02F, 2.8375532478e-02F));
  const U r = mul(n, inverse<1>(d));
  return select((I)x < 0, sub(num(2.0F), r), r);
}

// sqrt(sqrt(t t - 6.8 log(1 - x x)) + t), t = -4.3 - log(1 - x x) / 2, with the logarithm of bfloat16 unrounded; a
// 16-bit store cuts.
TTRT_LANES U f_erfinv(U x, const float*) {
  const U a = mad(negate(x), x, num(1.0F));
  const U e = set_mantissa(a - 0x3F400000, all(0));
  U log = log_sum<false>(sub(a - e, num(1.0F)), e);
  log = select(is_zero(a), all(infinity | sign_bit), log);
  log = select(negative(a), all(quiet_nan), log);
  const U t = mad(num(-0.5F), log, num(-4.330746750799873F));
  const U s = newton_root(mad(t, t, negate(mul(log, num(6.802721088435375F)))));
  return copy_sign(newton_root(add(t, s)), x);
}

// exp(|x|) / sqrt(|x|) P(1 / |x|) above 10, with |x| at most 88.5; x P(x x) / Q(x x) below.
template <bool wide>
TTRT_LANES U f_i1(U x, const float*) {
  x = held(x, -88.5F, 88.5F);
  const U a = magnitude(x), t = mul(x, x);
  const U n = wide ? poly(t, 5.0000000000e-01F, 5.6819390506e-02F, 1.9247245509e-03F, 2.8397364076e-05F,
                          2.0916867527e-07F, 7.7937084564e-10F, 1.2293555930e-12F)
                   : poly(t, 4.9992737740e-01F, 5.4503594600e-02F, 1.6126291630e-03F, 2.0223499130e-05F);
  const U d = wide ? poly(t, 1.0F, -1.1361218989e-02F, 6.1268139689e-05F, -1.9771712800e-07F, 3.8127551116e-10F,
                          -3.1218170410e-13F, -3.0635529988e-16F, 7.4301498523e-19F)
                   : poly(t, 1.0F, -1.6242591070e-02F, 1.0333660750e-04F, -2.5076132990e-07F);
  U y = 0x5F1110A0 - (a >> 1);
  const U c = mul(negate(y), mul(a, y));
  y = mul(y, mad(c, add(num(2.2533049F), c), num(2.2825186F)));
  y = mad(mad(negate(y), mul(a, y), num(1.0F)), add_exponent(y, -1), y);
  const U tail = poly(mul(y, y), 3.9894228967e-01F, -1.4960495444e-01F, -4.6652925320e-02F, -4.3674591560e-02F,
                      -1.9748322314e-02F, -3.3467922914e-01F);
  const U far = copy_sign(mul(mul(wide ? exp_float(a) : exp_bf16(a), y), tail), x);
  const U r = select(greater(a, num(10.0F)), far, mul(mul(n, x), inverse<2>(d)));
  return wide ? r : round_bf16(r);
}

// Stirling's series of z = max(x, 1 - x), polynomials within 1/4 of 1 and 2; below 1/2 reflected.
TTRT_LANES U f_lgamma(U x, const float*) {
  const Mask reflected = less(x, num(0.5F));
  const U z = select(reflected, sub(num(1.0F), x), x), one = sub(z, num(1.0F)), two = sub(z, num(2.0F));
  const U log_z = f_log<true>(z, nullptr), inverse_z = inverse<2>(z);
  U r = add(mad(sub(z, num(0.5F)), log_z, negate(z)), num(0.9189385332046727F));
  r = mad(inverse_z, poly(mul(inverse_z, inverse_z), 0.0833333333F, -0.0027777777F, 0.0007936507F, -0.0005952380F), r);
  const U near_two = poly(two, 0.42278434F, 0.32246703F, -0.06735230F, 0.02058081F, -0.00738555F);
  const U near_one = poly(one, -0.57721566F, 0.82246703F, -0.40068563F, 0.27058081F, -0.20738555F);
  r = select(less(magnitude(two), num(0.25F)), mul(two, near_two), r);
  r = select(less(magnitude(one), num(0.25F)), mul(one, near_one), r);
  r = select(less(magnitude(sub(z, num(0.5F))), num(0.01F)), num(0.57236494F), r);
  U sine = f_sin<true>(mul(f_frac(x, nullptr), num(3.14159265358979323846F)), nullptr);
  sine = select(sub(x, f_floor(x, nullptr)) == 0, all(0), sine);
  const U reflection = sub(num(1.1447298858F), f_log<true>(magnitude(sine), nullptr));
  return select(reflected, sub(reflection, r), r);
}

// (-1)^(n+1) n! times the sum of 1 / (x + k)^(n+1) for six k and Euler's and Maclaurin's tail of the rest. n: p[0].
template <bool wide>
TTRT_LANES U f_polygamma(U x, const float* p) {
  constexpr int terms = 6, steps = wide ? 2 : 1;
  const int n = static_cast<int>(p[0]);
  const auto power = [](U base, int exponent) {
    U r = base;
    for (int i = 1; i < exponent; ++i) r = mul(r, base);
    return r;
  };
  U sum = all(0);
  for (int k = 0; k < terms; ++k)
    sum = add(sum, power(inverse<steps>(k == 0 ? x : add(x, num(static_cast<float>(k)))), n + 1));
  const float n1 = p[0] + 1, n3 = n1 * (p[0] + 2) * (p[0] + 3), n5 = n3 * (p[0] + 4) * (p[0] + 5);
  const U z = inverse<steps>(add(x, num(static_cast<float>(terms)))), s = mul(z, z);
  const U series = poly(s, 1.0F / p[0], n1 * (1.0F / 12.0F), -n3 * (1.0F / 720.0F), n5 * (1.0F / 30240.0F));
  sum = mad(power(z, n), mad(num(0.5F), z, series), sum);
  float factorial = n % 2 == 0 ? -1.0F : 1.0F;
  for (int i = 2; i <= n; ++i) factorial *= static_cast<float>(i);
  const U r = mul(sum, num(factorial));
  return wide ? r : round_bf16(r);
}

// x^3 Q(x^2) up to 1, x - tanh(x) beyond, with a cubic for the tangent in bfloat16.
template <bool wide>
TTRT_LANES U f_tanhshrink(U x, const float*) {
  const U a = magnitude(x), s = mul(x, x);
  const U q = wide ? poly(s, 3.3333331347e-01F, -1.3333128393e-01F, 5.3934831172e-02F, -2.1660288796e-02F,
                          8.2192532718e-03F, -2.5107525289e-03F, 4.2079269770e-04F)
                   : poly(s, 3.3329936862e-01F, -1.3223160803e-01F, 4.8076551408e-02F, -1.0762925260e-02F);
  U far;
  if constexpr (wide) {
    const U e = exp_float(mul(num(-2.0F), minimum(a, num(9.0F))));
    far = copy_sign(sub(a, mad(num(2.0F), inverse<1>(add(num(1.0F), e)), num(-1.0F))), x);
  } else {
    const U t = poly(a, 6.1829000893e-02F, 1.0561303143e+00F, -4.0859283753e-01F, 5.3348409333e-02F);
    far = sub(x, copy_sign(minimum(t, num(1.0F)), x));
  }
  const U r = select(greater(a, num(1.0F)), far, mul(mul(x, s), q));
  return wide ? r : round_bf16(r);
}
