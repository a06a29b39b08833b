// The pool of threads behind parallel_for().
#include "device/parallel.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace ttrt {
namespace {

using detail::PieceOfLoop;

thread_local bool in_loop = false;
thread_local void (*foreign_threads)() = nullptr;

void rest() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

using Clock = std::chrono::steady_clock;

// How long a thread looks for what it waits for before it sleeps: longer than the steps between two loops of a model,
// much shorter than what the system gives a thread at a time.
constexpr std::chrono::microseconds spin_time{50};
// How long a thread works before it lets others have its core: less than the system gives it at a time.
constexpr std::chrono::microseconds turn_time{1000};

// std::atomic::wait gives the core away some times first, and whoever gave it away is not woken: it waits for its turn.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake(std::atomic<std::uint32_t>& word, std::uint32_t sleepers) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

// The share of its core that a thread of the pool takes. Where another process wants the core too, the system would
// take it away at any moment, from a thread in the midst of a piece as like as not, and the loop's caller would wait
// until the other process has had its turn. The thread rather gives the core away itself, between two pieces.
class Turn {
 public:
  void begin() { begun_ = Clock::now(); }
  bool over() const { return Clock::now() - begun_ >= turn_time; }
  void give_way() {
    sched_yield();  // at once back where nobody else is there
    begin();
  }

 private:
  Clock::time_point begun_ = Clock::now();
};

// Where a core is held by another process, the system likes to put the threads of this one together on the other: they
// would take turns there. The thread leaves to its loop's caller the core that this is on.
void keep_off(int core) {
  cpu_set_t usable;
  if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(getpid(), sizeof usable, &usable) != 0) return;
  CPU_CLR(static_cast<std::size_t>(core), &usable);
  if (CPU_COUNT(&usable) > 0) sched_setaffinity(0, sizeof usable, &usable);
}

template <typename Condition>
bool holds_soon(const Condition& condition) {
  for (int i = 0; i < 64; ++i) {
    if (condition()) return true;
    rest();
  }
  const auto until = Clock::now() + spin_time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (condition()) return true;
      rest();
    }
  } while (Clock::now() < until);
  return false;
}

