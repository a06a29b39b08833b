// Calling a kernel, the same for every mode: errors wrapped, backends told, axis order adapted where asked for.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "dispatch/clock.h"
#include "dispatch/kernel.h"

namespace ttrt::dispatch {

enum class BackendState : std::uint8_t { healthy, degraded, unhealthy, cooldown };
std::string_view to_string(BackendState state);

// The health of the libraries that kernels come from. Informs, does not gate: that is the circuits' business.
// healthy: no failure since the last success; degraded: fewer than the threshold; cooldown: threshold reached, for
// cooldown_seconds after the last failure; unhealthy: after that, until a success.
class BackendHealth {
 public:
  explicit BackendHealth(int threshold = 3, double cooldown_seconds = 60, const Clock& clock = system_clock())
      : threshold_(threshold), cooldown_seconds_(cooldown_seconds), clock_(clock) {}
  void add(const std::string& source);
  // Sources that were not added are ignored.
  void record_success(const std::string& source);
  void record_failure(const std::string& source);
  struct Entry {
    std::int64_t successes = 0, failures = 0, consecutive_failures = 0;
    BackendState state = BackendState::healthy;
  };
  std::map<std::string, Entry> entries() const;

 private:
  struct Record {
    Entry entry;
    std::int64_t last_failure_ns = 0;
  };
  const int threshold_;
  const double cooldown_seconds_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Record> records_;
};

// Runs the kernel. Throws KernelExecutionError where it has no implementation or throws; one that is thrown already
// passes unchanged. `health` may be null.
void execute(const KernelSpec& kernel, Symbol operation, CallArgs& args, BackendHealth* health);

// Whether the kernel takes the operands in another order of axes than the context's, and one the runtime can make
// (BSHD <-> BHSD of an attention).
bool needs_transform(const KernelSpec& kernel, const SelectionContext& context);
// The call with q, k, v transposed to the kernel's order, as views, and the output transposed back. Throws
// TransformError where an operand is no 4-D host tensor. Returns the nanoseconds before and after the kernel through
// `timing`.
void execute_transformed(const KernelSpec& kernel, Symbol operation, CallArgs& args, BackendHealth* health,
                         const Clock& clock, Timing& timing);

}  // namespace ttrt::dispatch
