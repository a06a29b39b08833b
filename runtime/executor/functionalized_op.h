// Operators that write their arguments, called so that nothing is written: torch.export's auto_functionalized and
// auto_functionalized_v2, into which it puts custom operators.
#pragma once

#include <memory>

#include "torch/cpu_op.h"
#include "ir/graph.h"

namespace ttrt {

// For a node higher_order.auto_functionalized(op, name=value, ...) -> (results of op or None, written arguments...), or
// higher_order.auto_functionalized_v2(op, name=value, _NAME_base_index=i, _all_bases=[...]) -> (results of op or None,
// bases after the call...). A written argument NAME of the second form is base i, or a view of it: _NAME_alias;
// _NAME_slice_dim, _slice_start, _slice_end; _NAME_size, _stride, _storage_offset. A list has _NAME_length and
// _NAME_0_base_index, ...
// nullptr for other nodes and where LibTorch does not know `op`. The result refers to `node`.
std::shared_ptr<const CpuOp> functionalized_op(const ttc::ir::Node& node);

}  // namespace ttrt
