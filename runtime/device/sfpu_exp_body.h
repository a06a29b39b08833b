// The exponential family, logarithms, reciprocal and roots on lanes. Included after sfpu_lanes_body.h. `wide`: 32-bit
// Dest. Functions round to bfloat16 themselves where their kernel does.

// ---- exponentials

// 2^(t - 127) for t in [0, 256): the integer part becomes the exponent, a quadratic in the fraction the significand.
TTRT_LANES U exp2_quadratic(U t, float c0) {
  const U z = shift(significand(t), exponent(t));
  const U fraction = poly(from_int(mantissa(z)), c0, 7.839635491371155e-08F, 4.791750143340323e-15F);
  return set_exponent(fraction, raw_exponent(z));
}
inline constexpr float quadratic_c0 = 1.0017248F;
inline constexpr float log2_e = 1.4426950408889634F;

TTRT_LANES U exp_bf16(U x, float c0 = quadratic_c0) {
  return exp2_quadratic(held(mad(x, num(log2_e), num(127.0F)), 0.0F, 255.0F), c0);
}

// Magnitude (at most 32767) and sign of the integer nearest to x.
struct Rounded {
  U value;  // as float
  I integer;
};
TTRT_LANES Rounded round_int16(U x) {
  const U m = to_magnitude(x, 32767);
  const Mask minus = negative(x) & (m != 0);
  const U value = from_int(m) | ((U)minus & sign_bit);
  return {value, select(minus, -(I)m, (I)m)};
}

// r 2^i with overflow to `above` and underflow to `below`.
TTRT_LANES U scaled_by(U r, I i, U above, U below) {
  const I e = raw_exponent(r) + i;
  return select(e < 1, below, select(e < 255, set_exponent(r, e), above));
}

TTRT_LANES U exp_float(U a) {
  const Rounded j = round_int16(mul(num(1.442695F), a));
  U f = mad(j.value, num(-6.93145752e-1F), a);
  f = mad(j.value, num(-1.42860677e-6F), f);
  const U y = poly(f, 1.0F, 4.99999851e-1F, 1.66664720e-1F, 4.16695364e-2F, 8.37312452e-3F, 1.37805939e-3F);
  const U r = mad(y, f, num(1.0F));
  const U below = mul(y - 1, num(0.0F));  // NaN for a NaN, whose mantissa is 1; else 0
  return scaled_by(r, j.integer, add(below, all(infinity)), below);
}

template <bool wide>
TTRT_LANES U f_exp(U x, const float*) {
  if constexpr (wide) return exp_float(x);
  return round_bf16(exp_bf16(x, 1.001953125F));  // the constant is a 16-bit immediate here
}

// 256 (x / ln 2 + 127) less an adjustment, as an integer whose bits are the result's upper 17.
TTRT_LANES U exp_schraudolph(U x) {
  const U t = mad(maximum(x, num(-88.5F)), num(369.329925537109375F), num(32500.818359375F));
  return to_magnitude(t, 65535) << 15;
}

TTRT_LANES U f_exp_approx(U x, const float*) { return exp_schraudolph(x); }

// exp(p[0] x), as attention computes it: the accurate exponential of the product, the approximate one with the scale
// folded into its constants, and one for the difference of two maxima: 2^k times a polynomial of degree 2, or 4 with
// 32-bit Dest; k is rounded to 8 bits, ties away.
template <bool wide>
TTRT_LANES U f_exp_scaled(U x, const float* p) {
  const U scaled = mul(x, num(p[0]));
  return wide ? exp_float(scaled) : round_bf16(exp_bf16(scaled));
}
TTRT_LANES U f_exp_scaled_approx(U x, const float* p) {
  const U t = mad(maximum(x, num(-88.5F / p[0])), num(369.329925537109375F * p[0]), num(32500.818359375F));
  return to_magnitude(t, 65535) << 15;
}
template <bool wide>
TTRT_LANES U f_exp_decay(U x, const float* p) {
  const U scaled = mul(x, num(p[0])), turns = mul(scaled, num(1.44269504088896340736F));
  const U m = to_magnitude(turns, 127), k = from_int(m) | (turns & sign_bit);
  const U r = mad(k, num(-0.69314718055994530942F), scaled);
  const U y = wide ? poly(r, 1.0000001510806179F, 0.99996228117047652F, 0.49998365704615426F, 0.16792157982882225F,
                          4.1959439860014343e-2F)
                   : poly(r, 0.999848792924395313F, 1.01508760098521057F, 0.506283670567455689F);
  const Mask minus = (I)turns < 0;
  const U result = mul(y, (U)(select(minus, -(I)m, (I)m) + 127) << 23);
  return select(minus & (m == 127), all(0), wide ? result : round_bf16(result));
}

