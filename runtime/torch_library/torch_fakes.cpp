// One rule for every record. Numbers: the record's own shape rule. Symbols: the sizes that the record's reference,
// which is written in ATen, has under LibTorch's tracer, whose guards then say for which sizes they hold; the shape
// rule still gives the formats, on an example of the sizes (their hints).
//
// Only Python has tracers, and only Python's registry of fake kernels runs with the tracer switched on, so the library
// registers a few lines of Python where it finds an interpreter in the process. They call torch.ops.tt_shape.NAME,
// whose arguments are those of torch.ops.tt.NAME and, as hint_*, the same with numbers in the places of symbols.
#include "torch_library/torch_fakes.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <dlfcn.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <algorithm>

#include "ir/op_schema.h"
#include "support/error.h"
#include "torch/torch_bridge.h"
#include "torch_library/torch_arguments.h"

namespace ttrt {
namespace {

constexpr char fakes_in_python[] = R"(
import torch
from torch.utils import _pytree

library = torch.library.Library("tt", "FRAGMENT")

def hint(value):
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        known = value.node.has_hint()
        return value.node.hint if known else 32  # of what depends on data nobody knows
    if isinstance(value, torch.Tensor):
        return torch.empty([hint(size) for size in value.shape], dtype=value.dtype, device="meta")
    return value

def register(name):
    shape = getattr(torch.ops.tt_shape, name).default
    schema = getattr(torch.ops.tt, name).default._schema
    formal = [argument.name for argument in schema.arguments]
    is_list = "[]" in str(schema.returns[0].type) or str(schema.returns[0].type).startswith("List")

    def fake(*args, **kwargs):
        given = dict(zip(formal, args)) | kwargs
        hints = {"hint_" + key: _pytree.tree_map(hint, value) for key, value in given.items()}
        results = shape(**given, **hints)
        return results if is_list else results[0] if len(schema.returns) == 1 else tuple(results)

    torch.library.register_fake("tt::" + name, fake, lib=library)
)";

// Python's C interface, of whatever interpreter runs this process.
class Python {
 public:
  Python() {
    load(ensure_, "PyGILState_Ensure");
    load(release_, "PyGILState_Release");
    load(run_, "PyRun_SimpleString");
    int (*initialised)() = nullptr;
    load(initialised, "Py_IsInitialized");
    there_ =
        ensure_ != nullptr && release_ != nullptr && run_ != nullptr && initialised != nullptr && initialised() != 0;
  }
  bool there() const { return there_; }
  void run(const std::string& code) const {
    const int state = ensure_();
    const int failed = run_(code.c_str());
    release_(state);
    TORCH_CHECK(failed == 0, "the tt operators' fake kernels could not be registered with this version of torch");
  }

 private:
  template <typename F>
  static void load(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  }
  int (*ensure_)() = nullptr;
  void (*release_)(int) = nullptr;
  int (*run_)(const char*) = nullptr;
  bool there_ = false;
};

bool is_symbolic(const c10::IValue& value) {
  if (value.isTensor())
    return value.toTensor().defined() && value.toTensor().unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  if (value.isSymInt()) return value.toSymInt().is_heap_allocated();
  if (!value.isList()) return false;
  const auto items = value.toListRef();
  return std::any_of(items.begin(), items.end(), is_symbolic);
}

// What a reference computes with: a tensor of the tracer's in the dtype that host values have there, a symbol, a list
// of them; everything else as it is everywhere.
RtValue traced(const c10::IValue& value) {
  const auto object = [](c10::IValue item) {
    return RtValue(std::shared_ptr<void>(std::make_shared<c10::IValue>(item)));
  };
  if (value.isTensor() && value.toTensor().defined()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.scalar_type() == c10::kBool) return object(tensor);
    return object(tensor.to(tensor.is_floating_point() ? c10::kFloat : c10::kLong));
  }
  if (is_symbolic(value) && !value.isList()) return object(value);
  if (!is_symbolic(value) && !value.isTensorList()) return from_ivalue(value);
  RtValue::List list;
  for (const c10::IValue& item : value.toListRef()) list.push_back(traced(item));
  return list;
}

void collect(const RtValue& value, std::vector<at::Tensor>& out) {
  if (const auto* list = value.get_if<RtValue::List>())
    for (const RtValue& item : *list) collect(item, out);
  if (const auto* object = value.get_if<std::shared_ptr<void>>())
    out.push_back(static_cast<c10::IValue*>(object->get())->toTensor());
}

// Errors stay what they are: tracers steer by them.
struct TracedReference : Reference {
  std::vector<RtValue> call(std::string_view op, std::vector<RtValue> args) override {
    const auto [name, overload] = ttc::ir::torch_op_name(op);
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
    torch::jit::Stack stack;
    for (const c10::Argument& formal : handle.schema().arguments()) {
      const bool given = stack.size() < args.size();
      stack.push_back(given ? to_ivalue(args[stack.size()], formal.real_type(), formal.N()) : *formal.default_value());
    }
    // Else composite operators would be taken apart by kernels that know numbers only, before the tracer sees them.
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    handle.callBoxed(&stack);
    std::vector<RtValue> results;
    for (const c10::IValue& value : stack) results.push_back(from_ivalue(value));
    return results;
  }
};

