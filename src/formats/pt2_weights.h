// The weights of a .pt2 archive: what its two configs say, checked against the files they name.
#pragma once

#include "formats/zip_read.h"
#include "ir/model.h"

namespace ttc {

// Fills model.weights from data/weights and data/constants; `name` is the model's, as in models/<name>.json. Tensors
// that share a file share a Storage. Throws ttc::Error (bad_file).
void read_weights(const ZipArchive& archive, const std::string& name, ir::Model& model);
// Every weight input of the graph has a weight of its dtype and sizes. Throws ttc::Error (bad_file).
void check_weights(const ZipArchive& archive, const ir::Model& model);

}  // namespace ttc
