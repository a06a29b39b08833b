// See model_file.h.
#include "formats/model_file.h"

#include <array>

#include "torchscript/pickle_read.h"
#include "formats/pt2_read.h"
#include "torchscript/read.h"
#include "support/error.h"

namespace ttc {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What people give by mistake, by the first bytes.
void refuse_other_formats(const MappedFile& file) {
  struct Known {
    std::string_view magic;
    const char* what;
  };
  static constexpr std::array<Known, 5> known = {
      {{"\x89HDF", "an HDF5 (Keras) file"},
       {"GGUF", "a GGUF file, which holds weights but no graph"},
       {"\x80\x02", "a Python pickle, as torch.save wrote before version 1.6"},
       {"\x80\x04", "a Python pickle"},
       {"\x7f"
        "ELF",
        "a shared library or program"}}};
  const std::string_view text = as_text(file.bytes());
  const char* hint = "export the model with torch.export.save (.pt2) or torch.jit.save (.pt)";
  for (const auto& [magic, what] : known)
    if (text.starts_with(magic))
      throw bad_file(file.path(), std::string("this is ") + what + ", not an exported model", hint);
  if (text.size() > 9 && text[8] == '{' && text[7] == '\0' && text[6] == '\0')
    throw bad_file(file.path(), "this is a safetensors file, which holds weights but no graph", hint);
}

bool holds_exported_program(const ZipArchive& archive) {
  if (archive.find("archive_format") || archive.find("serialized_exported_program.json")) return true;
  for (const auto& entry : archive.entries())
    if (entry.name.starts_with("models/") || entry.name.starts_with("data/weights/")) return true;
  return false;
}

bool holds_torchscript(const ZipArchive& archive) {
  if (!archive.find("data.pkl") || !archive.find("constants.pkl")) return false;
  for (const auto& entry : archive.entries())
    if (entry.name.starts_with("code/")) return true;
  return false;
}

}  // namespace

std::unique_ptr<ir::Model> load_model(const std::string& path) { return load_model(MappedFile::open(path)); }

std::unique_ptr<ir::Model> load_model(const std::shared_ptr<const MappedFile>& file) {
  const std::string& path = file->path();
  if (path.ends_with(".ir")) {
    auto model = ir::parse(as_text(file->bytes()), path);
    model->info.path = path;
    model->info.format = "text";
    return model;
  }
  refuse_other_formats(*file);
  const ZipArchive archive(file);
  if (holds_exported_program(archive)) return read_pt2(archive, read_pickled_tensors);
  if (holds_torchscript(archive)) return read_torchscript(archive);
  if (archive.find("data.pkl"))
    throw bad_file(path, "a torch.save file: it holds tensors or a pickled module, but no graph",
                   "export the model with torch.export.save or torch.jit.save");
  throw bad_file(path,
                 "a zip archive, but no exported PyTorch model: it has neither models/model.json nor TorchScript code",
                 "export the model with torch.export.save or torch.jit.save");
}

}  // namespace ttc
