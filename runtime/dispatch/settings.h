// The numbers and switches of dispatch by name: their limits, and how a command line sets them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "dispatch/types.h"

namespace ttrt::dispatch {

struct DispatchSetting {
  std::string_view name;  // of the field
  std::variant<bool DispatchOptions::*, std::int64_t DispatchOptions::*, double DispatchOptions::*> field;
  double least = 0;             // of numbers
  bool least_is_wrong = false;  // it must be greater
};
std::span<const DispatchSetting> dispatch_settings();
// "NAME=VALUE": a number, or true or false. Throws ttc::Error (usage) for an unknown name and for a value that is none;
// limits are DispatchConfig's to check.
void set_dispatch_setting(DispatchOptions& options, std::string_view assignment);
// Whether it says how a configuration file is read again, which one mode does.
bool is_of_reloading(std::string_view name);
// The value as the same text, for lists of settings.
std::string setting_text(const DispatchOptions& options, const DispatchSetting& setting);

}  // namespace ttrt::dispatch
