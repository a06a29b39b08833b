// The tt operators as LibTorch's dispatcher calls them: arguments off its stack, into the binder. One call is a program
// of one instruction: a graph of one node, its slots, and a DeviceStep for each set of operand shapes it has met.
#include "torch_library/torch_ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cstdlib>
#include <list>
#include <map>
#include <mutex>

#include "device/arch.h"
#include "executor/device_step.h"
#include "executor/executor.h"
#include "executor/kernel_choice.h"
#include "ir/body.h"
#include "ir/op_name.h"
#include "ops/bind.h"
#include "ops/whole_modules.h"
#include "support/error.h"
#include "torch/torch_bridge.h"
#include "torch_library/torch_arguments.h"
#include "torch_library/torch_fakes.h"

namespace ttrt {
namespace {

namespace ir = ttc::ir;

constexpr std::size_t max_calls = 4096;  // of one literal and weight each; least recently used goes first
constexpr std::size_t max_steps = 8;     // operand shapes per call

Numerics numerics() {
  static const Numerics chosen = [] {
    const char* name = std::getenv("TTRT_NUMERICS");
    const std::string_view text = name == nullptr ? "fast" : name;
    TORCH_CHECK(text == "fast" || text == "exact", "TTRT_NUMERICS is '", text, "'; it must be fast or exact");
    return text == "exact" ? Numerics::exact : Numerics::fast;
  }();
  return chosen;
}

Device& device() {
  static const auto* const shared =
      new std::shared_ptr<Device>(open_free_device(default_profile()));  // outlives Python's teardown
  return **shared;
}

// ---- arguments ----------------------------------------------------------------------------------------------------

DataType format_of(c10::ScalarType type) {
  switch (type) {
    case c10::kBFloat16:
      return DataType::bfloat16;
    case c10::kByte:
      return DataType::uint8;
    case c10::kUInt16:
      return DataType::uint16;
    case c10::kUInt32:
      return DataType::uint32;
    case c10::kInt:
      return DataType::int32;
    default:
      return DataType::float32;
  }
}

RtValue to_value(std::vector<at::Tensor>& tensors, const c10::IValue& value, const std::string& type) {
  if (value.isTensor() && value.toTensor().defined()) {
    const at::Tensor& tensor = tensors.emplace_back(value.toTensor());
    return DeviceTensor{.spec = {.logical = {tensor.sizes().begin(), tensor.sizes().end()},
                                 .dtype = format_of(tensor.scalar_type()),
                                 .layout = Layout::tile,
                                 .memory = {}},
                        .buffer = nullptr};
  }
  if (value.isTensorList()) {
    RtValue::List list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(to_value(tensors, tensor, "Tensor"));
    return list;
  }
  if (value.isInt() && type.starts_with("ScalarType")) {
    const auto dtype = ttc::dtype_from_c10(static_cast<int>(value.toInt()));
    TORCH_CHECK(dtype, "a dtype that the device does not know");
    return *dtype;
  }
  return from_ivalue(value);
}

}  // namespace

Arguments read_arguments(const OpRecord& record, std::span<const c10::IValue> given) {
  const ir::OpSchema& schema = schema_of(record);
  Arguments args;
  std::vector<RtValue> values;
  for (std::size_t i = 0; i < given.size(); ++i)
    values.push_back(to_value(args.tensors, given[i], schema.args.at(i).type));
  auto bound = bind_call(record, values);
  if (const auto* reason = std::get_if<ttc::Reason>(&bound)) throw ttc::usage_error(reason->detail);
  args.bound = std::get<BoundCall>(std::move(bound));
  return args;
}

c10::ScalarType result_dtype(const Arguments& args, const TensorSpec& spec) {
  const bool to_host = args.record().role == Role::to_host;
  const DType dtype = to_host ? std::get<DType>(args.bound.call.arg("dtype")) : torch_dtype(spec.dtype);
  return static_cast<c10::ScalarType>(ttc::c10_code(dtype));
}

void push_results(const c10::FunctionSchema& schema, std::vector<at::Tensor> results, torch::jit::Stack& stack) {
  if (schema.returns().size() == 1 && schema.returns()[0].type()->kind() == c10::TypeKind::ListType) {
    stack.emplace_back(c10::List<at::Tensor>(at::ArrayRef<at::Tensor>(results)));
    return;
  }
  TORCH_CHECK(results.size() >= schema.returns().size(), schema.name(), " has too few results");
  for (std::size_t i = 0; i < schema.returns().size(); ++i) stack.emplace_back(std::move(results[i]));
}

namespace {

// ---- calls that keep their kernels --------------------------------------------------------------------------------

// What makes two calls share weights and literals: everything but the other operands' bytes and shapes.
std::string call_key(const Arguments& args) {
  std::string key(args.record().name);
  const auto raw = [&](const void* bytes, std::size_t size) { key.append(static_cast<const char*>(bytes), size); };
  const auto tensor = [&](TensorRef ref) {
    const auto i = static_cast<std::size_t>(ref.index);
    if (!args.packed(i)) return;
    const at::Tensor& t = args.tensors[i];
    const void* identity[] = {t.storage().unsafeGetStorageImpl(), t.const_data_ptr()};
    const std::int64_t version = t.is_inference() ? 0 : t._version();
    raw(identity, sizeof identity), raw(&version, sizeof version);
  };
  for (const OpArg& arg : args.bound.call.args) {
    key += static_cast<char>('a' + arg.index());
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, TensorRef>)
            tensor(v);
          else if constexpr (std::is_same_v<T, std::string>) {
            const std::size_t n = v.size();
            raw(&n, sizeof n), raw(v.data(), n);
          } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, DType>)
            raw(&v, sizeof v);
          else if constexpr (!std::is_same_v<T, std::monostate>) {
            const std::size_t n = v.size();
            raw(&n, sizeof n);
            for (const auto& item : v) {
              if constexpr (std::is_same_v<std::decay_t<decltype(item)>, TensorRef>)
                tensor(item);
              else
                raw(&item, sizeof item);
            }
          }
        },
        arg);
  }
  return key;
}

