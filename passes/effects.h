// Which nodes may be dropped, merged or computed ahead of time: what a node does besides giving its results.
#pragma once

#include <string_view>

#include "ir/model.h"
#include "ir/op_name.h"

namespace ttc {

using ir::base_name;
// Writes one of its arguments, by its schema.
bool mutates(const ir::Node& node);
// Must stay although nobody uses its results: writes an argument, draws random numbers (later draws depend on it), has
// no results, is of an unknown operator, or has such a node in a region.
bool has_effects(const ir::Node& node);
// Any node of the graph or its regions writes one of its arguments.
bool any_mutation(const ir::Graph& graph);
// The regions of higher-order operators take what they use as operands; those of prim.if and prim.loop also use outer
// values.
bool regions_capture(const ir::Node& node);

// Every use of `value`, in arguments, lists, regions and outputs, becomes `arg`, which may be a literal.
void replace_with_arg(ir::Value* value, const ir::Arg& arg);

}  // namespace ttc