TTRT_LANES U exp2_float(U x) {
  const Rounded j = round_int16(x);
  const U f = sub(x, j.value);
  const U y = poly(f, 0x1.c6afd8p-5F, 0x1.3b4p-7F, 0x1.5f4p-10F, 0x1.41cp-13F);
  U r = mad(y, f, num(0x1.ebfba0p-3F));
  r = mad(r, f, num(0x1.62e42ep-1F));
  r = mad(r, f, num(1.0F));
  return scaled_by(r, j.integer, mul(y, all(infinity)), all(0));
}

template <bool wide>
TTRT_LANES U f_exp2(U x, const float*) {
  if constexpr (wide) return exp2_float(x);
  return round_bf16(exp2_quadratic(held(add(x, num(127.0F)), 0.0F, 255.0F), quadratic_c0));
}

inline constexpr float rounding_bias = 12582912.0F;  // 1.5 * 2^23

// The tail of expm1 in either width: 0.5 * 2^i - 0.5 + ... saturates where |j - 2| >= 127.
TTRT_LANES U expm1_saturated(U r, U jm2) {
  const U top = select(negative(jm2), num(-0.5F), mul(jm2, all(infinity)));
  return select(to_magnitude(jm2, 127) >= 127, top, r);
}

template <bool wide>
TTRT_LANES U f_expm1(U a, const float*) {
  const U biased = mad(num(1.442695F), a, num(rounding_bias));
  const U j = sub(biased, num(rounding_bias));
  const U half = num(0.5F), scale = (biased << 23) + half;
  if constexpr (wide) {
    U f = mad(j, num(-0.693145752F), a);
    f = mad(j, num(-1.42860677e-6F), f);
    const U s = mul(f, f);
    U r = poly(f, 1.666667163e-1F, 4.166680202e-2F, 8.333439939e-3F, 1.393107930e-3F, 1.974105835e-04F);
    r = mad(r, f, half - 1);
    const U jm1 = add(j, num(-1.0F));
    r = mad(r, s, select(jm1 == 0, add(f, half), f));
    const U y = sub(scale, half);
    const U x = sub(sub(scale, y), half);
    const U general = expm1_saturated(add(mad(r, scale, x), y), add(jm1, num(-1.0F)));
    r = select((j != 0) & (jm1 != 0), general, r);
    return select(j != 0, mul(r, num(2.0F)), r);
  } else {
    const U f = mad(j, num(-0.6931471805599453F), a);
    U r = poly(f, 0.5F, 1.666259766e-01F, 4.177856445e-02F, 8.361816406e-03F);
    r = mad(r, mul(f, f), f);
    const U general = expm1_saturated(mad(scale, r, sub(scale, half)), add(j, num(-2.0F)));
    return round_bf16(select(j != 0, mul(general, num(2.0F)), r));
  }
}

// exp(x) - 1 for negative x, as elu uses it.
template <bool wide>
TTRT_LANES U expm1_negative(U x) {
  x = maximum(x, num(-87.0F));
  const U biased = mad(x, num(log2_e), num(rounding_bias));
  const U k = sub(biased, num(rounding_bias));
  U r = mad(k, num(-0.6931152343750000F), x);
  r = mad(k, num(-3.19461832987e-05F), r);
  U h;
  if constexpr (wide) {
    h = poly(r, 1.0F, 0.5F, 1.6666504741e-01F, 4.1666239500e-02F, 8.3691505715e-03F, 1.3948583510e-03F);
  } else {
    h = poly(r, 1.0F, 4.9999371171e-01F, 1.6666433215e-01F, 4.1875664145e-02F, 8.3751315251e-03F);
  }
  h = mul(r, h);
  const U power = set_exponent(num(1.0F), (I)(biased - 0x4B3FFF81));
  return mad(power, h, sub(power, num(1.0F)));
}

