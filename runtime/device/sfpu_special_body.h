// Inverse hyperbolic functions, cube root, digamma, shrinking functions, tests and steps on lanes.
// Included after sfpu_powers_body.h.

// ---- inverse hyperbolic functions, through the logarithm of 1 + x

TTRT_LANES U plain_root_of(U x, int steps) {
  const U half = add_exponent(x, -1);
  U y = 0x5F1110A0 - (x >> 1);
  for (int i = 0; i < steps; ++i) y = mul(y, sub(num(1.5F), mul(mul(half, y), y)));
  U a = mul(x, y);
  a = mad(mul(num(0.5F), sub(x, mul(a, a))), y, a);
  return select(is_zero(x), all(0), a);
}
template <bool wide>
TTRT_LANES U log1p_of(U a) {
  const U u = add(a, num(1.0F));
  const U e = set_mantissa(u - 0x3F400000, all(0));
  const U shift_up = mad(num(-0.25F), num(-4.0F) - e, num(-1.0F));
  U r = log_sum<wide>(add(a - e, shift_up), e);
  r = select((I)u >= (std::int32_t)infinity, u, r);
  return select(negative(u), all(quiet_nan), r);
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
