// A boxed fallback under a mode key sees every call that a composite kernel makes: calls of composite operators are
// entered, all others are run on the Meta device and written down.
#include "shapes/composite.h"

#include <ATen/Functions.h>
#include <ATen/core/enum_tag.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "ops/literals.h"
#include "shapes/free_sizes.h"
#include "shapes/meta_op.h"
#include "torch/torch_bridge.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Value;
using ttrt::RtValue;

constexpr auto mode = c10::DispatchKey::TESTING_ONLY_GenericMode;
constexpr std::size_t most_calls = 512;

std::optional<c10::OperatorHandle> find_op(std::string_view op) {
  if (!op.starts_with("aten.")) return std::nullopt;
  const auto [name, overload] = ir::torch_op_name(op);
  return c10::Dispatcher::singleton().findSchema({name, overload});
}

// The key of the kernel that defines the operator by others. What LibTorch generates for operators with a kernel for
// each device calls their writing forms, and is none; that of copies of views is.
std::optional<c10::DispatchKey> composite_key(const c10::OperatorHandle& op) {
  if (op.schema().is_mutable()) return std::nullopt;  // may write memory without a call
  for (const c10::DispatchKey key :
       {c10::DispatchKey::CompositeImplicitAutograd, c10::DispatchKey::CompositeExplicitAutograd})
    if (op.hasKernelForDispatchKey(key)) return key;
  constexpr auto generated = c10::DispatchKey::CompositeExplicitAutogradNonFunctional;
  const std::string& name = op.operator_name().name;
  if (name.ends_with("_copy") && op.hasKernelForDispatchKey(generated)) return generated;
  return std::nullopt;
}

std::string ir_name(const c10::OperatorName& name) {
  std::string out = name.name;
  if (const std::size_t colons = out.find("::"); colons != std::string::npos) out.replace(colons, 2, ".");
  return out + "." + (name.overload_name.empty() ? "default" : name.overload_name);
}

std::vector<std::int64_t> numbers(const ir::Type& type, const ir::SymBinding& sizes) {
  std::vector<std::int64_t> out;
  for (const ir::SymExpr& size : type.sizes) {
    const auto n = size.evaluate(sizes);
    if (!n) throw GivenUp("a size of it is not known");
    out.push_back(*n);
  }
  return out;
}

class Recorder {
 public:
  Recorder(ir::Model& model, const std::function<bool(std::string_view)>& whole) : model_(model), whole_(whole) {}

  // A tensor of the model's, as the kernel sees it.
  at::Tensor stand_in(Value* value, const ir::SymBinding& sizes) {
    const auto dtype = static_cast<c10::ScalarType>(c10_code(value->type.dtype));
    at::Tensor meta = at::empty(numbers(value->type, sizes), at::TensorOptions().device(c10::kMeta).dtype(dtype));
    know(meta, value);
    return meta;
  }

  // Writes down the calls that `kernel` makes.
  void follow(const std::function<void()>& kernel) {
    const c10::impl::IncludeDispatchKeyGuard on(mode);
    struct Restore {
      Recorder* outer;
      ~Restore() { current_ = outer; }
    } restore{std::exchange(current_, this)};
    kernel();
  }

  // What the model gives for a result of the kernel.
  Arg arg(const at::Tensor& tensor) {
    if (const auto known = values_.find(tensor.unsafeGetTensorImpl()); known != values_.end()) return known->second;
    if (!tensor.device().is_cpu() || tensor.layout() != c10::kStrided || tensor.numel() > shapes::max_followed)
      throw GivenUp("its definition makes a tensor in a way that cannot be followed");
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return number(tensor.item());
    return constant(tensor);
  }

