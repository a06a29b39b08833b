// What the programs of this folder check with.
#pragma once

#include <ttrt/ttrt.h>

#include <cstdio>
#include <string>

inline int failed_lines = 0;

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failed_lines;                                                      \
    }                                                                      \
  } while (false)

// Words of the command line, or of the inside, which the library's users have not.
inline bool of_command_line(const std::string& text) {
  for (const char* word : {" --", "(--", "ttc ops", "ttc dispatchers", "ttc run", "ttc comp", "close_device",
                           "initialize_device", "set_default_device"})
    if (text.find(word) != std::string::npos || text.starts_with("--")) return true;
  return false;
}

// The error of f(), or one of Kind::bug that says there was none.
template <typename F>
ttrt::Error error_of(F&& f) {
  try {
    f();
  } catch (const ttrt::Error& error) {
    for (const std::string& text : {std::string(error.what()), error.hint()}) {
      if (of_command_line(text)) std::fprintf(stderr, "%s\n", text.c_str());
      EXPECT(!of_command_line(text));
    }
    return error;
  }
  return {ttrt::Error::Kind::bug, "no error"};
}

template <typename F>
bool is_usage(F&& f) {
  return error_of(f).kind() == ttrt::Error::Kind::usage;
}
