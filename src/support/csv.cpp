// RFC 4180, with the line ends of the host's other text.
#include "support/csv.h"

namespace ttc {

void Csv::row(const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text_ += ',';
    if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
      text_ += cells[i];
      continue;
    }
    text_ += '"';
    for (const char c : cells[i]) text_ += c == '"' ? std::string("\"\"") : std::string(1, c);
    text_ += '"';
  }
  text_ += '\n';
}

}  // namespace ttc
