// Modules of the user's: their graphs, parameters and children, and running them in LibTorch.
#include "api/torch_module.h"

#include <algorithm>
#include <charconv>

#include "api/convert.h"
#include "api/devices.h"
#include "api/model_impl.h"
#include "executor/signature.h"
#include "session/module_graph.h"
#include "support/error.h"
#include "torch/cpu_op.h"

namespace ttrt {
namespace {

using ttc::CallArgument;

HostTensor host_of(const ttc::ir::Weight& weight) {
  HostTensor out{.dtype = weight.dtype, .sizes = weight.sizes, .strides = weight.strides, .owner = {}, .data = nullptr};
  if (weight.storage == nullptr || weight.storage->absent())
    throw ttc::usage_error("the model's file carries no weights");
  const auto [owner, data] = weight.storage->load();
  out.owner = std::const_pointer_cast<void>(owner != nullptr ? owner : std::shared_ptr<const void>(weight.storage));
  out.data = const_cast<std::byte*>(data) + weight.storage_offset * ttc::size_of(weight.dtype);
  return contiguous(out);
}

ttc::ir::Weight weight_of(const Tensor& tensor) {
  const auto bytes = tensor.bytes();
  return ttc::ir::make_weight(dtype_of(tensor.type()), tensor.shape(), {bytes.begin(), bytes.end()});
}

ttc::ir::Arg literal_of(const Value& value) {
  if (const auto* list = value.get_if<Value::List>()) {
    ttc::ir::Arg::List out;
    for (const Value& item : *list) out.push_back(literal_of(item));
    return out;
  }
  if (const auto* i = value.get_if<std::int64_t>()) return *i;
  if (const auto* d = value.get_if<double>()) return *d;
  if (const auto* b = value.get_if<bool>()) return *b;
  if (const auto* s = value.get_if<std::string>()) return *s;
  return {};
}

// "2", "weight.1", "groups" (1 where it is not given), and products of these.
std::int64_t size_of_sample(std::string_view text, const TorchModule::Impl& module) {
  if (const std::size_t times = text.find('*'); times != text.npos)
    return size_of_sample(text.substr(0, times), module) * size_of_sample(text.substr(times + 1), module);
  std::int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ptr == text.data() + text.size()) return number;
  const std::size_t dot = text.find('.');
  const std::string name(text.substr(0, dot));
  if (dot == text.npos) {
    const auto found = module.attributes.find(name);
    const auto* given = found != module.attributes.end() ? found->second.get_if<std::int64_t>() : nullptr;
    return given != nullptr ? *given : 1;
  }
  const auto found = module.parameters.find(name);
  const auto dim = static_cast<std::size_t>(text.back() - '0');
  if (found == module.parameters.end() || dim >= found->second.shape().size())
    throw ttc::usage_error("a " + module.klass + " has a parameter '" + name + "' of " + std::to_string(dim + 1) +
                           " dims and more");
  return found->second.shape()[dim];
}

Tensor reshaped(const Tensor& tensor, Shape shape) {
  if (tensor.shape() == shape) return tensor;
  if (tensor.is_resident()) return tt_lib::tensor::reshape(tensor, shape);
  HostTensor host = TensorAccess::host(tensor);
  host.strides = contiguous_strides(shape);
  host.sizes = std::move(shape);
  return tensor_of(host);
}

}  // namespace

TorchModule TorchModule::of(const Model& model, const std::string& path) {
  return guarded([&] {
    auto impl = std::make_shared<Impl>();
    impl->path = path;
    impl->whole = model.impl().model;
    const auto modules = ttc::modules_of(*impl->whole);
    if (const auto found = modules.find(path); found != modules.end()) impl->klass = found->second;
    const auto part = ttc::cut_module(*impl->whole, path);
    for (const auto& [name, weight] : part->weights)
      impl->parameters[path.empty() || !name.starts_with(path + ".") ? name : name.substr(path.size() + 1)] =
          tensor_of(host_of(weight));
    return TorchModule(std::move(impl));
  });
}

TorchModule::TorchModule(std::string class_name, std::map<std::string, Tensor> parameters,
                         std::map<std::string, Value> attributes)
    : impl_(std::make_shared<Impl>()) {
  impl_->klass = std::move(class_name);
  impl_->attributes = std::move(attributes);
  for (auto& [name, tensor] : parameters)
    impl_->parameters[name] =
        guarded([&] { return ttc::is_floating(dtype_of(tensor.type())) ? tensor.to(ElementType::float32) : tensor; });
}

const std::string& TorchModule::class_name() const { return impl_->klass; }
const std::string& TorchModule::path() const { return impl_->path; }
const std::map<std::string, Tensor>& TorchModule::parameters() const { return impl_->parameters; }
const std::map<std::string, Value>& TorchModule::attributes() const { return impl_->attributes; }

const Tensor& TorchModule::parameter(const std::string& name) const {
  const auto found = impl_->parameters.find(name);
  if (found != impl_->parameters.end()) return found->second;
  throw Error(Error::Kind::usage, impl_->klass + " " + impl_->path + " has no parameter '" + name + "'");
}

std::map<std::string, TorchModule> TorchModule::children() const {
  std::map<std::string, TorchModule> out;
  if (impl_->whole == nullptr) return out;
  const std::string prefix = impl_->path.empty() ? "" : impl_->path + ".";
  for (const auto& [path, klass] : ttc::modules_of(*impl_->whole)) {
    if (path.empty() || !path.starts_with(prefix) || path.find('.', prefix.size()) != std::string::npos) continue;
    out.emplace(path.substr(prefix.size()),
                of(Model(std::make_shared<Model::Impl>(Model::Impl{.source = nullptr, .model = impl_->whole})), path));
  }
  return out;
}

