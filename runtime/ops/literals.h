// Numbers, texts and lists of them in the three forms they take: an argument of a node (ir::Arg), a value of a running
// program (RtValue), an argument of a device op's call (OpArg). The only conversions there are.
#pragma once

#include <functional>

#include "ops/op.h"

namespace ttrt {

// None for values of the graph and nested graphs, unless `of_value` gives what stands for a value.
RtValue literal_value(const ttc::ir::Arg& arg, const std::function<RtValue(const ttc::ir::Value&)>& of_value = nullptr);
// None for tensors.
RtValue literal_value(const OpArg& arg);
// None for what the IR has no literal for; tensors through `of_tensor` where it is given.
ttc::ir::Arg literal_arg(const RtValue& value,
                         const std::function<ttc::ir::Arg(const RtValue& tensor)>& of_tensor = nullptr);

// A literal as an op's call has it: None, a number, bool, text, dtype, or a list of numbers. A list keeps its order:
// booleans count as 0 and 1, and where one item is not an integer all become floating point in place. nullopt for
// everything else: tensors, lists that hold None or something else than numbers.
std::optional<OpArg> op_literal(const RtValue& value);

}  // namespace ttrt
