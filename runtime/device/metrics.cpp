// Sums are taken in double over values shifted by the first mean, in two passes.
#include "device/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/error.h"

namespace ttrt {
namespace {

// The values as contiguous doubles; complex numbers as pairs.
HostTensor doubles(const HostTensor& tensor) {
  if (!ttc::is_complex(tensor.dtype)) return convert(contiguous(tensor), DType::f64);
  HostTensor wide = convert(contiguous(tensor), DType::c128);
  wide.dtype = DType::f64;
  wide.sizes.push_back(2);
  wide.strides = contiguous_strides(wide.sizes);
  return wide;
}

std::string text(const Shape& sizes) {
  std::string out = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return out + "]";
}

void require_same_sizes(const HostTensor& actual, const HostTensor& expected) {
  if (actual.sizes != expected.sizes)
    throw ttc::Error(ttc::Exit::check_failed, "",
                     "shape " + text(actual.sizes) + " where " + text(expected.sizes) + " is expected");
}

// Of `m` it sets `constant` and `spread`.
double correlation(const double* a, const double* e, std::int64_t n, Metrics& m) {
  double mean_a = 0, mean_e = 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(e[i])) continue;
    ++count;
    mean_a += (a[i] - mean_a) / static_cast<double>(count);
    mean_e += (e[i] - mean_e) / static_cast<double>(count);
  }
  double aa = 0, ee = 0, ae = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(e[i])) continue;
    const double x = a[i] - mean_a, y = e[i] - mean_e;
    aa += x * x;
    ee += y * y;
    ae += x * y;
  }
  m.constant = aa == 0 || ee == 0;
  if (ee > 0) m.spread = std::sqrt(ee / (ee + static_cast<double>(count) * mean_e * mean_e));
  if (m.equal) return 1;
  if (m.constant) return 0;
  return std::clamp(ae / (std::sqrt(aa) * std::sqrt(ee)), -1.0, 1.0);
}

}  // namespace

Metrics compare(const HostTensor& actual, const HostTensor& expected) {
  require_same_sizes(actual, expected);
  const HostTensor wide_a = doubles(actual), wide_e = doubles(expected);
  const double *a = wide_a.as<double>(), *e = wide_e.as<double>();
  Metrics m;
  m.elements = wide_a.numel();
  double signal = 0, noise = 0, largest = 0;
  for (std::int64_t i = 0; i < m.elements; ++i) {
    m.zero += a[i] == 0;
    const bool same = a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]));
    m.equal = m.equal && same;
    if (!std::isfinite(a[i]) || !std::isfinite(e[i])) {
      m.nan += !same;
      continue;
    }
    const double difference = std::abs(a[i] - e[i]);
    m.max_abs = std::max(m.max_abs, difference);
    largest = std::max(largest, std::abs(e[i]));
    signal += e[i] * e[i];
    noise += difference * difference;
  }
  m.max_rel = m.max_abs == 0 ? 0 : largest > 0 ? m.max_abs / largest : std::numeric_limits<double>::infinity();
  m.snr_db = noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
  m.pcc = m.nan > 0 ? 0 : correlation(a, e, m.elements, m);
  return m;
}

bool Metrics::correlates(double threshold) const {
  if (pcc >= threshold) return true;
  const double allowed = std::sqrt(2 * std::max(0.0, 1 - threshold));
  if (constant) return nan == 0 && max_rel <= allowed;
  constexpr double step = 0x1p-8, little = 4 * step;  // of bfloat16
  return nan == 0 && spread < little && spread * allowed < step / 2 && max_rel <= 2 * step;
}

bool all_close(const HostTensor& actual, const HostTensor& expected, double atol, double rtol) {
  require_same_sizes(actual, expected);
  const HostTensor wide_a = doubles(actual), wide_e = doubles(expected);
  const double *a = wide_a.as<double>(), *e = wide_e.as<double>();
  for (std::int64_t i = 0; i < wide_a.numel(); ++i) {
    if (a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]))) continue;
    if (!(std::abs(a[i] - e[i]) <= atol + rtol * std::abs(e[i])) || !std::isfinite(a[i])) return false;
  }
  return true;
}

}  // namespace ttrt
