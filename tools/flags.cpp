// Options in terms of CLI11, which only the files of the command line itself name beside.
#include "flags.h"

#include <CLI/CLI.hpp>
#include <map>
#include <set>

#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

std::map<const CLI::Option*, std::vector<std::string>>& choices() {
  static std::map<const CLI::Option*, std::vector<std::string>> instance;
  return instance;
}

std::set<const CLI::Option*>& results() {
  static std::set<const CLI::Option*> instance;
  return instance;
}

std::set<const CLI::Option*>& of_text() {
  static std::set<const CLI::Option*> instance;
  return instance;
}

// A check of the text of a value that says what is wrong with it, "" where nothing is. A second line is a hint.
void check(CLI::Option* option, std::function<std::string(std::string&)> function) {
  option->check(CLI::Validator(std::move(function), ""));
}

void check_between(CLI::Option* option, double low, double high) {
  check(option, [low, high](std::string& text) -> std::string {
    double value = 0;
    if (!CLI::detail::lexical_cast(text, value)) return "'" + text + "' is no number";
    if (value >= low && value <= high) return "";
    return "must lie between " + number_text(low, 12) + " and " + number_text(high, 12) + ", got " + text;
  });
}

}  // namespace

const std::vector<std::string>& choices_of(const CLI::Option* option) { return choices()[option]; }
bool is_result(const CLI::Option* option) { return results().contains(option); }
bool is_of_text(const CLI::Option* option) { return of_text().contains(option); }

Flag& Flag::required(bool required) {
  option_->required(required);
  return *this;
}

Flag& Flag::one_of(const std::vector<std::string>& values) {
  std::string listed;
  for (const std::string& value : values) listed += (listed.empty() ? "" : "|") + value;
  check(option_, [values, listed](std::string& text) -> std::string {
    if (std::find(values.begin(), values.end(), text) != values.end()) return "";
    const std::string close = nearest(text, values.data(), values.size());
    return "'" + text + "' is none of " + listed + (close.empty() ? "" : "\ndid you mean '" + close + "'?");
  });
  option_->type_name(listed);
  return among(values);
}

Flag& Flag::among(const std::vector<std::string>& values) {
  choices()[option_] = values;
  return *this;
}

Flag& Flag::range(int low, int high) { return range(static_cast<double>(low), static_cast<double>(high)); }

Flag& Flag::range(double low, double high) {
  check_between(option_, low, high);
  return *this;
}

Flag& Flag::not_negative() {
  check(option_, [](std::string& text) -> std::string {
    double value = 0;
    if (!CLI::detail::lexical_cast(text, value)) return "'" + text + "' is no number";
    return value >= 0 ? "" : "must not be negative, got " + text;
  });
  return *this;
}

Flag& Flag::repeatable() {
  option_->take_all()->allow_extra_args(false);
  return *this;
}

Flag& Flag::separated() {
  option_->delimiter(',');
  return *this;
}

Flag& Flag::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Flag& Flag::result() {
  results().insert(option_);
  return *this;
}

Flag& Flag::of_text() {
  ttc::of_text().insert(option_);
  return *this;
}

template <typename T>
Flag FlagSet::add(const std::string& name, T& into, const std::string& help) {
  return Flag(app_->add_option(name, into, help)->group(group_)->capture_default_str());
}

Flag FlagSet::add_option(const std::string& name, std::string& into, const std::string& help) {
  return add(name, into, help);
}
Flag FlagSet::add_option(const std::string& name, int& into, const std::string& help) { return add(name, into, help); }
Flag FlagSet::add_option(const std::string& name, long& into, const std::string& help) { return add(name, into, help); }
Flag FlagSet::add_option(const std::string& name, std::uint64_t& into, const std::string& help) {
  return add(name, into, help);
}
Flag FlagSet::add_option(const std::string& name, double& into, const std::string& help) {
  return add(name, into, help);
}
Flag FlagSet::add_option(const std::string& name, std::optional<double>& into, const std::string& help) {
  return Flag(app_->add_option(name, into, help)->group(group_));
}
Flag FlagSet::add_option(const std::string& name, std::vector<std::string>& into, const std::string& help) {
  return Flag(app_->add_option(name, into, help)->group(group_));
}

Flag FlagSet::add_flag(const std::string& name, bool& into, const std::string& help) {
  return Flag(app_->add_flag(name, into, help)->group(group_));
}
Flag FlagSet::add_flag(const std::string& name, int& into, const std::string& help) {
  return Flag(app_->add_flag(name, into, help)->group(group_));
}

Flag FlagSet::get_option(const std::string& name) { return Flag(app_->get_option(name)); }

}  // namespace ttc
