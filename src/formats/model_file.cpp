// Asks each format whether a file is its own; names what people give by mistake.
#include "formats/model_file.h"

#include <array>

#include "ir/body.h"
#include "support/error.h"

namespace ttc {
namespace {

constexpr const char* export_hint = "export the model with torch.export.save (.pt2) or torch.jit.save (.pt)";

// By the first bytes.
void refuse_other_formats(const InputFile& file) {
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
  const std::string_view text = file.text();
  for (const auto& [magic, what] : known)
    if (text.starts_with(magic))
      throw bad_file(file.path(), std::string("this is ") + what + ", not an exported model", export_hint);
  if (text.size() > 9 && text[8] == '{' && text[7] == '\0' && text[6] == '\0')
    throw bad_file(file.path(), "this is a safetensors file, which holds weights but no graph", export_hint);
}

}  // namespace

std::unique_ptr<ir::Model> load_model(const std::string& path) { return load_model(MappedFile::open(path)); }

std::unique_ptr<ir::Model> load_model(const std::shared_ptr<const MappedFile>& mapped) {
  const InputFile file(mapped);
  const std::string& path = file.path();
  for (const FileFormat* format : all_formats())
    if (format->detect(file)) {
      std::unique_ptr<ir::Model> model = format->read(file);
      try {
        ir::open_bodies(*model->graph);
      } catch (const Error& error) {
        throw error.in_file(path);
      }
      return model;
    }
  refuse_other_formats(file);
  if (file.as_archive().find("data.pkl"))
    throw bad_file(path, "a torch.save file: it holds tensors or a pickled module, but no graph",
                   "export the model with torch.export.save or torch.jit.save");
  throw bad_file(path,
                 "a zip archive, but no exported PyTorch model: it has neither models/model.json nor TorchScript code",
                 "export the model with torch.export.save or torch.jit.save");
}

const FileFormat& output_format(const std::string& path) {
  const FileFormat* format = format_of_name(path);
  if (format && format->write) return *format;
  throw usage_error("cannot write " + path + ": its name says no format that ttc writes",
                    "end it in " + written_extensions());
}

void save_model(const ir::Model& model, const std::string& path) {
  const FileFormat& format = output_format(path);
  const std::unique_ptr<const ir::Model> closed = ir::with_bodies(model);
  format.write(closed ? *closed : model, path);
}

}  // namespace ttc
