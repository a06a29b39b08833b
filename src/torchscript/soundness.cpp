// Debug records: the tables that torch/csrc/jit/serialization/source_range_serialization.h describes. Code: brackets,
// blocks and operators counted, as the grammar puts one level around each.
#include "torchscript/soundness.h"

#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ttc::ts {
namespace {

constexpr std::size_t max_levels = 200, max_operators = 4000;

const c10::ivalue::TupleElements& elements(const c10::IValue& value, std::size_t at_least) {
  const auto& items = value.toTupleRef().elements();
  TORCH_CHECK(items.size() >= at_least, "too few elements");
  return items;
}

// ((indices of the text's pieces, index of the file's name, first line), begin, end)
void check_range(const c10::IValue& range, std::size_t texts) {
  const auto& parts = elements(range, 3);
  const auto& source = elements(parts[0], 3);
  const auto known = [&](std::int64_t i) { return i >= 0 && static_cast<std::size_t>(i) < texts; };
  if (texts == 0) {  // of files before the table: the text itself, and a name or None
    TORCH_CHECK(source[0].isString() && (source[1].isString() || source[1].isNone()), "no text");
  } else {
    TORCH_CHECK(known(source[1].toInt()), "no such name");
    for (const std::int64_t i : source[0].toIntVector()) TORCH_CHECK(known(i), "no such text");
  }
  TORCH_CHECK(source[2].isInt(), "no line");
  TORCH_CHECK(parts[1].toInt() >= 0 && parts[2].toInt() >= 0, "no such place");
}

}  // namespace

// Opcodes by the size of what follows them; pickletools.py of Python lists all.
bool sizes_fit(std::string_view pickle) {
  std::size_t i = 0;
  const auto skip = [&](std::uint64_t n) {
    i = n <= pickle.size() - i ? i + static_cast<std::size_t>(n) : pickle.size() + 1;
  };
  // What the next bytes spell, least first; 0 where there are not so many.
  const auto number = [&](std::size_t bytes) {
    std::uint64_t out = 0;
    if (bytes > pickle.size() - i) return out;
    for (std::size_t b = bytes; b-- > 0;) out = out << 8 | static_cast<unsigned char>(pickle[i + b]);
    return out;
  };
  const auto counted = [&](std::size_t bytes) {
    const std::uint64_t length = number(bytes);
    skip(bytes);
    if (i <= pickle.size()) skip(length);
  };
  const auto line = [&] { i = std::min(pickle.find('\n', i), pickle.size()) + 1; };
  while (i < pickle.size()) {
    const char op = pickle[i++];
    if (op == '.') return true;  // the end
    constexpr std::string_view bytes1("Kqh\x80\x82", 5), bytes4("Jrj\x84", 4), texts1("UC\x8a\x8c", 4),
        texts4("XTB\x8b", 4), texts8("\x8d\x8e\x96", 3), lines("ILFSVgpP", 8);
    const auto among = [op](std::string_view ops) { return ops.find(op) != ops.npos; };
    if (among(bytes1)) skip(1);
    if (op == 'M' || op == '\x83') skip(2);
    if (op == 'r' && number(4) > pickle.size()) return false;  // more entries of the memo than opcodes
    if (among(bytes4)) skip(4);
    if (op == 'G' || op == '\x95') skip(8);
    if (among(texts1)) counted(1);
    if (among(texts4)) counted(4);
    if (among(texts8)) counted(8);
    if (among(lines)) line();
    if (op == 'c' || op == 'i') line(), i <= pickle.size() ? line() : void();
    if (i > pickle.size()) return false;
  }
  return true;
}

bool is_sound_debug_record(std::string_view pickle) {
  if (!sizes_fit(pickle)) return false;
  try {
    const c10::IValue record = torch::jit::unpickle(pickle.data(), pickle.size());
    const auto& top = elements(record, 1);
    std::size_t texts = 0;
    c10::IValue ranges = record;
    if (top[0].isString()) {  // the format's name, the table, the ranges
      TORCH_CHECK(top.size() >= 3, "no ranges");
      for (const c10::IValue& text : elements(top[1], 1)) texts += static_cast<std::size_t>(text.isString());
      TORCH_CHECK(texts == elements(top[1], 1).size(), "no text");
      ranges = top[2];
    }
    for (const c10::IValue& entry : elements(ranges, 0)) {
      const auto& parts = elements(entry, 2);
      TORCH_CHECK(parts[0].isInt() && (parts.size() < 3 || parts[2].isInt()), "no offset");
      check_range(parts[1], texts);
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool is_too_deep(std::string_view code) {
  std::vector<std::size_t> operators{0};  // by bracket, since the last comma: calls and operators also nest
  bool indents = true;
  std::size_t indent = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (indents && c == ' ' && ++indent > 2 * max_levels) return true;
    if (c != ' ') indents = false;
    switch (c) {
      case '\n':
        indents = true, indent = 0, operators.back() = 0;
        break;
      case '#':
        while (i + 1 < code.size() && code[i + 1] != '\n') ++i;
        break;
      case '"':
      case '\'':
        for (++i; i < code.size() && code[i] != c; ++i) i += code[i] == '\\';
        break;
      case ',':
        operators.back() = 0;
        break;
      case '(':
      case '[':
      case '{':
        if (++operators.back() > max_operators || operators.size() > max_levels) return true;
        operators.push_back(0);
        break;
      case ')':
      case ']':
      case '}':
        if (operators.size() > 1) operators.pop_back();
        break;
      default:
        // Words between blanks are operators too ("not", "if"), or next to one.
        if ((std::ispunct(static_cast<unsigned char>(c)) || c == ' ') && c != '_' && !indents &&
            ++operators.back() > max_operators)
          return true;
    }
  }
  return false;
}

}  // namespace ttc::ts
