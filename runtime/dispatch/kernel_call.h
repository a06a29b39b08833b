// Calling a kernel so that whatever it throws is a KernelExecutionError.
#pragma once

#include "dispatch/kernel.h"

namespace ttrt::dispatch {

[[noreturn]] void throw_kernel_error(const KernelSpec& kernel, Symbol operation, std::exception_ptr error);
[[noreturn]] void throw_no_implementation(const KernelSpec& kernel, Symbol operation);

// From the inputs, or with the operation alone where they have no tensor to go by.
SelectionContext context_for(Symbol operation, const CallArgs& args);

inline void call_kernel(const KernelSpec& kernel, Symbol operation, CallArgs& args) {
  if (!kernel.impl) throw_no_implementation(kernel, operation);
  try {
    kernel.impl(args);
  } catch (...) {
    throw_kernel_error(kernel, operation, std::current_exception());
  }
}

}  // namespace ttrt::dispatch