std::vector<std::int64_t> shape_key(const Arguments& args) {
  std::vector<std::int64_t> key;
  for (const TensorSpec& spec : args.bound.call.tensors) {
    key.push_back(static_cast<std::int64_t>(spec.dtype));
    key.push_back(static_cast<std::int64_t>(spec.logical.size()));
    key.insert(key.end(), spec.logical.begin(), spec.logical.end());
  }
  return key;
}

class Call {
 public:
  Call(const Arguments& args, std::size_t results) : results_(results) {
    std::vector<ir::Value*> values;
    for (std::size_t i = 0; i < args.tensors.size(); ++i) {
      const std::string name = "t" + std::to_string(i);
      const at::Tensor& tensor = args.tensors[i];
      if (!args.packed(i)) {
        values.push_back(model_.graph->add_input(ir::Type::unknown_tensor(), name));
        continue;
      }
      ir::Weight weight{.dtype = DType::u8,
                        .sizes = tensor.sizes().vec(),
                        .strides = tensor.strides().vec(),
                        .storage_offset = 0,
                        .requires_grad = false,
                        .storage = std::make_shared<ir::Storage>(
                            ir::Storage{.owner = nullptr,
                                        .data = static_cast<const std::byte*>(tensor.const_data_ptr()),
                                        .bytes = static_cast<std::size_t>(tensor.nbytes()),
                                        .produce = {}})};
      values.push_back(model_.add_constant(name, std::move(weight)));
      storages_.emplace_back(tensor.storage().getWeakStorageImpl());
    }
    std::vector<ir::Arg> node_args;
    for (const OpArg& arg : args.bound.call.args) {
      if (const auto* ref = std::get_if<TensorRef>(&arg)) {
        node_args.emplace_back(values[static_cast<std::size_t>(ref->index)]);
      } else if (const auto* refs = std::get_if<std::vector<TensorRef>>(&arg)) {
        ir::Arg::List list;
        for (const TensorRef one : *refs) list.emplace_back(values[static_cast<std::size_t>(one.index)]);
        node_args.emplace_back(std::move(list));
      } else {
        node_args.push_back(literal_arg(literal_value(arg)));
      }
    }
    ir::Node* node = model_.graph->append(std::string(args.record().name), std::move(node_args));
    for (std::size_t i = 0; i < results; ++i)
      model_.graph->add_output(node->add_result(ir::Type::unknown_tensor(), "y" + std::to_string(i)));
    program_ = make_program(model_);
    for (const ir::Value* value : values) slots_.push_back(static_cast<std::size_t>(program_->slot_of(value)));
  }

  bool weights_alive() const {
    for (const auto& storage : storages_)
      if (storage.expired()) return false;
    return true;
  }

