// Files that appear whole or not at all.
#include "support/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>

#include "support/error.h"
#include "tests/catch.h"

using namespace ttc;

namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "ttc-atomic-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(path)) out.insert(entry.path().filename());
    return out;
  }
};

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

mode_t mode_of(const std::string& path) {
  struct stat info{};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("a file is there once it is committed, and not before") {
  const Folder folder;
  const std::string path = folder / "a";
  {
    AtomicFile file(path);
    file.write("hello", 5);
    CHECK_FALSE(fs::exists(path));
    CHECK(folder.names().size() <= 1);  // the unfinished one, where it has a name
    file.commit();
    CHECK(content(path) == "hello");
  }
  CHECK(folder.names() == std::set<std::string>{"a"});
}

TEST_CASE("what is not committed leaves what was there") {
  const Folder folder;
  write_file(folder / "a", "before");
  {
    AtomicFile file(folder / "a");
    file.write("after", 5);
  }
  CHECK(content(folder / "a") == "before");
  CHECK(folder.names() == std::set<std::string>{"a"});
}

TEST_CASE("bytes are overwritten after seek, and gaps are zero") {
  const Folder folder;
  AtomicFile file(folder / "a");
  file.write("abcdef", 6);
  file.seek(2);
  file.write("XY", 2);
  CHECK(file.position() == 4);
  CHECK(file.size() == 6);
  file.seek(8);
  file.write("z", 1);
  CHECK(file.size() == 9);
  file.commit();
  CHECK(content(folder / "a") == std::string("abXYef\0\0z", 9));
}

TEST_CASE("permissions are those of the file that was there, else those any new file has") {
  const Folder folder;
  const mode_t mask = umask(027);
  write_file(folder / "new", "x");
  umask(mask);
  CHECK(mode_of(folder / "new") == 0640);
  REQUIRE(chmod((folder / "new").c_str(), 0755) == 0);
  write_file(folder / "new", "y");
  CHECK(mode_of(folder / "new") == 0755);
}

TEST_CASE("a link stays one, and where it leads is written") {
  const Folder folder;
  fs::create_directory(folder / "there");
  fs::create_symlink("there/to", folder / "link");
  fs::create_symlink("link", folder / "link2");
  write_file(folder / "link2", "x");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(fs::is_symlink(folder / "link2"));
  CHECK(content(folder / "there/to") == "x");
}

TEST_CASE("folders, pipes and folders that are not there are refused") {
  const Folder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(AtomicFile(folder.path), ContainsSubstring("it is a directory"));
  CHECK_THROWS_WITH(AtomicFile(folder / "pipe"), ContainsSubstring("it is a pipe"));
  CHECK_THROWS_WITH(AtomicFile(folder / "none/a"), ContainsSubstring("cannot create"));
  CHECK(folder.names() == std::set<std::string>{"pipe"});
}

namespace {

// The process that does this, and ends by `signal` at its end.
void killed_by(int signal, const std::function<void()>& doing) {
  const pid_t child = fork();
  if (child == 0) {
    remove_unfinished_files_on_signals();
    doing();
    _exit(0);  // not reached
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == signal);
}

bool has_nameless_files(const fs::path& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

}  // namespace

TEST_CASE("a signal takes the unfinished file with it, one that cannot be handled too") {
  const Folder folder;
  for (const int signal : {SIGTERM, SIGKILL}) {
    if (signal == SIGKILL && !has_nameless_files(folder.path)) continue;
    killed_by(signal, [&] {
      AtomicFile file(folder / "a");
      file.write("half", 4);
      raise(signal);
    });
    CHECK(folder.names().empty());
  }
}

TEST_CASE("where files need a name, a signal takes them with it, and what is finished is there") {
  const Folder folder;
  if (geteuid() != 0) return;  // chroot: no /proc to give a nameless file its name by
  killed_by(SIGTERM, [&] {
    if (chroot(folder.path.c_str()) != 0 || chdir("/") != 0) _exit(1);
    write_file("/whole", "whole");
    AtomicFile file("/half");
    file.write("half", 4);
    if (fs::directory_iterator("/") == fs::directory_iterator()) _exit(2);
    raise(SIGTERM);
  });
  CHECK(folder.names() == std::set<std::string>{"whole"});
  CHECK(content(folder / "whole") == "whole");
}

TEST_CASE("what a killed process left goes with the next file, and what another one still makes stays") {
  const Folder folder;
  killed_by(SIGKILL, [&] {
    AtomicFolder made(folder / "a");
    write_file(made.unfinished() + "/half", "half");
    raise(SIGKILL);
  });
  REQUIRE(folder.names().size() == 1);
  fs::create_directory(folder / ".ttc-another");
  const int another = open((folder / ".ttc-another").c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(flock(another, LOCK_EX) == 0);
  write_file(folder / "b", "b");
  CHECK(folder.names() == std::set<std::string>{".ttc-another", "b"});
  close(another);
}

TEST_CASE("a folder is there once it is committed, in the place of the one before") {
  const Folder folder;
  const auto write = [&](const char* name) {
    AtomicFolder made(folder / "a");
    write_file(made.unfinished() + "/" + name, name);
    CHECK_FALSE(fs::exists(folder.path / "a" / name));
    made.commit();
  };
  write("one");
  write("two");
  CHECK(folder.names() == std::set<std::string>{"a"});
  CHECK_FALSE(fs::exists(folder / "a/one"));
  CHECK(content(folder / "a/two") == "two");
  {
    const AtomicFolder left(folder / "a");
  }
  CHECK(folder.names() == std::set<std::string>{"a"});
  fs::create_directory_symlink("a", folder / "link");
  AtomicFolder through(folder / "link");
  through.commit();
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(fs::is_empty(folder / "a"));
  write_file(folder / "file", "x");
  CHECK_THROWS_WITH(AtomicFolder(folder / "file"), ContainsSubstring("it is no folder"));
  CHECK_THROWS_WITH(AtomicFolder(folder / "none/a"), ContainsSubstring("cannot create"));
}

TEST_CASE("a signal takes the unfinished folder with it, and leaves the one before") {
  const Folder folder;
  fs::create_directory(folder / "a");
  write_file(folder / "a/before", "x");
  killed_by(SIGINT, [&] {
    AtomicFolder made(folder / "a");
    fs::create_directories(made.unfinished() + "/weights/deep");
    for (int i = 0; i < 300; ++i) std::ofstream(made.unfinished() + "/weights/" + std::to_string(i)) << i;
    AtomicFile half(made.unfinished() + "/half");
    half.write("half", 4);
    raise(SIGINT);
  });
  CHECK(folder.names() == std::set<std::string>{"a"});
  CHECK(fs::exists(folder / "a/before"));
}
