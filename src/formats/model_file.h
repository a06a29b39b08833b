// Opens a model file of any kind ttc reads: .pt2, TorchScript, or the text IR.
#pragma once

#include <memory>
#include <string>

#include "ir/model.h"
#include "support/mapped_file.h"

namespace ttc {

// The kind is told by content, not by name; only the text IR is known by its ending, ".ir". Throws ttc::Error
// (bad_file) that says what the file is where it is something else. Programs that call it link the TorchScript reader.
std::unique_ptr<ir::Model> load_model(const std::shared_ptr<const MappedFile>& file);
std::unique_ptr<ir::Model> load_model(const std::string& path);

}  // namespace ttc
