// What the library has to say while it works, for whoever shows it.
#pragma once

#include <functional>
#include <string>

namespace ttc {

struct Notes {
  std::function<void(const std::string&)> say;     // one line; none: said to nobody
  std::function<void(const std::string&)> detail;  // the same, for those who ask for more
  // What the user should know before he trusts the result, and what to do about it ("" where that is plain). None: it
  // is said as a line.
  std::function<void(const std::string& text, const std::string& hint)> warn = {};

  void operator()(const std::string& line) const {
    if (say) say(line);
  }
  void in_detail(const std::string& line) const {
    if (detail) detail(line);
  }
  void warning(const std::string& text, const std::string& hint = {}) const {
    if (warn)
      warn(text, hint);
    else
      operator()("warning: " + text + (hint.empty() ? "" : "; " + hint));
  }
};

}  // namespace ttc
