// The weights of a .pt2 archive: what its two configs say, checked against the files they name.
#pragma once

#include <functional>

#include "formats/zip_read.h"
#include "ir/model.h"

namespace ttc {

// The tensors of a torch.save dictionary, by name; the blob need not outlive the call. Containers of torch 2.6 to 2.8
// keep their weights so (torchscript/pickle_read.h). Throws ttc::Error.
using PickleReader = std::function<std::map<std::string, ir::Weight>(std::string blob)>;

// Fills model.weights from data/weights and data/constants; `name` is the model's, as in models/<name>.json. Tensors
// that share a file share a Storage. Throws ttc::Error (bad_file).
void read_weights(const ZipArchive& archive, const std::string& name, ir::Model& model);
// The same where one pickle holds all weights and another the constants.
void read_pickled_weights(const ZipArchive& archive, const std::string& weights, const std::string& constants,
                          const PickleReader& reader, ir::Model& model);
// Every weight input of the graph has a weight of its dtype and sizes. Throws ttc::Error (bad_file).
void check_weights(const ZipArchive& archive, const ir::Model& model);

}  // namespace ttc
