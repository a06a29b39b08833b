// What the library has to say while it works, for whoever shows it.
#pragma once

#include <functional>
#include <string>

namespace ttc {

struct Notes {
  std::function<void(const std::string&)> say;     // one line; none: said to nobody
  std::function<void(const std::string&)> detail;  // the same, for those who ask for more

  void operator()(const std::string& line) const {
    if (say) say(line);
  }
  void in_detail(const std::string& line) const {
    if (detail) detail(line);
  }
};

}  // namespace ttc
