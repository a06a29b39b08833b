// See file_watch.h.
#include "dispatch/file_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

namespace ttrt::dispatch {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
using std::chrono::steady_clock;

constexpr std::uint32_t complete_events = IN_CLOSE_WRITE | IN_MOVED_TO;
constexpr std::uint32_t all_events = complete_events | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_ATTRIB;
constexpr double shortest_interval = 0.001, longest_interval = 3600;

// What tells one state of a file from another, links followed.
struct Stamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = -1;  // -1: no file
  std::int64_t seconds = 0, nanoseconds = 0;
  bool operator==(const Stamp&) const = default;
};

Stamp stamp_of(const std::string& path) {
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) return {};
  return {.device = s.st_dev,
          .inode = s.st_ino,
          .size = s.st_size,
          .seconds = s.st_mtim.tv_sec,
          .nanoseconds = s.st_mtim.tv_nsec};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

bool inotify_available() { return Descriptor(inotify_init1(IN_CLOEXEC)).get() >= 0; }

struct FileWatch::Impl {
  Impl(std::string watched, double interval_seconds, std::function<bool()> call)
      : path(std::move(watched)),
        changed(std::move(call)),
        interval(std::chrono::duration_cast<steady_clock::duration>(
            std::chrono::duration<double>(std::clamp(interval_seconds, shortest_interval, longest_interval)))),
        stop(eventfd(0, EFD_CLOEXEC)),
        events(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    const std::filesystem::path file(path);
    name = file.filename().string();
    const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
    if (events.get() >= 0) watching = inotify_add_watch(events.get(), folder.c_str(), all_events) >= 0;
    seen = stamp_of(path);
  }

  void ask_to_stop() {
    const std::uint64_t one = 1;
    while (write(stop.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  // The kinds of events about the file that are waiting; reading them consumes them.
  std::uint32_t drain() {
    alignas(inotify_event) std::array<char, 4096> buffer;
    std::uint32_t kinds = 0;
    for (;;) {
      const ssize_t n = read(events.get(), buffer.data(), buffer.size());
      if (n <= 0) return kinds;
      for (const char* at = buffer.data(); at < buffer.data() + n;) {
        inotify_event event;
        std::memcpy(&event, at, sizeof event);
        const char* const event_name = at + sizeof event;
        if ((event.mask & IN_Q_OVERFLOW) != 0) kinds |= IN_MODIFY;
        // A folder of links (a mounted configuration map) changes the link's target under another name.
        if (event.len > 0 && (name == event_name || stamp_of(path) != seen)) kinds |= event.mask;
        at = event_name + event.len;
      }
    }
  }

  void tell(SteadyTime now) {
    last_told = now;
    due.reset();
    seen = stamp_of(path);
    bool done = true;
    try {
      done = changed();
    } catch (...) {  // the callee reports its own errors
    }
    if (!done) due = steady_clock::now() + interval;
  }

  void run() {
    for (;;) {
      const SteadyTime now = steady_clock::now();
      const SteadyTime until = due.value_or(now + interval);
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count() + 1;
      std::array<pollfd, 2> fds{pollfd{.fd = stop.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = events.get(), .events = POLLIN, .revents = 0}};
      poll(fds.data(), watching ? 2 : 1, static_cast<int>(std::clamp<std::int64_t>(ms, 1, 3'600'000)));
      if (fds[0].revents != 0) return;
      look(watching ? drain() : 0);
    }
  }

  void look(std::uint32_t kinds) {
    const SteadyTime now = steady_clock::now();
    const bool complete = (kinds & complete_events) != 0;
    const bool different = kinds != 0 || stamp_of(path) != seen;
    if (due) {
      if (now >= *due) tell(now);
      return;
    }
    if (!different) return;
    if (complete && now - last_told >= interval)
      tell(now);
    else
      due = std::max(last_told + interval, watching && !complete ? now + interval : now);  // a writer may be at work
    if (due && now >= *due) tell(now);
  }

  const std::string path;
  const std::function<bool()> changed;
  const steady_clock::duration interval;
  const Descriptor stop, events;
  std::string name;
  bool watching = false;
  Stamp seen;
  SteadyTime last_told{};
  std::optional<SteadyTime> due;  // a change that is still to be told
  std::thread thread;
};

FileWatch::FileWatch(std::string path, double interval_seconds, std::function<bool()> changed)
    : impl_(std::make_shared<Impl>(std::move(path), interval_seconds, std::move(changed))) {
  impl_->thread = std::thread([impl = impl_] { impl->run(); });
}

FileWatch::~FileWatch() {
  impl_->ask_to_stop();
  if (impl_->thread.get_id() == std::this_thread::get_id())
    impl_->thread.detach();  // stopped from its own callback: it ends after that
  else
    impl_->thread.join();
}

bool FileWatch::uses_inotify() const { return impl_->watching; }

}  // namespace ttrt::dispatch
