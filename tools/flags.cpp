// Options in terms of CLI11, which only the program itself names beside.
#include "flags.h"

#include <CLI/CLI.hpp>

namespace ttc {

Flag& Flag::required(bool required) {
  option_->required(required);
  return *this;
}

Flag& Flag::one_of(std::initializer_list<const char*> values) {
  option_->check(CLI::IsMember(std::vector<std::string>(values.begin(), values.end())));
  return *this;
}

Flag& Flag::range(int low, int high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Flag& Flag::range(double low, double high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Flag& Flag::not_negative() {
  option_->check(CLI::NonNegativeNumber);
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

Flag FlagSet::add_option(const std::string& name, std::string& into, const std::string& help) {
  return Flag(app_->add_option(name, into, help));
}
Flag FlagSet::add_option(const std::string& name, int& into, const std::string& help) {
  return Flag(app_->add_option(name, into, help));
}
Flag FlagSet::add_option(const std::string& name, long& into, const std::string& help) {
  return Flag(app_->add_option(name, into, help));
}
Flag FlagSet::add_option(const std::string& name, std::uint64_t& into, const std::string& help) {
  return Flag(app_->add_option(name, into, help));
}
Flag FlagSet::add_option(const std::string& name, double& into, const std::string& help) {
  return Flag(app_->add_option(name, into, help));
}
Flag FlagSet::add_option(const std::string& name, std::optional<double>& into, const std::string& help) {
  return Flag(app_->add_option(name, into, help));
}
Flag FlagSet::add_option(const std::string& name, std::vector<std::string>& into, const std::string& help) {
  return Flag(app_->add_option(name, into, help));
}

Flag FlagSet::add_flag(const std::string& name, bool& into, const std::string& help) {
  return Flag(app_->add_flag(name, into, help));
}
Flag FlagSet::add_flag(const std::string& name, int& into, const std::string& help) {
  return Flag(app_->add_flag(name, into, help));
}

Flag FlagSet::get_option(const std::string& name) { return Flag(app_->get_option(name)); }

}  // namespace ttc
