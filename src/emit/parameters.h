// Which weights a program reads, and what it calls them.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "emit/program.h"

namespace ttc::emit {

class Parameters {
 public:
  // The weight in the form that `wanted` describes, which has no name yet; `path`, `role`: the module and the operand
  // that read it first, for weights without a path of their own. The same for every reader.
  const Parameter& add(Parameter wanted, const std::string& path, const std::string& role);
  std::vector<Parameter> all() const { return {parameters_.begin(), parameters_.end()}; }

 private:
  std::string name_for(const Parameter& wanted, const std::string& path, const std::string& role);
  std::deque<Parameter> parameters_;
  std::map<std::tuple<const ir::Value*, Parameter::Form, std::string>, const Parameter*> known_;
  std::map<std::string, int> names_;
};

// parameters.<what is left of the name below `path`>; "" where it is not below.
std::string parameter_text(const Parameter& parameter, const std::string& path);

}  // namespace ttc::emit
