// The threads that device kernels share, and loops over them.
//
// There is one small pool in the process. A loop is cut into a part for its caller and each of the pool's threads, and
// these into pieces that they take one by one, large ones first, so that a core which somebody else uses holds up
// little: whoever is done with its own part takes pieces of others', and the caller does all of them where nobody
// comes. Threads without work look for it for some microseconds and then sleep. Nothing is allocated or locked for a
// loop.
//
// What a loop computes must not depend on who takes which piece: each index writes its own results.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ttrt {

// Threads that loops use, their caller among them. At first as many as the first number of OMP_NUM_THREADS says, else
// as the process has processors.
int parallel_threads();
void set_parallel_threads(int threads);  // at least 1

// Another library ran here that may have threads of its own, waiting actively for more to do on the cores that this
// thread's next loop needs: before that, `rest` is called, here.
void rest_before_loops(void (*rest)());

namespace detail {
using PieceOfLoop = void (*)(const void* body, std::int64_t first, std::int64_t last) noexcept;
// On the calling thread alone inside another loop and with one thread.
void run_loop(std::int64_t count, PieceOfLoop piece, const void* body) noexcept;
}  // namespace detail

// body(first, last) for pieces of [0, count), as parallel_for() below.
template <typename Body>
void parallel_ranges(std::int64_t count, bool worth_it, const Body& body) {
  if (!worth_it || count < 2) return body(std::int64_t{0}, count);
  const auto piece = [](const void* of, std::int64_t first, std::int64_t last) noexcept {
    (*static_cast<const Body*>(of))(first, last);
  };
  detail::run_loop(count, piece, &body);
}

// body(i) for i in [0, count), in any order; on the calling thread alone unless that is worth a hand-over. body must
// not throw.
template <typename Body>
void parallel_for(std::int64_t count, bool worth_it, const Body& body) {
  parallel_ranges(count, worth_it, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) body(i);
  });
}

// Between ranges that don't overlap. Several threads wait for more memory at a time than one.
void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes);

}  // namespace ttrt
