// What a call would cost on a device, by the kernel that the default dispatcher would choose for it. Nothing is
// prepared and nothing runs.
#pragma once

#include <string>

#include "executor/kernel_choice.h"
#include "ops/op.h"

namespace ttrt {

struct CallPrice {
  std::string kernel;     // the record's variant; "" where it has one kernel
  bool on_device = true;  // false: the dispatcher leaves it to the host, and what follows is nobody's
  Time time;
  CoreSplit split;
  Work work;
};
// `constant_b`: whether the second operand is a constant of the program.
CallPrice price_call(const OpCall& call, bool constant_b, const ArchProfile& profile, KernelChooser& chooser);

}  // namespace ttrt
