// The container, the program's members and the record of the format. The archive's layout is that of
// torch/export/pt2_archive.
#include "formats/pt2_read.h"

#include <algorithm>

#include "formats/file_format.h"
#include "formats/pt2_names.h"
#include "formats/pt2_read_graph.h"
#include "formats/pt2_weights.h"
#include "formats/pt2_wrappers.h"
#include "formats/pt2_write.h"
#include "ir/manifest_name.h"
#include "support/json_util.h"

namespace ttc {
namespace {

constexpr std::string_view models_folder = "models/", json_suffix = ".json", extra_folder = "extra/";

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\0')) text.pop_back();
  return text;
}

// Where an archive keeps its program and, in containers of torch 2.6 to 2.8, the pickles of its weights.
struct Layout {
  const ZipEntry* program = nullptr;
  std::string name;  // the model's, as in models/<name>.json
  std::string pickled_weights, pickled_constants;
};

void check_container(const ZipArchive& archive) {
  const auto content = [&](const char* name) -> std::optional<std::string> {
    const ZipEntry* entry = archive.find(name);
    if (!entry) return std::nullopt;
    if (entry->size > 4096)
      throw bad_file(archive.path(), std::string("'") + name + "' is too long to be what its name says");
    return trimmed(archive.read(*entry));
  };
  const auto format = content("archive_format");
  if (format && *format != "pt2")
    throw bad_file(archive.path(), "the archive's format is '" + *format + "', not 'pt2'");
  const auto version = content("archive_version");
  if (version && *version != "0")
    throw bad_file(archive.path(), "the archive's version is " + *version + "; ttc reads version 0",
                   "export the model with torch 2.13");
  const auto order = content("byteorder");
  if (order && *order != "little")
    throw bad_file(archive.path(),
                   "the weights are stored in " + *order + "-endian byte order; ttc reads little-endian ones");
}

// models/<name>.json: "model", or the only one there is.
const ZipEntry& find_model(const ZipArchive& archive) {
  if (const ZipEntry* entry = archive.find("models/model.json")) return *entry;
  const ZipEntry* only = nullptr;
  for (const auto& entry : archive.entries()) {
    if (!entry.name.starts_with(models_folder) || !entry.name.ends_with(json_suffix)) continue;
    if (only)
      throw bad_file(archive.path(), "the archive holds several models, none of them named 'model'",
                     "save one model per file");
    only = &entry;
  }
  if (!only)
    throw bad_file(archive.path(),
                   "the archive holds no models/model.json: it is no exported program, or an incomplete one",
                   "write it with torch.export.save");
  return *only;
}

Layout find_layout(const ZipArchive& archive) {
  Layout layout;
  if ((layout.program = archive.find("serialized_exported_program.json"))) {  // torch 2.5 to 2.7
    layout.pickled_weights = "serialized_state_dict.pt";
    layout.pickled_constants = "serialized_constants.pt";
    return layout;
  }
  layout.program = &find_model(archive);
  const auto name_size = layout.program->name.size() - models_folder.size() - json_suffix.size();
  layout.name = layout.program->name.substr(models_folder.size(), name_size);
  if (archive.find("data/weights/" + layout.name + ".pt")) {  // torch 2.8
    layout.pickled_weights = "data/weights/" + layout.name + ".pt";
    layout.pickled_constants = "data/constants/" + layout.name + ".pt";
  }
  return layout;
}

void check_schema_version(const Json& program) {
  const Json& version = member(program, "schema_version");
  const std::int64_t major = as_int(member(version, "major"));
  const std::int64_t minor = as_int(member(version, "minor"));
  if (major == pt2_schema_major) return;
  const std::string found = "schema version " + std::to_string(major) + "." + std::to_string(minor);
  if (major < pt2_schema_major)
    throw bad_file("", found + " is of torch 2.5 or older; ttc reads major version 8",
                   "export the model again with torch 2.9 or newer");
  throw bad_file("", found + " is newer than this ttc, which reads major version 8",
                 "use a newer ttc, or export the model with torch 2.13");
}

void read_ranges(const Json& program, ir::Model& model) {
  const Json* ranges = find_member(program, "range_constraints");
  if (!ranges) return;
  for (const auto& [symbol, range] : as_object(*ranges)) {
    ir::SymRange out;
    if (const Json* min = find_member(range, "min_val")) out.min = as_int(*min);
    if (const Json* max = find_member(range, "max_val")) out.max = as_int(*max);
    if (out.min && out.max && *out.min > *out.max) throw bad_file("", "symbol '" + symbol + "' has an empty range");
    model.ranges[symbol] = out;
  }
}

// Moves the manifest, which the graph module's metadata hold, into `extra`.
void take_manifest(Json& graph_module, decltype(ir::Model::extra)& extra) {
  const Json* metadata = find_member(graph_module, "metadata");
  const Json* text = metadata ? find_member(*metadata, "custom") : nullptr;
  if (!text || !text->is_string()) return;
  Json custom = Json::parse(text->get_ref<const std::string&>(), nullptr, false);
  const Json* manifest = custom.is_object() ? find_member(custom, manifest_attribute.data()) : nullptr;
  if (!manifest || !manifest->is_string()) return;
  extra[std::string(manifest_name)] = manifest->get<std::string>();
  custom.erase(std::string(manifest_attribute));
  graph_module["metadata"]["custom"] = custom.dump();
  if (custom.empty()) graph_module["metadata"].erase("custom");
}

// What the IR models is read member by member; the rest is kept for writing back.
std::string other_members(const Json& program, decltype(ir::Model::extra)& extra) {
  const auto rest = [](const Json& object, std::initializer_list<const char*> known) {
    Json copy = Json::object();
    for (const auto& [key, value] : as_object(object))
      if (std::none_of(known.begin(), known.end(), [&](const char* name) { return key == name; })) copy[key] = value;
    return copy;
  };
  const Json& module = member(program, "graph_module");
  Json out;
  out["program"] =
      rest(program, {"graph_module", "range_constraints", "schema_version", "torch_version", "guards_code"});
  out["graph_module"] = rest(module, {"graph", "signature", "module_call_graph"});
  take_manifest(out["graph_module"], extra);
  return out.dump();
}

void read_info(const Json& program, ir::Model& model) {
  ir::ModelInfo& info = model.info;
  info.schema_major = static_cast<int>(as_int(member(member(program, "schema_version"), "major")));
  info.schema_minor =
      static_cast<int>(std::min<std::int64_t>(as_int(member(member(program, "schema_version"), "minor")), 1 << 20));
  if (const Json* version = find_member(program, "torch_version")) info.torch_version = as_string(*version);
  if (const Json* verifiers = find_member(program, "verifiers"); verifiers && !as_array(*verifiers).empty())
    info.dialect = as_string((*verifiers)[0]);
  if (const Json* guards = find_member(program, "guards_code"))
    for (const Json& guard : as_array(*guards)) info.guards.push_back(as_string(guard));
  if (const Json* calls = find_member(member(program, "graph_module"), "module_call_graph"))
    info.module_call_graph = calls->dump();
  info.other_json = other_members(program, model.extra);
}

void read_extra(const ZipArchive& archive, ir::Model& model) {
  for (const auto& entry : archive.entries())
    if (entry.name.starts_with(extra_folder) && entry.name.size() > extra_folder.size())
      model.extra[entry.name.substr(extra_folder.size())] = archive.read(entry);
}

// Operators of Python libraries that are one of LibTorch under another name, with the same arguments.
void respell_library_ops(ir::Model& model) {
  ir::walk(*model.graph, [](ir::Node* node) {
    if (node->op() != "transformers.grouped_mm_fallback.default" || node->args().size() != 3) return;
    node->set_op("aten._grouped_mm.default");
    node->arg_names.clear();
  });
}

}  // namespace

