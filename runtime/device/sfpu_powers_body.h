// Inverse trigonometry, hyperbolic functions, powers, selu and rounding to the nearest integer on lanes. Included after
// sfpu_functions_body.h. No recorded results exist for these: the order of operations and the constants are those of
// the kernels, fused where the compiler fuses.

// 1 / x from a magic first guess; for 0 < x < 2^24.
template <bool wide>
TTRT_LANES U positive_inverse(U x) {
  U y = 0xFEF392E0 - x;  // of -1 / x
  U e = mad(x, y, num(1.0F));
  if constexpr (wide) {
    y = mad(y, e, y);
    e = mad(x, y, num(1.0F));
  }
  const U p = mad(e, e, e);
  y = negate(y);
  return mad(y, p, y);
}

inline constexpr float half_pi = 1.5707963705062866F;
TTRT_LANES Mask at_most(U a, U b) { return (I)sub(a, b) <= 0; }

// ---- inverse trigonometry

template <bool wide>
TTRT_LANES U f_atan(U x, const float*) {
  U a = magnitude(x);
  const U beyond = add(a, num(-1.0F));
  if constexpr (wide) {
    const Mask far = (I)beyond >= 0;
    a = select(far, positive_inverse<true>(a), a);
    const U s = mul(a, a);
    const U q = poly(s, -0x1.555558p-2F, 0x1.99938ap-3F, -0x1.24p-3F, 0x1.bd4p-4F, -0x1.48cp-4F, 0x1.93p-5F,
                     -0x1.4bcp-6F, 0x1.01cp-8F);
    const U r = mad(mul(q, s), a, a);
    return copy_sign(select(far, sub(num(half_pi), r), r), x);
  } else {
    const Mask far = (I)beyond > 0;
    a = select(far, inverse<2>(a), a);
    U r = poly(mul(a, a), 0.999787867069244384765625F, -0.325808584690093994140625F, 0.1555790007114410400390625F,
               -4.4326744973659515380859375e-2F);
    r = mul(r, a);
    r = copy_sign(select(far, sub(num(half_pi), r), r), x);
    return round_bf16(select(is_nan(x), all(quiet_nan), r));
  }
}

// The square root of a number in [0, 1] by two Newton steps.
TTRT_LANES U newton_root(U x) {
  const U half = mul(x, num(-0.5F));
  U y = 0x5F370000 - (x >> 1);
  for (int i = 0; i < 2; ++i) y = mul(mad(mul(y, y), half, num(1.5F)), y);
  return select(is_zero(x), x, mul(y, x));
}

// asin to bfloat16's precision on [-1, 1]: a polynomial up to 5/8, pi/2 - 2 asin(sqrt((1 - |x|) / 2)) beyond. Out of the
// domain it is NaN; the recorded results show there what the lane held before (numerics.md, open).
TTRT_LANES U short_asin(U z) {
  return mul(z, poly(mul(z, z), 0.999978601932525634765625F, 0.16771225631237030029296875F,
                     0.06381262838840484619140625F, 0.083148844540119171142578125F));
}
TTRT_LANES U asin_bf16(U x) {
  const U a = magnitude(x);
  const U rest = short_asin(newton_root(mul(sub(num(1.0F), a), num(0.5F))));
  return copy_sign(select(at_most(a, num(0.625F)), short_asin(a), mad(rest, num(-2.0F), num(half_pi))), x);
}

// The square root as the float32 kernels use it, without its special cases.
TTRT_LANES U plain_root(U x) {
  U y = 0x5F1110A0 - (x >> 1);
  const U c = mul(negate(y), mul(x, y));
  y = mul(y, mad(c, add(num(2.2533049F), c), num(2.2825186F)));
  const U xy = mul(x, y);
  return mad(mad(negate(y), xy, num(1.0F)), mul(num(0.5F), xy), xy);
}

// |x| below 0.5625, else sqrt((1 - |x|) / 2).
struct Reduced {
  U value, beyond, half_rest;  // beyond: |x| - 0.5625; half_rest: (1 - |x|) / 2, below 0 out of the domain
};
TTRT_LANES Reduced reduce_asin(U x) {
  const U a = magnitude(x), half_rest = mul(sub(num(1.0F), a), num(0.5F)), beyond = sub(a, num(0.5625F));
  return {select((I)beyond < 0, a, plain_root(half_rest)), beyond, half_rest};
}

