// A private file beside the result, pwrite, fsync, rename. Without a name, it is gone with the process however that
// ends. What has a name is locked as long as its process lives: what is not locked was left by a process that was
// killed, and the next one that writes into the folder removes it.
#include "support/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "support/error.h"
#include "support/mapped_file.h"

namespace ttc {
namespace {

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where `path` leads: links are followed, also one to a file that is still to come.
std::string followed(std::string path) {
  constexpr int most = 40;
  std::error_code error;
  for (int i = 0; i < most && std::filesystem::is_symlink(path, error); ++i) {
    const std::filesystem::path to = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = std::filesystem::path(path).parent_path() / to;  // `to` alone where it is absolute
  }
  return path;
}

constexpr const char* fresh_name = ".ttc-";

// Of this process, moment and call; beside `target`.
std::string fresh_path(const std::string& target) {
  static std::atomic<std::uint32_t> calls{0};
  const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return directory_of(target) + "/" + fresh_name + std::to_string(::getpid()) + "-" + std::to_string(now) + "-" +
         std::to_string(calls++);
}

// Whether fresh_path() made the name: three numbers, and not what a user calls ".ttc-notes".
bool is_fresh_name(std::string_view name) {
  if (!name.starts_with(fresh_name)) return false;
  name.remove_prefix(std::string_view(fresh_name).size());
  int numbers = 0;
  while (!name.empty()) {
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits == 0 || (digits < name.size() && name[digits] != '-') || digits + 1 == name.size()) return false;
    name.remove_prefix(std::min(digits + 1, name.size()));
    ++numbers;
  }
  return numbers == 3;
}

// The rename itself survives a power cut only once the directory is synced; failing that is not an error.
void sync_directory(const std::string& target) {
  const int directory = ::open(directory_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  ::fsync(directory);
  ::close(directory);
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

// ---- files that nobody has finished --------------------------------------------------------------------------------

// Read by a signal handler, so neither locked nor allocated. Those beyond are left behind where a signal comes.
std::array<std::atomic<const char*>, 16> unfinished;

void add_unfinished(const char* path) {
  for (auto& slot : unfinished)
    if (const char* free = nullptr; slot.compare_exchange_strong(free, path)) return;
}

void forget_unfinished(const char* path) {
  for (auto& slot : unfinished)
    if (const char* held = path; slot.compare_exchange_strong(held, nullptr)) return;
}

// A file, or a folder with all in it. What a signal handler may do only: neither opendir() nor memory.
void remove_all(int within, const char* name) {
  if (::unlinkat(within, name, 0) == 0 || errno != EISDIR) return;
  constexpr int most = 100;  // rounds: somebody else may still be writing there
  const int folder = ::openat(within, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  for (int round = 0; folder >= 0 && round < most && ::unlinkat(within, name, AT_REMOVEDIR) != 0; ++round) {
    alignas(dirent64) char entries[4096];
    ::lseek(folder, 0, SEEK_SET);
    for (ssize_t size; (size = ::getdents64(folder, entries, sizeof entries)) > 0;)
      for (ssize_t at = 0; at < size;) {
        const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
        at += entry->d_reclen;
        if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
          remove_all(folder, entry->d_name);
      }
  }
  if (folder >= 0) ::close(folder);
}

// ---- those that a killed process left ------------------------------------------------------------------------------

// Whether it is ours now: not where another process holds it, or removed it meanwhile.
bool lock(int fd) {
  struct stat info{};
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &info) == 0 && info.st_nlink > 0;
}

// Locks what was just made. Where there are no locks, nobody removes it.
bool taken_away(int fd) {
  struct stat info{};
  return ::flock(fd, LOCK_EX | LOCK_NB) != 0 ? errno == EWOULDBLOCK : ::fstat(fd, &info) == 0 && info.st_nlink == 0;
}

// Once in a folder.
void remove_abandoned(const std::string& target) {
  static std::mutex mutex;
  static std::set<std::string> done;
  const std::string within = directory_of(target);
  const std::scoped_lock guard(mutex);
  if (!done.insert(within).second) return;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(within, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path();
    if (!is_fresh_name(entry->path().filename().string())) continue;
    const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    if (lock(fd)) remove_all(AT_FDCWD, path.c_str());
    ::close(fd);
  }
}

extern "C" void remove_unfinished_files(int signal) {
  for (const auto& slot : unfinished)
    if (const char* path = slot.load()) remove_all(AT_FDCWD, path);
  ::raise(signal);  // as if nobody had handled it: SA_RESETHAND
}

}  // namespace

void remove_unfinished_files_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action{}, before{};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;  // nohup
    action.sa_handler = remove_unfinished_files;
    action.sa_flags = SA_RESETHAND;
    ::sigaction(signal, &action, nullptr);
  }
}

void check_output(const std::string& path) {
  struct stat info{};
  const bool there = ::stat(path.c_str(), &info) == 0;
  const int error = errno;
  if (!there && error != ELOOP) return;
  const auto refuse = [&](const std::string& why, const std::string& hint = {}) {
    throw usage_error("cannot write " + path + ": " + why, hint);
  };
  if (!there) refuse(std::strerror(error));
  if (!S_ISREG(info.st_mode)) refuse(std::string("it is ") + kind_of(info.st_mode));
  if (::access(path.c_str(), W_OK) != 0) refuse(std::strerror(errno));
  if (was_opened(path)) refuse("it is read by the same command", "--force puts the result in its place");
}

