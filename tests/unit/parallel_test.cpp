// The pool of threads behind parallel_for(); runs with the thread sanitizer.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "device/parallel.h"
#include "tests/catch.h"

using namespace ttrt;

namespace {

class Threads {
 public:
  explicit Threads(int threads) : before_(parallel_threads()) { set_parallel_threads(threads); }
  ~Threads() { set_parallel_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// Whether each index came once.
bool covers(std::int64_t count) {
  std::vector<int> seen(static_cast<std::size_t>(count), 0);
  parallel_for(count, true, [&](std::int64_t i) { ++seen[static_cast<std::size_t>(i)]; });
  return std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; });
}

// Waits for what other threads do; false where they do nothing for a long time.
template <typename Condition>
bool comes_true(const Condition& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

TEST_CASE("every index of a loop comes once, with any number of threads") {
  for (const int threads : {1, 2, 3, 8}) {
    const Threads scoped(threads);
    CHECK(parallel_threads() == threads);
    for (const std::int64_t count : {0, 1, 2, 3, 7, 64, 1000, 12345}) CHECK(covers(count));
    for (int again = 0; again < 2000; ++again) REQUIRE(covers(5));
  }
}

TEST_CASE("a thread that is held up holds no more than its piece") {
  const Threads scoped(2);
  constexpr std::int64_t count = 64;
  std::atomic<int> others{0};
  std::atomic<bool> came{false};
  parallel_for(count, true, [&](std::int64_t i) {
    if (i > 0) return static_cast<void>(++others);
    // The thread has the first piece, an eighth.
    came = comes_true([&] { return others >= count - count / 8; });
  });
  CHECK(came);
  CHECK(others == count - 1);
}

TEST_CASE("loops that are not worth it and loops inside loops stay on their thread") {
  const Threads scoped(4);
  const auto ids_of = [](std::int64_t count, bool worth_it) {
    std::set<std::thread::id> ids;  // not guarded: by one thread alone
    parallel_for(count, worth_it, [&](std::int64_t) { ids.insert(std::this_thread::get_id()); });
    return ids;
  };
  CHECK(ids_of(100, false) == std::set{std::this_thread::get_id()});
  std::atomic<int> right{0};
  parallel_for(16, true, [&](std::int64_t) { right += ids_of(100, true) == std::set{std::this_thread::get_id()}; });
  CHECK(right == 16);
}

TEST_CASE("several callers at a time") {
  const Threads scoped(3);
  std::atomic<int> failures{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 12; ++caller)  // more than the pool has loops for
    callers.emplace_back([&] {
      for (int again = 0; again < 300; ++again) failures += !covers(40);
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(failures == 0);
}

TEST_CASE("threads without work sleep, and wake for the next loop") {
  const Threads scoped(4);
  for (int again = 0; again < 3; ++again) {
    CHECK(covers(1000));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double before = processor_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(processor_seconds() - before < 0.05);
  }
}

TEST_CASE("a child of the process has threads of its own") {
  const Threads scoped(2);
  CHECK(covers(1000));
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> others{0};
    std::atomic<bool> came{false};
    parallel_for(2, true, [&](std::int64_t i) {  // needs two threads
      if (i == 1) return static_cast<void>(++others);
      came = comes_true([&] { return others == 1; });
    });
    _exit(came && parallel_threads() == 2 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("threads of another library end before the next loop, once") {
  static int rests = 0;
  const Threads scoped(2);
  rest_before_loops([] { ++rests; });
  CHECK(covers(1));
  CHECK(rests == 0);
  CHECK(covers(2));
  CHECK(covers(2));
  CHECK(rests == 1);
}
