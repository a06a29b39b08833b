// Replacing ATen nodes by device operators: the user's map and exclusions, and the lowering that op records give.
#pragma once

#include <variant>

#include "common.h"
#include "written_memory.h"

namespace ttc {

// A device operator that can take the place of a node, or part of one.
struct Replacement {
  const ttrt::OpRecord* record = nullptr;
  std::vector<ir::Arg> args;  // in schema order
  std::vector<int> results;   // of the ATen node, one per result of the device operator
  const MapEntry* entry = nullptr;
};

// Whether the user lets `device_op` take the place of this node. Exclusions win over his maps.
Refusal user_refusal(const PassContext& context, const ir::Node& node, std::string_view device_op);
// The same for the device operator that this ATen operator becomes, whatever the node is now.
Refusal user_refusal_of(const PassContext& context, const ir::Node& node, std::string_view aten);
// Whether the user lets the node, which alone reads `layer`, become a part of it: his maps let it be `device_op`, or
// the TT module that the layer becomes takes it along.
Refusal joining_refusal(const PassContext& context, const ir::Node& layer, const ir::Node& node,
                        std::string_view device_op);
// How the node's module computes: formats and fidelity of the flags, else of the entry.
ttrt::LowerOptions lower_options(const PassContext& context, const ir::Node& node, const MapEntry* entry);

// The first operator that lowers this node and takes its shapes and dtypes; else why not. What is `written` in place
// cannot be a device tensor.
std::variant<Replacement, Reason> find_replacement(const PassContext& context, const WrittenMemory& written,
                                                   const ir::Node& node);
// What refuses a device operator in the place of a pattern that ends in `node`: the user, or its limits. Where nothing
// does, `args` gets the configuration that it has there.
Refusal settle_call(const PassContext& context, const ir::Node& node, const ttrt::OpRecord& record,
                    std::vector<ir::Arg>& args);
// The limits of a device operator for these arguments, user's wishes aside.
Refusal call_refusal(const PassContext& context, const ttrt::OpRecord& record, const std::vector<ir::Arg>& args);

// Puts the device operator in the node's place; types stay PyTorch's until transfers are made. nullptr: nothing
// changed.
ir::Node* replace_node(PassContext& context, std::string_view pass, ir::Node* node, Replacement replacement);

// Part of replace: scaled_dot_product_attention (replace_attention.cpp).
void replace_attention(PassContext& context, const WrittenMemory& written);
// Rotary position embedding (replace_rotary.cpp).
void replace_rotary(PassContext& context);

}  // namespace ttc
