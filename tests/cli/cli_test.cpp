// Golden tests of the command line: each .txt file here holds commands and what they must print.
//
//   $ ttc run models/x.pt2 ...      a shell command, run in the repository's root; $TMP is a scratch folder
//   ? 2                             its exit code (0 where absent)
//   > text                          a line of standard output
//   ! text                          a line of standard error
//
// Times, memory and other numbers that differ from run to run are compared as N (see normalise). TTC_UPDATE=1 rewrites
// the files with what the commands print now. "# ..." lines are comments and stay.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/golden.h"

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// What no two runs share: durations, resident memory, the scratch folder; and how large a file came out.
std::string normalise(std::string line, const std::string& scratch) {
  for (std::size_t at; (at = line.find(scratch)) != std::string::npos;) line.replace(at, scratch.size(), "$TMP");
  static const std::regex duration(R"([0-9.]+(e[-+]?[0-9]+)? (ms|us|s)\b)");
  static const std::regex json_time(
      R"re(("(wall_ms|load_ms|ms|peak_rss|wall_us|first_ms|steps_per_second|min|p50|p90|p99|mean|pcc|max_abs|max_rel|snr_db)": )([-0-9.e+]+|null))re");
  static const std::regex written(R"(^(wrote \S+, )[0-9.]+ (B|KiB|MiB))");
  line = std::regex_replace(line, duration, "N $2");
  line = std::regex_replace(line, written, "$1N $2");
  return std::regex_replace(line, json_time, "$1N");
}

struct Scratch {
  fs::path path;
  Scratch() {
    std::string name = (fs::temp_directory_path() / "ttc-cli-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

void append_lines(std::string& out, char mark, const std::string& text, const std::string& scratch) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = normalise(line, scratch);
    out += line.empty() ? std::string(1, mark) + "\n" : std::string(1, mark) + " " + line + "\n";
  }
}

// The file with every expectation replaced by what the commands do now.
std::string replay(const std::string& script, const Scratch& scratch) {
  const std::string out_file = (scratch.path / "stdout").string(), err_file = (scratch.path / "stderr").string();
  // What serves many command lines from one process (tests/served), or a process for each.
  const std::string ttc = std::getenv("TTC_SERVER") != nullptr ? TTC_CLIENT : TTC_BINARY;
  const std::string work = (scratch.path / "work").string();
  fs::create_directory(work);
  std::string out;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("? ") || line.starts_with(">") || line.starts_with("!")) continue;
    out += line + "\n";
    if (!line.starts_with("$ ")) continue;
    const std::string command = "cd '" TTC_SOURCE_ROOT "' && export TMP='" + work + "' && ttc() { '" + ttc +
                                "' \"$@\"; } && { " + line.substr(2) + "\n} >'" + out_file + "' 2>'" + err_file + "'";
    const int status = std::system(command.c_str());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    if (code != 0) out += "? " + std::to_string(code) + "\n";
    append_lines(out, '>', read(out_file), work);
    append_lines(out, '!', read(err_file), work);
  }
  return out;
}

}  // namespace

TEST_CASE("the command line prints what its golden files say") {
  const bool update = update_expected();
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(TTC_SOURCE_ROOT) / "tests/cli"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE_FALSE(files.empty());
  for (const fs::path& file : files) {
    DYNAMIC_SECTION(file.filename().string()) {
      const Scratch scratch;
      const std::string expected = read(file), actual = replay(expected, scratch);
      if (update && actual != expected)
        std::ofstream(file, std::ios::binary) << actual;
      else
        CHECK(actual == expected);
    }
  }
}
