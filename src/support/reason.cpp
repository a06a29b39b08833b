// The names of the codes, and a reason as one line.
#include "support/reason.h"

namespace ttc {

std::string_view to_string(ReasonCode code) {
  switch (code) {
    case ReasonCode::Unimplemented:
      return "Unimplemented";
    case ReasonCode::Unsupported:
      return "Unsupported";
    case ReasonCode::Untested:
      return "Untested";
    case ReasonCode::DtypeUnsupported:
      return "DtypeUnsupported";
    case ReasonCode::RankUnsupported:
      return "RankUnsupported";
    case ReasonCode::DynamicShape:
      return "DynamicShape";
    case ReasonCode::NonConstantWeight:
      return "NonConstantWeight";
    case ReasonCode::MultiUse:
      return "MultiUse";
    case ReasonCode::PatternNearMiss:
      return "PatternNearMiss";
    case ReasonCode::ControlFlow:
      return "ControlFlow";
    case ReasonCode::UserExcluded:
      return "UserExcluded";
    case ReasonCode::TooSmall:
      return "TooSmall";
    case ReasonCode::DeviceLimit:
      return "DeviceLimit";
  }
  return "?";
}

std::string Reason::text() const {
  std::string text(to_string(code));
  if (!detail.empty()) text += ": " + detail;
  return text;
}

}  // namespace ttc
