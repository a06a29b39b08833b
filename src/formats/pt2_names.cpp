// PyTorch's spelling of operators, modules and traces, and ours.
#include "formats/pt2_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace ttc {
namespace {

constexpr std::string_view ops_prefix = "torch.ops.", tt_prefix = "tt.", default_suffix = ".default";

bool is_python_function(std::string_view op) {
  return op.starts_with("_operator.") || op.starts_with("math.") || op.starts_with("torch.") || op.starts_with("#");
}

}  // namespace

std::string op_from_target(std::string_view target) {
  if (!target.starts_with(ops_prefix)) return std::string(target);
  target.remove_prefix(ops_prefix.size());
  if (target.starts_with(tt_prefix) && target.ends_with(default_suffix)) target.remove_suffix(default_suffix.size());
  return std::string(target);
}

std::string target_from_op(std::string_view op) {
  if (is_python_function(op)) return std::string(op);
  std::string target = std::string(ops_prefix) + std::string(op);
  if (op.starts_with(tt_prefix) && std::count(op.begin(), op.end(), '.') == 1) target += default_suffix;
  return target;
}

std::string python_identifier(std::string_view name) {
  static constexpr std::array<std::string_view, 35> keywords = {
      "False", "None", "True", "and",    "as",  "assert", "async",  "await",    "break",  "class", "continue", "def",
      "del",   "elif", "else", "except", "for", "from",   "global", "if",       "import", "in",    "is",       "lambda",
      "not",   "or",   "pass", "raise",  "try", "while",  "with",   "nonlocal", "return", "yield", "finally"};
  constexpr std::size_t longest_keyword = 8;
  std::string out(name);
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "_");
  if (out.size() <= longest_keyword && std::find(keywords.begin(), keywords.end(), out) != keywords.end()) out += "_";
  return out;
}

}  // namespace ttc
