// Files of named arrays: safetensors (several, with metadata) and npy (one, unnamed).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/model.h"
#include "support/mapped_file.h"

namespace ttc {

struct SafeTensors {
  std::map<std::string, ir::Weight, std::less<>> tensors;  // contiguous views into the mapped file
  std::map<std::string, std::string, std::less<>> metadata;
};

// Throws ttc::Error (bad_file) where the file is no well-formed safetensors file.
SafeTensors read_safetensors(const std::string& path);
SafeTensors read_safetensors(const std::shared_ptr<const MappedFile>& file);
// Written atomically, tensors in name order; non-contiguous ones are refused (usage). Throws where it cannot be
// written.
void write_safetensors(const std::string& path, const SafeTensors& content);
// The file's bytes.
std::string safetensors_bytes(const SafeTensors& content);

// A C-ordered array of a plain numeric or bool dtype. Throws ttc::Error (bad_file).
ir::Weight read_npy(const std::string& path);

}  // namespace ttc
