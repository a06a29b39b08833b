// Subcommands: each cmd_<name>.cpp ends in its record; ttc.cpp makes the command line from the records.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"
#include "session/notes.h"

namespace ttc {

// What every subcommand takes.
struct Globals {
  bool json = false;
  int verbose = 0;
  bool quiet = false;
  bool strict = false;  // a warning fails the command
  bool force = false;   // a result may take the place of a file that the command reads
  int threads = 0;      // 0: as many as LibTorch takes
  std::string color = "auto";
  std::string options_file = {};
  std::vector<std::string> plugins = {};
};

struct Command {
  std::string_view name, summary;
  void (*options)(FlagSet&);      // adds the subcommand's own flags
  int (*run)(const Globals&);     // returns the exit code
  std::string_view example = {};  // a whole command line, for --help
};

void register_command(const Command& command);
// Sorted by name.
std::vector<const Command*> all_commands();

// From now on only print_json writes to standard output: what models print while they run goes to standard error.
void keep_output_for_json();
// --quiet: standard output has the results as ever; standard error has errors, what other flags ask to be told there
// (--stats, --dispatcher debug), and nothing else.
void tell(const std::string& text);
// A line on standard error, unless --quiet.
void note(const Globals& globals, const std::string& text);
// The same with --verbose only.
void detail(const Globals& globals, const std::string& text);
// What the user should know before he trusts the result; counted, named in the JSON, and an error under --strict, which
// --quiet does not keep back.
void warn(const Globals& globals, const std::string& text, const std::string& hint = {});
// Those that there were, from number `first` on; and those that a child process (child.h) printed, to count here too.
std::vector<std::string> warnings_from(std::size_t first);
void count_warnings(const std::vector<std::string>& printed);
// Whether the command line, or a file of options, has this flag: "--loops".
bool was_given(std::string_view flag);
// A warning that names those of the flags that were given, if any: "--loops, --warmup have no effect: `why`".
void warn_of_idle(const Globals& globals, std::initializer_list<std::string_view> flags, const std::string& why);
// The same as an error (usage), for flags that check something.
void refuse_unchecked(std::initializer_list<std::string_view> flags, const std::string& why);
// Under --strict: throws ttc::Error (check_failed) where there were warnings. Commands call it before they write a
// result; the program does in the end.
void check_warnings(const Globals& globals);
// The same for what the library says.
Notes notes_of(const Globals& globals);
// A part of the work: how long it took is a detail.
class Timed {
 public:
  Timed(const Globals& globals, std::string what)
      : globals_(globals), what_(std::move(what)), start_(std::chrono::steady_clock::now()) {}
  ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  const Globals& globals_;
  std::string what_;
  std::chrono::steady_clock::time_point start_;
};
// The most memory this process has held, in bytes.
std::int64_t peak_rss();

}  // namespace ttc

#define TTC_REGISTER_COMMAND(...)                                                   \
  namespace {                                                                       \
  const ::ttc::Command ttc_command __VA_ARGS__;                                     \
  const bool ttc_command_registered = (::ttc::register_command(ttc_command), true); \
  }
