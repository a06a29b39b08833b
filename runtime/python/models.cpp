// Models, compiling, checking, comparing. Options come as JSON (api/options.h), reports leave as JSON or plain values.
#include "python/extension.h"

#include "api/options.h"

namespace ttrt::python {
namespace {

py::dict info_dict(const TensorInfo& info) {
  static constexpr const char* kinds[] = {"tensor", "integer", "number", "boolean", "other"};
  py::dict out;
  out["name"] = info.name;
  out["kind"] = kinds[static_cast<int>(info.kind)];
  out["type"] = info.type ? py::object(py::str(name(*info.type))) : py::none();
  out["text"] = info.text();
  py::list dims;
  for (const Dim& dim : info.dims) dims.append(dim.size ? py::object(py::int_(*dim.size)) : py::str(dim.symbol));
  out["dims"] = info.has_shape ? py::object(dims) : py::none();
  return out;
}

py::list info_list(const std::vector<TensorInfo>& infos) {
  py::list out;
  for (const TensorInfo& info : infos) out.append(info_dict(info));
  return out;
}

Model from_bytes(const py::bytes& file, const std::string& name) {
  const std::string_view bytes = file;
  return unlocked([&] { return Model::load(std::as_bytes(std::span(bytes)), name); });
}

py::dict refusal_dict(const ttc::api::Refusal& one) {
  py::dict out;
  out["node"] = one.node, out["op"] = one.op, out["module"] = one.module;
  out["reason"] = one.reason, out["detail"] = one.detail, out["source"] = one.source, out["pass"] = one.pass;
  return out;
}

py::dict report_dict(const CompileReport& report) {
  py::dict out;
  out["arch"] = report.arch, out["summary"] = report.summary, out["json"] = report.json;
  out["nodes"] = report.nodes, out["device_nodes"] = report.device_nodes, out["cpu_nodes"] = report.cpu_nodes;
  out["flops"] = report.flops, out["device_flops"] = report.device_flops;
  out["weight_bytes_in"] = report.weight_bytes_in, out["weight_bytes_out"] = report.weight_bytes_out;
  out["transfers"] = report.transfers, out["transfer_bytes"] = report.transfer_bytes;
  out["dram_peak_bytes"] = report.dram_peak_bytes, out["l1_peak_bytes"] = report.l1_peak_bytes;
  out["fits"] = report.fits, out["streamed"] = report.streamed, out["notes"] = report.notes;
  py::list fallbacks, near_misses, modules;
  for (const auto& one : report.fallbacks) fallbacks.append(refusal_dict(one));
  for (const auto& one : report.near_misses) near_misses.append(refusal_dict(one));
  for (const auto& one : report.modules) {
    py::dict row;
    row["path"] = one.path, row["class"] = one.klass, row["op"] = one.op;
    row["weight_format"] = one.weight_format, row["fidelity"] = one.fidelity;
    modules.append(row);
  }
  out["fallbacks"] = fallbacks, out["near_misses"] = near_misses, out["modules"] = modules;
  return out;
}

py::dict comparison_dict(const ttc::api::Comparison& found) {
  py::list rows;
  for (const ttc::api::CompareRow& row : found.rows) {
    py::dict one;
    one["node"] = row.node, one["op"] = row.op, one["module"] = row.module, one["source"] = row.source;
    one["pcc"] = row.pcc, one["max_abs"] = row.max_abs, one["max_rel"] = row.max_rel, one["snr_db"] = row.snr_db;
    one["nan"] = row.nan, one["zero"] = row.zero, one["threshold"] = row.threshold, one["pass"] = row.pass;
    rows.append(one);
  }
  py::dict out;
  out["rows"] = rows, out["passed"] = found.pass, out["notes"] = found.notes;
  out["first_failure"] = found.first_failure, out["worst"] = found.worst;
  return out;
}

py::tuple compile_model(const Model& model, const std::string& options) {
  Compiled made = unlocked([&] { return compile(model, compile_options(options)); });
  return py::make_tuple(std::move(made.model), report_dict(made.report));
}

py::dict check_model(const Model& model, const std::string& options) {
  return report_dict(unlocked([&] { return ttc::api::check(model, compile_options(options)); }));
}

py::dict compare_model(const Model& model, const std::string& options) {
  return comparison_dict(unlocked([&] { return compare(model, compare_options(options)); }));
}

template <typename Listed>
py::dict listed(const std::vector<Listed>& rows) {
  py::dict out;
  for (const Listed& row : rows) out[py::str(row.name)] = row.summary;
  return out;
}

}  // namespace

void add_models(py::module_& m) {
  py::class_<Model>(m, "Model", "A model file in memory; immutable.")
      .def_static(
          "load", [](const std::string& path) { return unlocked([&] { return Model::load(path); }); }, py::arg("path"))
      .def_static("from_bytes", &from_bytes, py::arg("file"), py::arg("name"))
      .def(
          "save", [](const Model& model, const std::string& path) { unlocked([&] { model.save(path); }); },
          py::arg("path"))
      .def("inputs", [](const Model& model) { return info_list(model.inputs()); })
      .def("outputs", [](const Model& model) { return info_list(model.outputs()); })
      .def_property_readonly("is_rewritten", &Model::is_rewritten)
      .def_property_readonly("arch", &Model::arch)
      .def_property_readonly("path", &Model::path)
      .def("extra", &Model::extra);
  m.def("compile", &compile_model, py::arg("model"), py::arg("options"));
  m.def("check", &check_model, py::arg("model"), py::arg("options"));
  m.def("compare", &compare_model, py::arg("model"), py::arg("options"));
  m.def("compile_option_names", &compile_option_names);
  m.def("session_option_names", &session_option_names);
  m.def("compare_option_names", &compare_option_names);
  m.def("version", &version);
  m.def("archs", [] { return listed(ttc::api::archs()); });
  m.def("ops", [] { return listed(ttc::api::ops()); });
  m.def("modules", [] { return listed(ttc::api::modules()); });
  m.def("passes", [] { return listed(ttc::api::passes()); });
}

}  // namespace ttrt::python
