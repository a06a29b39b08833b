// Errors a user can cause, and the check for errors that are ours.
//
// Bad input or usage throws Error, which main() catches once, prints as
//   error: <file>: <what>
//   hint: <hint>
// and turns into an exit code. What the device cannot do is never an Error: see reason.h.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace ttc {

// Exit codes of the `ttc` tool.
enum class Exit : int {
  ok = 0,
  check_failed = 1,  // a comparison or a threshold failed
  usage = 2,         // a wrong flag, input name, shape or dtype
  unsupported = 3,   // something stays on the CPU under --require-full
  bad_file = 4,      // an input file that cannot be read
  bug = 70,          // ours
};

class Error : public std::runtime_error {
 public:
  // Whatever bytes the parts hold, they are kept printable: valid UTF-8 without control characters.
  Error(Exit code, std::string_view file, std::string_view what, std::string_view hint = {});

  Exit code() const { return code_; }
  const std::string& file() const { return file_; }
  const std::string& hint() const { return hint_; }

  // A copy that names `file`, for code that learns late which file it reads.
  Error in_file(std::string file) const { return Error(code_, std::move(file), what(), hint_).with_report(report_); }

  // What there is to tell all the same, as the text of a JSON object: what stays on the CPU. "": nothing.
  const std::string& report() const { return report_; }
  Error with_report(std::string json) const {
    Error out = *this;
    out.report_ = std::move(json);
    return out;
  }

  // "error: <file>: <what>\nhint: <hint>\n"
  std::string message() const;

 private:
  Exit code_;
  std::string file_;
  std::string hint_, report_;
};

// A file whose content is wrong (exit code 4).
Error bad_file(std::string file, std::string what, std::string hint = {});
// A wrong argument of the command line or the API (exit code 2).
Error usage_error(std::string what, std::string hint = {});

// The candidate closest to `word` by edit distance, or "" where none is close: for "did you mean".
std::string nearest(std::string_view word, const std::string* candidates, std::size_t count);

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace ttc

// A condition that only a bug of ours can break: aborts with file, line and how to report it.
#define TTC_CHECK(condition, message)                                               \
  do {                                                                              \
    if (!(condition)) [[unlikely]]                                                  \
      ::ttc::check_failed(__FILE__, __LINE__, #condition, std::string() + message); \
  } while (false)
