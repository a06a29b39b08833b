// Every element that a strided view can touch must lie inside its file: that is what keeps the mapping safe to use.
#include "formats/pt2_weights.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "support/json_util.h"

namespace ttc {
namespace {

using ir::Storage;
using ir::Weight;

// A weight and the file that holds it.
struct Payload {
  std::string fqn;
  std::string file;  // entry name
  std::string kind;  // "tensor" or "custom_obj"
  Weight weight;
  std::uint64_t needed = 0;  // bytes the view reaches to, from the start of the file
};

std::int64_t plain_int(const Json& json) {
  const auto [tag, value] = as_union(json);
  if (tag != "as_int") throw bad_file("", "sizes of a weight must be numbers");
  const std::int64_t number = as_int(value);
  if (number < 0) throw bad_file("", "a negative size, stride or offset");
  return number;
}

// Bytes from the start of the storage to the end of the last element the view touches.
std::uint64_t reach(const Weight& weight) {
  std::int64_t last = weight.storage_offset, elements = 1;
  const auto overflow = [] { return bad_file("", "its sizes and strides overflow"); };
  bool empty = false;
  for (std::size_t i = 0; i < weight.sizes.size(); ++i) {
    const std::int64_t size = weight.sizes[i];
    empty |= size == 0;
    std::int64_t step = 0;
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements)) throw overflow();
    if (size > 0 &&
        (__builtin_mul_overflow(size - 1, weight.strides[i], &step) || __builtin_add_overflow(last, step, &last)))
      throw overflow();
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, size_of(weight.dtype), &bytes)) throw overflow();
  if (empty) return 0;
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, size_of(weight.dtype), &bytes))
    throw overflow();
  return static_cast<std::uint64_t>(bytes);
}

Weight read_tensor_meta(const Json& meta) {
  Weight weight;
  const Json& code = member(meta, "dtype");
  const std::int64_t number = as_int(code);
  const auto dtype = number < 0 || number > 1000 ? std::nullopt : dtype_from_pt2(static_cast<int>(number));
  if (!dtype) throw bad_file("", "unknown dtype code " + code.dump());
  weight.dtype = *dtype;
  for (const Json& size : as_array(member(meta, "sizes"))) weight.sizes.push_back(plain_int(size));
  for (const Json& stride : as_array(member(meta, "strides"))) weight.strides.push_back(plain_int(stride));
  if (weight.sizes.size() != weight.strides.size() || weight.sizes.size() > 64)
    throw bad_file("", "sizes and strides do not fit together");
  weight.storage_offset = plain_int(member(meta, "storage_offset"));
  if (const Json* grad = find_member(meta, "requires_grad")) weight.requires_grad = as_bool(*grad);
  if (const Json* layout = find_member(meta, "layout"); layout && as_int(*layout) != 7)
    throw bad_file("", "it is sparse or of another layout that ttc does not read", "call .to_dense() before exporting");
  return weight;
}

Payload read_payload(const std::string& fqn, const Json& json, const std::string& folder) {
  Payload payload{.fqn = fqn, .file = {}, .kind = "tensor", .weight = {}};
  const std::string& name = as_string(member(json, "path_name"));
  if (name.empty() || name.find_first_of("/\\") != name.npos || name == ".." || name == "." ||
      name.find('\0') != name.npos)
    throw bad_file("", "its path '" + name + "' leaves the archive's " + folder);
  payload.file = folder + name;
  if (name.starts_with("opaque_obj_"))
    throw bad_file("", "it is a Python object, stored as a pickle, which ttc does not run");
  const Json* pickled = find_member(json, "use_pickle");
  if (pickled && as_bool(*pickled))
    throw bad_file("", "it is stored as a pickle (a tensor subclass, for instance quantised), which ttc does not run",
                   "turn it into plain tensors before exporting");
  if (name.starts_with("custom_obj_")) {
    payload.kind = "custom_obj";
    payload.weight.dtype = DType::u8;
    return payload;
  }
  payload.weight = read_tensor_meta(member(json, "tensor_meta"));
  payload.needed = reach(payload.weight);
  return payload;
}

void read_config(const ZipArchive& archive, const std::string& config, const std::string& folder,
                 std::vector<Payload>& out) {
  const ZipEntry* entry = archive.find(config);
  if (!entry) throw bad_file(archive.path(), "'" + config + "' is missing from the archive", "export the model again");
  const Json json = parse_json(archive.read(*entry));
  for (const auto& [fqn, payload] : as_object(member(json, "config"))) {
    try {
      out.push_back(read_payload(fqn, payload, folder));
    } catch (const Error& error) {
      throw add_context(error, "weight '" + fqn + "'");
    }
  }
}

