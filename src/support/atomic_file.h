// A file that appears under its name complete or not at all: written to a temporary file in the same directory,
// synced, then renamed. Destroyed without commit(), it leaves nothing behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ttc {

class AtomicFile {
 public:
  // Throws ttc::Error (usage) where the directory cannot be written.
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  const std::string& path() const { return path_; }
  // Appends, or overwrites after seek(). Throws ttc::Error (usage) when the disk is full or fails.
  void write(const void* data, std::size_t size);
  void seek(std::uint64_t position);
  std::uint64_t position() const { return position_; }
  std::uint64_t size() const { return size_; }
  void commit();

 private:
  [[noreturn]] void fail(const char* doing) const;
  std::string path_, temporary_;
  int fd_ = -1;
  std::uint64_t position_ = 0, size_ = 0;
};

// Writes `content` to `path` atomically.
void write_file(const std::string& path, std::string_view content);

}  // namespace ttc