  static void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    current_->call(op, *stack);
  }

 private:
  void know(const at::Tensor& tensor, Value* value) {
    values_[tensor.unsafeGetTensorImpl()] = value;
    alive_.push_back(tensor);
  }

  static Arg number(const at::Scalar& n) {
    if (n.isBoolean()) return n.toBool();
    if (n.isIntegral(false)) return n.toLong();
    if (n.isFloatingPoint()) return n.toDouble();
    throw GivenUp("its definition has complex numbers");
  }

  Value* constant(const at::Tensor& tensor) {
    const at::Tensor dense = tensor.contiguous();
    const auto dtype = dtype_from_c10(static_cast<int>(dense.scalar_type()));
    if (!dtype) throw GivenUp("its definition has a constant of a dtype that is not known");
    std::vector<std::byte> bytes(static_cast<std::size_t>(dense.nbytes()));
    if (!bytes.empty()) std::memcpy(bytes.data(), dense.const_data_ptr(), bytes.size());
    Value* value = model_.add_constant("constant", ir::make_weight(*dtype, dense.sizes().vec(), std::move(bytes)));
    know(tensor, value);
    return value;
  }

  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const std::string name = ir_name(op.operator_name());
    if (composite_key(op) && !makes_memory(op, stack) && !whole_(name))
      return op.callBoxedForDispatchKey(*composite_key(op), stack);
    const c10::impl::ExcludeDispatchKeyGuard off(mode);
    write_down(name, op, stack);
  }

  // A tensor made of numbers: the kernel fills memory that it asks for.
  static bool makes_memory(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    return std::none_of(stack.end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size()), stack.end(),
                        [](const c10::IValue& value) { return value.isTensor() || value.isTensorList(); });
  }

  void write_down(const std::string& name, const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto& formal = op.schema().arguments();
    if (!name.starts_with("aten.")) throw GivenUp("its definition calls " + name);
    if (op.hasTag(at::Tag::nondeterministic_seeded)) throw GivenUp("its definition draws random numbers");
    if (++calls_ > most_calls) throw GivenUp("its definition makes too many calls");
    const std::size_t first = stack.size() - formal.size();  // what lies below is the caller's
    std::vector<Arg> args;
    std::vector<RtValue> values;
    for (std::size_t i = 0; i < formal.size(); ++i) {
      args.push_back(argument(stack[first + i], formal[i].real_type()));
      values.push_back(runtime(stack[first + i]));
    }
    ir::Node* node = model_.graph->append(name, std::move(args));
    const auto shape = shapes::shape_by_rule(*node, values);
    const std::vector<RtValue> results =
        shape ? std::vector<RtValue>{shapes::wrap(*shape)} : shapes::call_operator(*node, values);
    stack.resize(first);
    const auto& returns = op.schema().returns();
    bool tensors = false;
    for (std::size_t i = 0; i < results.size(); ++i) {
      // An operator that writes gives what it was given.
      stack.push_back(ttrt::to_ivalue(results[i], returns.at(i).real_type()));
      if (stack.back().isTensor()) {
        tensors = true;
        give(*node, stack.back().toTensor());
      } else if (stack.back().isTensorList()) {
        tensors = true;
        for (const at::Tensor& tensor : stack.back().toTensorVector()) give(*node, tensor);
      }
    }
    if (!tensors && !results.empty()) model_.graph->erase(node);  // a number that shapes decide
  }

  void give(ir::Node& node, const at::Tensor& tensor) {
    const auto dtype = tensor.defined() ? dtype_from_c10(static_cast<int>(tensor.scalar_type())) : std::nullopt;
    if (!dtype) throw GivenUp("its definition calls " + node.op() + ", which gives no tensor");
    std::vector<ir::SymExpr> sizes;
    for (const std::int64_t size : tensor.sizes()) sizes.emplace_back(size);
    Value* value = node.add_result(ir::Type::tensor(*dtype, std::move(sizes)));
    const bool known = values_.contains(tensor.unsafeGetTensorImpl());
    const bool writes = node.schema() != nullptr && node.schema()->mutates();
    if (writes && !known) throw GivenUp("its definition calls " + node.op() + ", which the Meta device has not");
    if (writes || !known) know(tensor, value);
  }

  Arg argument(const c10::IValue& value, const c10::TypePtr& type) {
    const auto optional = type->cast<c10::OptionalType>();
    const c10::TypePtr& inner = optional ? optional->getElementType() : type;
    if (value.isNone()) return {};
    if (value.isTensor()) return value.toTensor().defined() ? arg(value.toTensor()) : Arg();
    if (value.isList()) {
      Arg::List out;
      const auto list = inner->cast<c10::ListType>();
      for (const c10::IValue& item : value.toListRef())
        out.push_back(argument(item, list ? list->getElementType() : c10::TypePtr(c10::AnyType::get())));
      return out;
    }
    if (value.isDevice()) return ir::DeviceArg{"cpu", {}};
    if (value.isInt() && inner->kind() == c10::TypeKind::ScalarTypeType) {
      const auto dtype = dtype_from_c10(static_cast<int>(value.toInt()));
      if (!dtype) throw GivenUp("its definition has a dtype that is not known");
      return *dtype;
    }
    if (value.isInt() && inner->kind() == c10::TypeKind::MemoryFormatType)
      return ir::MemoryFormatArg{format_code(value)};
    if (value.isInt() && inner->kind() == c10::TypeKind::LayoutType) return Arg();
    if (value.isString()) return value.toStringRef();
    if (value.isBool() || value.isInt() || value.isDouble()) return number(value.toScalar());
    throw GivenUp("its definition has an argument that is no literal");
  }

  // As .pt2 files number them.
  static int format_code(const c10::IValue& value) {
    switch (value.toMemoryFormat()) {
      case c10::MemoryFormat::Contiguous:
        return 1;
      case c10::MemoryFormat::ChannelsLast:
        return 2;
      case c10::MemoryFormat::ChannelsLast3d:
        return 3;
      default:
        return 4;
    }
  }

  // Numbers that were wrapped as tensors promote as numbers.
  RtValue runtime(const c10::IValue& value) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (!tensor.defined()) return {};
      return tensor.unsafeGetTensorImpl()->is_wrapped_number() ? ttrt::from_ivalue(c10::IValue(tensor.item()))
                                                               : shapes::wrap(value);
    }
    if (value.isList()) {
      RtValue::List out;
      for (const c10::IValue& item : value.toListRef()) out.push_back(runtime(item));
      return out;
    }
    return ttrt::from_ivalue(value);
  }

  static thread_local Recorder* current_;
  ir::Model& model_;
  const std::function<bool(std::string_view)>& whole_;
  std::unordered_map<const at::TensorImpl*, Value*> values_;
  std::vector<at::Tensor> alive_;  // so that no address is used twice
  std::size_t calls_ = 0;
};

