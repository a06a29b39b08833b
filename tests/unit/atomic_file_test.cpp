// Files that appear whole or not at all.
#include "support/atomic_file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
    CHECK(folder.names().size() == 1);  // the unfinished one
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

TEST_CASE("a signal takes the unfinished file with it") {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    remove_unfinished_files_on_signals();
    AtomicFile file(folder / "a");
    file.write("half", 4);
    raise(SIGTERM);
    _exit(0);  // not reached
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  CHECK(folder.names().empty());
}
