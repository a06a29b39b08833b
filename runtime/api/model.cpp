// Models: loaded from files and from memory, described by their signature, rewritten, saved.
#include "api/model.h"

#include <algorithm>

#include "api/convert.h"
#include "executor/signature.h"
#include "formats/model_file.h"
#include "session/compile.h"
#include "support/json_util.h"
#include "torch_library/torch_ops.h"

namespace ttrt {
namespace {

using ttc::ir::Type;
using ttc::ir::TypeKind;

// ---- the signature --------------------------------------------------------------------------------------------------

Dim dim_info(const ttc::ir::SymExpr& size, const ttc::ir::SymRanges& ranges) {
  if (size.is_number()) return {.size = size.number(), .symbol = {}, .min = size.number(), .max = size.number()};
  Dim out{.size = {}, .symbol = size.str(), .min = 0, .max = {}};
  const auto range = size.is_symbol() ? ranges.find(size.name()) : ranges.end();
  if (range == ranges.end()) return out;
  // A lower bound of 2 is how export writes "not specialised to 0 or 1"; 1 works.
  if (range->second.min) out.min = *range->second.min == 2 ? 1 : std::max<std::int64_t>(*range->second.min, 0);
  out.max = range->second.max;
  return out;
}

TensorInfo tensor_info(std::string name, const Type& type, const ttc::ir::SymRanges& ranges) {
  TensorInfo out{.name = std::move(name), .kind = TensorInfo::Kind::other, .type = {}, .dims = {}, .has_shape = true};
  switch (type.kind) {
    case TypeKind::tensor:
      out.kind = TensorInfo::Kind::tensor;
      if (type.has_dtype) out.type = element_of(type.dtype);
      out.has_shape = type.has_shape;
      for (const ttc::ir::SymExpr& size : type.sizes) out.dims.push_back(dim_info(size, ranges));
      break;
    case TypeKind::integer:
      out.kind = TensorInfo::Kind::integer;
      out.type = ElementType::int64;
      break;
    case TypeKind::floating:
      out.kind = TensorInfo::Kind::number;
      out.type = ElementType::float64;
      break;
    case TypeKind::boolean:
      out.kind = TensorInfo::Kind::boolean;
      out.type = ElementType::boolean;
      break;
    default:
      break;
  }
  return out;
}

// ---- compiling ------------------------------------------------------------------------------------------------------

const char* text(Format format) {
  switch (format) {
    case Format::bfloat16:
      return "bfloat16";
    case Format::float32:
      return "float32";
    case Format::bfloat8_b:
      return "bfloat8_b";
    case Format::bfloat4_b:
      return "bfloat4_b";
  }
  throw Error(Error::Kind::usage, "a format that does not exist");
}

const char* text(Fidelity fidelity) {
  static constexpr const char* names[] = {"LoFi", "HiFi2", "HiFi3", "HiFi4"};
  const auto i = static_cast<std::size_t>(fidelity);
  if (i >= std::size(names)) throw Error(Error::Kind::usage, "a fidelity that does not exist");
  return names[i];
}

const char* text(bool on) { return on ? "on" : "off"; }

std::string shape_text(const std::string& input, const Shape& shape) {
  std::string out = input + "=";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  return out;
}

ttc::CompileSettings compile_settings(const CompileOptions& options) {
  ttc::CompileSettings out;
  out.arch = options.arch;
  for (const auto& [from, to] : options.replace) out.replace.push_back(from + "=" + to);
  out.exclude = options.exclude;
  for (const auto& [glob, format] : options.weight_format) out.weight_dtype.push_back(glob + "=" + text(format));
  out.activation_dtype = text(options.activation_format);
  for (const auto& [glob, fidelity] : options.fidelity) out.fidelity.push_back(glob + "=" + text(fidelity));
  for (const auto& [glob, on] : options.fp32_acc) out.fp32_acc.push_back(glob + "=" + text(on));
  out.fallback_op = options.fallback_ops;
  out.fallback_module = options.fallback_modules;
  out.fallback_node = options.fallback_nodes;
  out.require_full = options.require_full;
  for (const auto& [input, shape] : options.shapes) out.shapes.push_back(shape_text(input, shape));
  out.passes.passes = options.passes;
  out.passes.disable = options.disable;
  out.passes.rewrite_limit = static_cast<long>(options.rewrite_limit);
  return out;
}

CompileReport report_of(const ttc::CompileResult& result, const ttc::ir::Model& model) {
  const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  CompileReport out{.arch = result.arch,
                    .nodes = count(result.nodes.total),
                    .device_nodes = count(result.nodes.device),
                    .cpu_nodes = count(result.nodes.cpu),
                    .flops = result.flops.total,
                    .device_flops = result.flops.device,
                    .fallbacks = {},
                    .transfers = count(result.transfers.count),
                    .transfer_bytes = result.transfers.bytes,
                    .weight_bytes_before = result.weights.bytes_in,
                    .weight_bytes_after = result.weights.bytes_out,
                    .l1_peak_bytes = result.memory.l1_peak,
                    .dram_peak_bytes = result.memory.dram_peak,
                    .fits = result.memory.fits,
                    .summary = result.summary(),
                    .json = ttc::report_json(result, model)};
  for (const ttc::Fallback& one : result.fallbacks)
    out.fallbacks.push_back({.node = one.node,
                             .op = one.op,
                             .module = one.module,
                             .code = std::string(to_string(one.reason.code)),
                             .detail = one.reason.detail,
                             .source = one.source});
  return out;
}

Model model_of(std::shared_ptr<const ttc::ModelSource> source) {
  register_torch_ops();
  std::shared_ptr<const ttc::ir::Model> model = source->read();
  return Model(std::make_shared<Model::Impl>(Model::Impl{.source = std::move(source), .model = std::move(model)}));
}

}  // namespace

std::string TensorInfo::text() const {
  if (kind == Kind::integer) return "int";
  if (kind == Kind::number) return "float";
  if (kind == Kind::boolean) return "bool";
  if (kind == Kind::other) return "object";
  std::string out = type ? ttrt::name(*type) : "tensor";
  if (!has_shape) return out;
  out += "[";
  for (std::size_t i = 0; i < dims.size(); ++i)
    out += (i > 0 ? ", " : "") + (dims[i].size ? std::to_string(*dims[i].size) : dims[i].symbol);
  return out + "]";
}

Model Model::load(const std::string& path) {
  return guarded([&] { return model_of(std::make_shared<ttc::ModelSource>(path)); });
}

Model Model::load(std::span<const std::byte> file, const std::string& name) {
  return guarded([&] {
    return model_of(std::make_shared<ttc::ModelSource>(name, std::vector<std::byte>(file.begin(), file.end())));
  });
}

Model Model::compile(const CompileOptions& options, CompileReport* report) const {
  return guarded([&] {
    if (impl_->source == nullptr || is_rewritten())
      throw Error(Error::Kind::usage, impl_->model->info.path + ": the model is rewritten already",
                  "compile the file that was exported");
    ttc::Compiled compiled = ttc::compile_source(*impl_->source, compile_settings(options), {}, true);
    if (report != nullptr) *report = report_of(compiled.result, *compiled.model);
    return Model(std::make_shared<Impl>(Impl{.source = nullptr, .model = std::move(compiled.model)}));
  });
}

void Model::save(const std::string& path) const {
  guarded([&] { ttc::save_model(*impl_->model, path); });
}

std::vector<TensorInfo> Model::inputs() const {
  std::vector<TensorInfo> out;
  for (const UserInput& input : user_inputs(*impl_->model))
    out.push_back(tensor_info(input.name, input.input->value->type, impl_->model->ranges));
  return out;
}

std::vector<TensorInfo> Model::outputs() const {
  std::vector<TensorInfo> out;
  for (const ttc::ir::GraphOutput& output : impl_->model->graph->outputs()) {
    if (output.kind != ttc::ir::OutputKind::user) continue;
    const ttc::ir::Value* value = output.arg.value();
    const Type type = value != nullptr                    ? value->type
                      : output.arg.get_if<std::int64_t>() ? Type::integer()
                      : output.arg.get_if<double>()       ? Type::of(TypeKind::floating)
                      : output.arg.get_if<bool>()         ? Type::of(TypeKind::boolean)
                                                          : Type::of(TypeKind::none);
    out.push_back(tensor_info("out" + std::to_string(out.size()), type, impl_->model->ranges));
  }
  return out;
}

bool Model::is_rewritten() const { return ttc::is_rewritten(*impl_->model); }

std::string Model::arch() const {
  return guarded([&]() -> std::string {
    const auto manifest = impl_->model->extra.find(ttc::manifest_name);
    if (manifest == impl_->model->extra.end()) return {};
    const ttc::Json root = ttc::parse_json(manifest->second);
    const ttc::Json* arch = ttc::find_member(root, "arch");
    return arch != nullptr ? ttc::as_string(*arch) : std::string();
  });
}

std::map<std::string, std::string> Model::extra() const {
  return {impl_->model->extra.begin(), impl_->model->extra.end()};
}

const char* version() { return TTC_VERSION; }

}  // namespace ttrt