std::vector<TensorInfo> TorchModule::inputs() const {
  if (impl_->whole == nullptr) return {};
  return guarded([&] {
    return Model(std::make_shared<Model::Impl>(Model::Impl{.source = nullptr, .model = impl_->graph()})).inputs();
  });
}

std::vector<Tensor> TorchModule::forward(const std::vector<Tensor>& inputs) const {
  return guarded([&] {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->cpu == nullptr)
      impl_->cpu = std::make_unique<Executor>(impl_->graph(), ExecutorOptions{.mode = Mode::cpu});
    return impl_->unfolded(run_values(*impl_->cpu, impl_->folded(inputs), false), inputs);
  });
}

std::vector<Tensor> run_values(Executor& executor, const std::vector<Tensor>& inputs, bool keep) {
  const auto formal = user_inputs(executor.model());
  std::vector<RtValue> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ttc::ir::Type type = i < formal.size() ? formal[i].input->value->type : ttc::ir::Type{};
    const bool other = type.is_tensor() && type.has_dtype && !inputs[i].is_resident() &&
                       dtype_of(inputs[i].type()) != type.dtype &&
                       ttc::is_floating(type.dtype) == ttc::is_floating(dtype_of(inputs[i].type()));
    values.push_back(to_value(type, other ? inputs[i].to(element_of(type.dtype)) : inputs[i]));
  }
  std::vector<Tensor> out;
  const std::vector<bool> stay(executor.model().graph->outputs().size(), keep);
  for (const RtValue& value : executor.run(std::move(values), stay)) append_tensors(value, out);
  return out;
}

TorchModule with_activation(const TorchModule& module, std::string_view aten) {
  const TorchModule::Impl& from = module.impl();
  auto impl = std::make_shared<TorchModule::Impl>();
  impl->klass = from.klass, impl->path = from.path, impl->whole = from.whole;
  impl->parameters = from.parameters, impl->attributes = from.attributes;
  impl->activation = aten;
  return TorchModule(std::move(impl));
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

// By hand, what a TT module says that computes such a module.
const ModuleCall& TorchModule::Impl::call() const {
  for (const ModuleRecord* record : all_modules())
    for (const ModuleCall& call : record->calls)
      if (names_class(call.klass, klass) || names_class(klass, call.klass)) return call;
  throw ttc::Error(ttc::Exit::unsupported, "", "what a " + klass + " computes is known from model files only",
                   "take it from a file: TorchModule::of(model, path)");
}

std::unique_ptr<ttc::ir::Model> TorchModule::Impl::graph() const {
  install_torch_schemas();
  std::unique_ptr<ttc::ir::Model> out;
  if (whole != nullptr) {
    out = ttc::cut_module(*whole, path);
  } else {
    std::vector<CallArgument> args;
    for (const std::string_view name : call().args) {
      CallArgument arg{.name = std::string(name)};
      if (name == "x") arg.kind = CallArgument::Kind::input;
      if (const auto found = parameters.find(arg.name); found != parameters.end())
        arg.kind = CallArgument::Kind::weight, arg.weight = weight_of(found->second);
      if (const auto found = attributes.find(arg.name); found != attributes.end())
        arg.literal = literal_of(found->second);
      args.push_back(std::move(arg));
    }
    const auto given = [](const CallArgument& arg) {
      return arg.kind != CallArgument::Kind::literal || !arg.literal.is_none();
    };
    const auto* schema = ttc::ir::find_schema(call().op);
    for (std::size_t i = 0; schema != nullptr && i < args.size(); ++i)  // what is not given is as the operator has it
      if (!given(args[i]) && schema->args.at(i).default_value) args[i].literal = *schema->args[i].default_value;
    std::vector<ttc::SampleDim> sample;
    for (const std::string_view size : call().sample)
      sample.push_back(
          {.size = size_of_sample(size, *this), .free = size.find_first_not_of("0123456789") == size.npos});
    out = ttc::model_of_call(std::string(call().op), args, sample, call().indices ? DType::i64 : DType::f32, klass);
  }
  if (!activation.empty()) ttc::append_call(*out, activation);
  return out;
}

std::vector<Tensor> TorchModule::Impl::folded(const std::vector<Tensor>& inputs) const {
  if (whole != nullptr || inputs.size() != 1) return inputs;
  const std::size_t rank = call().sample.size();
  const Shape& shape = inputs[0].shape();
  if (shape.size() + 1 < rank)
    throw ttc::usage_error(klass + " takes tensors of " + std::to_string(rank - 1) + " dims and more");
  const auto split = shape.begin() + static_cast<std::ptrdiff_t>(shape.size() + 1 - rank);
  Shape to{volume({shape.begin(), split})};
  to.insert(to.end(), split, shape.end());
  return {reshaped(inputs[0], std::move(to))};
}

std::vector<Tensor> TorchModule::Impl::unfolded(std::vector<Tensor> outputs, const std::vector<Tensor>& inputs) const {
  if (whole != nullptr || inputs.size() != 1) return outputs;
  const Shape& shape = inputs[0].shape();
  const auto lead = shape.begin() + static_cast<std::ptrdiff_t>(shape.size() + 1 - call().sample.size());
  for (Tensor& output : outputs) {
    Shape to(shape.begin(), lead);
    to.insert(to.end(), output.shape().begin() + 1, output.shape().end());
    output = reshaped(output, std::move(to));
  }
  return outputs;
}

}  // namespace ttrt
