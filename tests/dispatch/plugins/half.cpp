// A plug-in that lacks one of the two functions.
#include "dispatch/dispatcher_plugin.h"

extern "C" __attribute__((visibility("default"))) int can_dispatch_to_ttnn(const ttrt_dispatch_call* /*call*/) {
  return 1;
}
