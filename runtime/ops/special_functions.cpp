// Gamma, error, Bessel and Airy functions and orthogonal polynomials: by recurrences to where an asymptotic series
// holds, by power series and continued fractions, by closed forms where there are any. Formula numbers are those of the
// NIST Digital Library of Mathematical Functions.
#include "ops/special_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace ttrt::ops::special {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr double pi = std::numbers::pi, tiny = 1e-17;

// B(2k) / (2k)!, of the Euler-Maclaurin formula (2.10.1)
constexpr double bernoulli[]{1.0 / 12,          -1.0 / 720,
                             1.0 / 30240,       -1.0 / 1209600,
                             1.0 / 47900160,    -691.0 / 1307674368000,
                             1.0 / 74724249600, -3617.0 / 10670622842880000};

}  // namespace

// ---- gamma

// 5.5.4 below 0, 5.5.2 up to 10, 5.11.2 above
double digamma(double x) {
  if (x == 0) return std::copysign(inf, -x);
  if (x < 0) {
    if (x == std::trunc(x)) return nan;
    return digamma(1 - x) - pi / std::tan(pi * std::fmod(x, 1));
  }
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  if (std::isinf(x)) return x;
  const double y = 1 / (x * x);
  const double series =
      y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * 691.0 / 32760)))));
  return sum + std::log(x) - 0.5 / x - series;
}

// 25.11.5: the first terms, then the Euler-Maclaurin formula
double zeta(double x, double q) {
  if (x == 1) return inf;
  if (!(x > 1) || std::isnan(q)) return nan;
  if (q <= 0 && q == std::floor(q)) return inf;
  if (q <= 0 && x != std::floor(x)) return nan;
  double sum = 0;
  int terms = 0;
  for (; terms < 10 || (q < 10 && terms < 10000); ++terms, ++q) {
    const double term = std::pow(q, -x);
    sum += term;
    if (std::fabs(term) < tiny * std::fabs(sum)) return sum;
  }
  double power = std::pow(q, -x), factor = x * power / q;
  sum += q * power / (x - 1) + power / 2;
  for (int k = 0; k < 8; ++k) {
    sum += bernoulli[k] * factor;
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2) / (q * q);
  }
  return sum;
}

// 35.3.4
double log_gamma_of_dim(double x, int dims) {
  double sum = dims * (dims - 1) / 4.0 * std::log(pi);
  for (int i = 0; i < dims; ++i) sum += std::lgamma(x - i / 2.0);
  return sum;
}

namespace {

constexpr int most_terms = 20000;

double gamma_factor(double a, double x) { return std::exp(a * std::log(x) - x - std::lgamma(a)); }

// 8.11.4
double gamma_p_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int k = 1; k < most_terms && std::fabs(term) > tiny * std::fabs(sum); ++k) sum += term *= x / (a + k);
  return sum * gamma_factor(a, x);
}

// 8.9.2, by Lentz's method
double gamma_q_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, value = d;
  for (int k = 1; k < most_terms; ++k) {
    const double top = -k * (k - a);
    b += 2;
    d = 1 / (top * d + b);
    c = b + top / c;
    value *= d * c;
    if (std::fabs(d * c - 1) < 1e-15) break;
  }
  return value * gamma_factor(a, x);
}

// Ends of the domain: the lower function; NaN where there is no such end.
bool gamma_end(double a, double x, double& lower) {
  const bool known = a >= 0 && x >= 0 && !(a == 0 && x == 0) && !(std::isinf(a) && std::isinf(x));
  if (known && (a != 0 && x != 0 && !std::isinf(a) && !std::isinf(x))) return false;
  lower = !known ? nan : a == 0 || std::isinf(x) ? 1 : 0;
  return true;
}

