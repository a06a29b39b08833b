// Matrix product of tiled tensors with bias and activation, as the device's matrix unit computes it.
//
//   out[i] = act(a[i] x b[i * b_batch / batch] + bias),  a [batch, M, K], b [b_batch, K, N] or [b_batch, N, K], bias
//   [1, N]
//
// All operands are tiles in device byte order, each matrix padded to whole tiles; what lies beyond K in either operand
// plays no part. In the output, rows beyond M are zero; columns beyond N hold what the operands' padding gives.
//
// exact: bit for bit the hardware's integer arithmetic (device/matmul_exact.h).
// fast: operands cut to the bits their fidelity's phases use (a, which sits in SrcB: 7 significant bits below HiFi3,
// else all; b, in SrcA: 5 bits at LoFi, 10 above), products added in float32, and every rounding after the sum as the
// device has it: 16-bit Dest rounds to bfloat16, a float32 Dest is cut to TF32 before the bias is added, the packer
// rounds ties away.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "device/matmul_program.h"
#include "device/types.h"

namespace ttrt {

struct MatmulSpec {
  std::int64_t batch = 1, b_batch = 1;  // b_batch divides batch; consecutive matrices of a share one of b
  std::int64_t m = 0, k = 0, n = 0;     // logical sizes
  bool transpose_b = false;             // b holds [N, K]
  DataType a = DataType::bfloat16, b = DataType::bfloat16, out = DataType::bfloat16;  // float formats
  std::optional<DataType> bias = std::nullopt;
  ComputeConfig config = {};
  Numerics numerics = Numerics::fast;
  // Exact: tiles of K between spills of Dest; 0: as the op library chooses for interleaved operands (matmul_k_block).
  std::int64_t k_block = 0;
  MatmulDevice device = {};
  // Acts on one tile of Dest (1024 values in face order) after the bias; in 16-bit Dest the result is then brought to
  // bfloat16 (exact: cut, as a store to Dest does; fast: nearest even). Called from several threads.
  std::function<void(std::span<float>)> activation = nullptr;
};

// The K block of the op library's automatic program configuration (device/matmul_program.h), in tiles. `m` and `n` are
// logical sizes of one matrix.
MatmulShape shape_of(const MatmulSpec& spec);
std::int64_t matmul_k_block(const MatmulSpec& spec);

// Steps of the fast product, for kernels that add products another way. Bits of a float that the phases of a fidelity
// use in operand a and in operand b:
std::uint32_t matmul_kept_bits_a(MathFidelity fidelity);
std::uint32_t matmul_kept_bits_b(MathFidelity fidelity);
// The bias of one column on its sums.
void matmul_add_bias(const MatmulSpec& spec, float bias, std::span<float> sums);
// From 1024 sums in face order, the bias on them, to the bytes of a tile: activation and roundings. `rows`: logical
// rows of the tile; the others become zero. Overwrites the sums.
void matmul_finish(const MatmulSpec& spec, float* sums, std::int64_t rows, std::byte* tile);

// A product bound to shapes and formats. Fast products read the tiles of b where they lie, in their own format, and
// unpack them on the way to the multiplier; exact ones turn a constant b into their layout once. run() allocates
// nothing and serves one caller at a time; it is a loop of parallel.h itself.
class Matmul {
 public:
  explicit Matmul(MatmulSpec spec);
  ~Matmul();
  Matmul(Matmul&&) noexcept;
  Matmul& operator=(Matmul&&) noexcept;

  const MatmulSpec& spec() const;
  // Constants, given before the first run: what is set here is not read by run().
  void set_b(const std::byte* tiles);  // nothing to fast products
  void set_bias(const std::byte* tiles);
  // `bias` is nullptr where it was set before or the spec has none. So may b be in exact products. `place`, of fast
  // products only: where the result's tiles are to lie, instead of one after the other in `out`. `padding_is_zero`: as
  // in DeviceTensor, of tiles in `out`.
  void run(const std::byte* a, const std::byte* b, const std::byte* bias, std::byte* out,
           const TilePlace* place = nullptr, bool padding_is_zero = false);

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace ttrt
