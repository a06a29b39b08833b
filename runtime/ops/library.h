// What the op library knows of an op record: the functions that are this op and the compute configuration they take
// where the caller gives none. A record states it beside itself with TTRT_LIBRARY_OP; replay reads both, programs carry
// the configuration that they were compiled with.
//
// A record that states nothing is the function of its own name ("tt.softmax": softmax), without a configuration.
#pragma once

#include <optional>
#include <string_view>

#include "ops/op.h"

namespace ttrt::ops {

struct LibraryOp {
  std::string_view record;      // "tt.mul"
  std::string_view names = {};  // separated by blanks, besides the record's own
  std::optional<ComputeConfig> config = std::nullopt;
  bool accurate_float32 = false;  // the approximate mode is off for float32
};

// Aborts where another record has one of the names.
void register_library_op(const LibraryOp& op);
// The record that serves this function of the op library; nullptr where there is none.
const OpRecord* find_library_op(std::string_view function);
// Of a call on `x`. Blackhole has HiFi4 where Wormhole, with a 32-bit Dest, has HiFi3.
std::optional<ComputeConfig> library_config(std::string_view record, DataType x = DataType::bfloat16,
                                            Arch arch = Arch::wormhole);
// Of products, which it chooses by the operands' and the result's formats.
ComputeConfig library_matmul_config(DataType a, DataType b, DataType out);

}  // namespace ttrt::ops

#define TTRT_LIBRARY_OP(id, ...)                                                                             \
  namespace {                                                                                                \
  const bool library_op_##id = (::ttrt::ops::register_library_op(::ttrt::ops::LibraryOp __VA_ARGS__), true); \
  }
