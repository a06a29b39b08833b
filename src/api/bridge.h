// Between the public types and the inside: errors, element types, formats.
#pragma once

#include <ttc/ttc.h>

#include <new>

#include "device/types.h"
#include "support/dtype.h"
#include "support/error.h"

namespace ttc::api {

// Throws Error (usage) for a number that is no element type.
DType dtype_of(ElementType type);
inline ElementType element_of(DType dtype) { return static_cast<ElementType>(dtype); }

// Throws Error (usage) for a number that is no format.
ttrt::DataType device_format(Format format);
// Throws Error (usage) for a name that is none, with those there are.
Format format_named(std::string_view name);

// What a text says of a flag of the command line, in the names of the libraries: "--weight-dtype" is weight_dtype.
std::string library_text(const std::string& text);

Error public_error(const ttc::Error& error);

// Runs f; what it throws leaves the library as api::Error.
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

}  // namespace ttc::api