  std::vector<at::Tensor> run(const Arguments& args, const std::vector<TensorSpec>& specs) {
    const std::lock_guard lock(mutex_);
    Instruction& instruction =
        program_->main.instructions.empty() ? program_->setup.instructions.at(0) : program_->main.instructions.at(0);
    Frame frame(program_->slots.size());
    for (std::size_t i = 0; i < args.tensors.size(); ++i) {
      const at::Tensor& tensor = args.tensors[i];
      const HostTensor host = from_tensor(tensor.contiguous());
      frame[slots_[i]] = args.packed(i) ? RtValue(host) : RtValue(to_device(host, device(), args.spec(i)));
    }
    const std::vector<char> planned(program_->slots.size(), 0);
    std::map<int, FallbackFailure> failures;
    static KernelChooser chooser;  // the default dispatcher, bound statically
    const StepContext context{.device = &device(),
                              .numerics = numerics(),
                              .packed = &packed_,
                              .program = program_.get(),
                              .planned = &planned,
                              .failures = &failures,
                              .chooser = &chooser,
                              .profile = &device().profile()};
    auto& step = steps_[shape_key(args)];
    if (!step) step = std::make_unique<DeviceStep>();
    step->run(instruction, frame, context);
    std::vector<at::Tensor> out;
    for (std::size_t i = 0; i < results_; ++i) {
      const auto* tensor = frame[static_cast<std::size_t>(instruction.results[i])].get_if<DeviceTensor>();
      TTC_CHECK(tensor != nullptr, "a step left no result");
      out.push_back(to_tensor(to_host(*tensor, torch_dtype(specs[i].dtype))));
    }
    if (steps_.size() > max_steps) steps_.clear();
    return out;
  }

 private:
  std::size_t results_;
  ir::Model model_;
  std::unique_ptr<Program> program_;
  std::vector<std::size_t> slots_;  // parallel to Arguments::tensors
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages_;
  PackedWeights packed_;
  std::map<std::vector<std::int64_t>, std::unique_ptr<DeviceStep>> steps_;
  std::mutex mutex_;
};

class CallCache {
 public:
  std::shared_ptr<Call> find(const Arguments& args, std::size_t results) {
    const std::string key = call_key(args);
    const std::lock_guard lock(mutex_);
    if (const auto found = calls_.find(key); found != calls_.end()) {
      if (found->second->second->weights_alive()) {
        order_.splice(order_.begin(), order_, found->second);
        return found->second->second;
      }
      order_.erase(found->second);
      calls_.erase(found);
    }
    order_.emplace_front(key, std::make_shared<Call>(args, results));
    calls_[key] = order_.begin();
    if (order_.size() > max_calls) {
      calls_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

 private:
  using Order = std::list<std::pair<std::string, std::shared_ptr<Call>>>;
  std::mutex mutex_;
  Order order_;  // most recently used first
  std::map<std::string, Order::iterator> calls_;
};

CallCache& cache() {
  static auto* const shared = new CallCache;
  return *shared;
}

// ---- kernels ------------------------------------------------------------------------------------------------------

// Rounds to the format and back.
at::Tensor through_device(const at::Tensor& x, DataType format, DType dtype) {
  TensorSpec spec{
      .logical = {x.sizes().begin(), x.sizes().end()}, .dtype = format, .layout = Layout::tile, .memory = {}};
  const HostTensor host = from_tensor(x.contiguous());
  std::vector<std::byte> tiles(static_cast<std::size_t>(spec.nbytes()));
  tilize_from_host(host, spec, tiles.data());
  HostTensor out = empty_host(dtype, spec.logical);
  untilize_to_host(spec, tiles.data(), out);
  return to_tensor(out);
}

std::vector<at::Tensor> run_on_device(const Arguments& args) {
  const std::vector<TensorSpec> specs = args.bound.results();
  if (args.record().role == Role::to_device)
    return {through_device(args.tensors.at(0), specs.at(0).dtype, torch_dtype(specs.at(0).dtype))};
  if (args.record().role == Role::to_host)
    return {through_device(args.tensors.at(0), args.spec(0).dtype, std::get<DType>(args.bound.call.arg("dtype")))};
  take_threads_from_torch();
  return cache().find(args, specs.size())->run(args, specs);
}

void cpu_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  try {
    const c10::FunctionSchema& schema = op.schema();
    const OpRecord* const record = find_op(ir::ir_op_name(schema.name()));
    TORCH_CHECK(record != nullptr, schema.name(), " is not registered");
    const Arguments args = read_arguments(*record, torch::jit::last(*stack, schema.arguments().size()));
    torch::jit::drop(*stack, schema.arguments().size());
    push_results(schema, run_on_device(args), *stack);
  } catch (const ttc::Error& error) {
    TORCH_CHECK(false, op.schema().name(), ": ", error.what());
  }
}

// ---- whole modules ------------------------------------------------------------------------------------------------

// Kept for as long as the process lives: a model has one for each of its modules.
const ir::Graph& body_of(const std::string& text) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::unique_ptr<ir::Model>, std::less<>>;
  const std::lock_guard lock(mutex);
  auto& model = (*known)[text];
  if (!model) model = ir::parse_body(text);
  return *model->graph;
}

