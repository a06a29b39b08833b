// The child writes 'r' and the text, or 'x' and what an exception said, to a pipe and ends; this process reads until
// the pipe is closed or the time is over.
#include "child.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>

#include "support/error.h"

namespace ttc {
namespace {

[[noreturn]] void run_child(const std::function<std::string()>& function, int to) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody waits for it once the parent is gone
  std::string message;
  try {
    message = 'r' + function();
  } catch (const std::bad_alloc&) {
    message = "xout of memory";
  } catch (const std::exception& error) {
    message = std::string("x") + error.what();
  } catch (...) {
    message = "xan exception without a text";
  }
  std::cout.flush();
  std::fflush(nullptr);
  for (std::size_t at = 0; at < message.size();) {
    const ssize_t n = write(to, message.data() + at, message.size() - at);
    if (n < 0 && errno != EINTR) break;
    if (n > 0) at += static_cast<std::size_t>(n);
  }
  _exit(0);  // nothing of the parent's is torn down here
}

// False where the time is over.
bool read_all(int from, double seconds, std::string& out) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  char piece[4096];
  while (true) {
    int wait_ms = -1;
    if (seconds > 0) {
      const double left = seconds - std::chrono::duration<double>(Clock::now() - start).count();
      if (left <= 0) return false;
      wait_ms = static_cast<int>(std::min(left, 1e6) * 1000) + 1;
    }
    pollfd one{.fd = from, .events = POLLIN, .revents = 0};
    const int ready = poll(&one, 1, wait_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) continue;
    const ssize_t n = read(from, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    out.append(piece, static_cast<std::size_t>(n));
  }
}

std::string death(int status) {
  if (WIFSIGNALED(status))
    return "the process was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
           ")";
  return "the process ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

ChildResult run_in_child(const std::function<std::string()>& function, double seconds) {
  std::cout.flush();
  std::fflush(nullptr);
  int ends[2];
  if (pipe(ends) != 0) throw Error(Exit::bug, "", std::string("no pipe: ") + std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) throw Error(Exit::bug, "", std::string("no child process: ") + std::strerror(errno));
  if (child == 0) {
    close(ends[0]);
    run_child(function, ends[1]);
  }
  close(ends[1]);
  std::string message;
  const bool in_time = read_all(ends[0], seconds, message);
  close(ends[0]);
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) return {.text = {}, .problem = "it took longer than the time limit"};
  if (message.empty()) return {.text = {}, .problem = death(status)};
  if (message[0] == 'x') return {.text = {}, .problem = message.substr(1)};
  return {.text = message.substr(1), .problem = {}};
}

}  // namespace ttc
