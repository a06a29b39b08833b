// Between the public types and the inside: errors, element types, formats.
#pragma once

#include <ttc/ttc.h>

#include <new>

#include "device/types.h"
#include "session/cases.h"
#include "session/compatibility.h"
#include "session/compile_settings.h"
#include "session/model_source.h"
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

// What src/session takes. Throw Error (usage) for numbers that are no format, fidelity or element type.
CompileSettings settings_of(const CompileOptions& options);
std::vector<std::string> shape_texts(const std::map<std::string, InputShape>& shapes);
// What CompareOptions and ExtractOptions say of the calls.
template <typename Options>
InputOptions inputs_of(const Options& options) {
  InputOptions out{.io = options.io,
                   .io_prefix = options.io_prefix,
                   .io_steps = options.io_steps,
                   .inputs = options.input,
                   .shapes = shape_texts(options.shape),
                   .seed = options.seed};
  if constexpr (requires { options.carry; }) out.carry = options.carry;
  return out;
}
// The file of a model that was not rewritten. Throws ttc::Error (usage) for others.
const ModelSource& plain_source(const Model& model);
Model loaded(std::shared_ptr<const ModelSource> source);
Model model_of(std::shared_ptr<const ir::Model> made);
Compatibility public_compatibility(const ttc::Compatibility& found);

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
