// Kernels that say which one ran, and files that go away.
#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "dispatch/clock.h"
#include "dispatch/kernel_registry.h"

namespace dispatch_test {

using namespace ttrt::dispatch;

// Stands still until told.
class ManualClock final : public Clock {
 public:
  void advance_seconds(double seconds) { now_ += static_cast<std::int64_t>(seconds * 1e9); }
  void advance_ns(std::int64_t ns) { now_ += ns; }
  std::int64_t now_ns() const override { return now_.load(std::memory_order_relaxed); }
  std::int64_t coarse_ns() const override { return now_ns(); }

 private:
  std::atomic<std::int64_t> now_{1'000'000'000};
};

// A kernel for CPU contexts whose result is its own id.
inline KernelSpec kernel(const std::string& id, const std::string& operation = "op.x", std::int64_t priority = 50) {
  KernelSpec spec;
  spec.id = id;
  spec.operation = operation;
  spec.platform = Platform::cpu;
  spec.priority = priority;
  spec.impl = [id](CallArgs& args) { *args.output = id; };
  return spec;
}

inline KernelSpec throwing(const std::string& id, const std::string& operation = "op.x", std::int64_t priority = 50) {
  KernelSpec spec = kernel(id, operation, priority);
  spec.impl = [id](CallArgs&) { throw std::runtime_error(id + " broke"); };
  return spec;
}

inline SelectionContext context_of(const std::string& operation = "op.x") {
  SelectionContext context;
  context.operation = operation;
  return context;
}

// The id of the kernel that ran.
template <typename D>
std::string run(D& dispatcher, const std::string& operation = "op.x", SelectionContext context = context_of()) {
  context.operation = operation;
  CallArgs args;
  const Result result = dispatcher.dispatch(operation, args, &context);
  return std::string(result.kernel_id());
}

// The text of the ttc::Error that f throws; "" where it throws none.
template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const ttc::Error& error) {
    return error.what();
  }
  return "";
}

// The phase of the DispatchError that f throws; none where it throws nothing of the kind.
template <typename F>
std::optional<Phase> phase_of(F&& f) {
  try {
    f();
  } catch (const DispatchError& error) {
    return error.phase();
  } catch (...) {
  }
  return std::nullopt;
}

// The ids of what was tried.
inline std::vector<std::string> tried(const DispatchError& error) {
  std::vector<std::string> out;
  for (const TriedKernel& one : error.tried()) out.push_back(one.kernel);
  return out;
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name = "dispatch.yaml") {
    static int count = 0;
    folder_ = std::filesystem::temp_directory_path() /
              ("ttc_dispatch_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / name;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path() const { return path_.string(); }
  std::string beside(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::trunc) << text; }
  // As careful writers do: a whole new file, renamed over the old one.
  void replace(const std::string& text) const {
    const std::string fresh = beside("fresh.tmp");
    std::ofstream(fresh, std::ios::trunc) << text;
    std::filesystem::rename(fresh, path_);
  }
  void remove() const { std::filesystem::remove(path_); }

 private:
  std::filesystem::path folder_, path_;
};

}  // namespace dispatch_test