// The results of the record's reference on the tracer's tensors. `args` bind the same call with numbers.
std::vector<at::Tensor> traced_results(const Arguments& args, std::span<const c10::IValue> given,
                                       const ttc::ir::OpSchema& schema) {
  std::vector<RtValue> values;
  for (std::size_t i = 0; i < given.size(); ++i) {
    RtValue value = traced(given[i]);
    const int tensor = given[i].isTensor() ? args.bound.call.tensor_index(schema.args[i].name) : -1;
    if (tensor >= 0 && args.packed(static_cast<std::size_t>(tensor)))
      value = traced(at::empty(args.spec(static_cast<std::size_t>(tensor)).logical,
                               given[i].toTensor().options().dtype(c10::kFloat)));
    if (schema.args[i].type.starts_with("ScalarType")) value = literal_value(args.bound.call.args[i]);
    values.push_back(std::move(value));
  }
  TracedReference torch;
  std::vector<at::Tensor> out;
  for (const RtValue& result : args.record().reference(torch, args.bound.call, values)) collect(result, out);
  return out;
}

// Of torch.ops.tt_shape.NAME.
void shape_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = "tt." + op.schema().name().substr(op.schema().name().find("::") + 2);
  const std::size_t count = op.schema().arguments().size() / 2;
  const std::vector<c10::IValue> values(stack->end() - static_cast<std::ptrdiff_t>(2 * count), stack->end());
  const std::span given(values.data(), count), hints(values.data() + count, count);
  try {
    const OpRecord* const record = find_op(name);
    const ttc::ir::OpSchema* const schema = ttc::ir::find_schema(name);
    TORCH_CHECK(record != nullptr && schema != nullptr, name, " is not registered");
    const Arguments args = read_arguments(*record, hints);
    const std::vector<TensorSpec> specs = args.bound.results();
    std::vector<at::Tensor> traced, out;
    if (std::any_of(given.begin(), given.end(), is_symbolic)) traced = traced_results(args, given, *schema);
    TORCH_CHECK(traced.empty() || traced.size() >= specs.size(), name, ": its reference gives fewer results");
    c10::Device device = c10::kCPU;
    for (const c10::IValue& value : given)
      if (value.isTensor() && value.toTensor().defined()) device = value.toTensor().device();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto options = at::TensorOptions().device(device).dtype(result_dtype(args, specs[i]));
      out.push_back(traced.empty() ? at::empty(specs[i].logical, options)
                                   : at::empty_symint(traced[i].sym_sizes(), options));
    }
    torch::jit::drop(*stack, 2 * count);
    stack->emplace_back(c10::List<at::Tensor>(at::ArrayRef<at::Tensor>(out)));
  } catch (const ttc::Error& error) {
    TORCH_CHECK(false, name, ": ", error.what());
  }
}

void meta_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto shape = c10::Dispatcher::singleton().findSchemaOrThrow(
      ("tt_shape" + op.schema().name().substr(op.schema().name().find("::"))).c_str(), "");
  const std::vector<c10::IValue> values(stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size()),
                                        stack->end());
  torch::jit::drop(*stack, values.size());
  torch::jit::Stack both(values);
  both.insert(both.end(), values.begin(), values.end());
  shape.callBoxed(&both);
  push_results(op.schema(), both.back().toTensorVector(), *stack);
}

// "(Tensor x, int dim) -> Tensor" as "NAME(Tensor x, int dim, Tensor hint_x, int hint_dim) -> Tensor[]".
c10::FunctionSchema shape_schema(const std::string& name, const OpRecord& record) {
  const c10::FunctionSchema own = torch::jit::parseSchema(name + std::string(record.schema));
  std::vector<c10::Argument> arguments = own.arguments();
  for (const c10::Argument& a : own.arguments())
    arguments.emplace_back("hint_" + a.name(), a.type(), a.real_type(), a.N(), a.default_value());
  const auto tensors = c10::ListType::create(c10::TensorType::get());
  // Positional arguments with defaults may not stand before ones without.
  for (c10::Argument& a : arguments)
    a = c10::Argument(a.name(), a.type(), a.real_type(), a.N(), a.default_value(), true);
  return {name, "", std::move(arguments), {c10::Argument("", tensors)}};
}

}  // namespace

void define_fake(torch::Library& library, const OpRecord& record) {
  static auto* const shapes =
      new torch::Library(torch::Library::FRAGMENT, "tt_shape", std::nullopt, __FILE__, __LINE__);
  static const Python python;
  static const std::string module = "__import__('sys').modules['tt_operator_fakes']";
  const std::string name(record.name.substr(record.name.find('.') + 1));
  shapes->def(shape_schema(name, record));
  shapes->impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd,
                                             torch::CppFunction::makeFromBoxedFunction<&shape_kernel>()));
  if (!python.there()) {
    library.impl(name.c_str(),
                 torch::dispatch(c10::DispatchKey::Meta, torch::CppFunction::makeFromBoxedFunction<&meta_kernel>()));
    return;
  }
  static const bool once = [] {
    python.run("__import__('sys').modules['tt_operator_fakes'] = __import__('types').ModuleType('tt_operator_fakes')");
    // The file's name lets torch.library find whose kernels these are at once, not by going through all modules.
    python.run(module + ".__file__ = '<tt_operator_fakes>'");
    python.run("exec(compile(\"\"\"" + std::string(fakes_in_python) + "\"\"\", '<tt_operator_fakes>', 'exec'), " +
               module + ".__dict__)");
    return true;
  }();
  static_cast<void>(once);
  python.run(module + ".register('" + name + "')");
}

}  // namespace ttrt
