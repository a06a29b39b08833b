// Schemas for IR tests, which run without LibTorch.
#pragma once

#include "ir/model.h"

namespace ttc::ir::test {

inline void register_ops() {
  static const bool once = [] {
    for (const char* text :
         {"aten::relu(Tensor self) -> Tensor",
          "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
          "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
          "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
          "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
          "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
          "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
          "memory_format=None) -> Tensor(a)",
          "aten::gelu(Tensor self, *, str approximate='none') -> Tensor",
          "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
          "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
          "device=None, bool? pin_memory=None) -> Tensor",
          "aten::sym_size.int(Tensor self, int dim) -> SymInt",
          "aten::_assert_async.msg(Tensor self, str assert_msg) -> ()"})
      register_schema(parse_schema(text));
    return true;
  }();
  (void)once;
}

}  // namespace ttc::ir::test
