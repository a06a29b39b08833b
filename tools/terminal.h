// What differs where a person reads along: colour, width, and a line that shows how far long work is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ttc {

enum class Stream { out, error };  // standard output, standard error

// auto: on a terminal, unless NO_COLOR is set to anything but ""; always; never.
void set_color(std::string_view when);

enum class Style { error, warning, hint, good, strong };
// `text` in the style's colour where the stream shows colours, else as it is.
std::string painted(std::string_view text, Style style, Stream stream);

bool is_terminal(Stream stream);
// Columns of the terminal; 0 where the stream is none.
std::size_t terminal_width(Stream stream);
// `text` broken at spaces into lines of at most `width`, each but the first after `indent` blanks; a word that is
// longer is broken where it must be.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);

// While it lives, a line on standard error shows the phase that the library is in (support/progress.h) once that takes
// longer than a second: how far, how fast, how long still. Nothing where standard error is no terminal.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Takes the line away, for something else to be written; it comes back by itself.
  static void clear();

 private:
  struct Drawer;
  Drawer* drawer_ = nullptr;
};

}  // namespace ttc