std::unique_ptr<ir::Model> read_pt2(const std::string& path) { return read_pt2(ZipArchive(MappedFile::open(path))); }

std::unique_ptr<ir::Model> read_pt2(const ZipArchive& archive) {
  check_container(archive);
  const Layout layout = find_layout(archive);
  auto model = std::make_unique<ir::Model>();
  model->info.path = archive.path();
  model->info.format = "pt2";
  try {
    const Json program = parse_json(archive.read(*layout.program));
    check_schema_version(program);
    read_ranges(program, *model);
    read_info(program, *model);
    const Json& module = member(program, "graph_module");
    Pt2GraphReader(*model).read(member(module, "graph"), member(module, "signature"));
    write_out_wrappers(*model);
  } catch (const Error& error) {
    if (!error.file().empty()) throw;
    throw add_context(error, layout.program->name).in_file(archive.path());
  }
  if (layout.pickled_weights.empty()) {
    read_weights(archive, layout.name, *model);
  } else if (pickle_reader()) {
    read_pickled_weights(archive, layout.pickled_weights, layout.pickled_constants, *model);
  } else {
    throw bad_file(archive.path(), "made by torch 2.8 or older, whose container keeps the weights as a pickle",
                   "load it with torch.export.load of torch 2.9 or newer and save it again with torch.export.save");
  }
  respell_library_ops(*model);
  check_weights(archive, *model);
  read_extra(archive, *model);
  return model;
}

namespace {

// The operator that nobody knows: the node's, or the one it wraps; "" where there is none. Python functions of torch
// are known where they compute sizes.
std::string unknown_operator(const ir::Node& node) {
  const std::string& op = node.op();
  if (!node.schema()) return op;
  if (op.starts_with("torch.") && !op.starts_with("torch.sym_") && !op.starts_with("torch._sym_")) return op;
  if (!op.starts_with("higher_order.auto_functionalized") || node.args().empty()) return {};
  const std::string* target = node.arg(0).get_if<std::string>();
  const std::string inner = target ? op_from_target(*target) : op;
  return ir::find_schema(inner) ? "" : inner;
}

}  // namespace

void check_known_ops(const ir::Model& model) {
  ir::walk(*model.graph, [&](ir::Node* node) {
    const std::string unknown = unknown_operator(*node);
    if (unknown.empty()) return;
    std::string where;
    const ir::Provenance& from = *node->provenance;
    if (!from.stack.empty()) where += ", in module '" + from.module_path + "' (" + from.module_class + ")";
    if (!from.source.empty()) where += ", " + from.source;
    throw bad_file(model.info.path, "unknown operator '" + unknown + "'" + where,
                   unknown.starts_with("torch.") ? "export the model with run_decompositions(), which writes it out"
                                                 : "load the library that registers it with --plugin LIB.so");
  });
}

namespace {

bool holds_exported_program(const InputFile& file) {
  const ZipArchive* archive = file.archive();
  if (!archive) return false;
  if (archive->find("archive_format") || archive->find("serialized_exported_program.json")) return true;
  return std::any_of(archive->entries().begin(), archive->entries().end(), [](const ZipEntry& entry) {
    return entry.name.starts_with(models_folder) || entry.name.starts_with("data/weights/");
  });
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_FORMAT({.name = "pt2",
                     .extensions = {".pt2"},
                     .detect = ttc::holds_exported_program,
                     .read = [](const ttc::InputFile& file) { return ttc::read_pt2(file.as_archive()); },
                     .write = ttc::write_pt2})
