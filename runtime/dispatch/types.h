// The vocabulary of dispatch: modes, phases, timing, result, configuration, errors and the dispatcher interface.
//
// A dispatcher chooses a kernel for an operation and runs it. Names are interned (symbol.h), kernels are records
// (kernel.h), what is known about a call is a SelectionContext (context.h).
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/symbol.h"
#include "support/error.h"
#include "ops/value.h"

namespace ttrt::dispatch {

using Json = nlohmann::ordered_json;

struct SelectionContext;
struct KernelSpec;

// ---- modes and phases ---------------------------------------------------------------------------------------------

enum class DispatchMode : std::uint8_t { STATIC, DYNAMIC, HOT_RELOAD, CONFIG, AUTO };
inline constexpr int dispatch_mode_count = 5;
enum class Phase : std::uint8_t { SELECTION, PRE_TRANSFORM, EXECUTION, POST_TRANSFORM, FALLBACK };

std::string_view to_string(DispatchMode mode);  // "STATIC"
std::string_view to_string(Phase phase);        // "SELECTION"
// Upper or lower case, with '-' or '_'; nullopt for anything else.
std::optional<DispatchMode> dispatch_mode_from_string(std::string_view name);

// ---- calls and results --------------------------------------------------------------------------------------------

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
  RtValue* output = nullptr;  // set by the dispatcher; the kernel writes its result here where it has one

  // In inputs, then extras; nullptr where there is none.
  const RtValue* find(Symbol name) const;
};

// Nanoseconds of one dispatch. All are 0 where record_timing is off.
struct Timing {
  std::int64_t selection_ns = 0, pre_transform_ns = 0, execution_ns = 0, post_transform_ns = 0, total_ns = 0;

  double selection_us() const { return static_cast<double>(selection_ns) / 1e3; }
  double execution_us() const { return static_cast<double>(execution_ns) / 1e3; }
  double total_us() const { return static_cast<double>(total_ns) / 1e3; }
  std::int64_t overhead_ns() const { return total_ns - execution_ns; }
};

struct Result {
  RtValue output;
  const KernelSpec* kernel = nullptr;  // lives as long as the registry it came from
  Timing timing;
  DispatchMode mode = DispatchMode::DYNAMIC;
  bool cached = false;  // the choice came from a cache (always so in STATIC)
  bool fallback_used = false;
  std::string fallback_reason;  // empty: none

  std::string_view kernel_id() const;
  double overhead_us() const { return static_cast<double>(timing.overhead_ns()) / 1e3; }
};

// ---- configuration ------------------------------------------------------------------------------------------------

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
  bool enable_transforms = true;      // off: a kernel that needs another axis order is not a candidate
  bool enable_cuda_graphs = false;    // off: is_cuda_graph_capturing in a context is an error of selection
  bool sync_after_execution = false;  // wait for the device before the execution time is taken
  bool enable_telemetry = true;
  bool record_timing = true;
  bool log_fallbacks = true;
  bool circuit_breaker_enabled = true;
  std::int64_t failure_threshold = 5;
  double recovery_timeout_seconds = 30;
  std::map<std::string, std::string, std::less<>> static_kernel_map = {};  // operation -> kernel id
};

// Validated and immutable: throws ValueError naming the field that is out of range.
class DispatchConfig {
 public:
  DispatchConfig() : DispatchConfig(DispatchOptions{}) {}
  explicit DispatchConfig(DispatchOptions options);
  const DispatchOptions* operator->() const { return &options_; }
  const DispatchOptions& operator*() const { return options_; }

 private:
  DispatchOptions options_;
};

// ---- errors -------------------------------------------------------------------------------------------------------

// A value out of its range, a duplicate, a name that is not there.
struct ValueError : ttc::Error {
  explicit ValueError(std::string what, std::string hint = {})
      : Error(ttc::Exit::usage, {}, std::move(what), std::move(hint)) {}
};

