// The compute nodes of the canonical graph and their work: what device and CPU counts refer to.
#pragma once

#include "pass/pass.h"

namespace ttc {

// Gives each compute node, nested ones included, its number in Node::origins, and fills context.canonical.
void number_nodes(PassContext& context);

}  // namespace ttc
