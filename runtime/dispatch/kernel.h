// Kernel records: what a kernel serves, what it supports, how it is called.
//
// A kernel may refuse a call (a limit it has) or be out of place for it (it can serve it, and another kernel is likely
// faster).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/context.h"
#include "support/reason.h"

namespace ttrt::dispatch {

// A function pointer and its state: calling costs one indirect call.
class KernelImpl {
 public:
  using Function = void (*)(void* state, CallArgs& args);

  KernelImpl() = default;
  KernelImpl(Function function, std::shared_ptr<void> state = {})
      : function_(function), state_(std::move(state)) {}  // NOLINT
  // From any callable taking CallArgs&; kept by value.
  template <typename F>
    requires(!std::is_same_v<std::decay_t<F>, KernelImpl> && std::is_invocable_v<F&, CallArgs&>)
  KernelImpl(F&& callable)  // NOLINT
      : function_([](void* state, CallArgs& args) { (*static_cast<std::decay_t<F>*>(state))(args); }),
        state_(std::make_shared<std::decay_t<F>>(std::forward<F>(callable))) {}

  explicit operator bool() const { return function_ != nullptr; }
  void operator()(CallArgs& args) const { function_(state_.get(), args); }
  Function function() const { return function_; }
  void* state() const { return state_.get(); }

 private:
  Function function_ = nullptr;
  std::shared_ptr<void> state_;
};

// A set of a small enum's values.
template <typename E>
class EnumSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<E> values) {
    for (E v : values) bits_ |= 1u << static_cast<unsigned>(v);
  }
  constexpr bool contains(E v) const { return (bits_ >> static_cast<unsigned>(v)) & 1u; }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  std::uint32_t bits_ = 0;
};

struct KernelSpec {
  using Judge = std::function<ttc::Refusal(const SelectionContext&)>;

  Symbol id = {};           // "tt.matmul.1d"
  Symbol operation = {};    // "tt.matmul"
  std::string source = {};  // the library it comes from: "tt", "torch", a dispatcher's name
  std::string summary = {};
  KernelImpl impl = {};
  Platform platform = Platform::cuda;
  EnumSet<DType> dtypes = {};  // empty: any
  bool deterministic = false;
  std::int64_t priority = 50;  // its place among the operation's kernels: higher first, then the first registered
  // Limits that the fields above cannot say, and where another kernel should come first; empty: none. Must be pure and
  // thread-safe.
  Judge supports = {}, out_of_place = {};
  const void* record = nullptr;  // what its owner keeps with it, e.g. a DeviceKernel

  // Every limit the context breaks; a platform mismatch alone where the platform differs.
  std::vector<ttc::Reason> check(const SelectionContext& context) const;
  // Whether there is none, without saying so.
  bool accepts(const SelectionContext& context) const;
};

// One line per reason, joined by "; ".
std::string join(const std::vector<ttc::Reason>& reasons);

// Runs the kernel. Throws DispatchError (EXECUTION) where it has no implementation or throws; a DispatchError passes
// unchanged.
void execute(const KernelSpec& kernel, Symbol operation, CallArgs& args);

}  // namespace ttrt::dispatch
