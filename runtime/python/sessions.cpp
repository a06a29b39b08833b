// Running models. The interpreter's lock is free meanwhile.
#include "python/extension.h"

#include "api/options.h"

namespace ttrt::python {
namespace {

py::dict report_dict(const Session& session) {
  const RunReport report = session.report();
  py::dict out;
  out["runs"] = report.runs, out["device_nodes"] = report.device_nodes, out["cpu_nodes"] = report.cpu_nodes;
  out["device_cycles"] = report.device_cycles, out["device_us"] = report.device_us;
  out["to_device"] = report.to_device, out["to_device_bytes"] = report.to_device_bytes;
  out["to_host"] = report.to_host, out["to_host_bytes"] = report.to_host_bytes;
  out["transfer_us"] = report.transfer_us;
  out["weights"] = report.weights, out["streamed_weights"] = report.streamed_weights;
  out["streamed_bytes"] = report.streamed_bytes;
  py::list fallbacks;
  for (const RunFallback& one : report.fallbacks) {
    py::dict row;
    row["node"] = one.node, row["op"] = one.op, row["reason"] = one.reason, row["count"] = one.count;
    fallbacks.append(row);
  }
  out["fallbacks"] = fallbacks;
  return out;
}

py::list profile_list(const Session& session) {
  static constexpr const char* kinds[] = {"device", "cpu", "transfer"};
  py::list out;
  for (const OpProfile& op : unlocked([&] { return session.profile(); })) {
    py::dict row;
    row["node"] = op.node, row["op"] = op.op, row["module"] = op.module;
    row["place"] = kinds[static_cast<int>(op.kind)];
    row["kernel"] = op.kernel, row["calls"] = op.calls, row["wall_us"] = op.wall_us, row["cycles"] = op.cycles;
    row["bound"] = op.bound, row["bytes"] = op.bytes;
    out.append(row);
  }
  return out;
}

py::list memory_list(const Session& session) {
  py::list out;
  for (const MemoryUse& use : unlocked([&] { return session.memory(); })) out.append(memory_dict(use));
  return out;
}

}  // namespace

py::dict memory_dict(const MemoryUse& use) {
  py::dict out;
  out["memory"] = use.memory, out["banks"] = use.banks, out["bank_bytes"] = use.bank_bytes;
  out["allocated_per_bank"] = use.allocated_per_bank, out["peak_per_bank"] = use.peak_per_bank;
  out["largest_free_per_bank"] = use.largest_free_per_bank;
  return out;
}

void add_sessions(py::module_& m) {
  py::class_<Session>(m, "Session", "Runs a model again and again.")
      .def(py::init([](const Model& model, const std::string& options) {
             return unlocked([&] { return std::make_unique<Session>(model, session_options(options)); });
           }),
           py::arg("model"), py::arg("options"))
      .def(
          "run",
          [](Session& session, const std::vector<Tensor>& inputs, const std::vector<std::size_t>& keep) {
            return unlocked([&] { return session.run_keeping(inputs, keep); });
          },
          py::arg("inputs"), py::arg("keep"))
      .def("cancel", &Session::cancel)
      .def("reset", [](Session& session) { unlocked([&] { session.reset(); }); })
      .def("place", [](Session& session, std::size_t index,
                       const Tensor& tensor) { return unlocked([&] { return session.place(index, tensor); }); })
      .def("fetch",
           [](const Session& session, const Tensor& tensor) { return unlocked([&] { return session.fetch(tensor); }); })
      .def("report", &report_dict)
      .def("profile", &profile_list)
      .def("memory", &memory_list);
  m.def("set_threads", &set_threads);
  m.def("threads", &threads);
}

}  // namespace ttrt::python