template <bool wide>
TTRT_LANES U f_asin(U x, const float*) {
  if constexpr (wide) {
    const auto [a, beyond, half_rest] = reduce_asin(x);
    const U s = mul(a, a);
    const U p = mul(poly(s, 0x1.5556dcp-3F, 0x1.329f7cp-4F, 0x1.7dbc50p-5F, 0x1.365f44p-6F, 0x1.9e0000p-5F), s);
    U r = mad(p, a, a);
    r = copy_sign(select((I)beyond >= 0, mad(num(-2.0F), r, num(half_pi)), r), x);
    return select(negative(half_rest), all(quiet_nan), r);
  } else {
    const U r = asin_bf16(x);
    return round_bf16(select(at_most(magnitude(x), num(1.0F)), r, all(quiet_nan)));
  }
}

template <bool wide>
TTRT_LANES U f_acos(U x, const float*) {
  if constexpr (wide) {
    const auto [value, beyond, half_rest] = reduce_asin(x);
    U a = copy_sign(value, x);
    const U s = mul(a, a);
    const U p =
        mul(poly(s, 0x1.555536p-3F, 0x1.3345f4p-4F, 0x1.6a9354p-5F, 0x1.15a984p-5F, 0x1.ca0000p-8F, 0x1.834000p-5F), s);
    a ^= beyond & sign_bit;
    U r = mad(p, a, a);
    r = select((I)sub(x, num(0.5625F)) < 0, add(r, num(half_pi)), r);
    r = select((I)beyond >= 0, add(r, r), r);
    return select(negative(half_rest), all(quiet_nan), r);
  } else {
    const U r = sub(num(half_pi), asin_bf16(x));
    return round_bf16(select(at_most(magnitude(x), num(1.0F)), r, all(quiet_nan)));
  }
}

// ---- hyperbolic functions, a quarter of exp or expm1 at a time, so that 2^i does not overflow early

// |x| = i ln 2 + f with i in [0, 255].
struct Turns {
  U i, f;
};
template <bool wide>
TTRT_LANES Turns turns_of(U x) {
  const U i = to_magnitude(mul(x, num(1.442695F)), 255), j = from_int(i), a = magnitude(x);
  if constexpr (!wide) return {i, mad(j, num(-0.6931471805599453F), a)};
  return {i, mad(j, num(-1.42860677e-6F), mad(j, num(-0.693145752F), a))};
}

template <bool wide>
TTRT_LANES U f_cosh(U x, const float*) {
  const auto [i, f] = turns_of<wide>(x);
  const U r = wide ? poly(f, 1.0F, 1.0F, 4.99999851e-1F, 1.66664720e-1F, 4.16695364e-2F, 8.37312452e-3F, 1.37805939e-3F)
                   : poly(f, 1.0F, 0.999963462F, 0.500122011F, 0.168174848F, 0.038877178F);
  const U power = i + 125;
  const U q = select((I)power < 255, mul(r, power << 23), mul(magnitude(x), all(infinity)));
  const U y = add(q, q), rest = mul(positive_inverse<wide>(q), num(0.125F));
  const U sum = select(exponent(q) < 24, add(y, rest), y);
  return wide ? sum : round_bf16(sum);
}

template <bool wide>
TTRT_LANES U f_sinh(U x, const float*) {
  const auto [i, f] = turns_of<wide>(x);
  U r = wide ? poly(f, 4.999999702e-1F, 1.666667163e-1F, 4.166680202e-2F, 8.333439939e-3F, 1.393107930e-3F,
                    1.974105835e-04F)
             : poly(f, 0.5F, 1.666259766e-01F, 4.177856445e-02F, 8.361816406e-03F);
  r = mad(r, mul(f, f), f);
  const U scale = (i << 23) + num(0.25F);
  const U q = select((I)i < 130, mad(r, scale, sub(scale, num(0.25F))), mul(magnitude(x), all(infinity)));
  const U inverse = positive_inverse<wide>(mad(num(4.0F), q, num(1.0F)));
  const U twice = add(q, q);
  const U y = select(exponent(q) < 23, mad(twice, inverse, twice), twice);
  const U result = copy_sign(select(exponent(q) >= -27, y, x), x);
  return wide ? result : round_bf16(result);
}

// ---- powers

TTRT_LANES U signed_from_int(I x) { return (U) __builtin_convertvector(x, F); }

// A float >= 0 to an integer, cut; the largest one from 2^31 on.
TTRT_LANES U to_int_positive(U x) {
  const I e = exponent(x);
  return select(e < 0, all(0), select(e > 30, all(0x7FFFFFFF), shift(significand(x), e - 23)));
}

// What either width makes of a zero or negative base: the sign of an odd power, NaN for powers that are no integers.
TTRT_LANES U power_special(U base, U power, U y, Mask below_zero) {
  const Rounded whole = round_int16(power);
  y = select(is_zero(base) & below_zero, all(quiet_nan), y);
  const U odd = copy_sign(y, (U)whole.integer << 31);
  const U of_negative = select(sub(whole.value, power) == 0, odd, all(quiet_nan));
  return select(negative(base), of_negative, y);
}

