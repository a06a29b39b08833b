// Special functions in double precision, for the element-wise ops of unary_special.cpp and binary_special.cpp. Where
// LibTorch defines more than mathematics does (poles, ends of the domain), they do as LibTorch.
#pragma once

#include <cstdint>

namespace ttrt::ops::special {

double digamma(double x);
double zeta(double x, double q);              // sum over k of (q + k)^-x
double log_gamma_of_dim(double x, int dims);  // the multivariate gamma function's logarithm
double gamma_p(double a, double x);           // the lower incomplete gamma function over the whole
double gamma_q(double a, double x);           // 1 - gamma_p
double erfcx(double x);                       // exp(x^2) erfc(x)
double log_ndtr(double x);
double ndtri(double p);
double bessel_i(int order, double x, bool scaled);  // scaled: times exp(-|x|)
double bessel_k(int order, double x, bool scaled);  // scaled: times exp(x)
double airy_ai(double x);

// Polynomials of degree n, truncated; 0 of negative degrees.
enum class Chebyshev : std::uint8_t { t, u, v, w };
double chebyshev(Chebyshev kind, double x, double n);
double hermite(double x, double n, bool of_probability);
double laguerre(double x, double n);
double legendre(double x, double n);

}  // namespace ttrt::ops::special
