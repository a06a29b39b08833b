// Operators as LibTorch itself defines them: the calls that the composite kernel of an operator makes. No torch here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "ir/model.h"
#include "support/reason.h"

namespace ttc {

// Whether LibTorch defines the operator by others.
bool has_composite_kernel(std::string_view op);

// What the node, one of `of`, computes, in those others: a model whose user inputs are the node's tensor operands, each
// value once, in the order of Node::operands, and whose outputs are the node's results. The kernel runs on the Meta
// device, so what it decides by shapes and dtypes is decided, and one that reads data is given up; its writes in place
// stay as they are. Where sizes are free, it runs at several, has to make the same calls at all of them, and every
// number that follows the sizes becomes an expression: an integer input of that value, behind the tensors. Operators
// within that LibTorch defines by others again are followed too, but for those that `whole` names.
// `definition`: a TorchScript function f of the operator's arguments in schema order, to be taken for the kernel; ""
// for LibTorch's own. A Reason where there is no kernel, where it reads or draws data, and where sizes decide what it
// calls.
std::variant<std::unique_ptr<ir::Model>, Reason> composite_calls(const ir::Model& of, const ir::Node& node,
                                                                 const std::string& definition,
                                                                 const std::function<bool(std::string_view op)>& whole);

}  // namespace ttc
