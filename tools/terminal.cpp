// Colour by NO_COLOR and isatty, width by TIOCGWINSZ; the progress line is drawn by a thread of its own that writes to
// the file descriptor, so that it holds no lock of a stream when the process forks.
#include "terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "support/printable.h"
#include "support/progress.h"
#include "table.h"

namespace ttc {
namespace {

int descriptor(Stream stream) { return stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO; }

enum class Color { automatic, always, never } color = Color::automatic;

bool colored(Stream stream) {
  if (color != Color::automatic) return color == Color::always;
  const char* no = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return (no == nullptr || *no == '\0') && !dumb && is_terminal(stream);
}

}  // namespace

void set_color(std::string_view when) {
  color = when == "always" ? Color::always : when == "never" ? Color::never : Color::automatic;
}

std::string painted(std::string_view text, Style style, Stream stream) {
  if (!colored(stream)) return std::string(text);
  static constexpr const char* codes[] = {"1;31", "1;33", "36", "32", "1"};
  return "\x1b[" + std::string(codes[static_cast<int>(style)]) + "m" + std::string(text) + "\x1b[0m";
}

bool is_terminal(Stream stream) { return ::isatty(descriptor(stream)) == 1; }

std::size_t terminal_width(Stream stream) {
  winsize size{};
  if (!is_terminal(stream)) return 0;
  if (::ioctl(descriptor(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  while (text.size() > width) {
    std::size_t at = text.rfind(' ', width);
    const bool between_words = at != std::string_view::npos && at > 0;
    if (!between_words)
      for (at = width; at > 1 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;) --at;  // no character is cut
    out += std::string(text.substr(0, at)) + "\n" + std::string(indent, ' ');
    text.remove_prefix(between_words ? at + 1 : at);
  }
  return out + std::string(text);
}

// ---- progress ------------------------------------------------------------------------------------------------------

namespace {

std::string seconds_text(double seconds) {
  char text[32];
  if (seconds < 100)
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  else
    std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(seconds) / 60, static_cast<int>(seconds) % 60);
  return text;
}

// "45 %, 120.3 MiB/s, 8 s left"
std::string progress_of(const PhaseState& phase) {
  const bool bytes = phase.unit == Phase::Unit::bytes;
  const double done = static_cast<double>(phase.done), rate = done / phase.seconds;
  if (phase.total == 0 || phase.done > phase.total) return seconds_text(phase.seconds);
  const double total = static_cast<double>(phase.total);
  std::string out = bytes ? number_text(std::floor(100 * done / total), 3) + " %"
                          : std::to_string(phase.done) + "/" + std::to_string(phase.total);
  if (phase.done == 0) return out + ", " + seconds_text(phase.seconds);
  out += ", " + (bytes ? bytes_text(rate) : number_text(rate, 2)) + "/s";
  return out + ", " + seconds_text((total - done) / rate) + " left";
}

// "writing big.pt2: 45 %, 120.3 MiB/s, 8 s left"; what does not fit the width goes from the end of the name.
std::string line_of(const PhaseState& phase, std::size_t width) {
  std::string name = printable(phase.name + (phase.what.empty() ? "" : " (" + phase.what + ")"));
  const std::string progress = ": " + progress_of(phase);
  if (name.size() + progress.size() >= width)
    name.resize(width > progress.size() + 1 ? width - progress.size() - 1 : 0);
  return name + progress;
}

std::atomic<bool> drawn = false;

void draw(const std::string& text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nobody to tell
}

}  // namespace

struct ProgressLine::Drawer {
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  std::thread thread;

  void loop() {
    constexpr auto interval = std::chrono::milliseconds(200);
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, interval, [&] { return over; })) {
      constexpr double shown_after = 1;  // seconds
      const auto phase = current_phase(shown_after);
      if (!phase) {
        ProgressLine::clear();
        continue;
      }
      drawn = true;
      draw("\r" + line_of(*phase, terminal_width(Stream::error)) + "\x1b[K");
    }
  }
};

ProgressLine::ProgressLine(bool wanted) {
  if (!wanted || !is_terminal(Stream::error)) return;
  drawer_ = new Drawer;
  drawer_->thread = std::thread([this] { drawer_->loop(); });
}

ProgressLine::~ProgressLine() {
  if (drawer_ == nullptr) return;
  {
    const std::lock_guard lock(drawer_->mutex);
    drawer_->over = true;
  }
  drawer_->ended.notify_one();
  drawer_->thread.join();
  delete drawer_;
  clear();
}

void ProgressLine::clear() {
  if (drawn.exchange(false)) draw("\r\x1b[K");
}

}  // namespace ttc
