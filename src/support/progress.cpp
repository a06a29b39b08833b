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

void Phase::advance(std::uint64_t done) {
  const std::lock_guard lock(mutex);
  done_ += done;
}

std::optional<PhaseState> current_phase() {
  static const int forks_take_the_lock =
      pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
  static_cast<void>(forks_take_the_lock);
  const std::lock_guard lock(mutex);
  if (phases().empty()) return std::nullopt;
  const Phase& p = *phases().back();
  return PhaseState{.name = p.name_,
                    .what = p.what_,
                    .done = p.done_,
                    .total = p.total_,
                    .unit = p.unit_,
                    .seconds = now() - p.start_};
}

}  // namespace ttc
