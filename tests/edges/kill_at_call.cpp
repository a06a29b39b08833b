// Preloaded into ttc: SIGKILL before the call by which the process changes files for the TTC_KILL_AT-th time. What
// stands in a folder changes at these calls only, so that a kill before each of them is a kill at any moment, on a
// machine of any speed. TTC_KILL_COUNT names a file that holds how many such calls there have been so far.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

std::atomic<long> calls{0};

void count() {
  const char *at = std::getenv("TTC_KILL_AT"), *to = std::getenv("TTC_KILL_COUNT");
  if (at == nullptr && to == nullptr) return;                                   // the server that ttc is a child of
  if (std::string_view(program_invocation_short_name) == "ttc_client") return;  // it only hands the line over
  const long n = ++calls;
  if (at != nullptr && n == std::atol(at)) std::raise(SIGKILL);
  if (to == nullptr) return;
  const long file = syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%ld\n", n);
  syscall(SYS_pwrite64, file, text, size, 0);
  syscall(SYS_close, file);
}

bool is_file(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

template <typename F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

mode_t mode_of(int flags, va_list more) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? static_cast<mode_t>(va_arg(more, int)) : 0;
}

}  // namespace

// Under names of their own in here, as the headers declare these otherwise.
#define COUNTED(name, result, parameters, arguments, when)        \
  extern "C" result counted_##name parameters __asm__(#name);     \
  extern "C" result counted_##name parameters {                   \
    static auto* const original = next<result parameters>(#name); \
    if (when) count();                                            \
    return original arguments;                                    \
  }

COUNTED(write, ssize_t, (int fd, const void* data, size_t size), (fd, data, size), is_file(fd))
COUNTED(writev, ssize_t, (int fd, const struct iovec* data, int n), (fd, data, n), is_file(fd))
COUNTED(pwrite, ssize_t, (int fd, const void* data, size_t size, off_t at), (fd, data, size, at), true)
COUNTED(pwrite64, ssize_t, (int fd, const void* data, size_t size, off64_t at), (fd, data, size, at), true)
COUNTED(ftruncate, int, (int fd, off_t size), (fd, size), true)
COUNTED(ftruncate64, int, (int fd, off64_t size), (fd, size), true)
COUNTED(fsync, int, (int fd), (fd), true)
COUNTED(close, int, (int fd), (fd), is_file(fd))
COUNTED(link, int, (const char* from, const char* to), (from, to), true)
COUNTED(linkat, int, (int a, const char* from, int b, const char* to, int flags), (a, from, b, to, flags), true)
COUNTED(rename, int, (const char* from, const char* to), (from, to), true)
COUNTED(renameat2, int, (int a, const char* from, int b, const char* to, unsigned flags), (a, from, b, to, flags), true)
COUNTED(unlink, int, (const char* path), (path), true)
COUNTED(unlinkat, int, (int at, const char* path, int flags), (at, path, flags), true)
COUNTED(rmdir, int, (const char* path), (path), true)
COUNTED(remove, int, (const char* path), (path), true)
COUNTED(mkdir, int, (const char* path, mode_t mode), (path, mode), true)
COUNTED(mkdirat, int, (int at, const char* path, mode_t mode), (at, path, mode), true)

#define COUNTED_OPEN(name)                                                        \
  extern "C" int counted_##name(const char* path, int flags, ...) __asm__(#name); \
  extern "C" int counted_##name(const char* path, int flags, ...) {               \
    static auto* const original = next<int(const char*, int, mode_t)>(#name);     \
    va_list more;                                                                 \
    va_start(more, flags);                                                        \
    const mode_t mode = mode_of(flags, more);                                     \
    va_end(more);                                                                 \
    if ((flags & O_ACCMODE) != O_RDONLY) count();                                 \
    return original(path, flags, mode);                                           \
  }
COUNTED_OPEN(open)
COUNTED_OPEN(open64)
