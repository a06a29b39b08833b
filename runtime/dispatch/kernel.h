// Kernel records: what a kernel serves, what it supports, how it is called.
//
// check() explains every limit a context breaks; accepts() is the same test, stopping at the first, for the selection
// loop. Both come from one function, so they cannot disagree.
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

// Sets of small enums. An empty set of dtypes means any.
template <typename E>
class EnumSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<E> values) {
    for (E v : values) bits_ |= 1u << static_cast<unsigned>(v);
  }
  constexpr bool contains(E v) const { return (bits_ >> static_cast<unsigned>(v)) & 1u; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr std::uint32_t bits() const { return bits_; }

 private:
  std::uint32_t bits_ = 0;
};

struct KernelSpec {
  Symbol id = {};           // "matmul.1d"
  Symbol operation = {};    // "tt.matmul"
  std::string source = {};  // the library it comes from: "tt", "torch", "flash_attn"
  std::string version = {};
  std::string summary = {};
  KernelImpl impl = {};
  Platform platform = Platform::cuda;
  int min_sm = 0, max_sm = 0;  // CUDA only; 0: no limit
  EnumSet<DType> dtypes = {};
  std::int64_t min_head_dim = 1, max_head_dim = 256, head_dim_multiple = 1;
  std::int64_t min_seq_len = unset, max_seq_len = unset;
  std::int64_t min_batch = unset, max_batch = unset;
  bool supports_gqa = false;
  bool supports_dropout = true, supports_scale = true;
  EnumSet<AxisOrder> layouts = {AxisOrder::BSHD, AxisOrder::BHSD};
  EnumSet<MaskType> masks = {MaskType::none, MaskType::boolean, MaskType::floating};
  EnumSet<QuantFormat> quant_formats = {};  // empty: any
  bool requires_contiguous = false, requires_last_dim_stride1 = true;
  bool is_cuda_graph_safe = false, deterministic = false;
  std::int64_t priority = 50;
  double transform_cost = 0;  // subtracted from the score
  // Limits that the fields above cannot say; nullptr: none. Must be pure and thread-safe.
  std::function<ttc::Refusal(const SelectionContext&)> supports = {};
  const void* record = nullptr;  // what its owner keeps with it, e.g. an OpRecord

  // Every limit the context breaks, in a fixed order; a platform mismatch alone where the platform differs.
  std::vector<ttc::Reason> check(const SelectionContext& context) const;
  bool accepts(const SelectionContext& context) const;
};

// One line per reason, joined by "; ".
std::string join(const std::vector<ttc::Reason>& reasons);

}  // namespace ttrt::dispatch
