// What is still done where a check fails (TTC_CHECK), before the process ends: writing down what it was about.
#pragma once

#include <functional>
#include <string>

namespace ttc {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

// While it lives. Of several the latest made is called, by the thread that failed, once, and for ten seconds at most:
// nobody knows what state the rest is in.
class AtCheckFailure {
 public:
  explicit AtCheckFailure(std::function<void(const std::string& what)> act);
  ~AtCheckFailure();
  AtCheckFailure(const AtCheckFailure&) = delete;
  AtCheckFailure& operator=(const AtCheckFailure&) = delete;

 private:
  const AtCheckFailure* const before_;
  const std::function<void(const std::string&)> act_;

  friend void check_failed(const char* file, int line, const char* condition, const std::string& message);
};

}  // namespace ttc
