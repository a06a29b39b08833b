// Operators of LibTorch, called through its dispatcher: whatever stays on the CPU runs here, so that every ATen
// operator works. The implementation is one of the few files that include torch headers; this header has none.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ops/op.h"

namespace ttrt {

class CpuOp {
 public:
  // By IR name ("aten.add.Tensor"). nullptr where LibTorch has no such operator. The result lives as long as the
  // process.
  static const CpuOp* find(std::string_view op);

  // `args` in schema order, all given; DeviceTensors are not allowed. Host tensors are wrapped, never copied; results
  // that alias an argument share its owner. One RtValue per schema return (a Tensor[] return is one List).
  // Throws ttc::Error (exit code 1) with LibTorch's message where the operator fails.
  void call(std::span<const RtValue> args, std::vector<RtValue>& results) const;

  virtual ~CpuOp() = default;

 protected:
  virtual void call_impl(std::span<const RtValue> args, std::vector<RtValue>& results) const = 0;
};

// Calls LibTorch with the arguments in schema order; trailing defaults may be left out. Throws ttc::Error where it has
// no such operator.
std::vector<RtValue> call_torch(std::string_view op, std::vector<RtValue> args);
// What the references of op records are computed with.
struct TorchReference : Reference {
  std::vector<RtValue> call(std::string_view op, std::vector<RtValue> args) override {
    return call_torch(op, std::move(args));
  }
};

// The names of LibTorch's operators, each once and without its overload: "aten.add", "aten.linalg_vector_norm".
std::vector<std::string> torch_operators();
// Lets ir::find_schema see every operator LibTorch has. Idempotent.
void install_torch_schemas();
// Threads of LibTorch and of the device's kernels. 0 leaves the default.
void set_threads(int threads);
int threads();
// Before device kernels run in the midst of a program of LibTorch's: they use as many threads as it does.
void take_threads_from_torch();
// What LibTorch warns of, in this thread, goes there instead of standard error. Once.
void on_torch_warning(std::function<void(const std::string&)> say);

}  // namespace ttrt
