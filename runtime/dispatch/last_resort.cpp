// The functions are set once, at start-up, and read without a lock.
#include "dispatch/last_resort.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "dispatch/table.h"

namespace ttrt::dispatch {
namespace {
std::atomic<KernelImpl (*)(std::string_view)> kernel_function{nullptr};
std::atomic<Json (*)(std::string_view, const TableKey&)> keys_function{nullptr};
std::atomic<ttc::Refusal (*)(ttc::ir::Model&)> types_function{nullptr};
}  // namespace

void set_last_resort(const LastResort& functions) {
  types_function.store(functions.types, std::memory_order_release);
  keys_function.store(functions.keys, std::memory_order_release);
  kernel_function.store(functions.kernel, std::memory_order_release);
}

KernelImpl last_resort_kernel(std::string_view op) {
  const auto function = kernel_function.load(std::memory_order_acquire);
  return function ? function(op) : KernelImpl();
}

Json last_resort_keys(std::string_view op, const TableKey& key) {
  const auto function = keys_function.load(std::memory_order_acquire);
  return function ? function(op, key) : Json();
}

ttc::Refusal last_resort_types(ttc::ir::Model& model) {
  const auto function = types_function.load(std::memory_order_acquire);
  if (function) return function(model);
  return ttc::Reason{ttc::ReasonCode::Unsupported, "without LibTorch the operator's results are not known"};
}

}  // namespace ttrt::dispatch
