// ttc_server PROGRAM [ARGUMENT]...: runs a test program, and for every command line that one hands over by `ttc_client`
// a child of this process, which has LibTorch and all operators loaded already: a child costs some milliseconds, a
// start of `ttc` two tenths of a second of processor time. What runs in the child is what `ttc` runs: its own streams,
// folder, environment, signals and exit code.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/served/wire.h"
#include "tools/program.h"
#include "torch/cpu_op.h"

namespace {

using Descriptors = std::array<int, served::descriptors>;

struct Running {
  int client;  // the connection
  pid_t process;
  int ended;  // its process descriptor, readable when it has ended
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "ttc server: %s: %s\n", what, std::strerror(errno));
  std::exit(125);
}

int descriptor_of(pid_t process) { return static_cast<int>(syscall(SYS_pidfd_open, process, 0)); }

int listening(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) fail("the scratch folder's name is too long");
  std::copy(path.begin(), path.end(), address.sun_path);
  const int at = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (at < 0 || bind(at, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(at, 64) != 0)
    fail(path.c_str());
  return at;
}

// False where the client went away.
bool receive(int client, served::Request& request, Descriptors& handed) {
  iovec data{.iov_base = &request, .iov_len = sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof handed)];
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  if (recvmsg(client, &message, MSG_CMSG_CLOEXEC) != sizeof request) return false;
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_len != CMSG_LEN(sizeof handed)) return false;
  std::memcpy(handed.data(), CMSG_DATA(rights), sizeof handed);
  return true;
}

// In the child: everything that a process gets from the one that starts it.
[[noreturn]] void run(const Descriptors& handed, std::string& texts, std::size_t arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (fchdir(handed[3]) != 0) fail("the client's folder");
  for (int i = 0; i < 3; ++i) dup2(handed[i], i);
  syscall(SYS_close_range, 3U, ~0U, 0U);
  std::vector<char*> all;
  for (std::size_t at = 0; at < texts.size(); at = texts.find('\0', at) + 1) all.push_back(&texts[at]);
  clearenv();
  for (std::size_t i = arguments; i < all.size(); ++i) putenv(all[i]);
  if (const char* threads = std::getenv("OMP_NUM_THREADS")) ttrt::set_threads(std::atoi(threads));  // read when loaded
  all.resize(arguments);
  all.push_back(nullptr);
  ttc::run_program(static_cast<int>(arguments), all.data());
}

void serve(int client, std::vector<Running>& running) {
  served::Request request{};
  Descriptors handed{};
  if (!receive(client, request, handed)) {
    close(client);
    return;
  }
  std::string texts(request.bytes, '\0');
  const bool whole = served::receive_all(client, texts.data(), texts.size());
  const pid_t process = whole ? fork() : -1;
  if (process == 0) run(handed, texts, request.arguments);
  for (const int one : handed) close(one);
  if (process < 0 || !served::send_all(client, &process, sizeof process)) {
    if (process > 0) kill(process, SIGKILL), waitpid(process, nullptr, 0);
    close(client);
    return;
  }
  running.push_back({.client = client, .process = process, .ended = descriptor_of(process)});
}

void finish(const Running& one) {
  rusage usage{};
  served::Ended ended{};
  wait4(one.process, &ended.status, 0, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  ended.max_rss = std::int64_t{usage.ru_maxrss} * 1024;
  ended.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  served::send_all(one.client, &ended, sizeof ended);
  close(one.client);
  close(one.ended);
}

// Until the test program ends; its exit code.
int serve_all(int socket, pid_t program) {
  std::vector<Running> running;
  const int over = descriptor_of(program);
  while (true) {
    std::vector<pollfd> events{{.fd = over, .events = POLLIN, .revents = 0},
                               {.fd = socket, .events = POLLIN, .revents = 0}};
    for (const Running& one : running) {
      events.push_back({.fd = one.ended, .events = POLLIN, .revents = 0});
      events.push_back({.fd = one.client, .events = POLLIN, .revents = 0});  // it says no more: readable is gone
    }
    if (poll(events.data(), events.size(), -1) < 0 && errno != EINTR) fail("poll");
    for (std::size_t i = running.size(); i-- > 0;) {
      if (events[2 + 2 * i + 1].revents != 0 && events[2 + 2 * i].revents == 0) kill(running[i].process, SIGKILL);
      if (events[2 + 2 * i].revents == 0) continue;
      finish(running[i]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (events[1].revents != 0) serve(accept4(socket, nullptr, nullptr, SOCK_CLOEXEC), running);
    if (events[0].revents == 0) continue;
    int status = 0;
    waitpid(program, &status, 0);
    for (const Running& one : running) kill(one.process, SIGKILL), finish(one);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ttc_server PROGRAM [ARGUMENT]...\n");
    return 2;
  }
  // Who started the tests in the background may have had these ignored (nohup, a shell's &), which processes inherit.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(number, SIG_DFL);
  std::string folder = (std::filesystem::temp_directory_path() / "ttc-server-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) fail("a scratch folder");
  const std::string path = folder + "/socket";
  const int socket = listening(path);
  const pid_t program = fork();
  if (program < 0) fail("fork");
  if (program == 0) {
    setenv(served::socket_variable, path.c_str(), 1);
    execvp(argv[1], argv + 1);
    fail(argv[1]);
  }
  const int code = serve_all(socket, program);
  std::filesystem::remove_all(folder);
  std::fflush(nullptr);
  std::_Exit(code);
}
