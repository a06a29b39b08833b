// How a matrix product is spread over the cores: the op library's program configurations.
//
//   2d            rows of tiles over the rows of the grid, columns over its columns; both operands are multicast
//   1d            one side over all cores, the other operand multicast to all: narrow products
//   dram_sharded  a band of one tile of rows; each DRAM bank's share of the weight goes to the core beside it: decoding
//   folded        the matrices of a batch as one tall matrix, as with a grid given: the weight comes once for all
// Each fixes the tiles of K between two additions to Dest, so exact numerics differ in the last bits.
#pragma once

#include "device/matmul.h"
#include "ops/op.h"

namespace ttrt::ops {

// `one_b`: of products whose b is one matrix.
std::vector<KernelVariant> matmul_variants(bool one_b = false);
// MatmulSpec::k_block for the variant of this context; 0, the library's own choice, where it names none.
std::int64_t variant_k_block(const PrepareContext& context, const MatmulSpec& spec);

// The same of a call whose literal k_block may say it.
std::int64_t product_k_block(const OpCall& call, const PrepareContext& context, const MatmulSpec& spec);
// Throws ttc::Error where that literal does not divide the tiles of `k` columns.
void check_k_block(const OpCall& call, std::int64_t k);
// The float format that a literal of the call names, else this one. Throws ttc::Error for any other word.
DataType product_format(const OpCall& call, std::string_view literal, DataType otherwise);

// A product's program configuration in TT-NN's Python; "" where the library is left to choose: sizes that are not
// fixed, matrices of b of their own.
std::string python_program(const PythonCall& to);

}  // namespace ttrt::ops
