// Names of modes and phases, validation of the configuration, texts of the error.
#include "dispatch/types.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "dispatch/kernel.h"
#include "support/printable.h"

namespace ttrt::dispatch {
namespace {

constexpr std::array<std::string_view, dispatch_mode_count> mode_names{"STATIC", "DYNAMIC", "HOT_RELOAD", "CONFIG",
                                                                       "AUTO"};
constexpr std::array<std::string_view, 7> phase_names{"SELECTION",    "CIRCUIT",       "EXECUTION", "FALLBACK",
                                                      "REGISTRATION", "CONFIGURATION", "RELOAD"};

std::string full_text(Phase phase, const std::string& message, const DispatchDetails& details) {
  if (phase == Phase::CONFIGURATION || phase == Phase::RELOAD) return message;
  std::string where;
  if (!details.operation.empty()) where += "operation " + details.operation + ", ";
  if (!details.kernel_id.empty()) where += "kernel " + details.kernel_id + ", ";
  return message + " [" + where + "phase " + std::string(to_string(phase)) + "]";
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

DispatchError::DispatchError(Phase phase, const std::string& message, DispatchDetails details)
    : Error(details.file.empty() ? ttc::Exit::usage : ttc::Exit::bad_file, details.file,
            full_text(phase, message, details), details.hint),
      phase_(phase),
      text_(message),
      details_(std::move(details)) {}

DispatchError circuit_open_error(std::string_view operation, std::string_view kernel_id, double retry_after_seconds) {
  std::array<char, 64> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.1f", retry_after_seconds);
  return {Phase::CIRCUIT,
          "circuit of kernel '" + std::string(kernel_id) + "' is open, retry after " + seconds.data() + " s",
          {.operation = std::string(operation),
           .kernel_id = std::string(kernel_id),
           .retry_after_seconds = retry_after_seconds}};
}

DispatchError fallbacks_exhausted(std::string_view operation, std::vector<TriedKernel> tried) {
  std::string text = "every kernel for '" + std::string(operation) + "' failed";
  if (tried.empty()) text += ": none could be tried";
  for (std::size_t i = 0; i < tried.size(); ++i)
    text += (i ? "; " : ": ") + tried[i].kernel + " (" + tried[i].why + ")";
  return {Phase::FALLBACK, text, {.operation = std::string(operation), .tried = std::move(tried)}};
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string close = ttc::nearest(word, candidates.data(), candidates.size());
  return close.empty() ? "" : "did you mean '" + close + "'?";
}

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

void report_to(const Report& report, const std::string& text, std::string_view severity) {
  if (report)
    report(text);
  else
    std::cerr << ttc::printable(std::string(severity) + ": " + text) + "\n";
}

Result Dispatcher::dispatch(Symbol operation, CallArgs& args, const SelectionContext* context) {
  Result result;
  attempt(operation, args, context, result);
  if (!result.kernel) throw nothing_serves(operation, context);
  return result;
}

const KernelSpec& Dispatcher::get_kernel_for_operation(Symbol operation, const SelectionContext& context) {
  const KernelSpec* const kernel = choose(operation, context);
  if (!kernel) throw nothing_serves(operation, &context);
  return *kernel;
}

Json Dispatcher::explain_selection(Symbol operation, const SelectionContext& context) {
  const KernelSpec* const kernel = choose(operation, context);
  return {{"operation", operation.text()}, {"selected_kernel", kernel ? Json(kernel->id.text()) : Json()}};
}

}  // namespace ttrt::dispatch
