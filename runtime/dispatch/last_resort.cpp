// The functions are set once, at start-up, and read without a lock.
#include "dispatch/last_resort.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "dispatch/table.h"

namespace ttrt::dispatch {
namespace {
std::atomic<const LastResort*> functions{nullptr};  // what it points to is never freed
const LastResort& last_resort() {
  static const LastResort none;
  const LastResort* const set = functions.load(std::memory_order_acquire);
  return set ? *set : none;
}
}  // namespace

void set_last_resort(const LastResort& last) { functions.store(new LastResort(last), std::memory_order_release); }

KernelImpl last_resort_kernel(std::string_view op) {
  return last_resort().kernel ? last_resort().kernel(op) : KernelImpl();
}
Json last_resort_keys(std::string_view op, const TableKey& key) {
  return last_resort().keys ? last_resort().keys(op, key) : Json();
}

}  // namespace ttrt::dispatch
