// The commands that registered themselves, and where their output goes.
#include "command.h"

#include <sys/resource.h>

#include <iostream>
#include <map>

#include "json_out.h"
#include "support/error.h"

namespace ttc {
namespace {

std::map<std::string_view, const Command*>& commands() {
  static std::map<std::string_view, const Command*> instance;
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

void note(const Globals& globals, const std::string& text) {
  if (!globals.quiet) std::cerr << text << '\n';
}

namespace {

// Standard output as the program got it: under --json, std::cout writes to standard error, so that what models print
// does not mix with the object.
std::ostream& json_output() {
  static std::ostream out(std::cout.rdbuf());
  return out;
}

}  // namespace

void keep_output_for_json() {
  json_output();
  std::cout.rdbuf(std::cerr.rdbuf());
}

void print_json(const OrderedJson& value) {
  json_output() << value.dump(2, ' ', false, OrderedJson::error_handler_t::replace) << std::endl;
}

Notes notes_of(const Globals& globals) {
  Notes notes{.say = [globals](const std::string& line) { note(globals, line); }, .detail = {}};
  if (globals.verbose > 0) notes.detail = notes.say;
  return notes;
}

std::int64_t peak_rss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace ttc
