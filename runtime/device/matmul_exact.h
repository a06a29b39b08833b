// The matrix unit's integer arithmetic, bit for bit.
#pragma once

#include <cstdint>
#include <vector>

#include "device/matmul.h"
#include "support/error.h"

namespace ttrt {

class MatmulExact {
 public:
  explicit MatmulExact(const MatmulSpec& spec) : spec_(spec) {
    TTC_CHECK(false, "exact products arrive with the next commit");
  }
  void set_b(const std::byte* tiles) { (void)tiles; }
  void run(const std::byte* a, const float* bias, std::byte* out) {
    (void)a;
    (void)bias;
    (void)out;
  }

 private:
  const MatmulSpec& spec_;
};

}  // namespace ttrt
