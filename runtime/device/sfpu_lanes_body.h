// Registers and instructions of the vector unit, some lanes at a time. Included inside an anonymous namespace by one
// .cpp file per instruction set, after `vector_bytes` is defined.
//
// A register is the bits of a float32 per lane; integer operators act on the bits, arithmetic has names. Conditions are
// masks of all ones or zeros per lane.

using U = std::uint32_t __attribute__((vector_size(vector_bytes)));
using I = std::int32_t __attribute__((vector_size(vector_bytes)));
using F = float __attribute__((vector_size(vector_bytes)));
using Mask = I;
inline constexpr int lane_count = vector_bytes / 4;

#define TTRT_LANES [[gnu::always_inline]] inline

TTRT_LANES U all(std::uint32_t bits) { return U{} + bits; }
TTRT_LANES U num(float value) { return all(std::bit_cast<std::uint32_t>(value)); }
TTRT_LANES U select(Mask m, U a, U b) { return m ? a : b; }
TTRT_LANES I select(Mask m, I a, I b) { return m ? a : b; }
TTRT_LANES I larger(I a, I b) { return a > b ? a : b; }

inline constexpr std::uint32_t sign_bit = 0x80000000;
inline constexpr std::uint32_t infinity = 0x7F800000;
inline constexpr std::uint32_t quiet_nan = 0x7FC00000;

TTRT_LANES I raw_exponent(U x) { return (I)((x >> 23) & 255); }
TTRT_LANES I exponent(U x) { return raw_exponent(x) - 127; }
TTRT_LANES U mantissa(U x) { return x & 0x7FFFFF; }
TTRT_LANES U significand(U x) { return (x & 0x7FFFFF) | 0x800000; }
TTRT_LANES U set_exponent(U x, I e) { return (x & 0x807FFFFF) | (((U)e & 255) << 23); }
TTRT_LANES U set_mantissa(U x, U m) { return (x & 0xFF800000) | (m & 0x7FFFFF); }
TTRT_LANES U copy_sign(U x, U from) { return (x & 0x7FFFFFFF) | (from & sign_bit); }
TTRT_LANES U magnitude(U x) { return x & 0x7FFFFFFF; }
TTRT_LANES U negate(U x) { return x ^ sign_bit; }
// Exponent + by; an exponent of 255 stays.
TTRT_LANES U add_exponent(U x, int by) {
  return select(raw_exponent(x) == 255, x, set_exponent(x, raw_exponent(x) + by));
}
// Left for a positive amount, right (with zeros) for a negative one; the amount is taken modulo 32.
TTRT_LANES U shift(U x, I by) { return select(by >= 0, x << ((U)by & 31), x >> ((U)(-by) & 31)); }

// Integers below 2^31 -> float, nearest even.
TTRT_LANES U from_int(U x) { return (U) __builtin_convertvector((I)x, F); }

// m >> by with every lost bit ORed into the last one; 0 from 27 on: what is shifted out entirely leaves no trace.
TTRT_LANES U shift_sticky(U m, I by) {
  const U d = (U)(by > 31 ? I{} + 31 : by);
  const U r = m >> d;
  const U kept = r | ((U)((r << d) != m) & 1);
  return select(by >= 27, all(0), kept);
}

// NaN and infinity rules of the multiply-add, `r` being the result of operands taken for numbers. A NaN has the
// product's sign where it comes from the product, else that of c, and what `r` has for a mantissa besides its last bit.
TTRT_LANES U mad_special(U a, U b, U c, U r) {
  const I ea = raw_exponent(a), eb = raw_exponent(b), ec = raw_exponent(c);
  const U product_sign = (a ^ b) & sign_bit, sign_c = c & sign_bit;
  const Mask top_a = ea == 255, top_b = eb == 255, top_c = ec == 255;
  const Mask product = top_a | top_b | (ea + eb - 127 >= 255), nan_c = top_c & (mantissa(c) != 0);
  const Mask nan_product = (top_a & ((mantissa(a) != 0) | (eb == 0))) | (top_b & ((mantissa(b) != 0) | (ea == 0))) |
                           (product & top_c & ~nan_c & (product_sign != sign_c));
  const U nan = select(nan_product, product_sign, sign_c) | mantissa(r) | (infinity | 1);
  r = select(product, product_sign | infinity, r);
  r = select(top_c, sign_c | infinity, r);
  return select(nan_product | nan_c, nan, r);
}

