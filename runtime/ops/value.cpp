// Copies, moves and destruction of values, once for all files that handle them.
#include "ops/value.h"

namespace ttrt {

RtValue::RtValue() = default;
RtValue::RtValue(const RtValue& other) = default;
RtValue::RtValue(RtValue&& other) noexcept = default;
RtValue& RtValue::operator=(const RtValue& other) = default;
RtValue& RtValue::operator=(RtValue&& other) noexcept = default;
RtValue::~RtValue() = default;

}  // namespace ttrt
