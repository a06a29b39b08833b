// Reads TorchScript (.pt, from torch.jit.save): loaded with LibTorch, put in eval mode, inlined, lowered to the IR.
//
// Submodule calls are followed by path, so weights keep their fully qualified names and nodes their module stack.
// Attributes that no code writes are constants; those that forward() writes are buffers, with a mutation output each.
#pragma once

#include <memory>
#include <string>

#include "formats/zip_read.h"
#include "ir/model.h"

namespace ttc {

// Operators keep the names of .pt2 files ("aten.linear.default"). Control flow stays: `prim.if` (operand: condition;
// two regions) and `prim.loop` (operands: trip count, initial condition, carried values; one region with inputs
// iteration and carried values, outputs condition and carried values). Shape arithmetic of traced models becomes
// `aten.sym_size.int` and `_operator.*` on ints. Types are unknown until propagate_shapes.
// Throws ttc::Error: bad_file for what LibTorch cannot load, unsupported for what the IR has no form for. The archive
// is checked more strictly than LibTorch does, which reads the same mapping.
std::unique_ptr<ir::Model> read_torchscript(const ZipArchive& archive);

}  // namespace ttc
