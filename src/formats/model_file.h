// Opens a model file of any registered format, and saves a model in the one that its new name asks for.
#pragma once

#include <memory>
#include <string>

#include "formats/file_format.h"

namespace ttc {

// Throws ttc::Error (bad_file) that says what the file is where it is something else. Programs that call it link the
// readers they want whole: `formats`, and `torchscript` for TorchScript and for .pt2 files of torch 2.6 to 2.8.
std::unique_ptr<ir::Model> load_model(const std::string& path);
std::unique_ptr<ir::Model> load_model(const std::shared_ptr<const MappedFile>& file);

// The format to write `path` in. Throws ttc::Error (usage), with the endings there are, for any other ending.
const FileFormat& output_format(const std::string& path);
void save_model(const ir::Model& model, const std::string& path);

}  // namespace ttc
