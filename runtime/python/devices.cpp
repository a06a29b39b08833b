// Host, devices and single operators on tensors (api/tt_lib.h), for the package ttc.tt_lib.
#include "api/tt_lib.h"

#include "python/extension.h"

namespace ttrt::python {
namespace {

using tt_lib::device::Device;
using tt_lib::device::Host;
using DeviceHandle = std::shared_ptr<Device>;

Value value_of(const py::handle& object) {
  if (object.is_none()) return {};
  if (py::isinstance<Tensor>(object)) return object.cast<Tensor>();
  if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
  if (py::isinstance<py::int_>(object)) return object.cast<std::int64_t>();
  if (py::isinstance<py::float_>(object)) return object.cast<double>();
  if (py::isinstance<py::str>(object)) return object.cast<std::string>();
  if (!py::isinstance<py::list>(object) && !py::isinstance<py::tuple>(object))
    throw Error(Error::Kind::usage,
                "an argument is a " + py::str(py::type::handle_of(object).attr("__name__")).cast<std::string>(),
                "arguments are tensors, numbers, texts, None and lists of these");
  Value::List items;
  for (const py::handle& item : object) items.push_back(value_of(item));
  return items;
}

py::object object_of(const Value& value) {
  if (const auto* list = value.get_if<Value::List>()) {
    py::list out;
    for (const Value& item : *list) out.append(object_of(item));
    return out;
  }
  if (const auto* tensor = value.get_if<Tensor>()) return py::cast(*tensor);
  if (const auto* integer = value.get_if<std::int64_t>()) return py::int_(*integer);
  if (const auto* number = value.get_if<double>()) return py::float_(*number);
  if (const auto* flag = value.get_if<bool>()) return py::bool_(*flag);
  if (const auto* text = value.get_if<std::string>()) return py::str(*text);
  return py::none();
}

py::object call(const std::string& name, const py::tuple& args, const py::dict& keywords, bool exact) {
  Arguments in;
  for (const py::handle& arg : args) in.push_back(value_of(arg));
  Keywords named;
  for (const auto& [key, arg] : keywords) named[key.cast<std::string>()] = value_of(arg);
  const Value out =
      unlocked([&] { return tt_lib::tensor::op(name, in, named, exact ? NumericsMode::exact : NumericsMode::fast); });
  return object_of(out);
}

DeviceHandle create(const std::string& board, int slot) { return tt_lib::device::CreateDevice(board, slot); }

}  // namespace

void add_devices(py::module_& m) {
  py::class_<Host>(m, "Host", "The machine that runs this process.")
      .def_property_readonly("threads", &Host::threads)
      .def_property_readonly("isa", &Host::isa);
  m.def("get_host", &tt_lib::device::GetHost, py::return_value_policy::reference);
  m.def("create_device", &create, py::arg("board"), py::arg("slot"));
  m.def("initialize_device", &tt_lib::device::InitializeDevice, py::arg("device"));
  m.def("close_device", &tt_lib::device::CloseDevice, py::arg("device"));
  m.def("set_default_device", &tt_lib::device::SetDefaultDevice, py::arg("device").none(true));
  m.def("get_default_device", &tt_lib::device::GetDefaultDevice);
  m.def("to_device", [](const Tensor& x, const DeviceHandle& to) { return unlocked([&] { return x.to(to); }); });
  m.def("to_host", [](const Tensor& x) { return unlocked([&] { return x.to(tt_lib::device::GetHost()); }); });
  m.def("deallocate", &tt_lib::tensor::deallocate, py::arg("tensor"));
  m.def("storage", &tt_lib::tensor::storage, py::arg("tensor"));
  m.def("device_op", &call, py::arg("name"), py::arg("args"), py::arg("keywords"), py::arg("exact"));
}

}  // namespace ttrt::python
