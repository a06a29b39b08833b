// The time model's view of a run or a profile as events of a Chrome/Perfetto trace: modules with their ops nested in
// them, and a track for each engine that an op keeps busy.
#pragma once

#include <span>

#include "session/op_rows.h"
#include "support/json_util.h"

namespace ttc {

// Process 2, one op after the other from 0; what the host computes takes the time that it took. By `ts`, what is around
// others first.
OrderedJson device_trace(std::span<const OpRow> rows);
// {"traceEvents": ...}, as a file has it.
std::string trace_text(OrderedJson events);

}  // namespace ttc
