// Watches one file by its path: writing in place, renaming another file over it, replacing the link it is, deleting it.
//
// inotify on the folder where the system has it, and always a look at the file every interval. A change that is
// complete (a closed or renamed file) is told at once; changes within one interval of the last telling are told
// together at its end, so the last one is never missed.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace ttrt::dispatch {

class FileWatch {
 public:
  // Calls `changed` from a thread of its own; what it throws is lost. False: it could not act now and is called again
  // after the interval.
  FileWatch(std::string path, double interval_seconds, std::function<bool()> changed);
  ~FileWatch();  // returns after the last call has, unless it is part of that call
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  bool uses_inotify() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Whether this system gives out inotify instances.
bool inotify_available();

}  // namespace ttrt::dispatch
