// Columns as wide as their widest cell, and numbers with so many digits.
#include "table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "terminal.h"

namespace ttc {

Table::Table(std::vector<std::string> header) : header_(std::move(header)) {
  for (std::string& name : header_) {
    right_.push_back(name.starts_with(">"));
    if (right_.back()) name.erase(0, 1);
  }
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(header_.size());
  rows_.push_back(std::move(cells));
}

namespace {

constexpr std::size_t gap = 2, narrow = 14, narrowest = 8;

// Makes the widest columns of text narrower, at most down to `least`, until a line of them fits.
void fit(std::vector<std::size_t>& widths, const std::vector<bool>& right, std::size_t indent, std::size_t terminal,
         std::size_t least) {
  if (terminal == 0) return;
  const auto line = [&] {
    std::size_t sum = indent;
    for (const std::size_t width : widths) sum += width + gap;
    return sum - gap;
  };
  while (line() > terminal) {
    std::size_t widest = widths.size();
    for (std::size_t c = 0; c < widths.size(); ++c)
      if (!right[c] && widths[c] > least && (widest == widths.size() || widths[c] > widths[widest])) widest = c;
    if (widest == widths.size()) return;
    --widths[widest];
  }
}

std::string colored(const std::string& cell) {
  if (cell == "ok") return painted(cell, Style::good, Stream::out);
  if (cell.starts_with("FAIL")) return painted(cell, Style::error, Stream::out);
  return cell;
}

}  // namespace

std::string Table::text(int indent) const { return text(indent, terminal_width(Stream::out)); }

std::string Table::text(int indent, std::size_t terminal) const {
  const auto before = static_cast<std::size_t>(indent);
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < header_.size(); ++c) {
    widths.push_back(header_[c].size());
    for (const auto& row : rows_) widths[c] = std::max(widths[c], row[c].size());
  }
  for (const std::size_t least : {narrow, narrowest}) fit(widths, right_, before, terminal, least);
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::vector<std::istringstream> columns;
    for (std::size_t c = 0; c < cells.size(); ++c) columns.emplace_back(wrapped(cells[c], widths[c]));
    for (bool more = true; more;) {
      more = false;
      std::string text(before, ' ');
      for (std::size_t c = 0; c < cells.size(); ++c) {
        std::string part;
        std::getline(columns[c], part);
        const std::string pad(widths[c] - part.size(), ' ');
        part = colored(part);
        text += (right_[c] ? pad + part : part + pad) + std::string(gap, ' ');
        more = more || columns[c].rdbuf()->in_avail() > 0;
      }
      text.erase(text.find_last_not_of(' ') + 1);
      out += text + "\n";
    }
  };
  line(header_);
  for (const auto& row : rows_) line(row);
  return out;
}

std::string Table::markdown() const {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) {
      std::string escaped;
      for (const char c : cell) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
      text += " " + escaped + " |";
    }
    return text + "\n";
  };
  std::string out = line(header_) + "|";
  for (const bool right : right_) out += right ? "--:|" : "---|";
  out += "\n";
  for (const auto& row : rows_) out += line(row);
  return out;
}

std::string number_text(double value, int digits) {
  char text[40];
  const double size = std::abs(value);
  const bool whole = size >= std::pow(10.0, digits) - 0.5 && size < 1e15;  // else "%g" would write an exponent
  std::snprintf(text, sizeof text, whole ? "%.*f" : "%.*g", whole ? 0 : digits, value);
  return text;
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, ++unit;
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

}  // namespace ttc
