// See document_reader.h.
#include "dispatch/document_reader.h"

#include <algorithm>
#include <optional>

#include "support/error.h"

namespace ttrt::dispatch {
namespace {

constexpr std::string_view section = "dispatch_rules:";

struct Item {
  std::string_view text;  // whole lines
  int line;               // of the first
};

struct Split {
  std::string head;  // the document with the items' lines left empty
  std::vector<Item> items;
};

// The line at `at`, its end included.
std::string_view line_at(std::string_view text, std::size_t at) {
  const std::size_t end = text.find('\n', at);
  return text.substr(at, end == std::string_view::npos ? std::string_view::npos : end - at + 1);
}

std::size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

bool is_blank(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \n");
  return first == std::string_view::npos || line[first] == '#';
}

bool starts_item(std::string_view line, std::size_t indent) {
  return indent_of(line) == indent && line.substr(indent).starts_with("- ");
}

// Where the list's first line starts, or npos.
std::size_t find_list(std::string_view text) {
  std::size_t at = text.starts_with(section) ? 0 : text.find("\n" + std::string(section));
  if (at == std::string_view::npos) return at;
  if (at != 0 || text.front() == '\n') ++at;
  const std::string_view header = line_at(text, at);
  return is_blank(header.substr(section.size())) ? at + header.size() : std::string_view::npos;
}

std::optional<Split> split(std::string_view text) {
  // Anchors reach across items, other documents and directives across everything.
  if (text.find_first_of("&\r\t") != std::string_view::npos || text.starts_with('%') || text.starts_with("---") ||
      text.find("\n---") != std::string_view::npos || text.find("\n...") != std::string_view::npos)
    return std::nullopt;
  const std::size_t list = find_list(text);
  if (list == std::string_view::npos) return std::nullopt;
  Split out;
  int line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(list), '\n'));
  std::size_t at = list, begun = std::string_view::npos, indent = 0;
  for (; at < text.size(); ++line) {
    const std::string_view one = line_at(text, at);
    if (!is_blank(one)) {
      if (begun == std::string_view::npos) indent = indent_of(one);
      const bool item = starts_item(one, indent);
      if (!item && (begun == std::string_view::npos || indent_of(one) <= indent)) break;
      if (item) {
        if (!out.items.empty()) out.items.back().text = text.substr(begun, at - begun);
        out.items.push_back({.text = {}, .line = line});
        begun = at;
      }
    }
    at += one.size();
  }
  if (out.items.empty()) return std::nullopt;
  out.items.back().text = text.substr(begun, at - begun);
  out.head = std::string(text.substr(0, list)) +
             std::string(static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(list),
                                                             text.begin() + static_cast<std::ptrdiff_t>(at), '\n')),
                         '\n') +
             std::string(text.substr(at));
  return out;
}

void shift_lines(DocNode& node, int by) {
  node.line += by;
  for (DocNode& item : node.items) shift_lines(item, by);
  for (auto& [key, value] : node.members) shift_lines(value, by);
}

}  // namespace

DocNode DocumentReader::parse(std::string_view text, DocumentFormat format, const std::string& file) {
  const std::optional<Split> parts = format == DocumentFormat::yaml ? split(text) : std::nullopt;
  if (!parts) return parse_document(text, format, file);
  const std::lock_guard lock(mutex_);
  try {
    DocNode root = parse_document(parts->head, format, file);
    const auto rules = std::find_if(root.members.begin(), root.members.end(), [](const auto& member) {
      return member.first == section.substr(0, section.size() - 1);
    });
    if (rules == root.members.end() || !rules->second.is(DocNode::Kind::null))
      return parse_document(text, format, file);
    DocNode& list = rules->second;
    list.kind = DocNode::Kind::list;
    std::unordered_map<std::string, DocNode> items;
    for (const Item& item : parts->items) {
      std::string key(item.text);
      auto known = items_.extract(key);
      if (!known.empty()) {
        list.items.push_back(items.insert(std::move(known)).position->second);
      } else {
        auto [at, fresh] = items.try_emplace(std::move(key));
        if (fresh) {
          DocNode alone = parse_document(item.text, format, file);
          if (!alone.is(DocNode::Kind::list) || alone.items.size() != 1) return parse_document(text, format, file);
          at->second = std::move(alone.items[0]);
        }
        list.items.push_back(at->second);
      }
      shift_lines(list.items.back(), item.line - 1);
    }
    items_ = std::move(items);
    return root;
  } catch (const ttc::Error&) {  // whole, the error is what it really is, on its real line
    return parse_document(text, format, file);
  }
}

}  // namespace ttrt::dispatch
