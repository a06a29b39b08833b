// Concrete device calls of IR nodes: shapes evaluated, formats as the device will see them. An adapter over the binder
// (ops/bind.h), which operand_kind and operand_format come from.
#pragma once

#include "ops/bind.h"
#include "pass/pass.h"

namespace ttc {

using ttrt::operand_format;
using ttrt::operand_kind;

// The call that `op` with these arguments stands for. Operands already on the device keep their format; the others get
// the one of their operand kind. A Reason where a shape, dtype or argument cannot be expressed.
std::variant<ttrt::BoundCall, Reason> concrete_call(const ttrt::OpRecord& record, const std::vector<ir::Arg>& args,
                                                    const ir::SymBinding& shapes, const ttrt::BindOptions& options);
// A value for every symbol of the model: as given, else as it was exported with, else the least of its range.
ir::SymBinding example_sizes(const ir::Model& model, const ir::SymBinding& given);
// True for the results of tt operators but to_host.
bool on_device(const ir::Value* value);
bool is_device_node(const ir::Node& node);
// The op that passes write for this role.
inline std::string op_name(ttrt::Role role) { return std::string(ttrt::op_for(role).name); }

}  // namespace ttc
