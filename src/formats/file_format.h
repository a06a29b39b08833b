// The file formats of models, as a table: how a format is told from others, read and written. A format's record stands
// in its reader's own file and registers itself; load_model, save_model and all that lists endings read the table.
// (Records in a static library count only where it is linked whole: see meson.build.)
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/zip_read.h"
#include "ir/model.h"
#include "support/mapped_file.h"

namespace ttc {

// A file that is about to be read: mapped once, its zip directory read once, by whoever asks first.
class InputFile {
 public:
  explicit InputFile(std::shared_ptr<const MappedFile> mapped) : mapped_(std::move(mapped)) {}

  const std::string& path() const { return mapped_->path(); }
  const std::shared_ptr<const MappedFile>& mapped() const { return mapped_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(mapped_->bytes().data()), mapped_->bytes().size()};
  }
  const ZipArchive* archive() const;     // nullptr where the file is no sound zip archive
  const ZipArchive& as_archive() const;  // throws ttc::Error (bad_file) there, saying why

 private:
  std::shared_ptr<const MappedFile> mapped_;
  mutable std::optional<ZipArchive> archive_;
  mutable std::exception_ptr broken_;
};

struct FileFormat {
  std::string_view name;                     // as in ir::ModelInfo::format
  std::vector<std::string_view> extensions;  // ".pt2": what files of the format are called, in lower case
  bool holds_weights = true;                 // false: a text of the graph alone, for tests and dumps
  bool (*detect)(const InputFile& file);     // by content where content tells
  std::unique_ptr<ir::Model> (*read)(const InputFile& file);                 // throws ttc::Error
  void (*write)(const ir::Model& model, const std::string& path) = nullptr;  // nullptr: ttc does not write it
};

void register_format(const FileFormat& format);
std::vector<const FileFormat*> all_formats();  // by name, the order in which they are asked to detect

// The format that files of this name have, by its ending in upper or lower case; nullptr where no format has it.
const FileFormat* format_of_name(std::string_view path);
// The endings of the formats that ttc writes, and of those that hold weights, for messages: ".pt or .pt2".
std::string written_extensions();
std::string model_extensions();

}  // namespace ttc

// At the end of the file that reads the format: TTC_REGISTER_FORMAT({.name = "pt2", ...}).
#define TTC_REGISTER_FORMAT(...) TTC_REGISTER_FORMAT_AS(__COUNTER__, __VA_ARGS__)
#define TTC_REGISTER_FORMAT_AS(number, ...) TTC_REGISTER_FORMAT_NAMED(number, __VA_ARGS__)
#define TTC_REGISTER_FORMAT_NAMED(number, ...)                    \
  namespace {                                                     \
  [[maybe_unused]] const bool format_is_registered##number = [] { \
    static const ::ttc::FileFormat format __VA_ARGS__;            \
    ::ttc::register_format(format);                               \
    return true;                                                  \
  }();                                                            \
  }
