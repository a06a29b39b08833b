// The last part of placing: moving values between device and host.
#pragma once

#include "pass/pass.h"

namespace ttc {

// Gives each node its place by its operator, and inserts the transfers. These are no rewrites: without them the model
// does not run.
void insert_transfers(PassContext& context);

}  // namespace ttc
