// A file that appears under its name complete or not at all: written to a temporary file in the same directory, one
// without a name where the file system has such, synced, then renamed. Destroyed without commit(), it leaves nothing
// behind; where a kill left a temporary one, the next that is written into its folder removes it. Only a regular file
// is ever replaced, and only one that may be written; of a link, the file that it leads to. A folder appears in the
// same way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "support/progress.h"

namespace ttc {

class AtomicFile {
 public:
  // Throws ttc::Error (usage) where check_output does, and where the directory cannot be written. `expected`: about how
  // many bytes there will be, for those who watch; 0 where that is not known.
  explicit AtomicFile(std::string path, std::uint64_t expected = 0);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // As it was given.
  const std::string& path() const { return path_; }
  // Appends, or overwrites after seek(). Throws ttc::Error (usage) when the disk is full or fails.
  void write(const void* data, std::size_t size);
  // The same at a place of the caller's, from any thread; position() stays.
  void write_at(std::uint64_t position, const void* data, std::size_t size);
  void seek(std::uint64_t position);
  std::uint64_t position() const { return position_; }
  std::uint64_t size() const { return size_.load(); }
  void commit();

 private:
  [[noreturn]] void fail(const char* doing) const;
  bool open_nameless();
  void open_named();
  void give_name();
  std::string path_, target_, temporary_;  // temporary_: "" where it has no name
  Phase phase_;
  int fd_ = -1;
  std::uint64_t position_ = 0;
  std::atomic<std::uint64_t> size_ = 0;
};

// Writes `content` to `path` atomically.
void write_file(const std::string& path, std::string_view content);

class AtomicFolder {
 public:
  // Throws ttc::Error (usage) where the folder that it goes into cannot be written, or something else is there.
  explicit AtomicFolder(std::string path);
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  ~AtomicFolder();

  // Where its files are to be made.
  const std::string& unfinished() const { return temporary_; }
  // In the place of what is there, which goes. Throws ttc::Error (usage).
  void commit();

 private:
  [[noreturn]] void fail(const char* doing) const;
  std::string path_, target_, temporary_;
  int fd_ = -1;  // of temporary_
};

// Throws ttc::Error (usage) where an AtomicFile must not take the place of what is there: a folder, a device, a pipe, a
// file that may not be written, one that this process reads (mapped_file.h).
void check_output(const std::string& path);

// For programs: where SIGINT, SIGTERM, SIGHUP or SIGQUIT ends the process, unfinished files and folders go first.
void remove_unfinished_files_on_signals();

}  // namespace ttc
