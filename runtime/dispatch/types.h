// The vocabulary of dispatch: modes, calls and results, configuration, the error, and what every dispatcher offers.
//
// A dispatcher chooses a kernel for an operation and runs it. Names are interned (symbol.h), kernels are records
// (kernel.h), what is known about a call is a SelectionContext (context.h).
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/symbol.h"
#include "ops/value.h"
#include "support/error.h"

namespace ttrt::dispatch {

using Json = nlohmann::ordered_json;

struct SelectionContext;
struct KernelSpec;

enum class DispatchMode : std::uint8_t { STATIC, DYNAMIC, HOT_RELOAD, CONFIG, AUTO };
inline constexpr int dispatch_mode_count = 5;
std::string_view to_string(DispatchMode mode);  // "STATIC"
// Upper or lower case, with '-' or '_'; nullopt for anything else.
std::optional<DispatchMode> dispatch_mode_from_string(std::string_view name);

// One named input. The value is the caller's and outlives the call.
struct Input {
  Symbol name;
  const RtValue* value = nullptr;
};

// What a kernel is called with. `inputs` are the operation's operands by name, `extras` are options under their
// original names; `payload` is what the caller and its kernels agree on (an executor's step) and may be all there is.
struct CallArgs {
  std::span<const Input> inputs = {};
  std::span<const Input> extras = {};
  void* payload = nullptr;
  RtValue* output = nullptr;           // set by the dispatcher; the kernel writes its result here where it has one
  const KernelSpec* failed = nullptr;  // has failed for this very call already: is not tried again

  // In inputs, then extras; nullptr where there is none.
  const RtValue* find(Symbol name) const;
};

// Nanoseconds of one dispatch. All are 0 where record_timing is off.
struct Timing {
  std::int64_t selection_ns = 0, execution_ns = 0, total_ns = 0;
  std::int64_t overhead_ns() const { return total_ns - execution_ns; }
};

struct Result {
  RtValue output;
  const KernelSpec* kernel = nullptr;  // lives as long as the registry it came from; nullptr: nothing serves the call
  Timing timing;
  DispatchMode mode = DispatchMode::DYNAMIC;
  bool cached = false;  // the choice came from a cache (always so in STATIC)
  bool fallback_used = false;
  std::string fallback_reason;  // empty: none

  std::string_view kernel_id() const;
};

using StaticMap = std::map<std::string, std::string, std::less<>>;  // operation -> kernel id

struct DispatchOptions {
  DispatchMode mode = DispatchMode::DYNAMIC;
  bool enable_cache = true;
  std::int64_t cache_size = 10000;  // entries; 0: nothing is kept
  double cache_ttl_seconds = 3600;
  bool enable_fallback = true;
  std::int64_t max_fallback_attempts = 3;
  double fallback_timeout_ms = 100;  // no further fallback is begun later than this after the first failure
  std::string config_path = {};      // empty: none
  double watch_interval_seconds = 1;
  bool validate_on_reload = true;
  bool enable_telemetry = true;
  bool record_timing = true;
  bool log_fallbacks = true;
  bool circuit_breaker_enabled = true;
  std::int64_t failure_threshold = 5;
  double recovery_timeout_seconds = 30;
  StaticMap static_kernel_map = {};
};

// Validated (settings.h) and immutable: throws ttc::Error (usage) naming the field that is out of range.
class DispatchConfig {
 public:
  DispatchConfig() : DispatchConfig(DispatchOptions{}) {}
  explicit DispatchConfig(DispatchOptions options);
  const DispatchOptions* operator->() const { return &options_; }
  const DispatchOptions& operator*() const { return options_; }

 private:
  DispatchOptions options_;
};

// Where dispatching went wrong: what a caller may tell apart.
enum class Phase : std::uint8_t {
  SELECTION,      // no kernel can serve the call; tried() says why each one cannot
  CIRCUIT,        // the kernel's circuit is open, for retry_after_seconds(), and nothing else may serve
  EXECUTION,      // the kernel failed; original() is what it threw, null where it could not be called at all
  FALLBACK,       // every kernel that was tried failed, tried() in order
  REGISTRATION,   // of an entry that is not whole, or in a registry that is frozen
  CONFIGURATION,  // a wrong document; file() names it, what() holds line and path in it
  RELOAD,         // the same for one that was to replace another, which stays active
};
std::string_view to_string(Phase phase);  // "SELECTION"

struct TriedKernel {
  std::string kernel, why;
};
struct DispatchDetails {
  std::string operation = {}, kernel_id = {};
  std::vector<TriedKernel> tried = {};
  double retry_after_seconds = 0;
  std::exception_ptr original = {};
  std::string file = {}, hint = {};
};

// what() holds the message, then operation, kernel and phase where known.
class DispatchError : public ttc::Error {
 public:
  DispatchError(Phase phase, const std::string& message, DispatchDetails details = {});

  Phase phase() const { return phase_; }
  const std::string& text() const { return text_; }  // the message alone
  const std::string& operation() const { return details_.operation; }
  const std::string& kernel_id() const { return details_.kernel_id; }
  const std::vector<TriedKernel>& tried() const { return details_.tried; }
  double retry_after_seconds() const { return details_.retry_after_seconds; }
  const std::exception_ptr& original() const { return details_.original; }

 private:
  Phase phase_;
  std::string text_;
  DispatchDetails details_;
};
DispatchError circuit_open_error(std::string_view operation, std::string_view kernel_id, double retry_after_seconds);
DispatchError fallbacks_exhausted(std::string_view operation, std::vector<TriedKernel> tried);

// "did you mean 'x'?", or "" where no candidate is close.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);
// What an exception says, for messages that quote it.
std::string error_text(const std::exception_ptr& error);

// Told about warnings, refused documents, kernels that are taken out; must be thread-safe.
using Report = std::function<void(const std::string&)>;
// "warning: <text>" on standard error, printable, where there is no other report.
void report_to(const Report& report, const std::string& text, std::string_view severity = "warning");

class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  virtual DispatchMode mode() const = 0;
  // Chooses a kernel, runs it, fills the (fresh) result. No kernel there: this mode has none for the call, nothing ran.
  // Throws DispatchError where what it chose fails. `context` may be null where the mode needs none or can make one
  // from the inputs.
  virtual void attempt(Symbol operation, CallArgs& args, const SelectionContext* context, Result& result) = 0;
  // The choice alone, nothing runs; nullptr for none. The record lives as long as its registry.
  virtual const KernelSpec* choose(Symbol operation, const SelectionContext& context) = 0;
  // Why there is none.
  virtual DispatchError nothing_serves(Symbol operation, const SelectionContext* context) const = 0;

  // The same, where having none is an error.
  Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context = nullptr);
  const KernelSpec& get_kernel_for_operation(Symbol operation, const SelectionContext& context);

  virtual Json explain_selection(Symbol operation, const SelectionContext& context);
  virtual Json telemetry() const = 0;
  virtual void reset_telemetry() = 0;
  // Takes effect for the calls that begin later, everything derived from the configuration included.
  virtual void update_config(const DispatchConfig& config) = 0;
  virtual void stop_watching() {}
  virtual void shutdown() {}
};

}  // namespace ttrt::dispatch
