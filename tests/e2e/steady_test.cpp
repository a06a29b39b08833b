// What a run costs beside its kernels once a program is in its steady state: nothing is allocated or locked for a node.
// Two chains of the same operator, one longer than the other, must allocate and lock as often.
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "device/parallel.h"
#include "tests/catch.h"
#include "tests/e2e/rewrites.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> allocations{0}, locks{0};

void note(std::atomic<std::int64_t>& count) {
  if (counting.load(std::memory_order_relaxed)) count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// The C library's functions, counted: all others of this process call these.
extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT
void* __libc_realloc(void*, std::size_t);         // NOLINT
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT

void* malloc(std::size_t size) {
  note(allocations);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  note(allocations);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  note(allocations);
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  note(allocations);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  note(allocations);
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static std::atomic<Lock> next{nullptr};
  Lock lock = next.load(std::memory_order_relaxed);
  if (lock == nullptr) next = lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  note(locks);
  return lock(mutex);
}
}

namespace {

using namespace rewrites;

// One link of a chain: from IN, f32[2, 64, 64], to OUT, of the same sizes; N makes other names its own.
struct Link {
  const char* name;
  const char* text;
};

const Link links[] = {
    {"add", "%OUT: f32[2, 64, 64] = aten.add.Tensor(%IN, %x)"},
    {"add a number", "%OUT: f32[2, 64, 64] = aten.add.Tensor(%IN, 0.5)"},
    {"multiply by a row", "%OUT: f32[2, 64, 64] = aten.mul.Tensor(%IN, $scale)"},
    {"gelu", "%OUT: f32[2, 64, 64] = aten.gelu.default(%IN)"},
    {"tanh", "%OUT: f32[2, 64, 64] = aten.tanh.default(%IN)"},
    {"softmax", "%OUT: f32[2, 64, 64] = aten.softmax.int(%IN, -1)"},
    {"layer_norm",
     "%OUT: f32[2, 64, 64] = aten.layer_norm.default(%IN, normalized_shape=[64], weight=$scale, bias=$shift)"},
    {"linear", "%OUT: f32[2, 64, 64] = aten.linear.default(%IN, $w, $shift)"},
    {"matmul", "%OUT: f32[2, 64, 64] = aten.matmul.default(%IN, %x)"},
    {"transpose", R"(%aN: f32[2, 64, 64] = aten.transpose.int(%IN, 1, 2)
  %OUT: f32[2, 64, 64] = aten.relu.default(%aN))"},
    {"slices and cat", R"(%aN: f32[2, 64, 24] = aten.slice.Tensor(%IN, dim=2, start=0, end=24)
  %bN: f32[2, 64, 40] = aten.slice.Tensor(%IN, dim=2, start=24, end=64)
  %OUT: f32[2, 64, 64] = aten.cat.default([%bN, %aN], dim=2))"},
    {"mean and sub", R"(%aN: f32[2, 64, 1] = aten.mean.dim(%IN, dim=[2], keepdim=true)
  %OUT: f32[2, 64, 64] = aten.sub.Tensor(%IN, %aN))"},
    {"sum", R"(%aN: f32[2, 1, 64] = aten.sum.dim_IntList(%IN, dim=[1], keepdim=true)
  %OUT: f32[2, 64, 64] = aten.add.Tensor(%IN, %aN))"},
    {"where", R"(%aN: bool[2, 64, 64] = aten.gt.Scalar(%IN, 0.25)
  %OUT: f32[2, 64, 64] = aten.where.self(%aN, %IN, %x))"},
    {"heads and attention", R"(%aN: f32[2, 64, 4, 16] = aten.view.default(%IN, [2, 64, 4, 16])
  %bN: f32[2, 4, 64, 16] = aten.permute.default(%aN, [0, 2, 1, 3])
  %cN: f32[2, 4, 64, 16] = aten.scaled_dot_product_attention.default(%bN, %bN, %bN)
  %dN: f32[2, 64, 4, 16] = aten.permute.default(%cN, [0, 2, 1, 3])
  %OUT: f32[2, 64, 64] = aten.reshape.default(%dN, [2, 64, 64]))"},
    {"convolution", R"(%aN: f32[2, 1, 64, 64] = aten.unsqueeze.default(%IN, 1)
  %bN: f32[2, 1, 64, 64] = aten.conv2d.default(%aN, $kernel, none, [1, 1], [1, 1])
  %OUT: f32[2, 64, 64] = aten.squeeze.dim(%bN, 1))"},
    {"cumsum", "%OUT: f32[2, 64, 64] = aten.cumsum.default(%IN, 2)"},
    {"log_softmax", "%OUT: f32[2, 64, 64] = aten.log_softmax.int(%IN, -1)"},
    {"group_norm", "%OUT: f32[2, 64, 64] = aten.group_norm.default(%IN, 4, $scale, $shift)"},
    {"rms_norm", "%OUT: f32[2, 64, 64] = aten.rms_norm.default(%IN, [64], $scale)"},
    {"prelu", "%OUT: f32[2, 64, 64] = aten.prelu.default(%IN, $scale)"},
    {"pad", R"(%aN: f32[2, 64, 66] = aten.constant_pad_nd.default(%IN, [1, 1], 0.5)
  %OUT: f32[2, 64, 64] = aten.slice.Tensor(%aN, dim=2, start=0, end=64))"},
    {"max_pool", R"(%aN: f32[2, 1, 64, 64] = aten.unsqueeze.default(%IN, 1)
  %bN: f32[2, 1, 64, 64] = aten.max_pool2d.default(%aN, [3, 3], [1, 1], [1, 1])
  %OUT: f32[2, 64, 64] = aten.squeeze.dim(%bN, 1))"},
    {"avg_pool", R"(%aN: f32[2, 1, 64, 64] = aten.unsqueeze.default(%IN, 1)
  %bN: f32[2, 1, 64, 64] = aten.avg_pool2d.default(%aN, [3, 3], [1, 1], [1, 1])
  %OUT: f32[2, 64, 64] = aten.squeeze.dim(%bN, 1))"},
    {"depthwise convolution", R"(%aN: f32[1, 2, 64, 64] = aten.unsqueeze.default(%IN, 0)
  %bN: f32[1, 2, 64, 64] = aten.conv2d.default(%aN, $kernels, none, [1, 1], [1, 1], [1, 1], 2)
  %OUT: f32[2, 64, 64] = aten.squeeze.dim(%bN, 0))"},
    {"upsample", R"(%aN: f32[1, 2, 64, 64] = aten.unsqueeze.default(%IN, 0)
  %bN: f32[1, 2, 128, 128] = aten.upsample_nearest2d.vec(%aN, none, [2.0, 2.0])
  %cN: f32[1, 2, 64, 64] = aten.avg_pool2d.default(%bN, [2, 2], [2, 2])
  %OUT: f32[2, 64, 64] = aten.squeeze.dim(%cN, 0))"},
    {"argmax and rows by index", R"(%aN: i64[2, 64] = aten.argmax.default(%IN, 2)
  %OUT: f32[2, 64, 64] = aten.embedding.default($w, %aN))"},
    {"gather", R"(%aN: i64[2, 64, 1] = aten.argmax.default(%IN, 2, true)
  %bN: i64[2, 64, 64] = aten.expand.default(%aN, [2, 64, 64])
  %OUT: f32[2, 64, 64] = aten.gather.default(%IN, 2, %bN))"},
    {"index", R"(%aN: i64[2, 64] = aten.argmax.default(%IN, 2)
  %bN: f32[2, 2, 64, 64] = aten.index.Tensor(%IN, [none, %aN])
  %OUT: f32[2, 64, 64] = aten.select.int(%bN, 1, 1))"},
    {"permute and reshape", R"(%aN: f32[2, 16, 4, 64] = aten.view.default(%IN, [2, 16, 4, 64])
  %bN: f32[4, 2, 16, 64] = aten.permute.default(%aN, [2, 0, 1, 3])
  %cN: f32[4, 16, 2, 64] = aten.view.default(%bN, [4, 16, 2, 64])
  %dN: f32[4, 64, 2, 16] = aten.permute.default(%cN, [0, 3, 2, 1])
  %OUT: f32[2, 64, 64] = aten.reshape.default(%dN, [2, 64, 64]))"},
    {"amax and amin", R"(%aN: f32[2, 64, 1] = aten.amax.default(%IN, [2], true)
  %bN: f32[2, 64, 1] = aten.amin.default(%IN, [2], true)
  %cN: f32[2, 64, 64] = aten.sub.Tensor(%IN, %aN)
  %OUT: f32[2, 64, 64] = aten.add.Tensor(%cN, %bN))"},
    {"sort", R"(%aN: f32[2, 64, 64], %bN: i64[2, 64, 64] = aten.sort.default(%IN)
  %OUT: f32[2, 64, 64] = aten.relu.default(%aN))"},
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string chain(const Link& link, int length) {
  std::string text = R"(model {}
graph main(%x: f32[2, 64, 64] user, $w: f32[64, 64] parameter "w", $scale: f32[64] parameter "scale", $shift: f32[64] parameter "shift", $kernel: f32[1, 1, 3, 3] parameter "kernel", $kernels: f32[2, 1, 3, 3] parameter "kernels") {
)";
  for (int i = 0; i < length; ++i) {
    std::string node = replaced(link.text, "OUT", "y" + std::to_string(i));
    node = replaced(node, "IN", i == 0 ? "x" : "y" + std::to_string(i - 1));
    for (const char* own : {"a", "b", "c", "d"})
      node = replaced(node, "%" + std::string(own) + "N", "%" + std::string(own) + "_" + std::to_string(i));
    text += "  " + node + "\n";
  }
  return text + "  return %y" + std::to_string(length - 1) + "\n}\n";
}

struct Counts {
  std::int64_t allocations, locks;
  std::size_t nodes;
};

Counts of_a_run(const Link& link, int length) {
  Compiled made = compiled(chain(link, length));
  INFO(made.result.summary());
  CHECK(made.result.nodes.device == made.result.nodes.total);
  const std::vector<RtValue> inputs{random_floats({2, 64, 64}, 1)};
  for (int warm = 0; warm < 4; ++warm) made.executor->run(inputs);
  // A thread of the pool that comes for the first time makes its own scratch memory, whenever that is.
  Counts least{.allocations = INT64_MAX, .locks = INT64_MAX, .nodes = made.result.nodes.device};
  for (int batch = 0; batch < 8; ++batch) {
    allocations = locks = 0;
    counting = true;
    for (int run = 0; run < 3; ++run) made.executor->run(inputs);
    counting = false;
    least.allocations = std::min<std::int64_t>(least.allocations, allocations);
    least.locks = std::min<std::int64_t>(least.locks, locks);
  }
  return least;
}

}  // namespace

TEST_CASE("the counters see what is allocated and locked") {
  allocations = locks = 0;
  counting = true;
  std::free(std::malloc(100 + static_cast<std::size_t>(locks.load())));
  const std::string text(100 + static_cast<std::size_t>(locks.load()), 'x');
  std::mutex mutex;
  mutex.lock();
  counting = false;
  mutex.unlock();
  CHECK(text.size() == 100);
  CHECK(allocations == 2);
  CHECK(locks == 1);
}

TEST_CASE("a steady run allocates and locks nothing for a node") {
  for (const int threads : {1, 2}) {
    set_parallel_threads(threads);
    for (const Link& link : links) {
      const Counts few = of_a_run(link, 2), many = of_a_run(link, 8);
      INFO(link.name << ", " << threads << " threads");
      CHECK(many.nodes > few.nodes);
      CHECK(many.allocations == few.allocations);
      CHECK(many.locks == few.locks);
    }
  }
}
