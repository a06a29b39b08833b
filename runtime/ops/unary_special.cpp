// Special functions of one value: the gamma and error functions' families, Bessel and Airy functions, an entropy's
// terms. The vector unit computes such by polynomials and recurrences in float32; which ones the op library's kernels
// take is recorded of three, the others have fast kernels only, each of the function itself. Operands stay in float32:
// beside a pole or zero, and where they oscillate, the last bits decide the result.
#include <cmath>

#include "ops/rules.h"
#include "ops/special_functions.h"
#include "ops/unary.h"
#include "ops/vmath.h"

namespace ttrt::ops::unary_special_op {
namespace {

using sfpu::Function;

// NOLINTBEGIN: one line each, all of the same form
float narrow(double x) { return static_cast<float>(x); }
float f_digamma(float x, const float*) { return narrow(special::digamma(x)); }
float f_mvlgamma(float x, const float* p) { return narrow(special::log_gamma_of_dim(x, static_cast<int>(p[0]))); }
float f_erfcx(float x, const float*) { return narrow(special::erfcx(x)); }
float f_log_ndtr(float x, const float*) { return narrow(special::log_ndtr(x)); }
float f_ndtri(float x, const float*) { return narrow(special::ndtri(x)); }
float f_entr(float x, const float*) { return x > 0 ? -x * std::log(x) : x == 0 ? 0.0F : x < 0 ? -inf_f : x; }
template <int order, bool scaled>
float f_bessel_i(float x, const float*) {
  return narrow(special::bessel_i(order, x, scaled));
}
template <int order, bool scaled>
float f_bessel_k(float x, const float*) {
  return narrow(special::bessel_k(order, x, scaled));
}
float f_bessel_j0(float x, const float*) { return narrow(::j0(x)); }
float f_bessel_j1(float x, const float*) { return narrow(::j1(x)); }
float f_bessel_y0(float x, const float*) { return x < 0 ? std::nanf("") : narrow(::y0(x)); }
float f_bessel_y1(float x, const float*) { return x < 0 ? std::nanf("") : narrow(::y1(x)); }
float f_spherical_j0(float x, const float*) {
  return std::isinf(x) ? 0.0F : x == 0 ? 1.0F : narrow(std::sin(static_cast<double>(x)) / x);
}
float f_airy_ai(float x, const float*) { return narrow(special::airy_ai(x)); }
// NOLINTEND

// The op of one function, whose steps are about as many as its polynomial has terms.
UnaryOp special_op(std::string_view name, std::string_view summary, std::vector<Spelling> spellings,
                   TileFunction function, std::string_view range = "normal",
                   ExactFunction (*exact)(const OpCall&, const Params&) = nullptr) {
  return {.name = name,
          .summary = summary,
          .spellings = std::move(spellings),
          .function = function,
          .exact = exact,
          .no_exact_kernel = exact == nullptr ? not_recorded : "",
          .tolerance = {.pcc = 0.9999, .exact_max_rel = 0.007},
          .range = range,
          .instructions = 60,
          .angle = true,
          .special_values = "infinities give the limit where there is one, in LibTorch NaN from some functions"};
}

std::vector<UnaryOp> make_special() {
  return {
      special_op("tt.digamma", "derivative of lgamma", {{"aten.digamma.default"}}, plain<f_digamma>, "positive",
                 by_vector_unit<Function::digamma>),
      special_op("tt.erfcx", "exp(x x) erfc(x)", {{"aten.special_erfcx.default"}}, plain<f_erfcx>),
      special_op("tt.log_ndtr", "logarithm of the normal distribution's integral up to x",
                 {{"aten.special_log_ndtr.default"}}, plain<f_log_ndtr>),
      special_op("tt.ndtri", "up to where the normal distribution's integral is x", {{"aten.special_ndtri.default"}},
                 plain<f_ndtri>, "unit"),
      special_op("tt.entr", "-x log(x)", {{"aten.special_entr.default"}}, plain<f_entr>, "positive"),
      special_op("tt.i0", "modified Bessel function of the first kind, order 0", {{"aten.i0.default"}},
                 plain<f_bessel_i<0, false>>, "normal", by_vector_unit<Function::i0>),
      special_op("tt.i0e", "exp(-|x|) i0(x)", {{"aten.special_i0e.default"}}, plain<f_bessel_i<0, true>>),
      special_op("tt.i1", "modified Bessel function of the first kind, order 1", {{"aten.special_i1.default"}},
                 plain<f_bessel_i<1, false>>, "normal", by_vector_unit<Function::i1>),
      special_op("tt.i1e", "exp(-|x|) i1(x)", {{"aten.special_i1e.default"}}, plain<f_bessel_i<1, true>>),
      special_op("tt.k0", "modified Bessel function of the second kind, order 0",
                 {{"aten.special_modified_bessel_k0.default"}}, plain<f_bessel_k<0, false>>, "positive"),
      special_op("tt.k0e", "exp(x) k0(x)", {{"aten.special_scaled_modified_bessel_k0.default"}},
                 plain<f_bessel_k<0, true>>, "positive"),
      special_op("tt.k1", "modified Bessel function of the second kind, order 1",
                 {{"aten.special_modified_bessel_k1.default"}}, plain<f_bessel_k<1, false>>, "positive"),
      special_op("tt.k1e", "exp(x) k1(x)", {{"aten.special_scaled_modified_bessel_k1.default"}},
                 plain<f_bessel_k<1, true>>, "positive"),
      special_op("tt.j0", "Bessel function of the first kind, order 0", {{"aten.special_bessel_j0.default"}},
                 plain<f_bessel_j0>),
      special_op("tt.j1", "Bessel function of the first kind, order 1", {{"aten.special_bessel_j1.default"}},
                 plain<f_bessel_j1>),
      special_op("tt.y0", "Bessel function of the second kind, order 0", {{"aten.special_bessel_y0.default"}},
                 plain<f_bessel_y0>, "positive"),
      special_op("tt.y1", "Bessel function of the second kind, order 1", {{"aten.special_bessel_y1.default"}},
                 plain<f_bessel_y1>, "positive"),
      special_op("tt.spherical_j0", "sin(x) / x", {{"aten.special_spherical_bessel_j0.default"}},
                 plain<f_spherical_j0>),
      special_op("tt.airy_ai", "Airy function Ai", {{"aten.special_airy_ai.default"}}, plain<f_airy_ai>),
      {.name = "tt.mvlgamma",
       .summary = "logarithm of the gamma function of p dims",
       .spellings = {{"aten.mvlgamma.default", lower_unary, ", 1"}},
       .schema = "(Tensor x, float p) -> Tensor",
       .function = plain<f_mvlgamma>,
       .no_exact_kernel = not_recorded,
       .whole_numbers = true,
       .range = "positive",
       .instructions = 60,
       .angle = true},
  };
}

TTRT_NOT_EMITTED(special,
                 "tt.erfcx tt.log_ndtr tt.ndtri tt.entr tt.i0e tt.i1e tt.k0 tt.k0e tt.k1 tt.k1e tt.j0 tt.j1 tt.y0 "
                 "tt.y1 tt.spherical_j0 tt.airy_ai",
                 "TT-NN has no such function")
TTRT_NOT_EMITTED(multigamma, "tt.mvlgamma", "ttnn.multigammaln has four dims, and its steps are not recorded")

const std::vector<UnaryOp> special_functions = make_special();
TTRT_REGISTER_UNARY(special_functions);

}  // namespace
}  // namespace ttrt::ops::unary_special_op
