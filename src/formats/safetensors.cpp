// See safetensors.h. A safetensors file is a u64 header size, a JSON header, then the arrays; npy is a magic, a
// version, a Python dict as text, then the array. Every offset and size is checked before use.
#include "formats/safetensors.h"

#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "support/atomic_file.h"
#include "support/error.h"
#include "support/json_util.h"
#include "support/mapped_file.h"

namespace ttc {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 19> names = {{
    {"F32", DType::f32},   {"BF16", DType::bf16},        {"F16", DType::f16},        {"F64", DType::f64},
    {"I64", DType::i64},   {"I32", DType::i32},          {"I16", DType::i16},        {"I8", DType::i8},
    {"U8", DType::u8},     {"BOOL", DType::boolean},     {"U16", DType::u16},        {"U32", DType::u32},
    {"U64", DType::u64},   {"F8_E4M3", DType::f8e4m3fn}, {"F8_E5M2", DType::f8e5m2}, {"C64", DType::c64},
    {"C128", DType::c128}, {"F8_E8M0", DType::f8e8m0},   {"C32", DType::c32},
}};

DType dtype_of(std::string_view name) {
  for (const auto& [known, dtype] : names)
    if (known == name) return dtype;
  throw bad_file("", "unknown dtype '" + std::string(name.substr(0, 40)) + "'");
}

// A contiguous view of `bytes`; copied where its elements would not be aligned.
ir::Weight view(const std::shared_ptr<const MappedFile>& file, std::span<const std::byte> bytes, DType dtype,
                std::vector<std::int64_t> sizes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % static_cast<std::size_t>(size_of(dtype)) != 0)
    return ir::make_weight(dtype, std::move(sizes), std::vector<std::byte>(bytes.begin(), bytes.end()));
  ir::Weight weight;
  weight.dtype = dtype;
  weight.strides = ir::contiguous_strides(sizes);
  weight.sizes = std::move(sizes);
  auto storage = std::make_shared<ir::Storage>();
  storage->owner = file;
  storage->data = bytes.data();
  storage->bytes = bytes.size();
  weight.storage = std::move(storage);
  return weight;
}

// The bytes that sizes and dtype ask for; throws where they overflow or a size is negative.
std::size_t bytes_of(const std::vector<std::int64_t>& sizes, DType dtype) {
  std::int64_t n = size_of(dtype);
  for (const std::int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(n, size, &n)) throw bad_file("", "a shape is impossible");
  return static_cast<std::size_t>(n);
}

ir::Weight tensor_of(const Json& entry, const std::shared_ptr<const MappedFile>& file,
                     std::span<const std::byte> data) {
  const DType dtype = dtype_of(as_string(member(entry, "dtype")));
  std::vector<std::int64_t> sizes;
  for (const Json& size : as_array(member(entry, "shape"))) sizes.push_back(as_int(size));
  const auto& offsets = as_array(member(entry, "data_offsets"));
  if (offsets.size() != 2) throw bad_file("", "data_offsets are not a pair");
  const std::int64_t from = as_int(offsets[0]), to = as_int(offsets[1]);
  if (from < 0 || to < from || static_cast<std::size_t>(to) > data.size())
    throw bad_file("", "data_offsets leave the file");
  if (static_cast<std::size_t>(to - from) != bytes_of(sizes, dtype))
    throw bad_file("", "data_offsets do not fit the shape");
  return view(file, data.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)), dtype,
              std::move(sizes));
}

// The text after "'key':" in an npy header.
std::string_view after(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) throw bad_file("", "the npy header lacks " + std::string(key));
  std::string_view rest = header.substr(at + key.size());
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == ':')) rest.remove_prefix(1);
  return rest;
}

DType npy_dtype(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, DType>, 14> known = {{
      {"'<f4'", DType::f32},
      {"'<f8'", DType::f64},
      {"'<f2'", DType::f16},
      {"'<i8'", DType::i64},
      {"'<i4'", DType::i32},
      {"'<i2'", DType::i16},
      {"'|i1'", DType::i8},
      {"'|u1'", DType::u8},
      {"'|b1'", DType::boolean},
      {"'<u2'", DType::u16},
      {"'<u4'", DType::u32},
      {"'<u8'", DType::u64},
      {"'<c8'", DType::c64},
      {"'<c16'", DType::c128},
  }};
  for (const auto& [name, dtype] : known)
    if (text.starts_with(name)) return dtype;
  throw bad_file("", "the npy dtype " + std::string(text.substr(0, 10)) + " is not supported");
}

