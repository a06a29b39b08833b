// Writes zip archives as PyTorch lays them out: entries stored, each one's data at a multiple of 64 bytes, so that
// weights can be used where the file is mapped. The same entries give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "support/atomic_file.h"

namespace ttc {

class ZipWriter {
 public:
  // An entry of the archive. Its place follows from the names and sizes of those before it, so that contents may come
  // in any order.
  struct Entry {
    std::string name;
    std::uint64_t size = 0, header = 0, offset = 0;  // where its header and its data are
    std::uint32_t crc = 0;
  };

  // Writes to `file` from its position on; it must outlive this, and committing it is the caller's part.
  explicit ZipWriter(AtomicFile& file) : file_(file), end_(file.position()) {}
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  // Throws ttc::Error (usage) where the disk fails, as fill and finish do.
  void add(const std::string& name, std::span<const std::byte> content);
  void add(const std::string& name, std::string_view content);
  void add(const std::string& name, std::span<const std::string> pieces);  // one after another
  // The next entry, which fill() writes before finish() is called. The reference stays good.
  Entry& reserve(const std::string& name, std::uint64_t size);
  // From any thread, for different entries at a time.
  void fill(Entry& entry, std::span<const std::byte> content);
  void finish();  // the directory; nothing can be added after it

  static constexpr std::size_t alignment = 64;

 private:
  void write_header(const Entry& entry);
  AtomicFile& file_;
  std::deque<Entry> entries_;
  std::uint64_t end_ = 0;  // of the last entry
};

}  // namespace ttc
