// Why something was refused: a pattern that did not match, an op that stays on the CPU. Reasons are values;
// they are collected, printed and counted, never thrown.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ttc {

enum class ReasonCode {
  Unimplemented,  // no device kernel for this op
  Unsupported,    // a kernel exists, but not for these arguments
  Untested,       // a kernel whose numbers no test compares
  DtypeUnsupported,
  RankUnsupported,
  DynamicShape,
  NonConstantWeight,
  MultiUse,         // an inner value of the pattern is used elsewhere too
  PatternNearMiss,  // part of a pattern; the detail says how far it got and where it stopped
  ControlFlow,
  UserExcluded,
  TooSmall,     // moving the data would cost more than the op
  DeviceLimit,  // L1, DRAM, grid
};

std::string_view to_string(ReasonCode code);

struct Reason {
  ReasonCode code;
  std::string detail;  // one sentence for a person, without a full stop

  // "Unsupported: alpha must be a number"
  std::string text() const;
};

// std::nullopt: supported.
using Refusal = std::optional<Reason>;

}  // namespace ttc
