// Messages, the nearest of several names, and the end of the process where a check fails.
#include "support/error.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "support/check_hook.h"
#include "support/printable.h"

namespace ttc {

Error::Error(Exit code, std::string_view file, std::string_view what, std::string_view hint)
    : std::runtime_error(printable(what)), code_(code), file_(printable(file)), hint_(printable(hint)) {}

std::string Error::message() const {
  std::string text = "error: ";
  if (!file_.empty()) text += file_ + ": ";
  text += what();
  text += '\n';
  if (!hint_.empty()) text += "hint: " + hint_ + '\n';
  return text;
}

Error bad_file(std::string file, std::string what, std::string hint) {
  return {Exit::bad_file, std::move(file), std::move(what), std::move(hint)};
}

Error usage_error(std::string what, std::string hint) { return {Exit::usage, "", std::move(what), std::move(hint)}; }

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::string* candidates, std::size_t count) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t distance = edit_distance(word, candidates[i]);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidates[i];
    }
  }
  return best;
}

namespace {

std::atomic<const AtCheckFailure*> at_failure = nullptr;

}  // namespace

AtCheckFailure::AtCheckFailure(std::function<void(const std::string& what)> act)
    : before_(at_failure.load()), act_(std::move(act)) {
  at_failure = this;
}
AtCheckFailure::~AtCheckFailure() { at_failure = before_; }

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  const std::string what =
      std::string(file) + ":" + std::to_string(line) + ": check failed: " + condition + ": " + printable(message);
  std::fprintf(stderr, "%s\nThis is a bug in ttc. Please report it with the command and the file.\n", what.c_str());
  std::fflush(stderr);
  if (const AtCheckFailure* last = at_failure.exchange(nullptr)) {
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::seconds(10));
      std::_Exit(static_cast<int>(Exit::bug));
    }).detach();
    try {
      last->act_(what);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", printable(error.what()).c_str());
    }
    std::fflush(stderr);
  }
  std::_Exit(static_cast<int>(Exit::bug));
}

}  // namespace ttc
