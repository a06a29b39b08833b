// Operators of LibTorch as functions of runtime values. One is looked up once in LibTorch's dispatcher (or, for
// TorchScript's scalar and list operators, in the interpreter's registry) and then called boxed, below autograd.
#include "torch/cpu_op.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>
#include <omp.h>
#include <pthread.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "device/parallel.h"
#include "ir/op_schema.h"
#include "support/error.h"
#include "torch/torch_bridge.h"
#include "torch/unsound.h"

namespace ttrt {
namespace {

using ttc::ir::torch_op_name;

// Those that wait for LibTorch's next operator, milliseconds long on a core of their own each. It makes new ones.
void end_torch_threads() { omp_pause_resource_all(omp_pause_soft); }

// They do not come along into a fork, but what waits for them does: a child's first loop would never end. So there are
// none while a process forks.
[[maybe_unused]] const int before_forks = pthread_atfork(end_torch_threads, nullptr, nullptr);

class TorchOp : public CpuOp {
 public:
  TorchOp(std::string name, const c10::FunctionSchema& schema, std::function<void(torch::jit::Stack&)> run)
      : name_(std::move(name)), schema_(schema), run_(std::move(run)) {}

 protected:
  void call_impl(std::span<const RtValue> args, std::vector<RtValue>& results) const override {
    results.clear();
    try {
      c10::InferenceMode below_autograd;
      torch::jit::Stack stack;
      push(args, stack);
      check_sound(name_, stack);
      run_(stack);
      results.reserve(stack.size());
      for (const c10::IValue& value : stack) results.push_back(from_ivalue(value));
    } catch (const ttc::Error& error) {
      throw ttc::Error(error.code(), error.file(), name_ + ": " + error.what(), error.hint());
    } catch (const std::exception& error) {
      throw ttc::Error(ttc::Exit::check_failed, "", name_ + ": " + first_line(error));
    }
  }

 private:
  void push(std::span<const RtValue> args, torch::jit::Stack& stack) const {
    const auto& formal = schema_.arguments();
    if (args.size() > formal.size() && !schema_.is_vararg())
      throw ttc::Error(ttc::Exit::check_failed, "",
                       "takes " + std::to_string(formal.size()) + " arguments, got " + std::to_string(args.size()));
    stack.reserve(formal.size() + 1);
    for (std::size_t i = 0; i < formal.size(); ++i) {
      if (i < args.size()) {
        stack.push_back(argument(args[i], formal[i]));
      } else if (formal[i].default_value()) {
        stack.push_back(*formal[i].default_value());
      } else {
        throw ttc::Error(ttc::Exit::check_failed, "", "argument '" + formal[i].name() + "' is missing");
      }
    }
    if (!schema_.is_vararg()) return;
    // The interpreter's variadic operators take their operand count on top of the stack.
    for (std::size_t i = formal.size(); i < args.size(); ++i) stack.push_back(to_ivalue(args[i], c10::AnyType::get()));
    stack.emplace_back(static_cast<std::int64_t>(args.size()));
  }

  static c10::IValue argument(const RtValue& value, const c10::Argument& formal) {
    try {
      return to_ivalue(value, formal.real_type(), formal.N());
    } catch (const ttc::Error& error) {
      throw ttc::Error(error.code(), error.file(), "argument '" + formal.name() + "': " + error.what(), error.hint());
    }
  }