thread_local Recorder* Recorder::current_ = nullptr;

// Step by step as it is written: nothing is compiled for the shapes at hand. Each text is compiled once.
struct Compiled {
  torch::jit::CompilationUnit unit;  // errors name its functions
  torch::jit::Code code;
  explicit Compiled(const std::string& text) {
    unit.define(std::nullopt, text, torch::jit::nativeResolver(), nullptr);
    const auto graph = torch::jit::toGraphFunction(unit.get_function("f")).graph()->copy();
    torch::jit::Inline(*graph);
    code = torch::jit::Code(graph, "f");
  }
};

const torch::jit::Code& code_of(const std::string& text) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::unique_ptr<Compiled>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Compiled>& one = (*known)[text];
  if (!one) one = std::make_unique<Compiled>(text);
  return one->code;
}

// Of the interpreter's errors what stands behind the trace, as an assert in a definition words it.
std::string said(const std::exception& error) {
  const std::string text = error.what();
  const std::size_t at = text.rfind("Error: ");
  if (!text.starts_with("The following operation failed") || at == std::string::npos) return ttrt::first_line(error);
  return text.substr(at + 7, text.find('\n', at) - at - 7);
}

void run_definition(const std::string& text, torch::jit::Stack& stack) {
  torch::jit::InterpreterState(code_of(text)).run(stack);
  if (stack.size() == 1 && stack[0].isTuple()) stack = stack[0].toTuple()->elements().vec();
}

void register_fallback() {
  static const auto* const handle = new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerFallback(
      mode, c10::KernelFunction::makeFromBoxedFunction<&Recorder::fallback>(), "calls of composite kernels"));
  (void)handle;
}

