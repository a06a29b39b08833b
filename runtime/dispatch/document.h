// Configuration documents, YAML or JSON (which is YAML to yaml-cpp), as one small tree that knows its lines: what
// validators read and errors quote.
//
// Reading is bounded: files up to max_document_bytes, max_document_nodes nodes after aliases are expanded, nesting up
// to max_document_depth. Scalars are resolved as YAML 1.1 does (yes, no, on and off are booleans); a quoted scalar is a
// string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ttrt::dispatch {

inline constexpr std::size_t max_document_bytes = 16U << 20;
inline constexpr std::size_t max_document_nodes = 1'000'000;
inline constexpr int max_document_depth = 64;

struct DocNode {
  enum class Kind : std::uint8_t { null, boolean, integer, number, string, list, map };

  Kind kind = Kind::null;
  int line = 0;  // 1-based; 0 where the document was made in memory
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;      // of integers too
  std::string text = {};  // a scalar as written, without quotes
  std::vector<DocNode> items = {};
  std::vector<std::pair<std::string, DocNode>> members = {};  // in file order; no key twice

  bool is(Kind k) const { return kind == k; }
  const DocNode* find(std::string_view key) const;  // nullptr where it is missing or this is no map
  // For messages: the scalar as written, strings in quotes, lists and maps abbreviated to their JSON.
  std::string shown() const;
  // JSON with sorted keys and no blanks: equal content, equal text.
  std::string canonical() const;
};
std::string_view to_string(DocNode::Kind kind);  // "a list", "a string", ...

// An empty text is a null node. Throws ttc::Error (bad file) naming `file` and the line.
DocNode parse_document(std::string_view text, const std::string& file);
// Regular files named .yaml, .yml or .json. Throws ttc::Error (bad file) where the file is missing, unreadable, too
// large, of another extension, or malformed.
DocNode read_document(const std::string& path);
// The file's bytes, with the same errors.
std::string read_config_file(const std::string& path);

}  // namespace ttrt::dispatch