std::vector<std::int64_t> npy_shape(std::string_view text) {
  const std::size_t close = text.find(')');
  if (!text.starts_with("(") || close == std::string_view::npos) throw bad_file("", "the npy shape is malformed");
  std::vector<std::int64_t> sizes;
  text = text.substr(1, close - 1);
  while (!text.empty()) {
    if (text.front() == ' ' || text.front() == ',') {
      text.remove_prefix(1);
      continue;
    }
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || sizes.size() > 64) throw bad_file("", "the npy shape is malformed");
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    sizes.push_back(size);
  }
  return sizes;
}

ir::Weight parse_npy(const std::shared_ptr<const MappedFile>& file) {
  const std::span<const std::byte> bytes = file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("\x93NUMPY") || text.size() < 12) throw bad_file("", "not an npy file");
  const bool wide = text[6] >= 2;
  const std::size_t start = wide ? 12 : 10;
  std::size_t length = 0;
  for (std::size_t i = 0; i < (wide ? 4u : 2u); ++i)
    length |= static_cast<std::size_t>(static_cast<unsigned char>(text[8 + i])) << (8 * i);
  if (length > text.size() - start) throw bad_file("", "the npy header leaves the file");
  const std::string_view header = text.substr(start, length);
  if (after(header, "'fortran_order'").starts_with("True"))
    throw bad_file("", "a Fortran-ordered npy array is not supported", "save it with numpy.ascontiguousarray");
  const DType dtype = npy_dtype(after(header, "'descr'"));
  std::vector<std::int64_t> sizes = npy_shape(after(header, "'shape'"));
  const std::size_t size = bytes_of(sizes, dtype);
  if (size > text.size() - start - length) throw bad_file("", "the npy file is truncated");
  return view(file, bytes.subspan(start + length, size), dtype, std::move(sizes));
}

}  // namespace

SafeTensors read_safetensors(const std::string& path) { return read_safetensors(MappedFile::open(path)); }

SafeTensors read_safetensors(const std::shared_ptr<const MappedFile>& file) {
  const std::span<const std::byte> bytes = file->bytes();
  try {
    std::uint64_t length = 0;
    if (bytes.size() < sizeof length) throw bad_file("", "not a safetensors file");
    std::memcpy(&length, bytes.data(), sizeof length);
    if (length > bytes.size() - sizeof length)
      throw bad_file("", "not a safetensors file: its header would leave the file");
    const Json header =
        parse_json({reinterpret_cast<const char*>(bytes.data()) + sizeof length, static_cast<std::size_t>(length)});
    const auto data = bytes.subspan(sizeof length + static_cast<std::size_t>(length));
    SafeTensors out;
    for (const auto& [name, entry] : as_object(header)) {
      if (name == "__metadata__") {
        for (const auto& [key, value] : as_object(entry)) out.metadata[key] = as_string(value);
        continue;
      }
      try {
        out.tensors[name] = tensor_of(entry, file, data);
      } catch (const Error& error) {
        throw add_context(error, "tensor '" + name.substr(0, 100) + "'");
      }
    }
    return out;
  } catch (const Error& error) {
    throw error.in_file(file->path());
  }
}

namespace {

// Hands the file's bytes over in order.
template <typename Write>
void write_parts(const SafeTensors& content, const Write& write) {
  Json header = Json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  std::size_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    std::string_view dtype;
    for (const auto& [known, value] : names)
      if (value == tensor.dtype) dtype = known;
    if (dtype.empty() || !tensor.is_contiguous())
      throw usage_error("tensor '" + name + "' can't be written to a safetensors file");
    header[name] = {{"dtype", dtype}, {"shape", tensor.sizes}, {"data_offsets", {offset, offset + tensor.nbytes()}}};
    offset += tensor.nbytes();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  write(&length, sizeof length);
  write(text.data(), text.size());
  for (const auto& [name, tensor] : content.tensors) {
    const auto [owner, data] = tensor.storage->load();
    write(data + tensor.storage_offset * size_of(tensor.dtype), tensor.nbytes());
  }
}

}  // namespace

void write_safetensors(const std::string& path, const SafeTensors& content) {
  AtomicFile file(path);
  write_parts(content, [&](const void* data, std::size_t size) { file.write(data, size); });
  file.commit();
}

std::string safetensors_bytes(const SafeTensors& content) {
  std::string out;
  write_parts(content, [&](const void* data, std::size_t size) { out.append(static_cast<const char*>(data), size); });
  return out;
}

ir::Weight read_npy(const std::string& path) {
  const auto file = MappedFile::open(path);
  try {
    return parse_npy(file);
  } catch (const Error& error) {
    throw error.in_file(path);
  }
}

}  // namespace ttc
