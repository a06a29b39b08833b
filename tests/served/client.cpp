// Stands for `ttc` in tests: hands its command line, streams, folder and environment to the server that started the
// test (server.cpp) and ends as the process ends that ran them, by the same exit code or signal. Signals are passed on.
// TTC_USAGE names a file for what that process took: seconds of processor time and the largest number of bytes.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/served/wire.h"

extern char** environ;

namespace {

volatile sig_atomic_t process = 0, early = 0;

void pass_on(int number) {
  if (process > 0)
    kill(process, number);
  else
    early = number;
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "ttc client: %s: %s\n", what, std::strerror(errno));
  std::exit(125);
}

int connected() {
  const char* path = std::getenv(served::socket_variable);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) fail("TTC_SERVER names no socket");
  std::copy_n(path, std::strlen(path), address.sun_path);
  const int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (to < 0 || connect(to, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail(path);
  return to;
}

void send_request(int to, char** argv) {
  std::string texts;
  served::Request request{.bytes = 0, .arguments = 0};
  for (; *argv != nullptr; ++argv, ++request.arguments) texts += std::string(*argv) + '\0';
  for (char** one = environ; *one != nullptr; ++one) texts += std::string(*one) + '\0';
  request.bytes = texts.size();
  const int handed[served::descriptors] = {0, 1, 2, open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  iovec data{.iov_base = &request, .iov_len = sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof handed)] = {};
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET, rights->cmsg_type = SCM_RIGHTS, rights->cmsg_len = CMSG_LEN(sizeof handed);
  std::memcpy(CMSG_DATA(rights), handed, sizeof handed);
  if (sendmsg(to, &message, MSG_NOSIGNAL) != sizeof request || !served::send_all(to, texts.data(), texts.size()))
    fail("the request");
}

[[noreturn]] void end_as(int status) {
  if (!WIFSIGNALED(status)) std::_Exit(WEXITSTATUS(status));
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &no_core);
  std::signal(WTERMSIG(status), SIG_DFL);
  std::raise(WTERMSIG(status));
  std::_Exit(125);
}

}  // namespace

int main(int, char** argv) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(number, pass_on);
  const int to = connected();
  send_request(to, argv);
  std::int32_t started = 0;
  served::Ended ended{};
  if (!served::receive_all(to, &started, sizeof started)) fail("no answer");
  process = started;
  if (early != 0) kill(process, early);
  if (!served::receive_all(to, &ended, sizeof ended)) fail("no end");
  if (const char* usage = std::getenv("TTC_USAGE"))
    if (std::FILE* file = std::fopen(usage, "w")) {
      std::fprintf(file, "%.6f %lld\n", ended.seconds, static_cast<long long>(ended.max_rss));
      std::fclose(file);
    }
  end_as(ended.status);
}
