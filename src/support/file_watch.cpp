// A thread that compares what tells one state of a file from another, links followed.
#include "support/file_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <tuple>

namespace ttc {
namespace {

constexpr double shortest_interval = 0.001, longest_interval = 3600;
constexpr std::chrono::duration<double> settled{0.01};

// Device, inode, size and time; all 0 where there is no file.
using Stamp = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;

Stamp stamp_of(const std::string& path) {
  struct stat s{};
  if (stat(path.c_str(), &s) != 0) return {};
  return {s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
}

}  // namespace

struct FileWatch::State {
  void run() {
    std::unique_lock lock(mutex);
    while (!woken.wait_for(lock, interval, [this] { return stopped; })) {
      const Stamp now = stamp_of(path);
      if (now == seen) continue;
      // A writer may be at work: it is told when the file has stood still for a moment.
      if (woken.wait_for(lock, std::min(interval, settled), [this] { return stopped; })) return;
      if (stamp_of(path) != now) continue;
      lock.unlock();
      bool done = true;
      try {
        done = changed();
      } catch (...) {  // the callee reports its own errors
      }
      lock.lock();
      if (done) seen = now;
    }
  }

  std::string path;
  std::chrono::duration<double> interval;
  std::function<bool()> changed;
  Stamp seen;
  std::mutex mutex;
  std::condition_variable woken;
  bool stopped = false;
  std::thread thread;
};

FileWatch::FileWatch(std::string path, double interval_seconds, std::function<bool()> changed)
    : state_(std::make_shared<State>()) {
  state_->seen = stamp_of(path);
  state_->path = std::move(path);
  state_->interval = std::chrono::duration<double>(std::clamp(interval_seconds, shortest_interval, longest_interval));
  state_->changed = std::move(changed);
  state_->thread = std::thread([state = state_] { state->run(); });
}

FileWatch::~FileWatch() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopped = true;
  }
  state_->woken.notify_all();
  if (state_->thread.get_id() == std::this_thread::get_id())
    state_->thread.detach();  // stopped from its own callback: it ends after that
  else
    state_->thread.join();
}

}  // namespace ttc
