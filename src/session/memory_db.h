// The report that TT-NN writes about a run and ttnn-visualizer opens: a folder with db.sqlite (devices, operations with
// their arguments, tensors and source lines, what each memory holds at every operation and on which banks, the captured
// graph) and config.json.
#pragma once

#include <span>
#include <string>

#include "session/op_rows.h"

namespace ttc {

// Makes the folder; a report that is there already is replaced. Where rows have no addresses, weights and values are
// laid out as the executor does it (executor/memory_plan.h). `name`: how the viewer calls it.
void write_memory_db(const std::string& folder, const std::string& name, std::span<const OpRow> rows,
                     const ttrt::ArchProfile& arch);

}  // namespace ttc
