// Subcommands: each cmd_<name>.cpp ends in its record; ttc.cpp makes the command line from the records.
#pragma once

#include <cstdint>
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
  int threads = 0;  // 0: as many as LibTorch takes
  std::vector<std::string> plugins = {};
};

struct Command {
  std::string_view name, summary;
  void (*options)(FlagSet&);   // adds the subcommand's own flags
  int (*run)(const Globals&);  // returns the exit code
};

void register_command(const Command& command);
// Sorted by name.
std::vector<const Command*> all_commands();

// From now on only print_json writes to standard output: what models print while they run goes to standard error.
void keep_output_for_json();
// A line on standard error, unless --quiet.
void note(const Globals& globals, const std::string& text);
// The same for what the library says; details with --verbose.
Notes notes_of(const Globals& globals);
// The most memory this process has held, in bytes.
std::int64_t peak_rss();

}  // namespace ttc

#define TTC_REGISTER_COMMAND(...)                                                   \
  namespace {                                                                       \
  const ::ttc::Command ttc_command __VA_ARGS__;                                     \
  const bool ttc_command_registered = (::ttc::register_command(ttc_command), true); \
  }
