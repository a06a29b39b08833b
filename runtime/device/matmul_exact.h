// The matrix unit's product, bit for bit (Wormhole).
//
// One step multiplies 16 values of k: Dest[row][col] += sum over k of SrcB[row][k] * SrcA[k][col], a in SrcB, b in
// SrcA, for one fidelity phase. Phase p takes of SrcA's 11-bit significand the top 5 bits (p bit 0 clear) or the next 5
// (set, exponent 5 lower), of SrcB's the top 7 (p bit 1 clear) or the low 4 shifted left by 3 (set, exponent 7 lower).
// Products of k 0-7 and of k 8-15 are aligned to the largest exponent of their group (nearest, ties away) and added as
// integers; both sums (shifted left by 13) and the old Dest (24 bits) are then aligned to the largest of their three
// exponents, added, normalised and rounded (ties away): to 24 bits, or in 16-bit Dest to 8 bits at every step.
// Exponent 0 is zero, exponent 255 an ordinary exponent of an operand; a result that overflows is infinite, one that
// underflows is +0. Order: k tiles, in each the phases, in each the two halves of the tile.
// Not modelled: Wormhole normalises a 32-bit sum of exactly -1 in the last place by 27 bits too few; no step of the
// recorded products (and of the tests' random ones) meets it.
// A bias is added by the elementwise unit to the sums read back as sources (float32 sums cut to TF32).
//
// K is worked off in blocks. Between blocks the sums leave Dest for a buffer in float32 (32-bit Dest) or in the
// output's format (16-bit Dest) and are loaded again; only a block format changes them. With packer_l1_acc the buffer
// is float32 or bfloat16, each block starts at zero and the packer adds it in the buffer; without a bias the last block
// is added in Dest.
#pragma once

#include <cstdint>
#include <vector>

#include "device/matmul.h"
#include "device/matmul_exact_kernels.h"

namespace ttrt {

class MatmulExact {
 public:
  // `spec` outlives this object.
  explicit MatmulExact(const MatmulSpec& spec);
  void set_b(const std::byte* tiles);
  // `bias`: one value per column, nullptr for none.
  void run(const std::byte* a, const float* bias, std::byte* out);

 private:
  void task(std::int64_t index, const float* bias, std::byte* out) const;
  void sum_blocks(const detail::ExactStrip& strip, std::int32_t* dest) const;
  void finish(const std::int32_t* dest, std::int64_t rows, const float* bias, std::byte* tile) const;

  const MatmulSpec& spec_;
  std::int64_t k_block_ = 0;
  bool spill_rounds_ = false;  // the buffer's format is narrower than Dest
  bool l1_acc_ = false;
  bool serial_ = false;
  std::int64_t mt_, kt_, nt_;
  std::vector<std::int16_t> a_, b_;  // operands taken apart, in the layouts of device/matmul_exact_kernels.h
};

}  // namespace ttrt
