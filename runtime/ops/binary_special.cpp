// Special functions of two values: orthogonal polynomials of a degree, the incomplete gamma functions, Hurwitz's zeta
// function, x log(1 + y); and the greatest divisor and least multiple of integers. The op library has kernels for some;
// their steps are not recorded, so the fast kernels compute the function itself.
#include <cmath>
#include <numeric>

#include "ops/binary.h"
#include "ops/emit.h"
#include "ops/special_functions.h"

namespace ttrt::ops::binary_special_op {
namespace {

using Int = std::int64_t;
using special::Chebyshev;

// NOLINTBEGIN: one line each, all of the same form
float narrow(double x) { return static_cast<float>(x); }
template <Chebyshev kind, bool shifted>
float f_chebyshev(float x, float n) {
  return narrow(special::chebyshev(kind, shifted ? 2.0 * x - 1 : x, n));
}
float f_hermite_h(float x, float n) { return narrow(special::hermite(x, n, false)); }
float f_hermite_he(float x, float n) { return narrow(special::hermite(x, n, true)); }
float f_laguerre(float x, float n) { return narrow(special::laguerre(x, n)); }
float f_legendre(float x, float n) { return narrow(special::legendre(x, n)); }
float f_gamma_p(float a, float x) { return narrow(special::gamma_p(a, x)); }
float f_gamma_q(float a, float x) { return narrow(special::gamma_q(a, x)); }
float f_zeta(float x, float q) { return narrow(special::zeta(x, q)); }
float f_xlog1py(float a, float b) { return a == 0.0F && !std::isnan(b) ? 0.0F : a * std::log1p(b); }
Int i_gcd(Int a, Int b) { return std::gcd(a, b); }
Int i_lcm(Int a, Int b) { return std::lcm(a, b); }
// NOLINTEND

constexpr std::string_view whole_degrees = "degrees beyond 1e9 and infinite ones give 0";

constexpr std::string_view incomplete_gamma =
    "NaN gives NaN, in LibTorch a limit where the other operand is infinite or 0; what is beyond 1e30 gives 0 or 1, in "
    "LibTorch NaN";

BinaryOp polynomial(std::string_view name, std::string_view summary, std::string_view tensors, std::string_view number,
                    PairFunction function) {
  return {.name = name,
          .summary = summary,
          .tensor_aten = tensors,
          .scalar_aten = number,
          .function = function,
          .no_exact_kernel = not_recorded,
          .instructions = 60,
          .special_values = whole_degrees};
}

std::vector<BinaryOp> make_special() {
  return {
      polynomial("tt.chebyshev_t", "Chebyshev polynomial of the first kind, of a and degree b",
                 "aten.special_chebyshev_polynomial_t.default", "aten.special_chebyshev_polynomial_t.n_scalar",
                 plain_pair<f_chebyshev<Chebyshev::t, false>>),
      polynomial("tt.chebyshev_u", "Chebyshev polynomial of the second kind, of a and degree b",
                 "aten.special_chebyshev_polynomial_u.default", "aten.special_chebyshev_polynomial_u.n_scalar",
                 plain_pair<f_chebyshev<Chebyshev::u, false>>),
      polynomial("tt.chebyshev_v", "Chebyshev polynomial of the third kind, of a and degree b",
                 "aten.special_chebyshev_polynomial_v.default", "aten.special_chebyshev_polynomial_v.n_scalar",
                 plain_pair<f_chebyshev<Chebyshev::v, false>>),
      polynomial("tt.chebyshev_w", "Chebyshev polynomial of the fourth kind, of a and degree b",
                 "aten.special_chebyshev_polynomial_w.default", "aten.special_chebyshev_polynomial_w.n_scalar",
                 plain_pair<f_chebyshev<Chebyshev::w, false>>),
      polynomial("tt.shifted_chebyshev_t", "chebyshev_t of 2 a - 1 and degree b",
                 "aten.special_shifted_chebyshev_polynomial_t.default",
                 "aten.special_shifted_chebyshev_polynomial_t.n_scalar", plain_pair<f_chebyshev<Chebyshev::t, true>>),
      polynomial("tt.shifted_chebyshev_u", "chebyshev_u of 2 a - 1 and degree b",
                 "aten.special_shifted_chebyshev_polynomial_u.default",
                 "aten.special_shifted_chebyshev_polynomial_u.n_scalar", plain_pair<f_chebyshev<Chebyshev::u, true>>),
      polynomial("tt.shifted_chebyshev_v", "chebyshev_v of 2 a - 1 and degree b",
                 "aten.special_shifted_chebyshev_polynomial_v.default",
                 "aten.special_shifted_chebyshev_polynomial_v.n_scalar", plain_pair<f_chebyshev<Chebyshev::v, true>>),
      polynomial("tt.shifted_chebyshev_w", "chebyshev_w of 2 a - 1 and degree b",
                 "aten.special_shifted_chebyshev_polynomial_w.default",
                 "aten.special_shifted_chebyshev_polynomial_w.n_scalar", plain_pair<f_chebyshev<Chebyshev::w, true>>),
      polynomial("tt.hermite_h", "Hermite polynomial of physics, of a and degree b",
                 "aten.special_hermite_polynomial_h.default", "aten.special_hermite_polynomial_h.n_scalar",
                 plain_pair<f_hermite_h>),
      polynomial("tt.hermite_he", "Hermite polynomial of probability, of a and degree b",
                 "aten.special_hermite_polynomial_he.default", "aten.special_hermite_polynomial_he.n_scalar",
                 plain_pair<f_hermite_he>),
      polynomial("tt.laguerre", "Laguerre polynomial of a and degree b", "aten.special_laguerre_polynomial_l.default",
                 "aten.special_laguerre_polynomial_l.n_scalar", plain_pair<f_laguerre>),
      polynomial("tt.legendre", "Legendre polynomial of a and degree b", "aten.special_legendre_polynomial_p.default",
                 "aten.special_legendre_polynomial_p.n_scalar", plain_pair<f_legendre>),
      {.name = "tt.igamma",
       .summary = "lower incomplete gamma function of a up to b, over the whole",
       .tensor_aten = "aten.igamma.default",
       .function = plain_pair<f_gamma_p>,
       .no_exact_kernel = not_recorded,
       .instructions = 120,
       .range = "positive",
       .special_values = incomplete_gamma},
      {.name = "tt.igammac",
       .summary = "1 - igamma(a, b)",
       .tensor_aten = "aten.igammac.default",
       .function = plain_pair<f_gamma_q>,
       .no_exact_kernel = not_recorded,
       .instructions = 120,
       .range = "positive",
       .special_values = incomplete_gamma},
      {.name = "tt.zeta",
       .summary = "the sum over k of (b + k)^-a",
       .tensor_aten = "aten.special_zeta.default",
       .scalar_aten = "aten.special_zeta.other_scalar",
       .function = plain_pair<f_zeta>,
       .no_exact_kernel = not_recorded,
       .instructions = 120,
       .range = "positive",
       .special_values = "terms of infinite exponents are their limits, in LibTorch NaN"},
      {.name = "tt.xlog1py",
       .summary = "a log(1 + b), 0 where a is",
       .tensor_aten = "aten.special_xlog1py.default",
       .scalar_aten = "aten.special_xlog1py.other_scalar",
       .function = plain_pair<f_xlog1py>,
       .no_exact_kernel = not_recorded,
       .instructions = 30,
       .range = "positive"},
      {.name = "tt.gcd",
       .summary = "greatest common divisor",
       .tensor_aten = "aten.gcd.default",
       .lower = lower_integers,
       .integers = i_gcd},
      {.name = "tt.lcm",
       .summary = "least common multiple",
       .tensor_aten = "aten.lcm.default",
       .lower = lower_integers,
       .integers = i_lcm},
  };
}

TTRT_NOT_EMITTED(special_pairs,
                 "tt.chebyshev_t tt.chebyshev_u tt.chebyshev_v tt.chebyshev_w tt.shifted_chebyshev_t "
                 "tt.shifted_chebyshev_u tt.shifted_chebyshev_v tt.shifted_chebyshev_w tt.hermite_h tt.hermite_he "
                 "tt.laguerre tt.legendre tt.igamma tt.igammac tt.zeta tt.xlog1py",
                 "TT-NN has no such function")

const std::vector<BinaryOp> special_functions = make_special();
TTRT_REGISTER_BINARY(special_functions);

}  // namespace
}  // namespace ttrt::ops::binary_special_op
