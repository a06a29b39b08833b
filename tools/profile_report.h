// A profile as text, JSON, a Chrome/Perfetto trace, and the CSV columns that device profiler reports have.
#pragma once

#include <string>

#include "executor/executor.h"
#include "json_out.h"

namespace ttc {

OrderedJson profile_json(const ttrt::Executor& executor);
// Per op, most expensive first, with shares of the whole.
std::string profile_text(const ttrt::Executor& executor);
void write_trace(const std::string& path, const ttrt::Executor& executor);
void write_csv(const std::string& path, const ttrt::Executor& executor);

}  // namespace ttc