using BodyValues = std::map<const ir::Value*, c10::IValue>;

void call_node(const ir::Node& node, BodyValues& values) {
  const auto [name, overload] = ir::torch_op_name(node.op());
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
  const auto opaque = [&](const ir::Value& value) {
    return RtValue(std::shared_ptr<void>(std::make_shared<c10::IValue>(values.at(&value))));
  };
  torch::jit::Stack stack;
  for (const c10::Argument& formal : handle.schema().arguments()) {
    const bool given = stack.size() < node.args().size();
    stack.push_back(given ? to_ivalue(literal_value(node.arg(stack.size()), opaque), formal.real_type(), formal.N())
                          : *formal.default_value());
  }
  handle.callBoxed(&stack);
  if (stack.size() == 1 && stack[0].isList()) stack = stack[0].toListRef().vec();
  TORCH_CHECK(stack.size() == node.results().size(), name, " gives another number of results than the body says");
  for (std::size_t i = 0; i < stack.size(); ++i) values[node.result(i)] = std::move(stack[i]);
}

// (Tensor[] inputs, SymInt[] sizes, str body) -> Tensor[]: one operator after the other, which tracers see.
void body_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  try {
    const std::vector<c10::IValue> args = torch::jit::pop(*stack, 3);
    const ir::Graph& body = body_of(args[2].toStringRef());
    std::vector<c10::IValue> inputs = args[0].toListRef().vec();
    const auto sizes = args[1].toListRef();
    inputs.insert(inputs.end(), sizes.begin(), sizes.end());
    TORCH_CHECK(inputs.size() == body.inputs().size(), "it has ", inputs.size(), " inputs, its body ",
                body.inputs().size());
    BodyValues values;
    for (std::size_t i = 0; i < inputs.size(); ++i) values[body.inputs()[i].value.get()] = inputs[i];
    for (const auto& node : body.nodes()) call_node(*node, values);
    c10::List<at::Tensor> results;
    for (const ir::GraphOutput& output : body.outputs()) results.push_back(values.at(output.arg.value()).toTensor());
    stack->emplace_back(std::move(results));
  } catch (const ttc::Error& error) {
    TORCH_CHECK(false, op.schema().name(), ": ", error.what());
  }
}

torch::Library& library() {
  static auto* const shared = new torch::Library(torch::Library::FRAGMENT, "tt", std::nullopt, __FILE__, __LINE__);
  return *shared;
}

// The operator's name without "tt."; "" where another library of ours in this process has defined it.
std::string defined(std::string_view op, std::string_view schema) {
  const std::string name(op.substr(op.find('.') + 1));
  if (c10::Dispatcher::singleton().findSchema({"tt::" + name, ""})) return {};
  library().def(torch::schema((name + std::string(schema)).c_str()), {at::Tag::pt2_compliant_tag});
  return name;
}

void define(const OpRecord& record) {
  const std::string name = defined(record.name, record.schema);
  if (name.empty()) return;
  // What makes a tensor from numbers alone has no operand that tells a backend.
  const bool numbers_only = record.schema.substr(0, record.schema.find("->")).find("Tensor") == std::string_view::npos;
  const auto key = numbers_only ? c10::DispatchKey::CompositeExplicitAutograd : c10::DispatchKey::CPU;
  library().impl(name.c_str(), torch::dispatch(key, torch::CppFunction::makeFromBoxedFunction<&cpu_kernel>()));
  define_fake(library(), record);
}

}  // namespace

void register_torch_ops() {
  static const bool once = [] {
    watch_ops(define);
    for (const WholeModule& module : whole_modules())
      if (const std::string name = defined(module.name, whole_module_schema); !name.empty())
        library().impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd,
                                                     torch::CppFunction::makeFromBoxedFunction<&body_kernel>()));
    install_torch_schemas();
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace ttrt
