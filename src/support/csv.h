// Text as comma-separated values: the one place that quotes them.
#pragma once

#include <string>
#include <vector>

namespace ttc {

class Csv {
 public:
  // Cells that hold commas, quotes or line ends are quoted.
  void row(const std::vector<std::string>& cells);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace ttc
