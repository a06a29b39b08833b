// See command.h.
#include "command.h"

#include <unistd.h>

#include <cstdlib>
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

void print_json(const OrderedJson& value) { std::cout << value.dump(2) << '\n'; }

bool use_color(const Globals& globals) {
  if (globals.color != "auto") return globals.color == "always";
  return isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
}

}  // namespace ttc
