// Reads documents that are read again and again: what was parsed before is not parsed again.
//
// A YAML configuration is mostly its list of rules. The items of a block list under `dispatch_rules:` are parsed one by
// one and remembered by their text, so a reload costs what changed. Whatever does not split plainly (flow style,
// anchors, several documents) or does not parse alone is parsed whole: results and errors are those of parse_document.
#pragma once

#include <mutex>
#include <unordered_map>

#include "dispatch/document.h"

namespace ttrt::dispatch {

class DocumentReader {
 public:
  // As parse_document. Any number of threads, one at a time.
  DocNode parse(std::string_view text, DocumentFormat format, const std::string& file);
  DocNode read(const std::string& path, DocumentFormat format) { return parse(read_config_file(path), format, path); }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, DocNode> items_;  // of the last document, by text; lines from 1
};

}  // namespace ttrt::dispatch
