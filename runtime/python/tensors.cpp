// Tensors cross as memory: a view of what Python holds, and the buffer protocol for what the library made. No element
// is copied either way.
#include "python/extension.h"

namespace ttrt::python {
namespace {

Tensor view(std::uintptr_t address, int type, const Shape& shape, py::object owner) {
  const auto element = static_cast<ElementType>(type);
  std::size_t bytes = element_size(element);
  for (const std::int64_t dim : shape) bytes *= static_cast<std::size_t>(dim);
  return Tensor::view_bytes(element, shape, {reinterpret_cast<std::byte*>(address), bytes}, owner_of(std::move(owner)));
}

py::buffer_info buffer(Tensor& tensor) {
  const auto bytes = tensor.mutable_bytes();
  return {bytes.data(), 1, "B", static_cast<py::ssize_t>(bytes.size())};
}

}  // namespace

void add_tensors(py::module_& m) {
  py::class_<Tensor>(m, "Tensor", py::buffer_protocol(), "Elements in host memory, or on a device.")
      .def_static("view", &view, py::arg("address"), py::arg("type"), py::arg("shape"), py::arg("owner"),
                  "The memory at an address, which the owner keeps alive.")
      .def_property_readonly("type", [](const Tensor& t) { return static_cast<int>(t.type()); })
      .def_property_readonly("shape", [](const Tensor& t) { return py::tuple(py::cast(t.shape())); })
      .def_property_readonly("is_resident", &Tensor::is_resident)
      .def_property_readonly("address",
                             [](const Tensor& t) { return reinterpret_cast<std::uintptr_t>(t.bytes().data()); })
      .def("__repr__", [](const Tensor& t) { return "<ttc " + t.text() + ">"; })
      .def_buffer(&buffer);
  py::list names;
  for (int i = 0; i <= static_cast<int>(ElementType::float8_e8m0fnu); ++i)
    names.append(name(static_cast<ElementType>(i)));
  m.attr("element_types") = names;
}

}  // namespace ttrt::python