// The operator's arguments, with tensors of `model` for those of the node.
torch::jit::Stack stack_of(const ir::Node& node, const c10::OperatorHandle& op, const ir::SymBinding& sizes,
                           ir::Model& model, Recorder& recorder) {
  std::unordered_map<const Value*, at::Tensor> tensors;
  for (const Value* value : node.operands()) {
    if (!value->type.is_tensor() || tensors.contains(value)) continue;
    ir::Type type = value->type;
    type.strides.clear();
    tensors[value] = recorder.stand_in(model.graph->add_input(type, model.graph->unique_name("x")), sizes);
  }
  const auto operand = [&](const Value& value) -> RtValue {
    if (value.type.is_tensor()) return shapes::wrap(tensors.at(&value));
    const auto number = value.type.sym ? value.type.sym->evaluate(sizes) : std::nullopt;
    if (!number) throw GivenUp("an argument is known at run time only");
    return *number;
  };
  torch::jit::Stack stack;
  const auto& formal = op.schema().arguments();
  for (std::size_t i = 0; i < formal.size(); ++i) {
    if (i < node.args().size())
      stack.push_back(ttrt::to_ivalue(ttrt::literal_value(node.arg(i), operand), formal[i].real_type(), formal[i].N()));
    else if (formal[i].default_value())
      stack.push_back(*formal[i].default_value());
    else
      throw GivenUp("argument '" + formal[i].name() + "' is missing");
  }
  return stack;
}

struct Question {
  const ir::Node& node;
  const c10::OperatorHandle& op;
  const std::string& definition;
  const std::function<bool(std::string_view)>& whole;
};

// The calls at these sizes. Throws what LibTorch throws, and GivenUp.
std::unique_ptr<ir::Model> calls_at(const Question& what, const ir::SymBinding& sizes) {
  auto model = std::make_unique<ir::Model>();
  const c10::InferenceMode below_autograd;
  Recorder recorder(*model, what.whole);
  torch::jit::Stack stack = stack_of(what.node, what.op, sizes, *model, recorder);
  recorder.follow([&] {
    if (what.definition.empty())
      what.op.callBoxedForDispatchKey(*composite_key(what.op), stack);
    else
      run_definition(what.definition, stack);
  });
  for (const c10::IValue& value : stack) {
    if (value.isTensor())
      model->graph->add_output(recorder.arg(value.toTensor()));
    else if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) model->graph->add_output(recorder.arg(tensor));
    else
      throw GivenUp("it gives something else than tensors");
  }
  return model;
}

std::unique_ptr<ir::Model> calls_of(const Question& what, const ir::Model& of) {
  const SizeSamples samples = samples_of(of, what.node);
  auto model = calls_at(what, samples.binding(0));
  if (samples.names.empty()) return model;
  std::vector<std::unique_ptr<ir::Model>> others;
  for (std::size_t run = 1; run < samples.symbols.size(); ++run) {
    try {
      others.push_back(calls_at(what, samples.binding(run)));
    } catch (const std::exception&) {
      others.emplace_back();  // sizes that the operator does not take
    }
  }
  free_sizes(*model, what.node, others, samples);
  model->ranges = of.ranges;
  model->info.hints = of.info.hints;
  return model;
}

}  // namespace

bool has_composite_kernel(std::string_view op) {
  const auto found = find_op(op);
  return found && composite_key(*found);
}

std::variant<std::unique_ptr<ir::Model>, Reason> composite_calls(
    const ir::Model& of, const ir::Node& node, const std::string& definition,
    const std::function<bool(std::string_view op)>& whole) {
  const auto op = find_op(node.op());
  if (!op || (definition.empty() && !composite_key(*op)))
    return Reason{ReasonCode::Unimplemented, "LibTorch defines it by no others"};
  register_fallback();
  try {
    return calls_of({.node = node, .op = *op, .definition = definition, .whole = whole}, of);
  } catch (const std::exception& error) {
    return Reason{ReasonCode::Unsupported, "LibTorch's definition of it: " + said(error)};
  }
}

}  // namespace ttc