// 8.12.3 and 8.12.4 with the first of their series' terms, where a is large.
double gamma_q_uniform(double a, double x) {
  const double off = (x - a) / a, eta = std::copysign(std::sqrt(2 * std::max(0.0, off - std::log1p(off))), off);
  const double first = std::fabs(off) < 1e-3 ? -1.0 / 3 : 1 / off - 1 / eta;
  return std::erfc(eta * std::sqrt(a / 2)) / 2 + std::exp(-a * eta * eta / 2) / std::sqrt(2 * pi * a) * first;
}

}  // namespace

double gamma_p(double a, double x) {
  double end;
  if (gamma_end(a, x, end)) return end;
  if (a > 1e5) return 1 - gamma_q_uniform(a, x);
  return x < a + 1 ? gamma_p_series(a, x) : 1 - gamma_q_fraction(a, x);
}

double gamma_q(double a, double x) {
  double end;
  if (gamma_end(a, x, end)) return 1 - end;
  if (a > 1e5) return gamma_q_uniform(a, x);
  return x < a + 1 ? 1 - gamma_p_series(a, x) : gamma_q_fraction(a, x);
}

// ---- error functions

// 7.12.1 where erfc gets small
double erfcx(double x) {
  if (x < 10) return std::exp(x * x) * std::erfc(x);
  const double y = 1 / (2 * x * x);
  return (1 - y * (1 - y * 3 * (1 - y * 5 * (1 - y * 7)))) / (x * std::sqrt(pi));
}

double log_ndtr(double x) {
  const double z = x * std::numbers::sqrt2 / 2;
  if (x < -1) return std::log(erfcx(-z) / 2) - z * z;
  return std::log1p(-std::erfc(z) / 2);
}

// Newton's method on the logarithm, which is concave: from the right it steps beyond the root once, then closes in.
double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return nan;
  if (p == 0 || p == 1) return p == 0 ? -inf : inf;
  if (p > 0.5) return -ndtri(1 - p);
  const double goal = std::log(p);
  double x = 0;
  for (int i = 0; i < 60; ++i) {
    const double step = (log_ndtr(x) - goal) * erfcx(-x * std::numbers::sqrt2 / 2) * std::sqrt(pi / 2);
    x -= step;
    if (std::fabs(step) < 1e-14 * std::fabs(x)) break;
  }
  return x;
}

// ---- Bessel functions

namespace {

// 10.40.1 and 10.40.2 times sqrt(2 pi x) exp(-x) and sqrt(2 x / pi) exp(x)
double hankel_series(int order, double x, double sign) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 20; ++k) {
    const double next = term * sign * (mu - (2 * k - 1) * (2 * k - 1)) / (8 * k * x);
    if (std::fabs(next) > std::fabs(term)) break;
    sum += term = next;
  }
  return sum;
}

}  // namespace

// 10.25.2 up to 30
double bessel_i(int order, double x, bool scaled) {
  const double size = std::fabs(x), sign = order % 2 == 1 && x < 0 ? -1 : 1;
  if (std::isinf(x)) return scaled ? 0 : sign * size;
  if (size > 30)
    return sign * (scaled ? 1 : std::exp(size)) * hankel_series(order, size, -1) / std::sqrt(2 * pi * size);
  double term = 1;
  for (int k = 1; k <= order; ++k) term *= size / 2 / k;
  double sum = term;
  for (int k = 1; term > tiny * sum; ++k) sum += term *= size * size / 4 / (k * (k + order));
  return sign * sum * (scaled ? std::exp(-size) : 1);
}

double bessel_k(int order, double x, bool scaled) {
  if (std::isnan(x) || x < 0) return nan;
  if (x == 0) return inf;
  if (std::isinf(x)) return 0;
  if (x > 30) return (scaled ? 1 : std::exp(-x)) * hankel_series(order, x, 1) * std::sqrt(pi / (2 * x));
  if (x < 1e-8) return order == 0 ? -std::log(x / 2) - std::numbers::egamma : 1 / x;  // 10.30.2 and 10.30.3
  return std::cyl_bessel_k(order, x) * (scaled ? std::exp(x) : 1);
}

