// The IR's text form as a file: what dumps write and tests are written in. It holds no weights but those written out.
#include "formats/file_format.h"

namespace ttc {
namespace {

std::unique_ptr<ir::Model> read_text(const InputFile& file) {
  auto model = ir::parse(file.text(), file.path());
  model->info.path = file.path();
  model->info.format = "text";
  return model;
}

// Text has no first bytes to tell it by, but what ttc wrote begins by saying so.
bool is_text(const InputFile& file) { return file.path().ends_with(".ir") || file.text().starts_with("// ttc "); }

}  // namespace
}  // namespace ttc

TTC_REGISTER_FORMAT(
    {.name = "text", .extensions = {".ir"}, .holds_weights = false, .detect = ttc::is_text, .read = ttc::read_text})
