// Lives of variables, by the names in the statements.
#include "emit/scope.h"

#include <algorithm>

#include "emit/python_text.h"

namespace ttc::emit {
namespace {

// Functions of TT-NN that give their operand back where nothing has to be moved.
bool may_share(std::string_view function) {
  constexpr std::string_view all[] = {"ttnn.reshape", "ttnn.identity", "ttnn.expand", "ttnn.repeat"};
  return std::ranges::find(all, function) != std::end(all);
}

// Functions of Python that programs call, or that readers would miss.
bool is_builtin(std::string_view name) {
  constexpr std::string_view all[] = {"abs", "all",  "any", "bool", "float", "int",   "isinstance", "len",
                                      "max", "list", "min", "pow",  "round", "slice", "sum",        "tuple"};
  return std::ranges::find(all, name) != std::end(all);
}

std::string with_margin(std::string_view lines, const std::string& margin) {
  std::string out = margin;
  for (const char c : lines) out += c == '\n' ? "\n" + margin : std::string(1, c);
  return out + "\n";
}

}  // namespace

std::string Scope::fresh(std::string_view stem) {
  std::string base = snake_case(stem);
  if (base == "l") base = "line";  // as good as a 1
  if (functions_.contains(base) || is_builtin(base)) base += "_out";
  std::string name = base;
  for (int n = 2; !taken_.insert(name).second; ++n) name = base + "_" + std::to_string(n);
  return name;
}

void Scope::comment(std::string text) { comment_ = std::move(text); }

void Scope::add(std::vector<std::string> targets, ttrt::Python call) {
  Line line{
      .comment = std::move(comment_), .raw = {}, .targets = std::move(targets), .call = std::move(call), .used = {}};
  comment_.clear();
  for (const std::string& arg : line.call.args()) line.used.merge(identifiers(arg));
  if (may_share(line.call.function()) && line.targets.size() == 1) shares(line.targets[0], line.call.args().at(0));
  lines_.push_back(std::move(line));
}

void Scope::raw(std::string lines) {
  while (lines.ends_with("\n")) lines.pop_back();
  Line made{.comment = std::move(comment_), .raw = std::move(lines), .targets = {}, .used = {}};
  comment_.clear();
  made.used = identifiers(made.raw);
  lines_.push_back(std::move(made));
}

void Scope::if_read(const std::string& variable, std::string lines) {
  raw(std::move(lines));
  lines_.back().only_for = variable;
}

std::vector<Scope::Line> Scope::read_lines() const {
  std::map<std::string, std::size_t> readers;
  for (const Line& line : lines_)
    for (const std::string& name : line.used) readers[name] += line.only_for == name ? 0 : 1;
  std::vector<Line> out;
  for (const Line& line : lines_)
    if (line.only_for.empty() || returned_.contains(line.only_for) || readers[line.only_for] > 0) out.push_back(line);
  return out;
}

void Scope::joins(const std::string& variable, const std::string& other) {
  const std::string first = buffer(variable), second = buffer(other);
  if (first != second) buffer_of_[second] = first;
}

const std::string& Scope::buffer(const std::string& variable) const {
  const std::string* at = &variable;
  for (auto next = buffer_of_.find(*at); next != buffer_of_.end(); next = buffer_of_.find(*at)) at = &next->second;
  return *at;
}

std::string Scope::text(int indent) const {
  const std::vector<Line> lines = read_lines();
  std::map<std::string, std::pair<std::size_t, std::string>> last;  // of a buffer: the line, and a variable that has it
  std::set<std::string> kept;
  for (const std::string& variable : returned_) kept.insert(buffer(variable));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const std::string& name : lines[i].used) last[buffer(name)] = {i, name};
    for (const std::string& name : lines[i].targets) last[buffer(name)] = {i, name};
  }
  std::map<std::size_t, std::vector<std::string>> freed;
  for (const auto& [name, end] : last)
    if (owned_.contains(name) && !kept.contains(name)) freed[end.first].push_back(end.second);
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (!line.comment.empty()) out += margin + "# " + line.comment + "\n";
    out += !line.raw.empty() ? with_margin(line.raw, margin) : statement(line.targets, line.call, indent);
    for (const std::string& name : freed[i]) out += margin + "ttnn.deallocate(" + name + ")\n";
  }
  return out;
}

}  // namespace ttc::emit
