// Messages are valid UTF-8 whatever bytes a file, a name or an argument held: a byte that belongs to no UTF-8 sequence
// and a control character other than newline and tab become "\xff".
#pragma once

#include <mutex>
#include <streambuf>
#include <string>
#include <string_view>

namespace ttc {

// Text that is already printable comes back as it is; backslashes stay, so that printable(printable(x)) is
// printable(x).
std::string printable(std::string_view text);

// Passes what is written to it on to another buffer, printable; from any thread. A sequence may come in several writes.
// Escape characters and returns pass: they are how a program colours a terminal and redraws a line.
class PrintableBuffer : public std::streambuf {
 public:
  explicit PrintableBuffer(std::streambuf* to) : to_(to) {}
  ~PrintableBuffer() override;

 protected:
  int overflow(int c) override;
  std::streamsize xsputn(const char* data, std::streamsize size) override;
  int sync() override { return to_->pubsync(); }

 private:
  bool pass(std::string_view text);
  std::streambuf* to_;
  std::mutex mutex_;
  std::string begun_;  // the start of a sequence whose rest is still to come
};

}  // namespace ttc