// a * b + c, one rounding to nearest even. The product, 1 to 4, keeps 26 bits behind its binary point, the last one
// sticky (so 27 or 28 bits in all): it is aligned with c by the factors' exponents, not normalised first. Denormals in
// and out are +0, a zero result is +0, a product below the smallest normal number is dropped.
TTRT_LANES U mad_inline(U a, U b, U c) {
  const I ea = raw_exponent(a), eb = raw_exponent(b), ec = raw_exponent(c);
  const U ma = significand(a), mb = significand(b);
  // 24 x 24 bits in halves of 12.
  const U al = ma & 0xFFF, ah = ma >> 12, bl = mb & 0xFFF, bh = mb >> 12;
  const U mid = ah * bl + al * bh;
  const U low = al * bl + ((mid & 0xFFF) << 12);
  const U high = ah * bh + (mid >> 12) + (low >> 24);
  U pm = (high << 4) | ((low >> 20) & 15) | ((U)((low & 0xFFFFF) != 0) & 1);
  I ep = ea + eb - 127;
  const Mask no_product = (ea == 0) | (eb == 0) | (ep + (I)(high >> 23) <= 0), no_addend = ec == 0;
  constexpr int nothing = -10000;
  pm = select(no_product, all(0), pm);
  const U cm = select(no_addend, all(0), significand(c) << 3);
  ep = select(no_product, I{} + nothing, ep);
  const I ecc = select(no_addend, I{} + nothing, ec);
  I e = larger(ep, ecc);
  const U pa = shift_sticky(pm, e - ep), ca = shift_sticky(cm, e - ecc);
  const I sp = (I)(a ^ b) >> 31, sc = (I)c >> 31;
  const I sum = (((I)pa ^ sp) - sp) + (((I)ca ^ sc) - sc);
  const I minus = sum >> 31;
  const U m = (U)((sum ^ minus) - minus);
  // Its highest bit, 0 to 28, from the exponent of a float too short to round up.
  const I top = (I)((U) __builtin_convertvector((I)(m & ~(m >> 1)), F) >> 23) - 127;
  const I right = top - 26;
  const U scaled = select(right > 0, shift_sticky(m, larger(right, I{})), m << ((U)(-right) & 31));
  e += right;
  const U rest = scaled & 7, kept = scaled >> 3;
  const U q = kept + ((U)((rest > 4) | ((rest == 4) & ((kept & 1) != 0))) & 1);
  const I e_out = e + (I)(q >> 24);
  U r = ((U)e << 23) + (q - 0x800000);
  r = select(e_out >= 255, all(infinity), r) | ((U)minus & sign_bit);
  r = select((m == 0) | (e_out <= 0), all(0), r);
  return mad_special(a, b, c, r);
}
[[gnu::noinline]] U mad_call(U a, U b, U c) { return mad_inline(a, b, c); }
// Without shifts by lane the code is ten times as long: a call costs less than that, in the compiler and the caches.
TTRT_LANES U mad(U a, U b, U c) { return vector_bytes == 16 ? mad_call(a, b, c) : mad_inline(a, b, c); }

TTRT_LANES U add(U a, U b) { return mad(a, num(1.0F), b); }
TTRT_LANES U sub(U a, U b) { return mad(b, num(-1.0F), a); }
TTRT_LANES U mul(U a, U b) { return mad(a, b, all(0)); }

// Comparisons are the sign (and zero) test of a difference, or of the register where the right side is zero: a negative
// denormal is below zero, -0 is not.
TTRT_LANES Mask negative(U x) { return ((I)x < 0) & (x != sign_bit); }
TTRT_LANES Mask less(U a, U b) { return (I)sub(a, b) < 0; }
TTRT_LANES Mask not_less(U a, U b) { return ~less(a, b); }
TTRT_LANES Mask greater(U a, U b) { return (I)sub(a, b) > 0; }

// Minimum and maximum of the total order of sign and magnitude.
TTRT_LANES I order(U x) { return (I)x ^ (I)((U)((I)x >> 31) & 0x7FFFFFFF); }
TTRT_LANES U minimum(U a, U b) { return select(order(a) <= order(b), a, b); }
TTRT_LANES U maximum(U a, U b) { return select(order(a) <= order(b), b, a); }
TTRT_LANES U held(U x, float low, float high) { return minimum(maximum(x, num(low)), num(high)); }

// float32 -> bfloat16: nearest, ties away from zero; NaN -> infinity, exponent 0 -> +0.
TTRT_LANES U round_bf16(U x) {
  const Mask nan = (raw_exponent(x) == 255) & (mantissa(x) != 0);
  const U r = select(nan, x & 0xFF800000, (x + 0x8000) & 0xFFFF0000);
  return select(raw_exponent(x) == 0, all(0), r);
}
// The same in integer arithmetic, ties to even.
TTRT_LANES U round_bf16_even(U x) { return (x + 0x7FFF + ((x >> 16) & 1)) & 0xFFFF0000; }

// float32 -> magnitude of an integer, nearest, ties away, at most `most`.
TTRT_LANES U to_magnitude(U x, std::uint32_t most) {
  const I e = exponent(x);
  const U by = (U)(I{} + 23 - e) & 31;
  const U m = (significand(x) + ((all(1) << by) >> 1)) >> by;
  U r = select(e < -1, all(0), m);
  r = select((e >= 16) | (r > most), all(most), r);
  return r;
}

// c0 + x (c1 + x (c2 + ...))
template <typename... More>
TTRT_LANES U poly(U x, float first, More... more) {
  if constexpr (sizeof...(more) == 0) {
    return num(first);
  } else {
    return mad(x, poly(x, more...), num(first));
  }
}
