// Watches one file by its path: writing in place, renaming another file over it, replacing the link it is, deleting it.
//
// A look at the file every interval; the last change is never missed, as what is told is the state of the file.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace ttc {

class FileWatch {
 public:
  // Calls `changed` from a thread of its own; what it throws is lost. False: it could not act now and is called again
  // after the interval.
  FileWatch(std::string path, double interval_seconds, std::function<bool()> changed);
  ~FileWatch();  // returns after the last call has, unless it is part of that call
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ttc
