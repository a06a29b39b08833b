// Python text: identifiers, sizes, statements that fit their lines.
#include "emit/python_text.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace ttc::emit {
namespace {

constexpr std::array<std::string_view, 38> reserved{
    "False",    "None",   "True",  "and",  "as",     "assert",   "async",   "await", "break", "class",
    "continue", "def",    "del",   "elif", "else",   "except",   "finally", "for",   "from",  "global",
    "if",       "import", "in",    "is",   "lambda", "nonlocal", "not",     "or",    "pass",  "raise",
    "return",   "try",    "while", "with", "yield",  "ttnn",     "torch",   "math"};

bool word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string identifier(std::string_view text) {
  std::string out;
  for (const char c : text) out += word(c) ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out.insert(0, "_");
  if (std::ranges::find(reserved, out) != reserved.end()) out += '_';
  return out;
}

// Words begin at capitals before small letters, at runs of capitals, and after numbers. A first word of two letters
// takes the capital behind it: ViT, not Vi and T.
std::string snake_case(std::string_view class_name) {
  class_name = class_name.substr(class_name.rfind('.') + 1);
  const auto at = [&](std::size_t i) { return i < class_name.size() ? static_cast<unsigned char>(class_name[i]) : 0U; };
  const auto upper = [&](std::size_t i) { return std::isupper(static_cast<int>(at(i))) != 0; };
  const auto lower = [&](std::size_t i) { return std::islower(static_cast<int>(at(i))) != 0; };
  std::string out;
  bool joined = false;  // the capital before belongs to the first word
  for (std::size_t i = 0; i < class_name.size(); ++i) {
    const bool small_before = i > 0 && !upper(i - 1);
    bool begins = upper(i) && i > 0 && (small_before || (upper(i - 1) && (lower(i + 1) || joined)));
    joined = begins && i == 2 && lower(1) && upper(i + 1);
    if (joined) begins = false;
    if (begins && out.back() != '_') out += '_';
    out += static_cast<char>(std::tolower(static_cast<int>(at(i))));
  }
  return identifier(out);
}

std::string attribute_path(std::string_view dotted) {
  std::string out;
  while (!dotted.empty()) {
    const std::size_t dot = std::min(dotted.find('.'), dotted.size());
    const std::string_view part = dotted.substr(0, dot);
    dotted.remove_prefix(std::min(dot + 1, dotted.size()));
    if (digits(part))
      out += "[" + std::string(part) + "]";
    else
      out += (out.empty() ? "" : ".") + identifier(part);
  }
  return out;
}

std::string symbolic(const ir::SymExpr& expr) {
  if (expr.is_number()) return std::to_string(expr.number());
  if (expr.is_symbol()) return identifier(expr.name());
  std::vector<std::string> in;
  for (const ir::SymExpr& e : expr.operands()) {
    in.push_back(symbolic(e));
    if (in.back().empty()) return "";
  }
  const auto joined = [&](const char* by) {
    std::string out;
    for (const std::string& one : in) out += (out.empty() ? "" : by) + one;
    return "(" + out + ")";
  };
  const std::string& f = expr.name();
  if (f == "add") return joined(" + ");
  if (f == "mul") return joined(" * ");
  if (f == "floordiv" || f == "FloorDiv" || f == "CleanDiv") return joined(" // ");
  if (f == "mod" || f == "Mod" || f == "PythonMod") return joined(" % ");
  if (f == "pow") return joined(" ** ");
  if (f == "neg" && in.size() == 1) return "(-" + in[0] + ")";
  if (f == "min" || f == "Min") return "min" + joined(", ");
  if (f == "max" || f == "Max") return "max" + joined(", ");
  if (f == "CeilDiv" && in.size() == 2) return "(-(-" + in[0] + " // " + in[1] + "))";
  return "";
}

std::string torch_dtype_text(DType dtype) { return "torch." + std::string(torch_name(dtype)); }

std::set<std::string> identifiers(std::string_view code) {
  std::set<std::string> out;
  for (std::size_t i = 0; i < code.size();) {
    if (!word(code[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < code.size() && word(code[end])) ++end;
    if (i == 0 || code[i - 1] != '.') out.emplace(code.substr(i, end - i));
    i = end;
  }
  return out;
}

std::string renamed(std::string_view code, const std::map<std::string, std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < code.size();) {
    std::size_t end = i;
    while (end < code.size() && word(code[end])) ++end;
    const std::string one(code.substr(i, std::max<std::size_t>(end - i, 1)));
    const auto at = i > 0 && code[i - 1] == '.' ? names.end() : names.find(one);
    out += at == names.end() ? one : at->second;
    i += one.size();
  }
  return out;
}

namespace {

// "a, (b, c)" at the commas outside brackets.
std::vector<std::string> split_arguments(std::string_view text) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      out.emplace_back();
    } else if (c != ' ' || !out.back().empty()) {
      out.back() += c;
    }
  }
  return out;
}

// An expression between brackets, on as many lines as it takes: broken behind operators.
std::string broken_expression(const std::string& text, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string out, line = margin;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string piece = text.substr(at, end - at);
    if (line.size() > indent && line.size() + 1 + piece.size() > line_width) {
      out += line + "\n";
      line = margin;
    }
    line += (line.size() > indent ? " " : "") + piece;
    at = end + 1;
  }
  return out + line + "\n";
}

// One argument on lines of its own; a call among them is opened too where it is too long.
std::string argument_lines(const std::string& arg, std::size_t indent) {
  const std::string margin(indent, ' ');
  const bool list = arg.ends_with("]") && arg.find_first_of("([") == arg.find('[');
  const std::size_t open = arg.find(list ? '[' : '(');
  if (margin.size() + arg.size() + 1 <= line_width || open == std::string::npos || (!list && !arg.ends_with(")")))
    return margin + arg + ",\n";
  const std::string inner = arg.substr(open + 1, arg.size() - open - 2), end = list ? "],\n" : "),\n";
  if (margin.size() + 4 + inner.size() <= line_width)
    return margin + arg.substr(0, open + 1) + "\n" + margin + "    " + inner + "\n" + margin + end;
  std::string out = margin + arg.substr(0, open + 1) + "\n";
  const std::vector<std::string> parts = split_arguments(inner);
  const bool call = list || (open > 0 && word(arg[open - 1]));
  if (parts.size() == 1 && !call)  // an expression, which a comma would make a tuple
    return out + broken_expression(inner, indent + 4) + margin + end;
  for (const std::string& one : parts) out += argument_lines(one, indent + 4);
  return out + margin + end;
}

}  // namespace

std::string statement(const std::vector<std::string>& targets, const ttrt::Python& call, int indent) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string left;
  for (const std::string& target : targets) left += (left.empty() ? "" : ", ") + target;
  if (!left.empty()) left += " = ";
  const std::string line = margin + left + call.str();
  if (line.size() <= line_width) return line + "\n";
  std::string out = margin + left + call.function() + "(\n", packed;
  for (const std::string& arg : call.args()) packed += (packed.empty() ? "" : ", ") + arg;
  if (margin.size() + 4 + packed.size() <= line_width) return out + margin + "    " + packed + "\n" + margin + ")\n";
  for (const std::string& arg : call.args()) out += argument_lines(arg, margin.size() + 4);
  return out + margin + ")\n";
}

}  // namespace ttc::emit
