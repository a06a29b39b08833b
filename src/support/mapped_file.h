// A file mapped read-only into memory, or one that is in memory already. The mapping lives as long as somebody holds
// the pointer, so views of weights stay valid after the reader is gone.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ttc {

class MappedFile {
 public:
  // `name` stands for the path in messages. Throws ttc::Error (bad_file) where the file cannot be opened, is no regular
  // file, or is empty.
  static std::shared_ptr<const MappedFile> open(const std::string& path) { return open(path, path); }
  static std::shared_ptr<const MappedFile> open(const std::string& path, std::string name);
  // The content of a file that is in memory already; `name` stands for its path.
  static std::shared_ptr<const MappedFile> hold(std::string name, std::vector<std::byte> content);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(std::string path, const std::byte* data, std::size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_;
  std::size_t size_;
  std::vector<std::byte> held_;  // instead of a mapping
};

// For programs whose user names inputs and outputs on one command line: from now on this process remembers which files
// it opens, and was_opened says whether one of them is `path`, by whatever name.
void remember_opened_files();
void note_opened(const std::string& path);  // for files that are read in other ways than by MappedFile
bool was_opened(const std::string& path);

}  // namespace ttc
