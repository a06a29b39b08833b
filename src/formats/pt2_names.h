// Names as .pt2 files spell them, and as the IR does.
#pragma once

#include <string>
#include <string_view>

namespace ttc {

// The major version of torch.export's schema that .pt2 files are read and written in.
constexpr int pt2_schema_major = 8;

// "torch.ops.aten.linear.default" -> "aten.linear.default"; "torch.ops.tt.linear.default" -> "tt.linear";
// "torch.ops.higher_order.cond" -> "higher_order.cond"; "_operator.mul", "math.trunc", "torch.sym_not" stay.
std::string op_from_target(std::string_view target);
std::string target_from_op(std::string_view op);

// A name an FX graph can hold: letters, digits and '_', no leading digit, no Python keyword. Names already so stay.
std::string python_identifier(std::string_view name);

}  // namespace ttc