// ---- reciprocal and roots

// A quadratic estimate of 1/m for the significand m, Newton steps, and 2^-e from inverted exponent bits.
template <int steps>
TTRT_LANES U inverse(U x) {
  const U minus_m = set_mantissa(num(-1.0F), x);
  U y = poly(minus_m, 2.121212482452392578125F, 1.4545459747314453125F, 0.3232325017452239990234375F);
  const U scale = mul(set_mantissa(~x, all(0)), num(0.5F));
  for (int i = 0; i < steps; ++i) y = mad(y, mad(minus_m, y, num(1.0F)), y);
  return copy_sign(mul(y, scale), x);
}

template <bool wide>
TTRT_LANES U f_reciprocal(U x, const float*) {
  if constexpr (wide) return inverse<2>(x);
  return round_bf16(inverse<2>(x));
}

// Blackhole has an instruction for a first guess of 7 bits: the reciprocal of the middle of the 2^-7 that it lies in.
TTRT_LANES U guess_blackhole(U x) {
  const U m = magnitude(x), twice = ((x >> 15) & 0xFE) + 257;
  const U y = ((253 - (m >> 23)) << 23) | (((65536 + (twice >> 1)) / twice - 128) << 16);
  return copy_sign(select(m < 0x800000, all(infinity), select(m < 0x7E800000, y, all(0))), x);
}
TTRT_LANES U f_reciprocal_guess_blackhole(U x, const float*) { return guess_blackhole(x); }

// Its Newton steps, of an operand that is no zero, infinity or NaN; else the guess.
template <int steps>
TTRT_LANES U inverse_blackhole(U x) {
  const U guess = guess_blackhole(x), t = mad(x, guess, num(-2.0F));
  U y = mad(guess, negate(t), all(sign_bit));
  if constexpr (steps > 1) y = mad(y, negate(mad(x, y, num(-2.0F))), all(sign_bit));
  return select((I)t < 0, y, guess);
}

// 16-bit Dest: an integer correction of the guess. 32-bit Dest: one step of fourth order.
template <bool wide>
TTRT_LANES U f_reciprocal_blackhole(U v, const float*) {
  const U x = wide ? v : add(all(0), v), y = wide ? guess_blackhole(v) : guess_blackhole(v) | 0x8000;
  if constexpr (!wide) return y + (mad(x, y, num(-1.0F)) >> 16);
  const U e = mad(negate(x), y, num(1.0F));
  const U t = minimum(mad(mad(e, e, e), e, e), num(1.0F));
  return mad(t, y, y);
}

// Two steps of the square root of 23 bits from a magic first guess of 1 / sqrt(x). The fast variants (`checked` false)
// leave what comes out for numbers below zero: of -1 negative infinity.
template <bool reciprocal, bool checked = true>
TTRT_LANES U root(U x) {
  U y = 0x5F1110A0 - (x >> 1);
  const U c = mul(negate(y), mul(x, y));
  y = mul(y, mad(c, add(num(2.2533049F), c), num(2.2825186F)));
  const U xy = mul(x, y);
  const U from_infinity = infinity - x;
  // One instruction, as the library's compiler makes of a product that only a sum takes. Of the two recorded float32
  // tensors of rsqrt the first (unary_f32_rsqrt) was compiled to two here, though its sqrt, which shares this line, and
  // the second (F_f32_rsqrt) were not. Nothing else tells the two calls apart; it is 1 ulp in 14 % of the first.
  const U rest = mad(negate(y), xy, num(1.0F));
  U r;
  if constexpr (reciprocal) {
    r = select((from_infinity != 0) & (magnitude(x) != 0), mad(rest, add_exponent(y, -1), y), from_infinity);
  } else {
    r = select(((I)from_infinity > 0) | (magnitude(x) == 0), mad(rest, mul(num(0.5F), xy), xy), y);
  }
  return checked ? select(negative(x), all(quiet_nan), r) : r;
}

