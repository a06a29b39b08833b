// The spelling of an operator's name in the IR, "aten.add.Tensor", from LibTorch's, "aten::add" and "Tensor", and its
// parts. The other way is torch_op_name in op_schema.h.
#pragma once

#include <string>
#include <string_view>

namespace ttc::ir {

// "aten::relu" -> "aten.relu.default": LibTorch's overload "" is "default", but tt and prim ops have none. Name and
// overload may come in one, "aten::add.Tensor"; names of the IR stay as they are.
std::string ir_op_name(std::string_view torch_name, std::string_view overload = {});
// "add" of "aten.add.Tensor": what stands between namespace and overload.
std::string_view base_name(std::string_view op);

}  // namespace ttc::ir
