// Inner loops of the fast matrix product, one set per instruction set. Used by device/matmul.cpp only.
//
// Operand b is held as panels of 32 columns (one column of tiles). Pairs: for every two k a row of 32 words
// (b[k][n] low, b[k+1][n] high, bfloat16). Floats: for every k a row of 32 floats. A panel covers K rounded up to whole
// tiles and holds zeros beyond K.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/types.h"

namespace ttrt::detail {

enum class Operand : std::uint8_t { bf16_pairs, floats };

class Beside;

// Whole tiles of 32 rows at once, where a machine has registers for them. Sums of even and of odd k are added apart, so
// they may differ in the last bits from those of strips.
struct BlockKernel {
  void (*begin)();  // before the first of several on a thread, which then has the registers until end()
  // c (a tile in face order, rows beyond `rows` undefined) = or += `k_tiles` tiles of pack_block_rows times a panel. Of
  // `beside` as much is done as there is time for.
  void (*add)(const std::byte* a, const void* panel, std::int64_t k_tiles, std::int64_t rows, bool add, float* c,
              Beside* beside);
  void (*end)();
};
// The first rows of a tile of bfloat16 (2048 bytes) as rows of 32 k, each word of two and-ed with `keep`,
// whose halves are the same, zeros from `valid_k` on.
void pack_block_rows(const std::byte* tile, std::uint32_t keep, std::int64_t rows, std::int64_t valid_k,
                     std::byte* out);
#if defined(__x86_64__)
extern const BlockKernel amx_block;  // AMX-BF16
#endif

// `keep` where no bit is to be cut.
constexpr std::uint32_t keeps_all = 0xFFFFFFFF;
// The first rows of a tile of a float format as rows of floats in face order, each and-ed with `keep`.
void float_rows(DataType dtype, const std::byte* tile, std::int64_t rows, std::uint32_t keep, std::byte* out);

struct MatmulKernels {
  Operand operand;
  int strip_rows;  // of a whole strip
  // One strip: `rows` (1..strip_rows) rows of a x one panel -> c[row * 16 + col], second half of the columns at c +
  // 256. `a` is the strip's first row in its first k face: elements of 2 (pairs) or 4 bytes, 16 a row, 256 a face,
  // faces of one tile row alternate, tiles are 1024 elements apart. `keep` is and-ed to every 32-bit word of a. `add`:
  // to what c holds, as if both had been one strip. `ahead` bytes after these rows lie those that are wanted next and
  // may be far from the core; 0: none. Of `beside`, if any, as much is done as there is time for (pairs only).
  void (*strip)(const std::byte* a, const void* panel, std::int64_t k, std::uint32_t keep, int rows, bool add, float* c,
                std::int64_t ahead, Beside* beside);
  const BlockKernel* block = nullptr;
};

#if defined(__x86_64__)
// Of hosts with AVX2, floats.
void strip_avx2(const std::byte* a, const void* panel, std::int64_t k, std::uint32_t keep, int rows, bool add, float* c,
                std::int64_t ahead, Beside* beside);
#endif

// The best kernels of isa() for operands that all fit bfloat16, or for the others.
const MatmulKernels& matmul_kernels(bool bf16_exact);

// One tile of b -> its 32 k rows of a panel. `rows_are_k`: the tile holds [k, n], else [n, k]. Values and-ed with
// `keep` (a float's bits); k from `valid_k` on becomes zero.
struct PanelTile {
  DataType dtype;
  bool rows_are_k;
  std::uint32_t keep;
  std::int64_t valid_k;
};
void fill_panel(Operand operand, const PanelTile& tile, const std::byte* bytes, void* panel_rows);
// Bytes of one panel row group of 32 k.
constexpr std::int64_t panel_bytes_per_tile(Operand operand) { return operand == Operand::bf16_pairs ? 2048 : 4096; }

}  // namespace ttrt::detail
