// Element-wise kernels of several operands that broadcast: where an operand's tile for an output tile lies, and how
// one row or column fills it.
#pragma once

#include <optional>
#include <vector>

#include "ops/tiles.h"

namespace ttrt::ops {

// One operand against an output shape.
class BroadcastOperand {
 public:
  BroadcastOperand(const TensorSpec& operand, const TensorSpec& out);
  // The 1024 values that meet output tile t.
  void load(const std::byte* bytes, std::int64_t t, float* values) const;
  // The values that meet a group of output tiles.
  void load(const std::byte* bytes, const TileGroups& out, std::int64_t group, float* values) const;

 private:
  DataType dtype_;
  std::int64_t tile_bytes_, out_down_, out_across_, down_, across_;
  bool one_row_, one_col_;
  std::optional<TileGroups> same_;    // where tiles are those of the output
  std::vector<std::int64_t> matrix_;  // per matrix of the output; empty: the same
};

}  // namespace ttrt::ops
