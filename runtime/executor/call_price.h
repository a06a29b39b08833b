// What a call would cost on a device, by the kernel that the default dispatcher would choose for it. Nothing is
// prepared and nothing runs.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

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

// The same for many calls, of which most are alike: a model has few kinds of layers.
class CallPrices {
 public:
  CallPrices(const ArchProfile& profile, KernelChooser& chooser) : profile_(profile), chooser_(chooser) {}
  const CallPrice& of(const OpCall& call, bool constant_b);  // valid until the next one is asked for

 private:
  struct Known {
    OpCall call;
    bool constant_b;
    CallPrice price;
  };
  static constexpr std::size_t most = 1024;
  const ArchProfile& profile_;
  KernelChooser& chooser_;
  std::unordered_multimap<std::size_t, Known> known_;
};

}  // namespace ttrt