// The entry's bytes: in the mapping, or a copy where they are compressed or so badly aligned that elements straddle.
std::shared_ptr<const Storage> make_storage(const ZipArchive& archive, const ZipEntry& entry) {
  auto storage = std::make_shared<Storage>();
  storage->bytes = entry.size;
  if (entry.stored && (entry.offset % 16 == 0 || entry.size == 0)) {
    storage->owner = archive.file();
    storage->data = archive.view(entry).data();
    return storage;
  }
  constexpr std::align_val_t alignment{64};
  std::shared_ptr<std::byte> copy(static_cast<std::byte*>(::operator new(entry.size + 1, alignment)),
                                  [](std::byte* bytes) { ::operator delete(bytes, std::align_val_t{64}); });
  if (entry.stored) {
    std::memcpy(copy.get(), archive.view(entry).data(), entry.size);
  } else {
    const std::string content = archive.read(entry);
    std::memcpy(copy.get(), content.data(), content.size());
  }
  storage->data = copy.get();
  storage->owner = std::move(copy);
  return storage;
}

}  // namespace

void read_weights(const ZipArchive& archive, const std::string& name, ir::Model& model) {
  std::vector<Payload> payloads;
  try {
    read_config(archive, "data/weights/" + name + "_weights_config.json", "data/weights/", payloads);
    read_config(archive, "data/constants/" + name + "_constants_config.json", "data/constants/", payloads);
  } catch (const Error& error) {
    throw error.file().empty() ? error.in_file(archive.path()) : error;
  }
  std::map<std::string, std::uint64_t> needed;
  for (const Payload& payload : payloads) {
    auto& bytes = needed[payload.file];
    bytes = std::max(bytes, payload.needed);
  }
  std::map<std::string, std::shared_ptr<const Storage>> storages;
  for (Payload& payload : payloads) {
    const ZipEntry* entry = archive.find(payload.file);
    if (!entry)
      throw bad_file(archive.path(),
                     "weight '" + payload.fqn + "': its file '" + payload.file + "' is missing from the archive",
                     "export the model again");
    auto& storage = storages[payload.file];
    if (!storage && entry->size == 0 && needed[payload.file] > 0) {
      // Exported from fake or meta tensors: the file carries shapes only.
      storage = std::make_shared<Storage>(
          Storage{.owner = nullptr, .data = nullptr, .bytes = needed[payload.file], .produce = {}});
    } else if (!storage) {
      storage = make_storage(archive, *entry);
    }
    if (payload.kind == "custom_obj") {
      payload.weight.sizes = {static_cast<std::int64_t>(entry->size)};
      payload.weight.strides = {1};
    } else if (payload.needed > storage->bytes) {
      throw bad_file(archive.path(),
                     "weight '" + payload.fqn + "' needs " + std::to_string(payload.needed) + " bytes, but its file '" +
                         payload.file + "' holds " + std::to_string(storage->bytes),
                     "copy or export the file again");
    }
    payload.weight.storage = storage;
    if (!model.weights.emplace(payload.fqn, std::move(payload.weight)).second)
      throw bad_file(archive.path(), "weight '" + payload.fqn + "' is defined twice, as weight and as constant");
  }
}

PickleReader& pickle_reader() {
  static PickleReader reader = nullptr;
  return reader;
}

void read_pickled_weights(const ZipArchive& archive, const std::string& weights, const std::string& constants,
                          ir::Model& model) {
  for (const std::string& file : {weights, constants}) {
    const ZipEntry* entry = archive.find(file);
    if (!entry)
      throw bad_file(archive.path(), "its weights '" + file + "' are missing from the archive",
                     "export the model again");
    try {
      for (auto& [name, weight] : pickle_reader()(archive.read(*entry)))
        if (!model.weights.emplace(name, std::move(weight)).second)
          throw bad_file("", "weight '" + name + "' is defined twice, as weight and as constant");
    } catch (const Error& error) {
      throw error.file().empty() ? add_context(error, file).in_file(archive.path()) : error;
    }
  }
}

void check_weights(const ZipArchive& archive, const ir::Model& model) {
  for (const auto& input : model.graph->inputs()) {
    if (input.kind != ir::InputKind::parameter && input.kind != ir::InputKind::buffer &&
        input.kind != ir::InputKind::constant)
      continue;
    const auto found = model.weights.find(input.target);
    if (found == model.weights.end())
      throw bad_file(archive.path(), "the graph uses weight '" + input.target + "', which the archive does not hold",
                     "export the model again");
    const Weight& weight = found->second;
    const ir::Type& type = input.value->type;
    if (!type.is_tensor() || !type.is_static())
      throw bad_file(archive.path(), "weight '" + input.target + "' has no fixed shape in the graph");
    if (type.dtype != weight.dtype || type.static_sizes() != weight.sizes)
      throw bad_file(archive.path(),
                     "weight '" + input.target + "' is " +
                         ir::Type::tensor(weight.dtype, {weight.sizes.begin(), weight.sizes.end()}).str() +
                         " in the archive, but " + type.str() + " in the graph");
  }
}

}  // namespace ttc
