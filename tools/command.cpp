// The commands that registered themselves, and where their output goes.
#include "command.h"

#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "json_out.h"
#include "support/error.h"
#include "support/printable.h"
#include "table.h"
#include "terminal.h"

namespace ttc {
namespace {

std::map<std::string_view, const Command*>& commands() {
  static std::map<std::string_view, const Command*> instance;
  return instance;
}

// Standard output as the program got it: under --json, std::cout writes to standard error, so that what models print
// does not mix with the object.
std::ostream& json_output() {
  static std::ostream out(std::cout.rdbuf());
  return out;
}

std::vector<std::string>& warnings() {
  static std::vector<std::string> instance;
  return instance;
}

}  // namespace

void register_command(const Command& command) {
  TTC_CHECK(commands().emplace(command.name, &command).second,
            "two subcommands of one name: " + std::string(command.name));
}

std::vector<const Command*> all_commands() {
  std::vector<const Command*> out;
  for (const auto& [name, command] : commands()) out.push_back(command);
  return out;
}

void tell(const std::string& text) {
  ProgressLine::clear();
  std::cerr << text << '\n';
}

void note(const Globals& globals, const std::string& text) {
  if (!globals.quiet) tell(text);
}

void detail(const Globals& globals, const std::string& text) {
  if (globals.verbose > 0) note(globals, text);
}

void warn(const Globals& globals, const std::string& text, const std::string& hint) {
  warnings().push_back(text);
  if (globals.quiet && !globals.strict) return;
  tell(painted("warning:", Style::warning, Stream::error) + " " + text);
  if (!hint.empty()) tell(painted("hint:", Style::hint, Stream::error) + " " + hint);
}

std::vector<std::string> warnings_from(std::size_t first) {
  return {warnings().begin() + static_cast<std::ptrdiff_t>(std::min(first, warnings().size())), warnings().end()};
}
void count_warnings(const std::vector<std::string>& printed) {
  warnings().insert(warnings().end(), printed.begin(), printed.end());
}

void check_warnings(const Globals& globals) {
  const std::size_t count = warnings().size();
  if (!globals.strict || count == 0) return;
  throw Error(
      Exit::check_failed, "",
      count == 1 ? "--strict: " + warnings()[0] : "--strict: there were " + std::to_string(count) + " warnings");
}

void keep_output_for_json() {
  json_output();
  std::cout.rdbuf(std::cerr.rdbuf());
}

void print_json(OrderedJson value) {
  if (value.is_object())
    for (const std::string& text : warnings()) value["warnings"].push_back(printable(text));
  ProgressLine::clear();
  json_output() << value.dump(2, ' ', false, OrderedJson::error_handler_t::replace) << std::endl;
}

Notes notes_of(const Globals& globals) {
  Notes notes{.say = [globals](const std::string& line) { note(globals, line); },
              .detail = {},
              .warn = [globals](const std::string& line, const std::string& hint) { warn(globals, line, hint); }};
  if (globals.verbose > 0) notes.detail = notes.say;
  return notes;
}

Timed::~Timed() {
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  detail(globals_, what_ + ": " + number_text(ms, 4) + " ms");
}

std::int64_t peak_rss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace ttc
