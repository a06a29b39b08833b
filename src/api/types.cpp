// Names of element types, errors and their texts, signatures as text.
#include <ttc/types.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "api/bridge.h"
#include "executor/executor.h"

namespace ttc::api {
namespace {

Error::Kind kind_of(Exit code) {
  switch (code) {
    case Exit::usage:
      return Error::Kind::usage;
    case Exit::unsupported:
      return Error::Kind::unsupported;
    case Exit::bad_file:
      return Error::Kind::bad_file;
    case Exit::bug:
      return Error::Kind::bug;
    default:
      return Error::Kind::failed;
  }
}

static_assert(static_cast<int>(ElementType::float32) == static_cast<int>(DType::f32));
static_assert(static_cast<int>(ElementType::boolean) == static_cast<int>(DType::boolean));
static_assert(static_cast<int>(ElementType::float8_e8m0fnu) == static_cast<int>(DType::f8e8m0));

}  // namespace

ttrt::DataType device_format(Format format) {
  auto left = static_cast<std::size_t>(format);
  for (const ttrt::DataTypeInfo& row : ttrt::data_types)
    if (row.for_weights && left-- == 0) return row.type;
  throw Error(Error::Kind::usage, "a format that does not exist");
}

Format format_named(std::string_view name) {
  int number = 0;
  for (const ttrt::DataTypeInfo& row : ttrt::data_types) {
    if (!row.for_weights) continue;
    if (row.name == name) return static_cast<Format>(number);
    ++number;
  }
  throw Error(Error::Kind::usage, "'" + std::string(name) + "' is none of " + ttrt::weight_format_names());
}

std::string library_text(const std::string& text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> names = {{
      {"use --plugin LIB.so", "load the library that registers it with ttrt::load_plugin()"},
      {"with --plugin LIB.so", "with ttrt::load_plugin()"},
      {"--numerics fast", "NumericsMode::fast"},
      {"--numerics exact", "NumericsMode::exact"},
      {"ttc dispatchers", "ttrt::dispatchers()"},
      {"ttc inspect -v lists the modules", "TorchModule::children() has the modules"},
      {"set_default_device", "SetDefaultDevice"},
      {"initialize_device", "InitializeDevice"},
      {"close_device", "CloseDevice"},
  }};
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    const auto known =
        std::find_if(names.begin(), names.end(), [&](const auto& n) { return rest.starts_with(n.first); });
    if (known != names.end()) {
      out += known->second;
      i += known->first.size();
    } else if (rest.size() > 2 && rest.starts_with("--") && rest[2] >= 'a' && rest[2] <= 'z') {
      // Others have the flag's name.
      for (i += 2; i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '-'); ++i)
        out += text[i] == '-' ? '_' : text[i];
    } else {
      out += text[i++];
    }
  }
  return out;
}

Error public_error(const ttc::Error& error) {
  const std::string what = (error.file().empty() ? "" : error.file() + ": ") + error.what();
  const bool cancelled = dynamic_cast<const ttrt::Cancelled*>(&error) != nullptr;
  return Error(cancelled ? Error::Kind::cancelled : kind_of(error.code()), library_text(what),
               library_text(error.hint()), error.file());
}

DType dtype_of(ElementType type) {
  const auto code = static_cast<int>(type);
  if (code < 0 || code >= dtype_count) throw Error(Error::Kind::usage, "an element type that does not exist");
  return static_cast<DType>(code);
}

std::size_t element_size(ElementType type) { return static_cast<std::size_t>(size_of(dtype_of(type))); }
const char* name(ElementType type) { return torch_name(dtype_of(type)).data(); }

Error::~Error() = default;

const char* name(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::failed:
      return "failed";
    case Error::Kind::usage:
      return "usage";
    case Error::Kind::unsupported:
      return "unsupported";
    case Error::Kind::bad_file:
      return "bad_file";
    case Error::Kind::cancelled:
      return "cancelled";
    case Error::Kind::bug:
      return "bug";
  }
  return "";
}

std::string TensorInfo::text() const {
  if (kind == Kind::integer) return "int";
  if (kind == Kind::number) return "float";
  if (kind == Kind::boolean) return "bool";
  if (kind == Kind::other) return "object";
  std::string out = type ? api::name(*type) : "tensor";
  if (!has_shape) return out;
  out += "[";
  for (std::size_t i = 0; i < dims.size(); ++i)
    out += (i > 0 ? ", " : "") + (dims[i].size ? std::to_string(*dims[i].size) : dims[i].symbol);
  return out + "]";
}

}  // namespace ttc::api
