// Names of modes and phases, validation of the configuration, texts of the errors.
#include "dispatch/types.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "dispatch/kernel.h"

namespace ttrt::dispatch {
namespace {

constexpr std::array<std::string_view, dispatch_mode_count> mode_names{"STATIC", "DYNAMIC", "HOT_RELOAD", "CONFIG",
                                                                       "AUTO"};
constexpr std::array<std::string_view, 5> phase_names{"SELECTION", "PRE_TRANSFORM", "EXECUTION", "POST_TRANSFORM",
                                                      "FALLBACK"};

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

void at_least(const char* field, std::int64_t value, std::int64_t least) {
  if (value < least)
    throw ValueError(std::string(field) + " must be at least " + std::to_string(least) + ", got " +
                     std::to_string(value));
}

// NaN is refused too.
void real_at_least(const char* field, double value, double least, bool exclusive) {
  if (exclusive ? value > least : value >= least) return;
  throw ValueError(std::string(field) + " must be " + (exclusive ? "greater than " : "at least ") + number(least) +
                   ", got " + number(value));
}

std::string full_text(const std::string& message, std::string_view operation, std::string_view kernel,
                      std::optional<Phase> phase) {
  std::string text = message, where;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) where += (where.empty() ? "" : ", ") + std::string(name) + " " + std::string(value);
  };
  add("operation", operation);
  add("kernel", kernel);
  if (phase) add("phase", to_string(*phase));
  return where.empty() ? text : text + " [" + where + "]";
}

std::string one_decimal(double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::string exhausted_text(std::string_view operation, const std::vector<std::string>& attempted,
                           const std::vector<std::string>& errors) {
  std::string text = "every kernel for '" + std::string(operation) + "' failed";
  if (attempted.empty()) return text + ": none could be tried";
  for (std::size_t i = 0; i < attempted.size(); ++i)
    text += (i ? "; " : ": ") + attempted[i] + (i < errors.size() ? " (" + errors[i] + ")" : "");
  return text;
}

}  // namespace

std::string_view to_string(DispatchMode mode) { return mode_names[static_cast<std::size_t>(mode)]; }
std::string_view to_string(Phase phase) { return phase_names[static_cast<std::size_t>(phase)]; }

std::optional<DispatchMode> dispatch_mode_from_string(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const auto* const found = std::find(mode_names.begin(), mode_names.end(), upper);
  if (found == mode_names.end()) return std::nullopt;
  return static_cast<DispatchMode>(found - mode_names.begin());
}

const RtValue* CallArgs::find(Symbol name) const {
  for (const auto& list : {inputs, extras})
    for (const Input& input : list)
      if (input.name == name) return input.value;
  return nullptr;
}

std::string_view Result::kernel_id() const { return kernel ? kernel->id.text() : std::string_view{}; }

DispatchConfig::DispatchConfig(DispatchOptions options) : options_(std::move(options)) {
  at_least("cache_size", options_.cache_size, 0);
  at_least("max_fallback_attempts", options_.max_fallback_attempts, 1);
  at_least("failure_threshold", options_.failure_threshold, 1);
  real_at_least("cache_ttl_seconds", options_.cache_ttl_seconds, 0, true);
  real_at_least("fallback_timeout_ms", options_.fallback_timeout_ms, 0, false);
  real_at_least("watch_interval_seconds", options_.watch_interval_seconds, 0, true);
  real_at_least("recovery_timeout_seconds", options_.recovery_timeout_seconds, 0, false);
}

// ---- errors -------------------------------------------------------------------------------------------------------

DispatchError::DispatchError(const std::string& message, std::string_view operation, std::string_view kernel_id,
                             std::optional<Phase> phase, ttc::Exit code, std::string file, std::string hint)
    : Error(code, std::move(file), full_text(message, operation, kernel_id, phase), std::move(hint)),
      text_(message),
      operation_(operation),
      kernel_id_(kernel_id),
      phase_(phase) {}

KernelExecutionError::KernelExecutionError(const std::string& message, std::string_view operation,
                                           std::string_view kernel_id, std::exception_ptr original)
    : DispatchError(message, operation, kernel_id, Phase::EXECUTION), original_(std::move(original)) {}

TransformError::TransformError(const std::string& message, std::string_view operation, std::string_view kernel_id,
                               std::string transform_type)
    : DispatchError(message, operation, kernel_id, Phase::PRE_TRANSFORM), transform_type_(std::move(transform_type)) {}

FallbackExhaustedError::FallbackExhaustedError(std::string_view operation, std::vector<std::string> attempted,
                                               std::vector<std::string> errors)
    : DispatchError(exhausted_text(operation, attempted, errors), operation, {}, Phase::FALLBACK),
      attempted_(std::move(attempted)),
      errors_(std::move(errors)) {}

CircuitOpenError::CircuitOpenError(std::string_view operation, std::string_view kernel_id, double retry_after_seconds)
    : DispatchError("circuit of kernel '" + std::string(kernel_id) + "' is open, retry after " +
                        one_decimal(retry_after_seconds) + " s",
                    operation, kernel_id, Phase::SELECTION),
      retry_after_(retry_after_seconds) {}

ConfigurationError::ConfigurationError(const std::string& message, std::string file, std::string hint)
    : DispatchError(message, {}, {}, {}, file.empty() ? ttc::Exit::usage : ttc::Exit::bad_file, file, std::move(hint)) {
}

HotReloadError::HotReloadError(const std::string& message, std::string config_path, std::exception_ptr original)
    : DispatchError(message, {}, {}, {}, ttc::Exit::bad_file, std::move(config_path)), original_(std::move(original)) {}

KernelNotRegisteredError::KernelNotRegisteredError(std::string_view operation, std::string hint)
    : DispatchError("no kernel is registered for '" + std::string(operation) + "'", operation, {}, Phase::SELECTION,
                    ttc::Exit::usage, {}, std::move(hint)) {}

InvalidEntryError::InvalidEntryError(const std::string& message, std::string_view operation, std::string_view kernel_id)
    : DispatchError(message, operation, kernel_id, Phase::SELECTION) {}

RegistryFrozenError::RegistryFrozenError(std::string_view operation, std::string_view kernel_id)
    : DispatchError("the static registry is frozen: nothing can be registered", operation, kernel_id,
                    Phase::SELECTION) {}

std::string error_text(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const DispatchError& e) {
    return e.text();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace ttrt::dispatch