// Everything that goes wrong while dispatching. what() holds the message, then operation, kernel and phase where known.
class DispatchError : public ttc::Error {
 public:
  explicit DispatchError(const std::string& message, std::string_view operation = {}, std::string_view kernel_id = {},
                         std::optional<Phase> phase = {}, ttc::Exit code = ttc::Exit::usage, std::string file = {},
                         std::string hint = {});
  const std::string& text() const { return text_; }  // the message alone
  const std::string& operation() const { return operation_; }
  const std::string& kernel_id() const { return kernel_id_; }
  std::optional<Phase> phase() const { return phase_; }

 private:
  std::string text_, operation_, kernel_id_;
  std::optional<Phase> phase_;
};

// EXECUTION. original() is what the kernel threw, null where it could not be called at all.
class KernelExecutionError : public DispatchError {
 public:
  KernelExecutionError(const std::string& message, std::string_view operation, std::string_view kernel_id,
                       std::exception_ptr original = {});
  const std::exception_ptr& original() const { return original_; }

 private:
  std::exception_ptr original_;
};

// PRE_TRANSFORM.
class TransformError : public DispatchError {
 public:
  TransformError(const std::string& message, std::string_view operation, std::string_view kernel_id,
                 std::string transform_type);
  const std::string& transform_type() const { return transform_type_; }

 private:
  std::string transform_type_;
};

// FALLBACK. Parallel lists of what was tried, in order.
class FallbackExhaustedError : public DispatchError {
 public:
  FallbackExhaustedError(std::string_view operation, std::vector<std::string> attempted,
                         std::vector<std::string> errors);
  const std::vector<std::string>& attempted_kernels() const { return attempted_; }
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  std::vector<std::string> attempted_, errors_;
};

class CircuitOpenError : public DispatchError {
 public:
  CircuitOpenError(std::string_view operation, std::string_view kernel_id, double retry_after_seconds);
  double retry_after_seconds() const { return retry_after_; }

 private:
  double retry_after_;
};

// A wrong configuration document; file() names it, what() holds line and path in it.
struct ConfigurationError : DispatchError {
  explicit ConfigurationError(const std::string& message, std::string file = {}, std::string hint = {});
};

class HotReloadError : public DispatchError {
 public:
  HotReloadError(const std::string& message, std::string config_path, std::exception_ptr original = {});
  const std::string& config_path() const { return file(); }
  const std::exception_ptr& original() const { return original_; }

 private:
  std::exception_ptr original_;
};

// STATIC, phase SELECTION.
struct KernelNotRegisteredError : DispatchError {
  KernelNotRegisteredError(std::string_view operation, std::string hint);
};
struct InvalidEntryError : DispatchError {
  InvalidEntryError(const std::string& message, std::string_view operation, std::string_view kernel_id);
};
struct RegistryFrozenError : DispatchError {
  RegistryFrozenError(std::string_view operation, std::string_view kernel_id);
};

// What an exception says, for messages that quote it.
std::string error_text(const std::exception_ptr& error);

// ---- dispatchers --------------------------------------------------------------------------------------------------

class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  virtual DispatchMode mode() const = 0;
  // Chooses a kernel and runs it. Throws DispatchError. `context` may be null where the mode needs none or can make one
  // from the inputs.
  virtual Result dispatch(Symbol operation, CallArgs& args, const SelectionContext* context = nullptr) = 0;
  // The choice alone; nothing runs. The record lives as long as its registry.
  virtual const KernelSpec& get_kernel_for_operation(Symbol operation, const SelectionContext& context) = 0;
  virtual Json telemetry() const = 0;
  virtual void reset_telemetry() = 0;
  // Takes effect for the calls that begin later, everything derived from the configuration included.
  virtual void update_config(const DispatchConfig& config) = 0;
  virtual void stop_watching() {}
  virtual void shutdown() {}
};

}  // namespace ttrt::dispatch