// 9.6.2 and 9.6.6
double airy_ai(double x) {
  if (std::isnan(x) || std::isinf(x)) return nan;
  if (x > 100) return 0;
  const double size = std::fabs(x), z = 2.0 / 3 * size * std::sqrt(size);
  if (z < 1e-12) return 0.35502805388781723926 - 0.25881940379280679840 * x;  // 9.2.3 and 9.2.4
  if (x > 0) return std::sqrt(x / 3) / pi * std::cyl_bessel_k(1.0 / 3, z);
  // 9.7.9, as far as the argument has digits
  if (z > 500) return std::cos(z - pi / 4) / (std::sqrt(pi) * std::sqrt(std::sqrt(size)));
  return std::sqrt(size) / 2 * (std::cyl_bessel_j(1.0 / 3, z) - std::cyl_neumann(1.0 / 3, z) / std::numbers::sqrt3);
}

// ---- polynomials

namespace {

// -1 where there is none.
std::int64_t degree(double n) { return std::isfinite(n) && std::fabs(n) < 1e9 ? static_cast<std::int64_t>(n) : -1; }

// p(0) and p(1), and p(k + 1) of p(k), p(k - 1) and k
template <typename Next>
double recurrence(std::int64_t n, double zeroth, double first, const Next& next) {
  if (n < 0) return 0;
  if (n == 0) return zeroth;
  for (std::int64_t k = 1; k < n; ++k) {
    const double more = next(first, zeroth, static_cast<double>(k));
    zeroth = first;
    first = more;
  }
  return first;
}

// 18.5.1 to 18.5.4, of an angle; beyond -1 and 1 of an imaginary one
double chebyshev_far(Chebyshev kind, double x, double n) {
  const bool inside = std::fabs(x) < 1;
  const double angle = inside ? std::acos(x) : std::acosh(std::fabs(x));
  const auto even = [&](double t) { return inside ? std::cos(t) : std::cosh(t); };
  const auto odd = [&](double t) { return inside ? std::sin(t) : std::sinh(t); };
  const double sign = !inside && x < 0 && std::fmod(n, 2) == 1 ? -1 : 1;
  const bool mirrored = !inside && x < 0;  // v(-x) = (-1)^n w(x)
  if (kind == Chebyshev::t) return sign * even(n * angle);
  if (kind == Chebyshev::u) return sign * odd((n + 1) * angle) / odd(angle);
  if ((kind == Chebyshev::v) != mirrored) return sign * even((n + 0.5) * angle) / even(angle / 2);
  return sign * odd((n + 0.5) * angle) / odd(angle / 2);
}

}  // namespace

double chebyshev(Chebyshev kind, double x, double n) {
  const std::int64_t whole = degree(n);
  if (whole > 64 && std::fabs(x) != 1) return chebyshev_far(kind, x, static_cast<double>(whole));
  const double first[]{x, 2 * x, 2 * x - 1, 2 * x + 1};
  return recurrence(whole, 1, first[static_cast<int>(kind)],
                    [x](double p, double before, double) { return 2 * x * p - before; });
}

// 18.9.1, with the numbers of 18.9.2 and table 18.9.1. LibTorch has none of a degree beyond 128 in float32.
double hermite(double x, double n, bool of_probability) {
  const double factor = of_probability ? 1 : 2;
  const std::int64_t whole = degree(n);
  if (whole > 128) return nan;
  return recurrence(whole, 1, factor * x,
                    [=](double p, double before, double k) { return factor * (x * p - k * before); });
}

double laguerre(double x, double n) {
  return recurrence(degree(n), 1, 1 - x,
                    [x](double p, double before, double k) { return ((2 * k + 1 - x) * p - k * before) / (k + 1); });
}

double legendre(double x, double n) {
  return recurrence(degree(n), 1, x,
                    [x](double p, double before, double k) { return ((2 * k + 1) * x * p - k * before) / (k + 1); });
}

}  // namespace ttrt::ops::special
