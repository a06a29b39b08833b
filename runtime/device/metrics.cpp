// Sums are taken in double over values shifted by the first mean, in two passes.
#include "device/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/error.h"

namespace ttrt {
namespace {

// Two tensors of one size, element by element as doubles; of complex numbers first the real part, then the other. They
// become doubles piece by piece: outputs may be the most that a run holds.
class Pairs {
 public:
  Pairs(const HostTensor& a, const HostTensor& b) : a_(contiguous(a)), b_(contiguous(b)) {}

  // Calls f(a, b) until it says false.
  template <typename F>
  void while_true(F&& f) const {
    constexpr std::int64_t piece = 1 << 14;
    for (std::int64_t begin = 0; begin < a_.numel(); begin += piece) {
      const std::int64_t end = std::min(begin + piece, a_.numel());
      const HostTensor wide_a = doubles(a_, begin, end), wide_b = doubles(b_, begin, end);
      const double *a = wide_a.as<double>(), *b = wide_b.as<double>();
      for (std::int64_t i = 0; i < wide_a.numel(); ++i)
        if (!f(a[i], b[i])) return;
    }
  }
  template <typename F>
  void each(F&& f) const {
    while_true([&](double a, double b) { return f(a, b), true; });
  }

 private:
  static HostTensor doubles(const HostTensor& from, std::int64_t begin, std::int64_t end) {
    HostTensor part = from;
    part.sizes = {end - begin}, part.strides = {1};
    part.data = static_cast<std::byte*>(from.data) + begin * ttc::size_of(from.dtype);
    if (!ttc::is_complex(from.dtype)) return convert(part, DType::f64);
    HostTensor wide = convert(part, DType::c128);
    wide.dtype = DType::f64;
    wide.sizes.push_back(2);
    wide.strides = contiguous_strides(wide.sizes);
    return wide;
  }

  HostTensor a_, b_;
};

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
double correlation(const Pairs& pairs, Metrics& m) {
  double mean_a = 0, mean_e = 0;
  std::int64_t count = 0;
  pairs.each([&](double a, double e) {
    if (!std::isfinite(a) || !std::isfinite(e)) return;
    ++count;
    mean_a += (a - mean_a) / static_cast<double>(count);
    mean_e += (e - mean_e) / static_cast<double>(count);
  });
  double aa = 0, ee = 0, ae = 0;
  pairs.each([&](double a, double e) {
    if (!std::isfinite(a) || !std::isfinite(e)) return;
    const double x = a - mean_a, y = e - mean_e;
    aa += x * x;
    ee += y * y;
    ae += x * y;
  });
  m.constant = aa == 0 || ee == 0;
  if (ee > 0) m.spread = std::sqrt(ee / (ee + static_cast<double>(count) * mean_e * mean_e));
  if (m.equal) return 1;
  if (m.constant) return 0;
  return std::clamp(ae / (std::sqrt(aa) * std::sqrt(ee)), -1.0, 1.0);
}

}  // namespace

Metrics compare(const HostTensor& actual, const HostTensor& expected) {
  require_same_sizes(actual, expected);
  const Pairs pairs(actual, expected);
  Metrics m;
  double signal = 0, noise = 0, largest = 0;
  pairs.each([&](double a, double e) {
    ++m.elements;
    m.zero += a == 0;
    const bool same = a == e || (std::isnan(a) && std::isnan(e));
    m.equal = m.equal && same;
    if (!std::isfinite(a) || !std::isfinite(e)) {
      m.nan += !same;
      return;
    }
    const double difference = std::abs(a - e);
    m.max_abs = std::max(m.max_abs, difference);
    largest = std::max(largest, std::abs(e));
    signal += e * e;
    noise += difference * difference;
  });
  m.max_rel = m.max_abs == 0 ? 0 : largest > 0 ? m.max_abs / largest : std::numeric_limits<double>::infinity();
  m.snr_db = noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
  m.pcc = m.nan > 0 ? 0 : correlation(pairs, m);
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
  bool close = true;
  Pairs(actual, expected).while_true([&](double a, double e) {
    const bool same = a == e || (std::isnan(a) && std::isnan(e));
    close = same || (std::abs(a - e) <= atol + rtol * std::abs(e) && std::isfinite(a));
    return close;
  });
  return close;
}

}  // namespace ttrt