// 2^(p log2 |x|): a cubic for the logarithm, a quadratic in integers for the power.
TTRT_LANES U power_bf16(U x, U p, Mask below_zero) {
  const U m = set_exponent(magnitude(x), I{} + 127);
  const U series = poly(m, -0x1.952992p+0F, 0x2.4f5388p+0F, -0xd.e712ap-4F, 0x2.44734p-4F);
  const U log2 = mad(series, num(log2_e), signed_from_int(exponent(x)));
  U z = mul(p, log2);
  z = select(less(z, num(-127.0F)), num(-127.0F), z);
  z = to_int_positive(add(add_exponent(z, 23), num(1065353216.0F)));
  const U high = mul(num(0.40196114e-7F), from_int(0xF94EE7 + mantissa(z))), low = from_int(0x560E + mantissa(z));
  const U y = set_exponent(to_int_positive(mul(high, low)), exponent(z) + 127);
  return round_bf16(power_special(x, p, y, below_zero));
}

// log2 |x| = e + 2 atanh((m - 1) / (m + 1)) / ln 2 with m within sqrt(2) of 1; p e in two exact parts.
TTRT_LANES U power_float(U x, U power, Mask below_zero) {
  U m = set_exponent(magnitude(x), I{} + 127);
  const Mask upper = not_less(m, num(1.4142135381698608F));
  m = select(upper, add_exponent(m, -1), m);
  const U e = signed_from_int(exponent(x) - (upper));
  const U d = add(m, num(1.0F));
  U inverse = mad(d, num(-0.244F), num(1.003F));
  for (int i = 0; i < 3; ++i) inverse = mul(inverse, mad(negate(d), inverse, num(2.0F)));
  const U z = mad(m, inverse, negate(inverse));
  const U series =
      poly(mul(z, z), 1.0F, 0.3333333333333333F, 0.2F, 0.14285714285714285F, 0.1111111111111111F, 0.09090909090909091F);
  const U log_m = mul(num(2.0F), mul(z, series));
  const U split = mul(power, num(4097.0F)), high = sub(split, sub(split, power));
  const U whole = mul(high, e), rest = mad(sub(power, high), e, mul(power, mul(log_m, num(log2_e))));
  const U sum = add(whole, rest), lost = sub(rest, sub(sum, whole));
  const U s = maximum(sum, num(-0x7e.ffff8p0F));
  const U biased = add(s, num(rounding_bias));
  const U f = add(sub(s, sub(biased, num(rounding_bias))), lost);
  const U r = mad(f, num(0.693359375F), mul(f, num(-2.12194440e-4F)));
  U y = poly(r, 1.0F, 1.0F, 0.5F, 1.0F / 6.0F, 1.0F / 24.0F, 1.0F / 120.0F, 1.0F / 720.0F, 1.0F / 5040.0F);
  y = set_exponent(y, raw_exponent(y) + (I)(biased - std::bit_cast<std::uint32_t>(rounding_bias)));
  y = select(not_less(s, num(128.0F)), all(infinity), y);
  return power_special(x, power, y, below_zero);
}

template <bool wide>
TTRT_LANES U power_of(U x, U power, Mask below_zero) {
  return wide ? power_float(x, power, below_zero) : power_bf16(x, power, below_zero);
}
template <bool wide>
TTRT_LANES U f_power(U x, const float* p) {
  return power_of<wide>(x, num(p[0]), p[0] >= 0.0F ? Mask{} : ~Mask{});
}

// By repeated squaring; the exponent is an integer from 0 to 2^24. Not rounded: a 16-bit store cuts.
TTRT_LANES U f_power_int(U x, const float* p) {
  const auto n = static_cast<std::uint32_t>(p[0]);
  if (n == 0) return num(1.0F);
  U r = x;
  for (std::uint32_t rest = n - 1; rest > 0; rest >>= 1) {
    if ((rest & 1) != 0) r = mul(r, x);
    x = mul(x, x);
  }
  return r;
}

// ---- selu, rounding

template <bool wide>
TTRT_LANES U f_selu(U x, const float* p) {
  const U low = mul(num(p[0] * p[1]), expm1_negative<wide>(x));
  const U r = select(negative(x), low, mul(num(p[0]), x));
  return wide ? r : round_bf16(r);
}

// Ties to even; a zero result is +0.
TTRT_LANES U f_round(U x, const float*) {
  const U v = mul(x, num(1.0F));
  const U whole = add(add(magnitude(v), num(8388608.0F)), num(-8388608.0F));
  return mul(num(1.0F), select(exponent(v) < 23, copy_sign(whole, v), v));
}
