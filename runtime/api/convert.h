// Between the public types of the library and the runtime's: tensors, types, errors.
#pragma once

#include <utility>

#include "api/ttrt.h"
#include "ir/type.h"
#include "ops/value.h"
#include "support/error.h"

namespace ttrt {

// Lets the library's own files make and take apart public tensors.
struct TensorAccess {
  static Tensor make(ElementType type, Shape shape, std::shared_ptr<void> data);
  static Tensor resident(const ResidentTensor& tensor);
  static const ResidentTensor* resident_of(const Tensor& tensor);
  // Shares the elements. Throws Error (usage) where the tensor is resident.
  static HostTensor host(const Tensor& tensor);
};

// Throws Error (usage) for a number that is no element type.
DType dtype_of(ElementType type);
inline ElementType element_of(DType dtype) { return static_cast<ElementType>(dtype); }

// What a program takes for an input of this type: a host tensor, a tensor that stays on the device, or a number.
RtValue to_value(const ttc::ir::Type& type, const Tensor& tensor);
// Numbers become tensors of shape []; lists are written one after the other; None and strings are empty tensors.
void append_tensors(const RtValue& value, std::vector<Tensor>& out);
Tensor tensor_of(const HostTensor& tensor);

// An error of the inside as one of the library's: flags of the command line in its hint give way to the names that
// this interface has for them.
Error public_error(const ttc::Error& error);

// Runs f; what it throws leaves the library as Error.
template <typename F>
auto guarded(F&& f) {
  try {
    return f();
  } catch (const Error&) {
    throw;
  } catch (const ttc::Error& error) {
    throw public_error(error);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(Error::Kind::failed, error.what());
  }
}

}  // namespace ttrt
