// How far two arrays are apart. The one place where PCC, errors and signal-to-noise ratios are computed.
#pragma once

#include <cstdint>

#include "device/host_tensor.h"

namespace ttrt {

struct Metrics {
  std::int64_t elements = 0;
  double pcc = 1;         // Pearson correlation; of constant arrays 1 where equal, 0 otherwise
  double max_abs = 0;     // largest |a - e|
  double max_rel = 0;     // largest |a - e| over the largest |e|: an error of scale or offset shows here
  double snr_db = 0;      // 10 log10(sum e^2 / sum (a - e)^2); +inf where equal
  std::int64_t nan = 0;   // places where exactly one of the two is NaN, or the infinities differ
  std::int64_t zero = 0;  // elements of `actual` that are zero
  bool equal = true;      // every element equal, NaN equal to NaN
  bool constant = false;  // one of the two has no variance, so pcc says nothing about how near they are
  double spread = 0;      // of the expected values: their standard deviation over their root mean square

  // pcc >= threshold. Where that says nothing, the relative error that this correlation allows: noise of a share r of
  // the signal lowers a correlation to about 1 - r^2 / 2. Where so little spread is left that values rounded right to
  // bfloat16 would not correlate, two of its steps.
  bool correlates(double threshold) const;
};

// Complex tensors count as pairs of reals. Throws ttc::Error (check failed) where the sizes differ.
Metrics compare(const HostTensor& actual, const HostTensor& expected);
// |a - e| <= atol + rtol |e| everywhere; equal infinities and NaN in the same places are close.
bool all_close(const HostTensor& actual, const HostTensor& expected, double atol, double rtol);

}  // namespace ttrt