// A loop that is run. The memory outlives all loops, so that a thread which comes late finds another loop at worst, or
// none.
class alignas(64) Loop {
 public:
  bool take() { return !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire); }

  void open(std::int64_t count, PieceOfLoop piece, const void* body, std::uint32_t helpers) {
    piece_ = piece, body_ = body;
    parts_ = std::min(helpers + 1, most_parts);
    for (std::uint32_t i = 0; i < parts_; ++i)
      left_[i].range.store(
          {static_cast<std::uint32_t>(count * i / parts_), static_cast<std::uint32_t>(count * (i + 1) / parts_)},
          std::memory_order_relaxed);
    core_.store(sched_getcpu(), std::memory_order_relaxed);
    state_.store(helpers * helper_limit | open_bit, std::memory_order_release);
  }

  // By a thread of the pool; false where it is not needed.
  bool help(Turn& turn) {
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    if ((state & open_bit) == 0) return false;
    if (const int core = core_.load(std::memory_order_relaxed); core == sched_getcpu()) keep_off(core);
    do {
      if ((state & open_bit) == 0 || inside(state) >= state / helper_limit) return false;
    } while (
        !state_.compare_exchange_weak(state, state + one_inside, std::memory_order_acquire, std::memory_order_relaxed));
    work(inside(state) + 1, &turn);
    state = state_.fetch_sub(one_inside, std::memory_order_acq_rel) - one_inside;
    if (inside(state) == 0 && (state & asleep_bit) != 0) wake(state_, 1);
    if (turn.over()) turn.give_way();
    return true;
  }

  // By the caller: returns when every piece is done.
  void finish() {
    work(0, nullptr);
    if (!holds_soon([&] { return inside(state_.load(std::memory_order_acquire)) == 0; })) {
      std::uint32_t state = state_.fetch_or(asleep_bit, std::memory_order_acquire) | asleep_bit;
      for (; inside(state) != 0; state = state_.load(std::memory_order_acquire)) sleep_while(state_, state);
    }
    taken_.store(false, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t open_bit = 1, asleep_bit = 2, one_inside = 4, helper_limit = 1U << 16;
  static std::uint32_t inside(std::uint32_t state) { return state % helper_limit / one_inside; }

  struct Range {
    std::uint32_t first, last;
    bool empty() const { return first == last; }
  };
  struct alignas(64) Part {
    std::atomic<Range> range{};
  };

  // From the front of a part for the thread whose it is, which goes on where it was, from the back for others.
  static Range take_of(Part& part, bool own) {
    Range left = part.range.load(std::memory_order_relaxed), mine{}, rest{};
    do {
      if (left.empty()) return left;
      const std::uint32_t size = std::max<std::uint32_t>((left.last - left.first) / 4, 1);
      mine = own ? Range{left.first, left.first + size} : Range{left.last - size, left.last};
      rest = own ? Range{mine.last, left.last} : Range{left.first, mine.first};
    } while (!part.range.compare_exchange_weak(left, rest, std::memory_order_relaxed));
    return mine;
  }

  // Of the thread's own part, else of one that others have not done yet.
  Range next(std::uint32_t own) {
    Range found{};
    for (std::uint32_t i = 0; i < parts_ && found.empty(); ++i)
      found = take_of(left_[(own + i) % parts_], i == 0 && own < parts_);
    return found;
  }

  // Pieces as long as there are any; nobody needs to come then.
  void work(std::uint32_t own, Turn* turn) {
    while (true) {
      const Range mine = next(own);
      if (mine.empty()) break;
      piece_(body_, mine.first, mine.last);
      if (turn != nullptr && turn->over()) return;
    }
    if ((state_.load(std::memory_order_relaxed) & open_bit) != 0)
      state_.fetch_and(~open_bit, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> state_{0};  // who may come, and how many are inside
  std::atomic<bool> taken_{false};
  std::atomic<int> core_{-1};  // of the caller
  PieceOfLoop piece_ = nullptr;
  const void* body_ = nullptr;
  // A thread has the same part of each loop, so that loops over the same rows find them where the loop before has left
  // them, in the core's own cache.
  static constexpr std::uint32_t most_parts = 16;
  std::uint32_t parts_ = 1;
  std::array<Part, most_parts> left_;
};

int default_threads() {
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  if (const int first = wanted != nullptr ? std::atoi(wanted) : 0; first > 0) return first;
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) == 0) return CPU_COUNT(&usable);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

class Pool {
 public:
  explicit Pool(int threads) { set_threads(threads); }

  int threads() const { return threads_.load(std::memory_order_relaxed); }
  void set_threads(int threads) { threads_.store(std::clamp(threads, 1, most_threads), std::memory_order_relaxed); }

  void run(std::int64_t count, PieceOfLoop piece, const void* body) {
    const auto helpers = static_cast<std::uint32_t>(std::min<std::int64_t>(threads(), count) - 1);
    const bool counted = count <= std::numeric_limits<std::uint32_t>::max();
    Loop* const loop = helpers == 0 || !counted ? nullptr : free_loop();
    if (loop == nullptr) return piece(body, 0, count);
    start(helpers);
    in_loop = true;
    loop->open(count, piece, body, helpers);
    changes_.fetch_add(1);
    if (sleepers_.load() > 0) wake(changes_, helpers);
    loop->finish();
    in_loop = false;
  }

 private:
  static constexpr int most_threads = 4096;

  Loop* free_loop() {
    for (Loop& loop : loops_)
      if (loop.take()) return &loop;
    return nullptr;
  }

  void start(std::uint32_t helpers) {
    if (started_.load(std::memory_order_relaxed) >= helpers) return;
    const std::lock_guard lock(mutex_);
    try {
      for (; started_.load(std::memory_order_relaxed) < helpers; started_.fetch_add(1, std::memory_order_relaxed))
        std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {  // fewer threads than were asked for do the same work
    }
  }

  [[noreturn]] void serve() {
    in_loop = true;
    Turn turn;
    while (true) {
      const std::uint32_t seen = changes_.load(std::memory_order_acquire);
      bool helped = false;
      for (Loop& loop : loops_) helped = loop.help(turn) || helped;
      if (helped || holds_soon([&] { return changes_.load(std::memory_order_relaxed) != seen; })) continue;
      sleepers_.fetch_add(1);
      sleep_while(changes_, seen);
      sleepers_.fetch_sub(1, std::memory_order_relaxed);
      turn.begin();
    }
  }

  std::atomic<int> threads_{1};
  std::atomic<std::uint32_t> started_{0};
  std::mutex mutex_;
  alignas(64) std::atomic<std::uint32_t> changes_{0};  // how many loops there were
  std::atomic<std::uint32_t> sleepers_{0};
  std::array<Loop, 8> loops_;  // those of several callers at a time
};

// Leaked on purpose: its threads sleep there until the process ends. A child of the process has none of them, and
// makes its own.
Pool& pool() {
  static std::atomic<Pool*> made = [] {
    pthread_atfork(nullptr, nullptr, [] { made.store(new Pool(made.load()->threads())); });
    return new Pool(default_threads());
  }();
  return *made.load(std::memory_order_relaxed);
}

}  // namespace

int parallel_threads() { return pool().threads(); }
void set_parallel_threads(int threads) { pool().set_threads(threads); }

void rest_before_loops(void (*rest)()) { foreign_threads = rest; }

void detail::run_loop(std::int64_t count, PieceOfLoop piece, const void* body) noexcept {
  if (in_loop) return piece(body, 0, count);
  if (foreign_threads != nullptr) std::exchange(foreign_threads, nullptr)();
  pool().run(count, piece, body);
}

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  constexpr std::int64_t piece = 1 << 15;
  parallel_for((bytes + piece - 1) / piece, true, [&](std::int64_t i) {
    std::memcpy(to + i * piece, from + i * piece, static_cast<std::size_t>(std::min(piece, bytes - i * piece)));
  });
}

}  // namespace ttrt
