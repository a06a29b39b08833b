// The weights of a .pt2 archive: what its two configs say, checked against the files they name.
#pragma once

#include <map>
#include <string>

#include "formats/zip_read.h"
#include "ir/model.h"

namespace ttc {

// The tensors of a torch.save dictionary, by name; the blob need not outlive the call. Containers of torch 2.6 to 2.8
// keep their weights so. Throws ttc::Error (bad_file, without a file name).
using PickleReader = std::map<std::string, ir::Weight> (*)(std::string blob);
// Unpickling needs LibTorch, which registers itself here where it is linked; nullptr where it is not.
PickleReader& pickle_reader();

// Fills model.weights from data/weights and data/constants; `name` is the model's, as in models/<name>.json. Tensors
// that share a file share a Storage. Throws ttc::Error (bad_file).
void read_weights(const ZipArchive& archive, const std::string& name, ir::Model& model);
// The same where one pickle holds all weights and another the constants.
void read_pickled_weights(const ZipArchive& archive, const std::string& weights, const std::string& constants,
                          ir::Model& model);
// Every weight input of the graph has a weight of its dtype and sizes. Throws ttc::Error (bad_file).
void check_weights(const ZipArchive& archive, const ir::Model& model);

}  // namespace ttc
