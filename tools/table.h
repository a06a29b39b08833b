// Plain-text tables for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ttc {

class Table {
 public:
  // A header that starts with '>' is right-aligned, its column too.
  explicit Table(std::vector<std::string> header);
  void row(std::vector<std::string> cells);
  // Columns padded to their widest cell, two spaces apart, no trailing blanks; `indent` spaces before each line. On a
  // terminal that is narrower, the widest columns of text are broken into lines, and "ok" and "FAIL" have colours.
  std::string text(int indent = 0) const;
  // For so many columns of a terminal; 0: as wide as it comes out.
  std::string text(int indent, std::size_t terminal) const;
  // As Markdown.
  std::string markdown() const;
  bool empty() const { return rows_.empty(); }

 private:
  std::vector<std::string> header_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// A number with so many significant digits: "0.99987", "1.2e-05"; a large one with all before the point: "123456".
std::string number_text(double value, int digits = 4);
// "1.2 MiB"
std::string bytes_text(double bytes);

}  // namespace ttc
