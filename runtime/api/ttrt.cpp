// The public interface over the executor: converts tensors without copying where it can, and errors to ttrt::Error.
#include "api/ttrt.h"

#include <algorithm>
#include <cstring>

#include "executor/executor.h"
#include "formats/model_file.h"
#include "formats/pt2_read.h"
#include "executor/signature.h"
#include "support/error.h"
#include "torch_library/torch_ops.h"

namespace ttrt {
namespace {

static_assert(static_cast<int>(ElementType::float32) == static_cast<int>(DType::f32));
static_assert(static_cast<int>(ElementType::boolean) == static_cast<int>(DType::boolean));
static_assert(static_cast<int>(ElementType::float8_e8m0fnu) == static_cast<int>(DType::f8e8m0));

DType dtype_of(ElementType type) {
  const auto code = static_cast<int>(type);
  if (code < 0 || code >= ttc::dtype_count) throw Error(Error::Kind::usage, "an element type that does not exist", "");
  return static_cast<DType>(code);
}

Error::Kind kind_of(ttc::Exit code) {
  switch (code) {
    case ttc::Exit::usage:
      return Error::Kind::usage;
    case ttc::Exit::unsupported:
      return Error::Kind::unsupported;
    case ttc::Exit::bad_file:
      return Error::Kind::bad_file;
    case ttc::Exit::bug:
      return Error::Kind::bug;
    default:
      return Error::Kind::failed;
  }
}

// Runs f; what it throws leaves the library as ttrt::Error.
template <typename F>
auto guarded(F&& f) {
  try {
    return f();
  } catch (const Error&) {
    throw;
  } catch (const ttc::Error& error) {
    throw Error(kind_of(error.code()), (error.file().empty() ? "" : error.file() + ": ") + error.what(), error.hint());
  } catch (const std::exception& error) {
    throw Error(Error::Kind::failed, error.what(), "");
  }
}

RtValue input_value(const ttc::ir::Type& type, const Tensor& tensor) {
  if (tensor.resident != nullptr) return *static_cast<const ResidentTensor*>(tensor.resident.get());
  for (const std::int64_t dim : tensor.shape)
    if (dim < 0) throw Error(Error::Kind::usage, "a negative dim", "");
  HostTensor host{.dtype = dtype_of(tensor.type),
                  .sizes = tensor.shape,
                  .strides = contiguous_strides(tensor.shape),
                  .owner = tensor.data,
                  .data = static_cast<std::byte*>(tensor.data.get())};
  if (host.data == nullptr && host.numel() > 0) throw Error(Error::Kind::usage, "a tensor without data", "");
  if (type.kind == ttc::ir::TypeKind::integer) return to_integer(host);
  if (type.kind == ttc::ir::TypeKind::floating) return to_number(host);
  if (type.kind == ttc::ir::TypeKind::boolean) return to_boolean(host);
  return host;
}

Tensor output_tensor(const RtValue& value) {
  if (const auto* host = value.get_if<HostTensor>()) {
    const HostTensor dense = contiguous(*host);
    return {.type = static_cast<ElementType>(dense.dtype),
            .shape = dense.sizes,
            .data = std::shared_ptr<void>(dense.owner, dense.data),
            .resident = nullptr};
  }
  if (const auto* kept = value.get_if<ResidentTensor>())
    return {.type = static_cast<ElementType>(kept->dtype),
            .shape = kept->tensor.spec.logical,
            .data = nullptr,
            .resident = std::make_shared<const ResidentTensor>(*kept)};
  if (const auto* i = value.get_if<std::int64_t>()) return Tensor::copy(ElementType::int64, {}, i);
  if (const auto* d = value.get_if<double>()) return Tensor::copy(ElementType::float64, {}, d);
  if (const auto* b = value.get_if<bool>()) return Tensor::copy(ElementType::boolean, {}, b);
  return Tensor{.type = ElementType::float32, .shape = {0}, .data = nullptr};  // None, a string
}

}  // namespace

struct Model::Impl {
  std::shared_ptr<const ttc::ir::Model> model;
};

struct Session::Impl {
  std::unique_ptr<Executor> executor;
  std::vector<UserInput> inputs;
};

std::size_t element_size(ElementType type) { return static_cast<std::size_t>(ttc::size_of(dtype_of(type))); }
const char* name(ElementType type) { return ttc::torch_name(dtype_of(type)).data(); }
const char* version() { return TTC_VERSION; }

Error::~Error() = default;

std::int64_t Tensor::numel() const { return volume(shape); }

Tensor Tensor::empty(ElementType type, std::vector<std::int64_t> shape) {
  for (const std::int64_t dim : shape)
    if (dim < 0) throw Error(Error::Kind::usage, "a negative dim", "");
  HostTensor host = empty_host(dtype_of(type), shape);
  return {.type = type, .shape = std::move(shape), .data = std::shared_ptr<void>(host.owner, host.data)};
}

Tensor Tensor::copy(ElementType type, std::vector<std::int64_t> shape, const void* values) {
  Tensor out = empty(type, std::move(shape));
  if (out.bytes() > 0) std::memcpy(out.data.get(), values, out.bytes());
  return out;
}

Tensor Tensor::view(ElementType type, std::vector<std::int64_t> shape, void* values) {
  return {.type = type, .shape = std::move(shape), .data = std::shared_ptr<void>(values, [](void*) {})};
}

Model Model::load(const std::string& path) {
  return guarded([&] {
    register_torch_ops();
    auto impl = std::make_shared<Impl>();
    std::unique_ptr<ttc::ir::Model> model = ttc::load_model(path);
    ttc::check_known_ops(*model);
    impl->model = std::move(model);
    return Model(std::move(impl));
  });
}

std::vector<InputInfo> Model::inputs() const {
  std::vector<InputInfo> out;
  for (const UserInput& input : user_inputs(*impl_->model))
    out.push_back({.name = input.name, .type = input.input->value->type.str()});
  return out;
}

std::size_t Model::output_count() const { return user_output_count(*impl_->model); }

bool Model::is_rewritten() const {
  bool found = false;
  ttc::ir::walk(*impl_->model->graph, [&](ttc::ir::Node* node) { found = found || node->op().starts_with("tt."); });
  return found;
}

Session::Session(const Model& model, const SessionOptions& options) : impl_(std::make_unique<Impl>()) {
  guarded([&] {
    if (options.threads != 0) set_threads(options.threads);
    ExecutorOptions o;
    o.mode = options.device ? Mode::device : Mode::cpu;
    o.numerics = options.exact ? Numerics::exact : Numerics::fast;
    o.profile = profile_from_argument(options.arch);
    impl_->executor = std::make_unique<Executor>(model.impl().model, std::move(o));
    impl_->inputs = user_inputs(*model.impl().model);
  });
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::vector<Tensor> Session::run(const std::vector<Tensor>& inputs) { return run_keeping(inputs, {}); }

std::vector<Tensor> Session::run_keeping(const std::vector<Tensor>& inputs, const std::vector<std::size_t>& keep) {
  return guarded([&] {
    std::vector<bool> stays(user_output_count(impl_->executor->model()), false);
    for (const std::size_t output : keep) {
      if (output >= stays.size())
        throw Error(Error::Kind::usage, "the model has no output " + std::to_string(output), "");
      stays[output] = true;
    }
    std::vector<RtValue> values;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values.push_back(
          input_value(i < impl_->inputs.size() ? impl_->inputs[i].input->value->type : ttc::ir::Type{}, inputs[i]));
    std::vector<Tensor> outputs;
    for (const RtValue& value : impl_->executor->run(std::move(values), stays)) outputs.push_back(output_tensor(value));
    return outputs;
  });
}

std::vector<Tensor> Session::run(const std::map<std::string, Tensor>& inputs) {
  std::vector<Tensor> ordered(impl_->inputs.size());
  std::vector<bool> given(impl_->inputs.size(), false);
  for (const auto& [name, tensor] : inputs) {
    const int index = user_input_index(impl_->executor->model(), name);
    if (index < 0)
      throw Error(Error::Kind::usage, "the model has no input '" + name + "'", "Model::inputs() lists them");
    ordered[static_cast<std::size_t>(index)] = tensor;
    given[static_cast<std::size_t>(index)] = true;
  }
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!given[i]) throw Error(Error::Kind::usage, "input '" + impl_->inputs[i].name + "' is missing", "");
  return run(ordered);
}

Tensor Session::place(std::size_t index, const Tensor& tensor) {
  return guarded([&] {
    const RtValue value = input_value({}, tensor);
    const auto* host = value.get_if<HostTensor>();
    return host != nullptr ? output_tensor(impl_->executor->place_input(index, *host)) : tensor;
  });
}

Tensor Session::fetch(const Tensor& tensor) const {
  return guarded([&] {
    const RtValue value = input_value({}, tensor);
    const auto* kept = value.get_if<ResidentTensor>();
    return kept != nullptr ? output_tensor(to_host(kept->tensor, kept->dtype)) : tensor;
  });
}

void Session::reset() {
  guarded([&] { impl_->executor->reset_state(); });
}

RunReport Session::report() const {
  const Counts counts = impl_->executor->counts();
  const Transfers& moved = impl_->executor->transfers();
  RunReport out{.device_nodes = counts.device,
                .cpu_nodes = counts.cpu,
                .fallback_failures = 0,
                .device_us = impl_->executor->device_cycles() / impl_->executor->options().profile.clock_mhz,
                .to_device = moved.to_device,
                .to_device_bytes = moved.to_device_bytes,
                .to_host = moved.to_host,
                .to_host_bytes = moved.to_host_bytes};
  for (const FallbackFailure& failure : impl_->executor->fallback_failures()) out.fallback_failures += failure.count;
  return out;
}

}  // namespace ttrt
