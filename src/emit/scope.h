// The variables of one function of a program, and what is freed where.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ops/emit.h"

namespace ttc::emit {

// Statements of a function in order, and the names that they use.
class Scope {
 public:
  // A name from `stem` that nothing in the function has yet.
  std::string fresh(std::string_view stem);
  void reserve(const std::string& name) { taken_.insert(name); }
  // What functions are called, with a number or without.
  void reserve_functions(const std::set<std::string>& names) { functions_ = names; }
  // A device tensor that the function made: freed after its last use.
  void owns(const std::string& variable) { owned_.insert(variable); }
  void returns(const std::string& variable) { returned_.insert(variable); }
  // `variable` may lie in the buffer of `other`, which lives as long as either.
  void shares(const std::string& variable, const std::string& other) { buffer_of_[variable] = other; }
  // Both buffers live as long as either's last name.
  void joins(const std::string& variable, const std::string& other);
  // The first variable that had this one's buffer.
  const std::string& buffer(const std::string& variable) const;

  void comment(std::string text);
  void add(std::vector<std::string> targets, ttrt::Python call);
  void raw(std::string lines);  // as they are; their names count as used
  // The same for what only gives a variable its value: left out where no other line reads it.
  void if_read(const std::string& variable, std::string lines);
  bool empty() const { return lines_.empty(); }
  // The body, with ttnn.deallocate where lives end.
  std::string text(int indent) const;

 private:
  struct Line {
    std::string comment, raw, only_for = {};  // only_for: the variable of if_read()
    std::vector<std::string> targets;
    ttrt::Python call{""};
    std::set<std::string> used;
  };
  std::vector<Line> read_lines() const;

  std::vector<Line> lines_;
  std::string comment_;
  std::set<std::string> taken_, owned_, returned_, functions_;
  std::map<std::string, std::string> buffer_of_;  // of views: the variable whose buffer they may share
};

}  // namespace ttc::emit
