// The table of settings, and what it does for the configuration: checking and parsing.
#include "dispatch/settings.h"

#include <algorithm>
#include <charconv>

namespace ttrt::dispatch {
namespace {

using O = DispatchOptions;

constexpr DispatchSetting settings[] = {
    {"enable_cache", &O::enable_cache},
    {"cache_size", &O::cache_size},
    {"cache_ttl_seconds", &O::cache_ttl_seconds, 0, true},
    {"enable_fallback", &O::enable_fallback},
    {"max_fallback_attempts", &O::max_fallback_attempts, 1},
    {"fallback_timeout_ms", &O::fallback_timeout_ms},
    {"watch_interval_seconds", &O::watch_interval_seconds, 0, true},
    {"validate_on_reload", &O::validate_on_reload},
    {"enable_telemetry", &O::enable_telemetry},
    {"record_timing", &O::record_timing},
    {"log_fallbacks", &O::log_fallbacks},
    {"circuit_breaker_enabled", &O::circuit_breaker_enabled},
    {"failure_threshold", &O::failure_threshold, 1},
    {"recovery_timeout_seconds", &O::recovery_timeout_seconds},
};

bool parse(std::string_view text, bool& value) {
  value = text == "true";
  return value || text == "false";
}
template <typename Number>
bool parse(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string number_text(double value) {
  std::string text(32, '\0');
  text.resize(static_cast<std::size_t>(std::to_chars(text.data(), text.data() + text.size(), value).ptr - text.data()));
  return text;
}

}  // namespace

std::span<const DispatchSetting> dispatch_settings() { return settings; }

bool is_of_reloading(std::string_view name) { return name == "watch_interval_seconds" || name == "validate_on_reload"; }

std::string setting_text(const DispatchOptions& options, const DispatchSetting& setting) {
  const auto text = [](auto value) {
    if constexpr (std::is_same_v<decltype(value), bool>)
      return std::string(value ? "true" : "false");
    else
      return number_text(static_cast<double>(value));
  };
  return std::visit([&](auto field) { return text(options.*field); }, setting.field);
}

void set_dispatch_setting(DispatchOptions& options, std::string_view assignment) {
  const std::string_view name = assignment.substr(0, assignment.find('='));
  if (name.size() == assignment.size())
    throw ttc::usage_error("a setting of dispatch is NAME=VALUE, got '" + std::string(assignment) + "'",
                           "as in failure_threshold=3");
  const std::string_view value = assignment.substr(name.size() + 1);
  const auto* const found = std::find_if(std::begin(settings), std::end(settings),
                                         [&](const DispatchSetting& setting) { return setting.name == name; });
  if (found == std::end(settings)) {
    std::vector<std::string> names;
    for (const DispatchSetting& setting : settings) names.emplace_back(setting.name);
    throw ttc::usage_error("dispatch has no setting '" + std::string(name) + "'", did_you_mean(name, names));
  }
  static constexpr const char* hints[] = {"true or false", "an integer", "a number"};
  if (!std::visit([&](auto field) { return parse(value, options.*field); }, found->field))
    throw ttc::usage_error(
        "'" + std::string(value) + "' is no value of the dispatch setting '" + std::string(name) + "'",
        hints[found->field.index()]);
}

// NaN is refused too.
DispatchConfig::DispatchConfig(DispatchOptions options) : options_(std::move(options)) {
  for (const auto& [name, field, least, least_is_wrong] : settings) {
    if (std::holds_alternative<bool O::*>(field)) continue;
    const double value = std::visit([&](auto f) { return static_cast<double>(options_.*f); }, field);
    if (least_is_wrong ? value > least : value >= least) continue;
    throw ttc::usage_error(std::string(name) + " must be " + (least_is_wrong ? "greater than " : "at least ") +
                           number_text(least) + ", got " + number_text(value));
  }
}

}  // namespace ttrt::dispatch
