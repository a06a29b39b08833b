// Fits the matmul rates of a profile (device/arch.h, from matmul_overhead on) to published times of matrix products,
// and says how far the model is from shapes that it was not fitted to.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/time_model.h"

namespace ttrt {

// A row of a table of published products.
struct GemmRow {
  int line = 0;
  std::string arch, dtype, fidelity, config;  // as the file has them; config "tuned" or "oob" (out of the box)
  MatmulShape shape;
  std::int64_t grid_x = 0, grid_y = 0;  // 0: the profile's
  bool in0_sharded = false, out_sharded = false;
  double cycles = 0;  // measured, on the device; 0: not known
};
// Reads a CSV file whose header names at least arch, m, k, n, dtype and fidelity; grid ("8x8"), config, in0_sharded,
// out_sharded and device_cycles_implied are taken where they are. Throws ttc::Error (bad file) naming file and line.
std::vector<GemmRow> read_gemm_rows(const std::string& path);

// The profile of a row's arch, what stands in parentheses left out ("p150(blackhole)"), or the usual board of an
// architecture ("wormhole_b0"), with the row's grid. Throws ttc::Error (bad file).
ArchProfile profile_of(const GemmRow& row, const std::string& path);
// Out of the box the op library takes its own program configuration, and its own fidelity whatever the row says:
// HiFi2, LoFi where both operands are in block formats.
MathFidelity fidelity_of(const GemmRow& row);
MatmulProgram program_of(const GemmRow& row, const ArchProfile& profile);
Time predict(const GemmRow& row, const ArchProfile& profile);

// The members of a profile that are fitted.
struct FittedRate {
  std::string_view key;
  double ArchProfile::* member;
};
std::span<const FittedRate> fitted_rates();

struct GemmErrors {
  std::string config;
  std::int64_t grid_x = 0, grid_y = 0;
  std::size_t rows = 0;
  double mean = 0, largest = 0, cross_validated = 0;  // of |predicted / measured - 1|
};
struct TimeFit {
  ArchProfile profile;        // with the fitted rates, of three significant digits
  std::vector<GemmRow> rows;  // measured, one for each configuration: the median of those that are alike
  std::vector<GemmErrors> errors;
};
// `rows` are of one architecture. Cross-validation leaves out one (m, k, n) after the other.
TimeFit fit_rates(std::span<const GemmRow> rows, const ArchProfile& base, const std::string& path);

}  // namespace ttrt
