// mkstemp, pwrite, fsync, rename.
#include "support/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "support/error.h"

namespace ttc {
namespace {

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  struct stat info {};
  if (::stat(path_.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    throw usage_error("cannot write " + path_ + ": it is a directory");
  temporary_ = directory_of(path_) + "/.ttc-XXXXXX";
  fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (fd_ < 0) {
    temporary_.clear();
    fail("create");
  }
  // mkstemp makes private files; a result has the permissions any new file would have.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd_, 0666 & ~mask);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) const {
  throw usage_error(std::string("cannot ") + doing + " " + path_ + ": " + std::strerror(errno));
}

void AtomicFile::write(const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t wrote = ::pwrite(fd_, next, std::min<std::size_t>(size, 1U << 30), static_cast<off_t>(position_));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) fail("write");
    next += wrote;
    size -= static_cast<std::size_t>(wrote);
    position_ += static_cast<std::uint64_t>(wrote);
  }
  size_ = std::max(size_, position_);
}

void AtomicFile::seek(std::uint64_t position) { position_ = position; }

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail("sync");
  if (::close(std::exchange(fd_, -1)) != 0) fail("close");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename to");
  temporary_.clear();
  // The rename itself survives a power cut only once the directory is synced; failing that is not an error.
  const int directory = ::open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit();
}

}  // namespace ttc
