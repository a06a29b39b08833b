// What a served command line (client.cpp) and the process that runs it (server.cpp) say to each other.
//
// The client sends Request with its standard streams and folder as descriptors, then the arguments and the environment,
// each text ended by a zero. The server answers with the process that runs them, and with Ended when it has.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace served {

inline constexpr const char* socket_variable = "TTC_SERVER";
inline constexpr int descriptors = 4;  // standard input, output and error, the current folder

struct Request {
  std::uint64_t bytes;      // of the texts
  std::uint64_t arguments;  // so many of the texts; the rest is the environment
};

struct Ended {
  std::int32_t status;   // as waitpid gives it
  std::int64_t max_rss;  // bytes
  double seconds;        // of processor time, user's and system's
};

// False where the other side is gone.
inline bool send_all(int to, const void* data, std::size_t size) {
  for (auto* at = static_cast<const char*>(data); size > 0;) {
    const ssize_t n = send(to, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, size -= static_cast<std::size_t>(n);
  }
  return true;
}

inline bool receive_all(int from, void* data, std::size_t size) {
  for (auto* at = static_cast<char*>(data); size > 0;) {
    const ssize_t n = recv(from, at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, size -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace served
