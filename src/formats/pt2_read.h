// Reads .pt2 archives (torch.export.save) without LibTorch and without running pickle.
//
// Weights are views into the mapped file. Schema major version 8 is accepted; JSON members the IR does not model are
// kept in ModelInfo::other_json. Containers of torch 2.6 to 2.8 hold their weights as pickles: those are read where a
// reader for them is registered (torchscript/pickle_read.cpp), which needs LibTorch.
#pragma once

#include <memory>
#include <string>

#include "formats/zip_read.h"
#include "ir/model.h"

namespace ttc {

// Throws ttc::Error (bad_file) for anything that is no well-formed model, naming what is wrong and where.
std::unique_ptr<ir::Model> read_pt2(const std::string& path);
std::unique_ptr<ir::Model> read_pt2(const ZipArchive& archive);

// Throws ttc::Error (bad_file) for the first node whose operator has no schema, naming operator, module and source
// line. Call it where operators must exist: before compiling, running and inspecting.
void check_known_ops(const ir::Model& model);

}  // namespace ttc
