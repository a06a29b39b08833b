// The vector unit's functions in vectors any machine has.
#include "device/sfpu_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ttrt::detail {
namespace {

inline constexpr int vector_bytes = 16;

#include "device/sfpu_lanes_body.h"
#include "device/sfpu_exp_body.h"
#include "device/sfpu_functions_body.h"
#include "device/sfpu_powers_body.h"
#include "device/sfpu_pairs_body.h"
#include "device/sfpu_special_body.h"
#include "device/sfpu_table_body.h"

}  // namespace

const SfpuKernels& sfpu_portable() { return kernels; }

}  // namespace ttrt::detail
