// What the programs of this folder check with.
#pragma once

#include <ttrt/ttrt.h>

#include <cstdio>

inline int failed_lines = 0;

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failed_lines;                                                      \
    }                                                                      \
  } while (false)

// The error of f(), or one of Kind::bug that says there was none.
template <typename F>
ttrt::Error error_of(F&& f) {
  try {
    f();
  } catch (const ttrt::Error& error) {
    return error;
  }
  return {ttrt::Error::Kind::bug, "no error"};
}

template <typename F>
bool is_usage(F&& f) {
  return error_of(f).kind() == ttrt::Error::Kind::usage;
}
