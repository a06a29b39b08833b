// Models: loaded from files and from memory, described by their signature, saved.
#include <algorithm>

#include "api/model_impl.h"
#include "api/bridge.h"
#include "executor/signature.h"
#include "formats/model_file.h"
#include "session/compile.h"
#include "support/json_util.h"
#include "torch_library/torch_ops.h"

namespace ttc::api {
namespace {

using ir::Type;
using ir::TypeKind;

// ---- the signature --------------------------------------------------------------------------------------------------

Dim dim_info(const ir::SymExpr& size, const ir::SymRanges& ranges) {
  if (size.is_number()) return {.size = size.number(), .symbol = {}, .min = size.number(), .max = size.number()};
  Dim out{.size = {}, .symbol = size.str(), .min = 0, .max = {}};
  const auto range = size.is_symbol() ? ranges.find(size.name()) : ranges.end();
  if (range == ranges.end()) return out;
  // A lower bound of 2 is how export writes "not specialised to 0 or 1"; 1 works.
  if (range->second.min) out.min = *range->second.min == 2 ? 1 : std::max<std::int64_t>(*range->second.min, 0);
  out.max = range->second.max;
  return out;
}

TensorInfo tensor_info(std::string name, const Type& type, const ir::SymRanges& ranges) {
  TensorInfo out{.name = std::move(name), .kind = TensorInfo::Kind::other, .type = {}, .dims = {}, .has_shape = true};
  switch (type.kind) {
    case TypeKind::tensor:
      out.kind = TensorInfo::Kind::tensor;
      if (type.has_dtype) out.type = element_of(type.dtype);
      out.has_shape = type.has_shape;
      for (const ir::SymExpr& size : type.sizes) out.dims.push_back(dim_info(size, ranges));
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

}  // namespace

Model loaded(std::shared_ptr<const ModelSource> source) {
  ttrt::register_torch_ops();
  std::shared_ptr<const ir::Model> model = source->read();
  return Model(std::make_shared<Model::Impl>(Model::Impl{.source = std::move(source), .model = std::move(model)}));
}

Model Model::load(const std::string& path) {
  return guarded([&] { return loaded(std::make_shared<ModelSource>(path)); });
}

Model Model::load(std::span<const std::byte> file, const std::string& name) {
  return guarded(
      [&] { return loaded(std::make_shared<ModelSource>(name, std::vector<std::byte>(file.begin(), file.end()))); });
}

void Model::save(const std::string& path) const {
  guarded([&] { save_model(*impl_->model, path); });
}

const std::string& Model::path() const { return impl_->model->info.path; }

std::string Model::sha256() const {
  return guarded([&] {
    if (impl_->source == nullptr) throw usage_error("the model is what a compile made", "save it, and load the file");
    return impl_->source->sha256();
  });
}

std::vector<TensorInfo> Model::inputs() const {
  std::vector<TensorInfo> out;
  for (const ttrt::UserInput& input : ttrt::user_inputs(*impl_->model))
    out.push_back(tensor_info(input.name, input.input->value->type, impl_->model->ranges));
  return out;
}

std::vector<TensorInfo> Model::outputs() const {
  std::vector<TensorInfo> out;
  for (const ir::GraphOutput& output : impl_->model->graph->outputs()) {
    if (output.kind != ir::OutputKind::user) continue;
    const ir::Value* value = output.arg.value();
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
  return guarded([&] {
    const auto profile = profile_of(*impl_->model);
    return profile ? profile->name : std::string();
  });
}

std::map<std::string, std::string> Model::extra() const {
  return {impl_->model->extra.begin(), impl_->model->extra.end()};
}

}  // namespace ttc::api
