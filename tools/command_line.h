// Between what the user typed and CLI11: flags from a file, what is wrong with an argument, what --help looks like.
#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace ttc {

// A program's arguments; the first is a subcommand, or a flag of the program itself.
using Arguments = std::vector<std::string>;

// With the flags of the file that --options names (name = value, or name = [values]; [compile] begins those of a
// subcommand) behind the subcommand, but for those that the command line has itself. Throws ttc::Error: bad_file, and
// usage for a flag that the subcommand has not.
Arguments with_options_file(const CLI::App& app, Arguments args);
// Throws ttc::Error (usage), with what is near, for a subcommand or a flag that there is not.
void check_names(const CLI::App& app, const Arguments& args);
// What CLI11 found, in our words.
[[noreturn]] void throw_usage(const CLI::App& app, const CLI::ParseError& error);
// Throws ttc::Error (usage) where two flags name one file for their results.
void check_results_apart(const CLI::App& sub);
// A warning for each flag that shapes the text which --json does not print.
void warn_of_text_flags(const CLI::App& sub, const Globals& globals);
// Groups, defaults, lines as wide as the terminal (100 where there is none), the example last.
void format_help(CLI::App& app);

// The whole command line, once it is made: for `ttc completion`.
const CLI::App& command_line();
void set_command_line(const CLI::App& app);

}  // namespace ttc
