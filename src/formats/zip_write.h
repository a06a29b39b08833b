// Writes zip archives as PyTorch lays them out: entries stored, each one's data at a multiple of 64 bytes, so that
// weights can be used where the file is mapped. The same entries give the same bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "support/atomic_file.h"

namespace ttc {

class ZipWriter {
 public:
  // Writes to `file`, which must outlive this; committing it is the caller's part.
  explicit ZipWriter(AtomicFile& file);
  ~ZipWriter();
  // Throws ttc::Error (usage) where the disk fails.
  void add(const std::string& name, std::span<const std::byte> content);
  void add(const std::string& name, std::string_view content);
  void finish();  // the directory; nothing can be added after it

  static constexpr std::size_t alignment = 64;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ttc
