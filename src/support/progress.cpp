// The phases there are, behind a lock that every fork takes, so that no child finds it held.
#include "support/progress.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <vector>

namespace ttc {
namespace {

std::mutex mutex;
std::vector<Phase*>& phases() {
  static auto* const instance = new std::vector<Phase*>;
  return *instance;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Phase::Phase(std::string name, std::uint64_t total, Unit unit)
    : name_(std::move(name)), total_(total), unit_(unit), start_(now()) {
  const std::lock_guard lock(mutex);
  phases().push_back(this);
}

Phase::~Phase() {
  const std::lock_guard lock(mutex);
  std::erase(phases(), this);
}

void Phase::at(std::string what) {
  const std::lock_guard lock(mutex);
  what_ = std::move(what);
}

std::optional<PhaseState> current_phase(double seconds) {
  static const int forks_take_the_lock =
      pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
  static_cast<void>(forks_take_the_lock);
  const std::lock_guard lock(mutex);
  const double end = now();
  const Phase *shown = nullptr, *innermost = nullptr;
  for (const Phase* phase : phases()) {
    if (end - phase->start_ < seconds) continue;
    innermost = phase;
    if (shown == nullptr && phase->done_ > 0 && phase->done_ <= phase->total_) shown = phase;
  }
  if (innermost == nullptr) return std::nullopt;
  if (shown == nullptr) shown = innermost;
  return PhaseState{.name = shown->name_,
                    .what = shown != phases().back() && shown->what_.empty() ? phases().back()->name_ : shown->what_,
                    .done = shown->done_,
                    .total = shown->total_,
                    .unit = shown->unit_,
                    .seconds = end - shown->start_};
}

}  // namespace ttc