AtomicFile::AtomicFile(std::string path, std::uint64_t expected)
    : path_(std::move(path)), phase_("writing " + path_, expected, Phase::Unit::bytes) {
  check_output(path_);
  target_ = followed(path_);
  remove_abandoned(target_);
  if (!open_nameless()) open_named();
  // It is private so far; a result has the permissions of the one it replaces, or those any new file would have.
  struct stat info{};
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd_, ::stat(target_.c_str(), &info) == 0 ? info.st_mode & 07777 : 0666 & ~mask);
}

// False where the file system has no such files, or no way to give one a name later.
bool AtomicFile::open_nameless() {
  fd_ = ::open(directory_of(target_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd_ >= 0 && ::access(("/proc/self/fd/" + std::to_string(fd_)).c_str(), F_OK) == 0) {
    ::flock(fd_, LOCK_EX | LOCK_NB);  // before it has a name
    return true;
  }
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  return false;
}

void AtomicFile::open_named() {
  do {
    temporary_ = fresh_path(target_);
    add_unfinished(temporary_.c_str());  // before it is there: a signal may come at any time
    fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd_ >= 0 && taken_away(fd_)) ::close(std::exchange(fd_, -1)), errno = EEXIST;
    if (fd_ < 0) forget_unfinished(temporary_.c_str());
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ >= 0) return;
  temporary_.clear();
  fail("create");
}

// A link cannot take the place of a file, a rename can.
void AtomicFile::give_name() {
  const std::string self = "/proc/self/fd/" + std::to_string(fd_);
  do {
    if (!temporary_.empty()) forget_unfinished(temporary_.c_str());
    temporary_ = fresh_path(target_);
    add_unfinished(temporary_.c_str());
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  } while (errno == EEXIST);
  fail("link");
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  forget_unfinished(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) const {
  throw usage_error(std::string("cannot ") + doing + " " + path_ + ": " + std::strerror(errno));
}

void AtomicFile::write(const void* data, std::size_t size) {
  write_at(position_, data, size);
  position_ += size;
}

void AtomicFile::write_at(std::uint64_t position, const void* data, std::size_t size) {
  // As much as stays in a core's cache between the caller and the kernel. Larger writes are no faster, and some are
  // eight times slower: file systems with large folios take them from memory that nobody used for long, which a virtual
  // machine first has to get from its host.
  constexpr std::size_t piece = std::size_t{1} << 18, worth_beginning = std::size_t{1} << 24;
  const char* next = static_cast<const char*>(data);
  std::size_t waiting = 0;  // of what was written, for the disk
  while (size > 0) {
    const ssize_t result = ::pwrite(fd_, next, std::min(size, piece), static_cast<off_t>(position));
    if (result < 0 && errno == EINTR) continue;
    if (result <= 0) fail("write");
    const auto wrote = static_cast<std::size_t>(result);
    next += wrote, size -= wrote, position += wrote, waiting += wrote;
    phase_.advance(wrote);
    // The disk begins at once, so that commit() waits for the rest alone.
    if (waiting < worth_beginning && (size > 0 || waiting < (std::size_t{1} << 20))) continue;
    ::sync_file_range(fd_, static_cast<off_t>(position - waiting), static_cast<off_t>(waiting), SYNC_FILE_RANGE_WRITE);
    waiting = 0;
  }
  std::uint64_t known = size_.load();
  while (known < position && !size_.compare_exchange_weak(known, position)) {
  }
}

void AtomicFile::seek(std::uint64_t position) { position_ = position; }

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail("sync");
  if (temporary_.empty()) give_name();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename to");
  ::close(std::exchange(fd_, -1));  // and its lock: the name is gone
  forget_unfinished(temporary_.c_str());
  temporary_.clear();
  sync_directory(target_);
}

AtomicFolder::AtomicFolder(std::string path) : path_(std::move(path)), target_(followed(path_)) {
  struct stat info{};
  if (::stat(target_.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))
    throw usage_error("cannot write " + path_ + ": it is no folder");
  remove_abandoned(target_);
  bool again = true;
  while (again) {
    temporary_ = fresh_path(target_);
    add_unfinished(temporary_.c_str());
    const bool made = ::mkdir(temporary_.c_str(), 0777) == 0;
    if (made) fd_ = ::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd_ >= 0 && !taken_away(fd_)) return;
    again = fd_ >= 0 || errno == (made ? ENOENT : EEXIST);
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    forget_unfinished(temporary_.c_str());
  }
  temporary_.clear();
  fail("create");
}

AtomicFolder::~AtomicFolder() {
  if (fd_ >= 0) ::close(fd_);
  if (temporary_.empty()) return;
  remove_all(AT_FDCWD, temporary_.c_str());
  forget_unfinished(temporary_.c_str());
}

void AtomicFolder::fail(const char* doing) const {
  throw usage_error(std::string("cannot ") + doing + " " + path_ + ": " + std::strerror(errno));
}

void AtomicFolder::commit() {
  // They change places, so that one of them is there at any time; what was there is the unfinished one then.
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
    remove_all(AT_FDCWD, temporary_.c_str());
  } else {
    if (errno == EINVAL) remove_all(AT_FDCWD, target_.c_str());  // a file system that cannot
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename to");
  }
  forget_unfinished(temporary_.c_str());
  temporary_.clear();
  sync_directory(target_);
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit();
}

}  // namespace ttc
