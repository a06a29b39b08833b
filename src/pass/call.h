// Concrete device calls of IR nodes: shapes evaluated, literals in schema order, formats as the device will see them.
#pragma once

#include "pass/pass.h"

namespace ttc {

// How an operand of `record` reaches the device.
ttrt::OperandKind operand_kind(const ttrt::OpRecord& record, std::string_view name);
// The format in which a host value of this dtype reaches an operand of this kind.
std::optional<ttrt::DataType> operand_format(ttrt::OperandKind kind, DType dtype, ttrt::DataType activation);

// The call that `op` with these arguments stands for. Operands already on the device keep their format; the others get
// the one of their operand kind. A Reason where a shape, dtype or argument cannot be expressed.
std::variant<ttrt::OpCall, Reason> concrete_call(const ttrt::OpRecord& record, const std::vector<ir::Arg>& args,
                                                 const ir::SymBinding& shapes, ttrt::DataType activation);
// True for the results of tt operators but to_host.
bool on_device(const ir::Value* value);
bool is_device_node(const ir::Node& node);

}  // namespace ttc
