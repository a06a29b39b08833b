// The registry behind TTC_REGISTER_FORMAT, and the endings of file names.
#include "formats/file_format.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "support/error.h"

namespace ttc {
namespace {

std::map<std::string_view, const FileFormat*>& formats() {
  static auto* const instance = new std::map<std::string_view, const FileFormat*>();
  return *instance;
}

template <typename Predicate>
std::string extensions_where(Predicate&& wanted) {
  std::set<std::string_view> names;
  for (const FileFormat* format : all_formats())
    if (wanted(*format)) names.insert(format->extensions.begin(), format->extensions.end());
  std::string out;
  for (std::size_t left = names.size(); const std::string_view name : names) {
    out += name;
    if (--left > 0) out += left == 1 ? " or " : ", ";
  }
  return out;
}

}  // namespace

const ZipArchive* InputFile::archive() const {
  if (!archive_ && !broken_) try {
      archive_.emplace(mapped_);
    } catch (const Error&) {
      broken_ = std::current_exception();
    }
  return archive_ ? &*archive_ : nullptr;
}

const ZipArchive& InputFile::as_archive() const {
  if (!archive()) std::rethrow_exception(broken_);
  return *archive_;
}

void register_format(const FileFormat& format) {
  TTC_CHECK(formats().emplace(format.name, &format).second,
            "two file formats of one name: " + std::string(format.name));
}

std::vector<const FileFormat*> all_formats() {
  std::vector<const FileFormat*> out;
  for (const auto& [name, format] : formats()) out.push_back(format);
  return out;
}

const FileFormat* format_of_name(std::string_view path) {
  const auto ends = [&](std::string_view extension) {
    return path.size() > extension.size() &&
           std::equal(extension.rbegin(), extension.rend(), path.rbegin(),
                      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  };
  for (const FileFormat* format : all_formats())
    if (std::any_of(format->extensions.begin(), format->extensions.end(), ends)) return format;
  return nullptr;
}

std::string written_extensions() {
  return extensions_where([](const FileFormat& format) { return format.write != nullptr; });
}

std::string model_extensions() {
  return extensions_where([](const FileFormat& format) { return format.holds_weights; });
}

}  // namespace ttc
