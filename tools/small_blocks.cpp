// Small blocks of memory for the process of the tool. A graph is strings, lists and tree nodes of a few sizes, made and
// dropped by the million; the C library's general allocator takes half of the time of compiling one (it sorts and
// merges blocks between passes). Here a block goes onto a list of its size and comes from there: nothing is merged or
// given back. Larger blocks are the C library's.
#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

// The sanitizers and their reports need an allocator of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

constexpr std::size_t step = 16, largest = 512, sizes = largest / step;
constexpr std::size_t page_bytes = std::size_t{1} << 15, region_bytes = std::size_t{1} << 35;

// What a free block holds. It has room for both.
struct Block {
  Block* next;        // of its list
  Block* next_batch;  // of the first block of a batch that no thread has
};

// Of one thread and size: free blocks, and the rest of a page.
struct List {
  Block* head;
  std::size_t count;
  char *rest, *end;
};

// Where all pages lie, so that an address says whose it is, and its page how large; 0 bytes where it cannot be had.
struct Region {
  std::mutex mutex;
  char* begin = nullptr;
  std::size_t bytes = 0, used = 0;
  std::uint8_t* size_of_page = nullptr;
  Block* batches[sizes] = {};
  bool tried = false;
};
constinit Region region;
constinit thread_local List lists[sizes] = {};

constexpr std::size_t batch_of(std::size_t size) { return page_bytes / ((size + 1) * step); }

void reserve_region() {
  region.tried = true;
  const auto map = [](std::size_t bytes) {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  };
  void* const sizes_of_pages = map(region_bytes / page_bytes);
  void* const begin = map(region_bytes);
  if (sizes_of_pages == MAP_FAILED || begin == MAP_FAILED) return;
  region.size_of_page = static_cast<std::uint8_t*>(sizes_of_pages);
  region.begin = static_cast<char*>(begin);
  region.bytes = region_bytes;
  // A child process goes on with the one thread that made it: none of the others may hold the mutex then.
  ::pthread_atfork([] { region.mutex.lock(); }, [] { region.mutex.unlock(); }, [] { region.mutex.unlock(); });
}

// A thread may free what others allocate, for as long as it runs: it keeps no more than a batch.
void give_away(std::size_t size) {
  List& list = lists[size];
  if (list.head == nullptr) return;
  const std::lock_guard lock(region.mutex);
  list.head->next_batch = region.batches[size];
  region.batches[size] = list.head;
  list.head = nullptr;
  list.count = 0;
}

struct AtThreadEnd {
  bool begun = false;
  ~AtThreadEnd() {
    for (std::size_t size = 0; size < sizes; ++size) give_away(size);
  }
};
thread_local AtThreadEnd at_thread_end;

// From a batch or a new page; nullptr where there is neither.
[[gnu::noinline]] void* refilled(std::size_t size) {
  at_thread_end.begun = true;  // so that it is there
  List& list = lists[size];
  const std::lock_guard lock(region.mutex);
  if (!region.tried) reserve_region();
  if (Block* const block = region.batches[size]) {
    region.batches[size] = block->next_batch;
    list.head = block->next;
    list.count = batch_of(size) - 1;  // or fewer
    return block;
  }
  if (region.used == region.bytes) return nullptr;
  char* const page = region.begin + region.used;
  region.size_of_page[region.used / page_bytes] = static_cast<std::uint8_t>(size);
  region.used += page_bytes;
  list.rest = page + (size + 1) * step;
  list.end = page + batch_of(size) * (size + 1) * step;
  return page;
}

void* general(std::size_t bytes) {
  while (true) {
    if (void* const block = std::malloc(bytes)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (bytes > largest) return general(bytes);
  const std::size_t size = bytes == 0 ? 0 : (bytes - 1) / step;
  List& list = lists[size];
  if (Block* const block = list.head) {
    list.head = block->next;
    --list.count;
    return block;
  }
  if (list.rest != list.end) {
    void* const block = list.rest;
    list.rest += (size + 1) * step;
    return block;
  }
  void* const block = refilled(size);
  return block != nullptr ? block : general(bytes == 0 ? 1 : bytes);
}

void operator delete(void* block) noexcept {
  const std::uintptr_t offset =
      reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(region.begin);
  if (offset >= region.bytes || block == nullptr) return std::free(block);
  const std::size_t size = region.size_of_page[offset / page_bytes];
  List& list = lists[size];
  list.head = ::new (block) Block{.next = list.head, .next_batch = nullptr};
  if (++list.count >= batch_of(size)) give_away(size);
}

void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
void operator delete[](void* block) noexcept { operator delete(block); }
void operator delete[](void* block, std::size_t) noexcept { operator delete(block); }

#endif
