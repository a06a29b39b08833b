// The index of a zip archive over a mapped file, and its records.
//
// PyTorch's archives keep everything below one root directory, whose name means nothing: names here are without it.
// Archives come from anywhere, so each offset, size, count and name is checked before use.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/error.h"
#include "support/mapped_file.h"

namespace ttc {

struct ZipEntry {
  std::string name;               // below the root directory
  std::uint64_t directory = 0;    // of the last byte of its name there, from the start of the file
  std::uint64_t offset = 0;       // of the data
  std::uint64_t size = 0;         // of the content
  std::uint64_t packed_size = 0;  // in the file
  bool stored = true;             // not compressed
  std::uint32_t crc = 0;
};

class ZipArchive {
 public:
  // Throws ttc::Error (bad_file): not a zip, truncated, broken directory, a name twice or one that leaves the archive.
  explicit ZipArchive(std::shared_ptr<const MappedFile> file);

  const std::string& path() const { return file_->path(); }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const std::string& root() const { return root_; }                  // "" where entries share none
  const std::vector<ZipEntry>& entries() const { return entries_; }  // in the directory's order
  const ZipEntry* find(std::string_view name) const;                 // nullptr where there is none

  // The content, its CRC checked. Throws ttc::Error (bad_file).
  std::string read(const ZipEntry& entry) const;
  // Checks the CRC of every entry, for readers that do not. Throws ttc::Error (bad_file).
  void check_contents() const;
  // A stored entry's bytes in the mapping, unchecked by CRC.
  std::span<const std::byte> view(const ZipEntry& entry) const;

 private:
  void read_directory();
  ZipEntry read_record(std::uint64_t position) const;
  Error broken(const std::string& what) const;
  Error damaged(const ZipEntry& entry, const char* why) const;
  void check_extents() const;
  void strip_root();
  std::shared_ptr<const MappedFile> file_;
  std::string root_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

}  // namespace ttc