template <bool wide>
TTRT_LANES U f_sqrt(U x, const float*) {
  if constexpr (wide) return root<false>(x);
  return round_bf16(root<false>(x));
}

template <bool wide>
TTRT_LANES U f_rsqrt(U x, const float*) {
  if constexpr (wide) return root<true>(x);
  return round_bf16(root<true>(x));
}

template <bool wide>
TTRT_LANES U f_sqrt_fast(U x, const float*) {
  const U r = root<false, false>(x);
  return wide ? r : round_bf16(r);
}

template <bool wide>
TTRT_LANES U f_rsqrt_fast(U x, const float*) {
  const U r = root<true, false>(x);
  return wide ? r : round_bf16(r);
}

// ---- logarithms: x = 2^k m with m in [0.75, 1.5); k is carried as a difference of exponent bits

// log(1 + m)
template <bool wide>
TTRT_LANES U log_near(U m) {
  U r;
  if constexpr (wide) {
    r = poly(m, -0.5F, 0x1.555572p-2F, -0x1.00001ap-2F, 0x1.998p-3F, -0x1.55p-3F, 0x1.274p-3F, -0x1.0c4p-3F,
             0x1.b84p-4F, -0x1.92cp-5F);
  } else {
    r = poly(m, -0x1.008p-1F, 0x1.744p-2F, -0.25F);
  }
  return mad(r, mul(m, m), m);
}
TTRT_LANES U signed_bits(U e) { return copy_sign(from_int((U)select((I)e < 0, -(I)e, (I)e)), e); }
// log(1 + m) + k log 2, `e` being the bits of k.
template <bool wide>
TTRT_LANES U log_sum(U m, U e) {
  return mad(signed_bits(e), num(0.693147182F * 1.19209290e-7F), log_near<wide>(m));
}

enum class Log : std::uint8_t { natural, scaled, binary };
template <bool wide, Log kind>
TTRT_LANES U logarithm(U x, float scale) {
  const U a = mad(x, num(1.0F), all(0));
  const U e = set_mantissa(a - 0x3F400000, all(0)), m = sub(a - e, num(1.0F));
  U r;
  if constexpr (kind == Log::binary && wide) {
    r = mad(log_near<wide>(m), num(scale), mul(signed_bits(e), num(1.19209290e-7F)));
  } else {
    r = log_sum<wide>(m, e);
    if constexpr (kind != Log::natural) r = mul(r, num(scale));
  }
  const U lower = add_exponent(a, -1);  // zero wraps to infinity
  r = select(raw_exponent(lower) == 255, mul(r, lower), r);
  r = select(negative(a), all(quiet_nan), r);
  return wide ? r : round_bf16(r);
}

template <bool wide>
TTRT_LANES U f_log(U x, const float*) {
  return logarithm<wide, Log::natural>(x, 0);
}
template <bool wide>
TTRT_LANES U f_log2(U x, const float*) {
  return logarithm<wide, Log::binary>(x, log2_e);
}
template <bool wide>
TTRT_LANES U f_log10(U x, const float*) {
  return logarithm<wide, Log::scaled>(x, 0.43429448190325182F);
}

// log(1 + a)
template <bool wide>
TTRT_LANES U log1p_of(U a) {
  const U u = add(a, num(1.0F));
  const U e = set_mantissa(u - 0x3F400000, all(0));
  const U shift_up = mad(num(-0.25F), num(-4.0F) - e, num(-1.0F));
  U r = log_sum<wide>(add(a - e, shift_up), e);
  r = select((I)u >= (std::int32_t)infinity, u, r);
  return select(negative(u), all(quiet_nan), r);
}
template <bool wide>
TTRT_LANES U f_log1p(U a, const float*) {
  const U r = log1p_of<wide>(a);
  return wide ? r : round_bf16(r);
}
