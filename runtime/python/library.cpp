// Functions of the op library, for the package ttnn_emulated.
#include "api/library.h"

#include "python/extension.h"

namespace ttrt::python {
namespace {

// Operands are (name, format, float32 tensor, row_major, buffer or None), results (shape, format); a configuration is
// (fidelity, approximate, float32 Dest, accumulation in L1) or None.
using OperandTuple = std::tuple<std::string, std::string, Tensor, bool, std::optional<library::Buffer>>;
using ResultTuple = std::tuple<Shape, std::string>;
using ConfigTuple = std::tuple<std::string, bool, bool, bool>;

std::vector<Tensor> run(const std::string& function, const std::vector<OperandTuple>& operands,
                        const std::vector<ResultTuple>& results, const std::string& params,
                        const std::optional<ConfigTuple>& config, bool blackhole, bool exact) {
  library::Call call{.function = function, .operands = {}, .results = {}, .params = params};
  for (const auto& [name, format, values, row_major, buffer] : operands)
    call.operands.push_back({.name = name,
                             .format = format,
                             .values = values,
                             .row_major = row_major,
                             .buffer = buffer.value_or(library::Buffer{})});
  for (const auto& [shape, format] : results) call.results.push_back({.shape = shape, .format = format});
  if (config) {
    const auto& [fidelity, approximate, wide, l1] = *config;
    call.config = {
        .math_fidelity = fidelity, .math_approx_mode = approximate, .fp32_dest_acc_en = wide, .packer_l1_acc = l1};
  }
  call.blackhole = blackhole;
  call.numerics = exact ? NumericsMode::exact : NumericsMode::fast;
  return unlocked([&] { return library::run(call); });
}

py::bytes stored(const Tensor& values, const std::string& format, bool row_major) {
  const auto made = unlocked([&] { return library::stored(values, format, row_major); });
  return {reinterpret_cast<const char*>(made.data()), made.size()};
}

Tensor restored(const py::buffer& bytes, const Shape& shape, const std::string& format, bool row_major) {
  const py::buffer_info info = bytes.request();
  const std::span given{static_cast<const std::byte*>(info.ptr), static_cast<std::size_t>(info.size * info.itemsize)};
  return unlocked([&] { return library::restored(given, {.shape = shape, .format = format}, row_major); });
}

using DeviceHandle = std::shared_ptr<tt_lib::device::Device>;

DeviceHandle open(const std::string& profile, int slot) {
  return unlocked([&] {
    DeviceHandle device = tt_lib::device::CreateDevice(profile, slot);
    tt_lib::device::InitializeDevice(device);
    return device;
  });
}

library::Buffer allocate(const DeviceHandle& device, const Shape& shape, const std::string& format, bool row_major,
                         bool in_l1) {
  return library::allocate(device, {.shape = shape, .format = format}, row_major, in_l1);
}

void add_device_memory(py::module_& m) {
  py::class_<library::Buffer>(m, "Buffer", "Memory of a device.")
      .def_readonly("address", &library::Buffer::address)
      .def("forget", &library::forget, py::call_guard<py::gil_scoped_release>());
  using tt_lib::device::Device;
  py::class_<Device, DeviceHandle>(m, "Device", "An emulated accelerator.")
      .def(py::init(&open), py::arg("profile"), py::arg("slot"))
      .def("close", [](const DeviceHandle& device) { tt_lib::device::CloseDevice(device); })
      .def("allocate", &allocate)
      .def_property_readonly("is_closed", &Device::is_closed)
      .def_property_readonly("is_initialized", &Device::is_initialized)
      .def_property_readonly("name", &Device::name)
      .def_property_readonly("pcie_slot", &Device::pcie_slot)
      .def_property_readonly("profile", &Device::profile)
      .def_property_readonly("arch", [](const Device& device) { return static_cast<int>(device.arch()); })
      .def_property_readonly("grid",
                             [](const Device& device) { return py::make_tuple(device.grid_x(), device.grid_y()); })
      .def("memory", [](const Device& device) {
        py::list out;
        for (const MemoryUse& use : device.memory()) out.append(memory_dict(use));
        return out;
      });
}

}  // namespace

void add_library(py::module_& m) {
  m.def("library_run", &run, py::arg("function"), py::arg("operands"), py::arg("results"), py::arg("params"),
        py::arg("config"), py::arg("blackhole"), py::arg("exact"));
  m.def("library_stored", &stored, py::arg("values"), py::arg("format"), py::arg("row_major"));
  m.def("library_restored", &restored, py::arg("bytes"), py::arg("shape"), py::arg("format"), py::arg("row_major"));
  m.def("library_knows", &library::knows);
  add_device_memory(m);
}

}  // namespace ttrt::python
