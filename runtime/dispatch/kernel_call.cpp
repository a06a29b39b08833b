// See kernel_call.h. An error that is a KernelExecutionError already passes through.
#include "dispatch/kernel_call.h"

namespace ttrt::dispatch {

void throw_kernel_error(const KernelSpec& kernel, Symbol operation, std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const KernelExecutionError&) {
    throw;
  } catch (...) {
    throw KernelExecutionError("kernel failed: " + error_text(error), operation.text(), kernel.id.text(), error);
  }
}

void throw_no_implementation(const KernelSpec& kernel, Symbol operation) {
  throw KernelExecutionError("the kernel has no implementation", operation.text(), kernel.id.text());
}

SelectionContext context_for(Symbol operation, const CallArgs& args) {
  try {
    return context_from_inputs(operation, args);
  } catch (const ValueError&) {  // rules by operation alone can still serve it
    SelectionContext context;
    context.operation = operation;
    return context;
  }
}

}  // namespace ttrt::dispatch
