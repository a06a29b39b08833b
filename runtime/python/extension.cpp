// The module itself, and errors: those of the library become ttc.errors' exceptions, made by its function `raised`.
#include "python/extension.h"

namespace ttrt::python {

std::shared_ptr<void> owner_of(py::object object) {
  if (object.is_none()) return nullptr;
  return {object.release().ptr(), [](void* held) {
            if (Py_IsInitialized() == 0) return;
            const py::gil_scoped_acquire lock;
            Py_DECREF(static_cast<PyObject*>(held));
          }};
}

void add_errors(py::module_&) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const py::object made = py::module_::import("ttc.errors")
                                  .attr("made")(ttc::api::name(error.kind()), error.what(), error.hint(), error.file());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
    }
  });
}

}  // namespace ttrt::python

PYBIND11_MODULE(_ttc, m) {
  m.doc() = "Compiler and emulated device of ttc; import ttc instead.";
  ttrt::python::add_errors(m);
  ttrt::python::add_tensors(m);
  ttrt::python::add_library(m);
  ttrt::python::add_devices(m);
  ttrt::python::add_models(m);
  ttrt::python::add_sessions(m);
}
