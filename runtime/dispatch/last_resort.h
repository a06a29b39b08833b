// What serves an operator when no table has a kernel for it: LibTorch's own dispatcher, where the program links it.
//
// This layer has no torch headers: torch_library/torch_last_resort.cpp sets these functions.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <string_view>

#include "dispatch/kernel.h"

namespace ttrt::dispatch {

struct TableKey;

struct LastResort {
  // A kernel for the operator ("aten.add.Tensor" or "aten::add.Tensor"), empty where there is no such operator. Its
  // arguments are found by schema name in the call, else taken in order, else the schema's defaults.
  KernelImpl (*kernel)(std::string_view op) = nullptr;
  // The dispatch keys a call with this key has there, highest priority first, and what they resolve to; null where the
  // operator is unknown: {keys[], highest, registered_keys[], resolved}.
  Json (*keys)(std::string_view op, const TableKey& key) = nullptr;
};

inline std::atomic<const LastResort*> last_resort_functions{nullptr};  // read without a lock; never freed

// For tables made later too; tables made before take it up with their next registration.
inline void set_last_resort(const LastResort& functions) { last_resort_functions = new LastResort(functions); }
inline KernelImpl last_resort_kernel(std::string_view op) {
  const LastResort* const set = last_resort_functions;
  return set && set->kernel ? set->kernel(op) : KernelImpl();
}
inline Json last_resort_keys(std::string_view op, const TableKey& key) {
  const LastResort* const set = last_resort_functions;
  return set && set->keys ? set->keys(op, key) : Json();
}

}  // namespace ttrt::dispatch
