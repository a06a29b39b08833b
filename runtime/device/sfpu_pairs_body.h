// Functions of two values on lanes. Included after sfpu_powers_body.h. Steps and constants are those of the op
// library's kernels; what is said to be fitted reproduces every recorded result.

// 32-bit Dest: the quotient of the significands, corrected once by its residual, and the exponents' difference put back
// in two factors; an operand that is no normal number meets the divisor's sign and exponent inverted. 16-bit Dest: a
// product with the reciprocal, then nearest even.
template <bool wide>
TTRT_LANES U f_divide(U a, U b) {
  if constexpr (wide) {
    const U ma = set_exponent(a, I{} + 127), mb = set_exponent(b, I{} + 127);
    const U r = inverse<1>(mb);
    U q = mul(ma, r);
    q = mad(mad(q, negate(mb), ma), r, q);
    const I ea = raw_exponent(a), eb = raw_exponent(b);
    const I e = ea - eb + 127 + raw_exponent(q);
    const I half = (I)((U)e >> 1);
    const U normal = mul(set_exponent(q, half), set_exponent(num(1.0F), e - half));
    U special = mul(a, set_mantissa(b, all(0)) ^ infinity);
    special = select(magnitude(b) > infinity, b, special);
    return select((ea >= 1) & (ea < 255) & (eb >= 1) & (eb < 255), normal, special);
  } else {
    U r = mul(a, inverse<2>(b));
    r = select(is_zero(b), copy_sign(all(infinity), a), r);
    r = select(is_zero(b) & is_zero(a), all(quiet_nan), r);
    return round_bf16_even(r);
  }
}
TTRT_LANES U f_maximum(U a, U b) { return maximum(a, b); }
TTRT_LANES U f_minimum(U a, U b) { return minimum(a, b); }

// a - trunc(a / b) b, brought below |b| and to the sign of a. The quotient is a product with the reciprocal.
template <bool wide>
TTRT_LANES U f_fmod(U a, U b) {
  const U size = magnitude(b);
  U r = mad(negate(truncated(mul(a, inverse<2>(b)))), b, a);
  r = select(not_less(magnitude(r), size), select((I)r >= 0, sub(r, size), add(r, size)), r);
  r = select((I)a >= 0, select(negative(r), add(r, size), r), select((I)r > 0, sub(r, size), r));
  r = select(sub(a, b) == 0, all(0), r);
  r = select(is_zero(b), all(quiet_nan), r);
  return wide ? r : round_bf16(r);
}

// a - floor(a / b) b, brought to the sign of b. By a number it is not rounded: a 16-bit store cuts.
TTRT_LANES U f_remainder_by_number(U a, U b) {
  U r = mad(negate(f_floor(mul(a, inverse<2>(b)), nullptr)), b, a);
  r = select(~is_zero(r) & ((I)(r ^ b) < 0), add(r, b), r);
  U less_b = sub(r, b);
  r = select(((I)b > 0) & ((I)a > 0) & ((I)less_b >= 0), less_b, r);
  less_b = sub(r, b);
  r = select(((I)b < 0) & ((I)a < 0) & ((I)less_b <= 0), less_b, r);
  return select(is_zero(b), all(quiet_nan), r);
}
template <bool wide>
TTRT_LANES U f_remainder(U a, U b) {
  const U r = f_remainder_by_number(a, b);
  return wide ? r : round_bf16(r);
}

template <bool wide>
TTRT_LANES U f_pow(U x, U p) {
  return power_of<wide>(x, p, (I)p < 0);
}

// The arc tangent of the smaller magnitude over the larger, turned into its octant.
template <bool wide>
TTRT_LANES U f_atan2(U y, U x) {
  const U ax = magnitude(x), ay = magnitude(y), most = maximum(ax, ay);
  const U a = mul(minimum(ax, ay), inverse<wide ? 2 : 1>(most)), s = mul(a, a);
  const U q = wide ? poly(s, -0x1.555558p-2F, 0x1.99938ap-3F, -0x1.24p-3F, 0x1.bd4p-4F, -0x1.48cp-4F, 0x1.93p-5F,
                          -0x1.4bcp-6F, 0x1.01cp-8F)
                   : poly(s, -0x1.54p-2F, 0x1.668p-3F, -0x1.de8p-5F);
  U r = mad(mul(q, s), a, a);
  r = select((I)ay >= (I)ax, select(ay == 0, all(0), sub(num(half_pi), r)), r);
  r = select((I)most > (I)all(infinity), most, r);
  r = select((ay == ax) & (most == infinity), num(half_pi * 0.5F), r);
  r = copy_sign(select((I)x < 0, sub(num(half_pi * 2.0F), r), r), y);
  return wide ? r : round_bf16(r);
}

// a log(b) with a cubic logarithm that Dest holds in between; not rounded.
template <bool wide>
TTRT_LANES U f_xlogy(U a, U b) {
  const U m = set_exponent(b, I{} + 127);
  const U series = poly(m, -1.49277612F, 2.11263230F, -0.72910421F, 0.10968964F);
  const U log = select(b == 0, all(infinity | sign_bit), mad(signed_from_int(exponent(b)), num(0.69314718F), series));
  return select((I)b < 0, all(quiet_nan), mul(through_dest<wide>(log), a));
}

// max(a, b) + log(1 + exp(-|a - b|)). bfloat16: the exponential is rounded, the logarithm a cubic in it whose
// coefficients are fitted: each is known to 1e-5.
template <bool wide>
TTRT_LANES U log_of_sum(U exponential) {
  if constexpr (wide) return log1p_of<true>(exponential);
  const U e = round_bf16(exponential);
  return mul(poly(e, 1.0F, -0.48877585F, 0.25708008F, -0.07513833F), e);
}
TTRT_LANES U apart(U a, U b) { return select((Mask)(a == b), all(0), magnitude(sub(a, b))); }
template <bool wide>
TTRT_LANES U negative_exp(U x) {
  return wide ? exp_float(negate(x)) : exp_bf16(negate(x));
}
template <bool wide>
TTRT_LANES U f_logaddexp(U a, U b) {
  const U r = add(maximum(a, b), log_of_sum<wide>(negative_exp<wide>(apart(a, b))));
  return wide ? r : round_bf16(r);
}
template <bool wide>
TTRT_LANES U f_logaddexp2(U a, U b) {
  const U log = log_of_sum<wide>(negative_exp<wide>(mul(apart(a, b), num(0.6931471805599453F))));
  const U r = mad(log, num(log2_e), maximum(a, b));
  return wide ? r : round_bf16(r);
}

// One unit of Dest's last place towards b; from zero to the smallest number of that sign.
template <bool wide>
TTRT_LANES U f_nextafter(U a, U b) {
  constexpr std::uint32_t step = wide ? 1 : 0x10000;
  const Mask up = less(a, b), down = greater(a, b), away = up & ((I)a >= 0), towards = down & ((I)a > 0);
  U r = select(away | (down & ~((I)a > 0)), a + step, select(towards | (up & ((I)a < 0)), a - step, a));
  r = select(is_zero(a) & ~is_zero(b), all(step) | (b & sign_bit), r);
  r = select(is_zero(a) & is_zero(b), b, r);
  return select(is_nan(a) | is_nan(b), all(quiet_nan), r);
}
