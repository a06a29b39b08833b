// The flags of a subcommand. A thin face of CLI11, whose headers take the compiler four seconds a file: only the files
// that make the command line (flags.cpp, ttc.cpp, command_line.cpp, completion.cpp) include them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ttc {

// One flag (or positional argument), for what it demands of its values.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag& required(bool required = true);
  Flag& one_of(const std::vector<std::string>& values);
  Flag& among(const std::vector<std::string>& values);  // what completion offers; others are taken too
  Flag& range(int low, int high);                       // both included
  Flag& range(double low, double high);
  Flag& not_negative();
  Flag& repeatable();  // one value each time; a list otherwise takes what follows it too
  Flag& separated();   // by commas
  Flag& type_name(const std::string& name);
  Flag& result();  // a file, or folder, that the command writes
  Flag& of_text();  // it shapes what is printed, which --json does not print

 private:
  CLI::Option* option_;
};

class FlagSet {
 public:
  explicit FlagSet(CLI::App& app) : app_(&app) {}

  // Flags that follow stand under this heading in --help.
  void group(const std::string& name) { group_ = name; }
  // `name` as "model" (positional), "--json" or "-o,--output". `into` holds the default, which --help shows, and has to
  // outlive the parsing.
  Flag add_option(const std::string& name, std::string& into, const std::string& help);
  Flag add_option(const std::string& name, int& into, const std::string& help);
  Flag add_option(const std::string& name, long& into, const std::string& help);
  Flag add_option(const std::string& name, std::uint64_t& into, const std::string& help);
  Flag add_option(const std::string& name, double& into, const std::string& help);
  Flag add_option(const std::string& name, std::optional<double>& into, const std::string& help);
  Flag add_option(const std::string& name, std::vector<std::string>& into, const std::string& help);
  Flag add_flag(const std::string& name, bool& into, const std::string& help);
  Flag add_flag(const std::string& name, int& into, const std::string& help);  // counts
  Flag get_option(const std::string& name);  // one that was added; a bug where it was not

 private:
  template <typename T>
  Flag add(const std::string& name, T& into, const std::string& help);

  CLI::App* app_;
  std::string group_ = "Options";
};

// What one_of and among said of an option; empty where they said nothing.
const std::vector<std::string>& choices_of(const CLI::Option* option);
// What result() said.
bool is_result(const CLI::Option* option);
// What of_text() said.
bool is_of_text(const CLI::Option* option);

}  // namespace ttc