  std::string name_;
  const c10::FunctionSchema& schema_;  // the registry keeps it for the process
  std::function<void(torch::jit::Stack&)> run_;
};

// TorchScript's operators that the dispatcher does not have: aten::len.t, aten::Int.Tensor, prim::min.int, ...
std::shared_ptr<torch::jit::Operator> find_interpreter_op(const std::string& name, const std::string& overload) {
  return torch::jit::findOperatorFor(c10::OperatorName(name, overload));
}

std::unique_ptr<CpuOp> make_op(std::string_view op) {
  const auto [name, overload] = torch_op_name(op);
  if (name.find("::") == std::string::npos) return nullptr;
  if (const auto handle = c10::Dispatcher::singleton().findSchema({name, overload}))
    return std::make_unique<TorchOp>(std::string(op), handle->schema(),
                                     [h = *handle](torch::jit::Stack& stack) { h.callBoxed(stack); });
  if (const auto found = find_interpreter_op(name, overload)) {
    // Operators that need their graph node (prim::If, prim::ListConstruct) have no operation of their own.
    try {
      return std::make_unique<TorchOp>(
          std::string(op), found->schema(),
          [found, run = found->getOperation()](torch::jit::Stack& stack) mutable { run(stack); });
    } catch (const c10::Error&) {
      return nullptr;
    }
  }
  return nullptr;
}

ttc::ir::OpSchema parsed(std::string_view op, const c10::FunctionSchema& from) {
  std::ostringstream text;
  text << from;
  ttc::ir::OpSchema schema = ttc::ir::parse_schema(text.str(), std::string(op));
  // No tag says of empty and its like (new_empty, empty_strided, _empty_affine_quantized) that nobody fills their
  // memory.
  schema.random = from.name().find("empty") != std::string::npos;
  for (const ttc::ir::SchemaArg& arg : schema.args) schema.random |= arg.type.starts_with("Generator");
  return schema;
}

std::optional<ttc::ir::OpSchema> torch_schema_of(std::string_view op) {
  const auto [name, overload] = torch_op_name(op);
  if (name.find("::") == std::string::npos) return std::nullopt;
  if (const auto handle = c10::Dispatcher::singleton().findSchema({name, overload})) {
    ttc::ir::OpSchema schema = parsed(op, handle->schema());
    schema.random |= handle->hasTag(at::Tag::nondeterministic_seeded);
    schema.inplace_view = handle->hasTag(at::Tag::inplace_view);
    schema.maybe_aliasing = handle->hasTag(at::Tag::maybe_aliasing_or_mutating);
    return schema;
  }
  const auto found = find_interpreter_op(name, overload);
  return found ? std::optional(parsed(op, found->schema())) : std::nullopt;
}

}  // namespace

const CpuOp* CpuOp::find(std::string_view op) {
  static std::mutex mutex;
  static auto* const found =
      new std::map<std::string, std::unique_ptr<CpuOp>, std::less<>>;  // outlives every static user
  const std::lock_guard lock(mutex);
  if (const auto it = found->find(op); it != found->end()) return it->second.get();
  std::unique_ptr<CpuOp> made = make_op(op);
  if (!made) return nullptr;
  return found->emplace(std::string(op), std::move(made)).first->second.get();
}

void CpuOp::call(std::span<const RtValue> args, std::vector<RtValue>& results) const {
  call_impl(args, results);
  rest_before_loops(end_torch_threads);
}

std::vector<RtValue> call_torch(std::string_view op, std::vector<RtValue> args) {
  const CpuOp* cpu = CpuOp::find(op);
  if (cpu == nullptr) throw ttc::Error(ttc::Exit::bug, "", "LibTorch has no operator '" + std::string(op) + "'");
  std::vector<RtValue> results;
  cpu->call(args, results);
  return results;
}

std::vector<std::string> torch_operators() {
  std::set<std::string> names;
  const auto add = [&](std::string name) { names.insert(name.replace(name.find("::"), 2, ".")); };
  for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames()) add(op.name);
  for (const auto& op : torch::jit::getAllOperators()) add(op->schema().name());
  return {names.begin(), names.end()};
}

void install_torch_schemas() { ttc::ir::set_schema_resolver(torch_schema_of); }

void set_threads(int threads) {
  if (threads < 0) throw ttc::usage_error("the number of threads must not be negative");
  if (threads == 0) return;
  at::set_num_threads(threads);
  set_parallel_threads(threads);
}

int threads() { return parallel_threads(); }

void take_threads_from_torch() {
  set_parallel_threads(at::get_num_threads());
  rest_before_loops(end_torch_threads);
}

void on_torch_warning(std::function<void(const std::string&)> say) {
  struct Handler : c10::WarningHandler {
    std::function<void(const std::string&)> say;
    void process(const c10::Warning& warning) override { say(warning.msg()); }
  };
  static Handler handler;
  handler.say = std::move(say);
  c10::WarningUtils::set_warning_handler(&handler);
}

}  // namespace ttrt
