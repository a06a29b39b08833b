// The pool behind Symbol: text in chunks that never move, so readers index without a lock.
#include "dispatch/symbol.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "support/error.h"

namespace ttrt::dispatch {
namespace {

constexpr std::uint32_t chunk_size = 1024, max_chunks = 4096;
using Chunk = std::array<std::string, chunk_size>;

struct Pool {
  std::mutex mutex;
  std::unordered_map<std::string_view, std::uint32_t> ids;  // views into the chunks
  std::array<std::atomic<Chunk*>, max_chunks> chunks{};
  std::uint32_t next = 1;
};

// Never destroyed: symbols are read by destructors of static objects.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

}  // namespace

Symbol::Symbol(std::string_view text) {
  if (text.empty()) return;
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  if (const auto found = p.ids.find(text); found != p.ids.end()) {
    id_ = found->second;
    return;
  }
  const std::uint32_t id = p.next, chunk = id / chunk_size;
  if (chunk >= max_chunks)
    throw ttc::usage_error("more than " + std::to_string(max_chunks * chunk_size) + " different names in dispatch");
  if (!p.chunks[chunk].load(std::memory_order_relaxed)) p.chunks[chunk].store(new Chunk, std::memory_order_release);
  std::string& slot = (*p.chunks[chunk].load(std::memory_order_relaxed))[id % chunk_size];
  slot = text;
  p.ids.emplace(slot, id);
  p.next = id + 1;
  id_ = id;
}

Symbol Symbol::find(std::string_view text) {
  Symbol out;
  if (text.empty()) return out;
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  if (const auto found = p.ids.find(text); found != p.ids.end()) out.id_ = found->second;
  return out;
}

std::string_view Symbol::text() const {
  if (id_ == 0) return {};
  return (*pool().chunks[id_ / chunk_size].load(std::memory_order_acquire))[id_ % chunk_size];
}

}  // namespace ttrt::dispatch
