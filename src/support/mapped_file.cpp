// POSIX mmap behind MappedFile.
#include "support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "support/error.h"

namespace ttc {
namespace {

struct Opened {
  std::mutex mutex;
  bool remembered = false;
  std::set<std::pair<dev_t, ino_t>> files;
} opened;

}  // namespace

void remember_opened_files() {
  const std::lock_guard lock(opened.mutex);
  opened.remembered = true;
}

void note_opened(const std::string& path) {
  struct stat info{};
  const std::lock_guard lock(opened.mutex);
  if (opened.remembered && ::stat(path.c_str(), &info) == 0) opened.files.emplace(info.st_dev, info.st_ino);
}

bool was_opened(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return false;
  const std::lock_guard lock(opened.mutex);
  return opened.files.contains({info.st_dev, info.st_ino});
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, std::string name) {
  // O_NONBLOCK: opening a FIFO must fail the check below, not wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw bad_file(name, std::string("cannot open: ") + std::strerror(errno));
  struct stat info{};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const auto size = static_cast<std::size_t>(info.st_size);
  void* data = regular && size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  const int map_error = errno;
#ifdef MADV_HUGEPAGE
  // What is not in memory yet is read in large pieces, and where the file system can, lies in huge pages.
  if (data != MAP_FAILED) ::madvise(data, size, MADV_HUGEPAGE);
#endif
  ::close(fd);
  if (!regular) throw bad_file(name, "not a regular file");
  if (const std::lock_guard lock(opened.mutex); opened.remembered) opened.files.emplace(info.st_dev, info.st_ino);
  if (size == 0) throw bad_file(name, "the file is empty");
  if (data == MAP_FAILED) throw bad_file(name, std::string("cannot map into memory: ") + std::strerror(map_error));
  return std::shared_ptr<const MappedFile>(new MappedFile(std::move(name), static_cast<const std::byte*>(data), size));
}

std::shared_ptr<const MappedFile> MappedFile::hold(std::string name, std::vector<std::byte> content) {
  if (content.empty()) throw bad_file(name, "the file is empty");
  std::shared_ptr<MappedFile> file(new MappedFile(std::move(name), content.data(), content.size()));
  file->held_ = std::move(content);  // whose bytes stay where they are
  return file;
}

MappedFile::~MappedFile() {
  if (held_.empty()) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace ttc
