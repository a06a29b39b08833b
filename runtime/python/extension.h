// The parts of the Python extension ttc._ttc, each a function that adds to the module. Over the public headers alone.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>

#include "api/ttrt.h"

namespace ttrt::python {

namespace py = pybind11;

// What keeps a Python object alive for as long as C++ holds on to its memory, whichever thread lets go of it.
std::shared_ptr<void> owner_of(py::object object);

// Calls f without the interpreter's lock, so that other threads of Python go on.
template <typename F>
auto unlocked(F&& f) {
  const py::gil_scoped_release release;
  return f();
}

// DRAM or L1 of a device.
py::dict memory_dict(const MemoryUse& use);

void add_errors(py::module_& m);
void add_tensors(py::module_& m);
void add_library(py::module_& m);
void add_devices(py::module_& m);  // behind the classes of add_library
void add_models(py::module_& m);
void add_sessions(py::module_& m);

}  // namespace ttrt::python
