// See pt2_write.h. Entries and their order are those of torch.export.save; the root directory has a fixed name, so the
// bytes do not depend on the file's.
#include "formats/pt2_write.h"

#include <set>
#include <tuple>

#include "formats/pt2_names.h"
#include "formats/pt2_read_graph.h"
#include "formats/pt2_write_graph.h"
#include "formats/seal.h"
#include "formats/zip_write.h"
#include "ir/manifest_name.h"
#include "support/json_util.h"

namespace ttc {
namespace {

const std::string root = "archive/";
constexpr int schema_minor = 20;

// One of the archive's two folders of tensors: files by storage and dtype, and the config that names them.
class PayloadFolder {
 public:
  // `seal`: where each weight's hash goes, nullptr where none is wanted.
  PayloadFolder(ZipWriter& zip, std::string folder, const char* file_prefix, Seal* seal)
      : zip_(zip), folder_(std::move(folder)), prefix_(file_prefix), seal_(seal) {}

  void add(const std::string& fqn, const ir::Weight& weight, ir::InputKind kind) {
    const bool object = kind == ir::InputKind::custom_obj;
    Json meta;
    if (!object) {
      meta = {{"dtype", pt2_code(weight.dtype)},
              {"sizes", numbers(weight.sizes)},
              {"requires_grad", weight.requires_grad},
              {"device", {{"type", "cpu"}, {"index", nullptr}}},
              {"strides", numbers(weight.strides)},
              {"storage_offset", {{"as_int", weight.storage_offset}}},
              {"layout", 7}};
    }
    const auto [owner, data] = weight.storage->load();
    const std::byte* bytes = weight.storage->absent() ? nullptr : data;
    if (seal_ != nullptr) seal_->weights[fqn] = weight_hash(weight, bytes);
    config_[fqn] = {{"path_name", file_of(weight, bytes, object)},
                    {"is_param", kind == ir::InputKind::parameter},
                    {"use_pickle", false},
                    {"tensor_meta", std::move(meta)}};
  }

  void finish(const std::string& config_name) {
    zip_.add(root + folder_ + config_name, Json{{"config", config_}}.dump());
  }

 private:
  static Json numbers(const std::vector<std::int64_t>& values) {
    Json out = Json::array();
    for (const auto value : values) out.push_back(Json{{"as_int", value}});
    return out;
  }

  // Writes the storage unless a weight before this one did.
  const std::string& file_of(const ir::Weight& weight, const std::byte* bytes, bool object) {
    const ir::Storage& storage = *weight.storage;
    const void* identity = storage.data ? static_cast<const void*>(storage.data) : &storage;
    std::string& file = files_[{identity, storage.bytes, weight.dtype}];
    if (!file.empty()) return file;
    int& count = object ? objects_ : tensors_;
    file = (object ? "custom_obj_" : prefix_) + std::to_string(count++);
    zip_.add(root + folder_ + file, std::span(bytes, bytes != nullptr ? storage.bytes : 0));
    return file;
  }

  ZipWriter& zip_;
  const std::string folder_, prefix_;
  Seal* seal_;
  Json config_ = Json::object();
  std::map<std::tuple<const void*, std::size_t, DType>, std::string> files_;
  int tensors_ = 0, objects_ = 0;
};

bool is_constant(const ir::GraphInput& input) {
  return input.kind == ir::InputKind::constant || input.kind == ir::InputKind::custom_obj ||
         (input.kind == ir::InputKind::buffer && !input.persistent);
}

void write_weights(const ir::Model& model, ZipWriter& zip, Seal* seal) {
  std::set<std::string_view> written;
  for (const bool constants : {false, true}) {
    PayloadFolder folder(zip, constants ? "data/constants/" : "data/weights/", constants ? "tensor_" : "weight_", seal);
    for (const auto& input : model.graph->inputs()) {
      if (input.kind == ir::InputKind::user || input.kind == ir::InputKind::token || is_constant(input) != constants)
        continue;
      const auto weight = model.weights.find(input.target);
      if (weight == model.weights.end())
        throw Error(Exit::unsupported, "", "weight '" + input.target + "' has no bytes, so the model cannot be saved");
      if (written.insert(weight->first).second) folder.add(weight->first, weight->second, input.kind);
    }
    // State that the graph does not use belongs to the state dict all the same.
    for (const auto& [fqn, weight] : model.weights)
      if (constants && written.insert(fqn).second) folder.add(fqn, weight, ir::InputKind::constant);
    folder.finish(constants ? "model_constants_config.json" : "model_weights_config.json");
  }
}

Json leaf() { return {{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}}; }

Json tuple_of(std::size_t leaves) {
  Json children = Json::array();
  for (std::size_t i = 0; i < leaves; ++i) children.push_back(leaf());
  return {{"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", std::move(children)}};
}

// How inputs and outputs nest: what the file said, or flat tuples for models that came from elsewhere.
Json module_call_graph(const ir::Model& model) {
  if (!model.info.module_call_graph.empty()) {
    Json calls = parse_json(model.info.module_call_graph);
    // Calls of submodules name values that passes may have replaced.
    for (std::size_t i = 1; i < calls.size(); ++i) calls[i]["signature"] = nullptr;
    return calls;
  }
  std::size_t inputs = 0, outputs = 0;
  for (const auto& input : model.graph->inputs()) inputs += input.kind == ir::InputKind::user;
  for (const auto& output : model.graph->outputs()) outputs += output.kind == ir::OutputKind::user;
  Json args = tuple_of(0);
  args["children_spec"] =
      Json::array({tuple_of(inputs), {{"type", "builtins.dict"}, {"context", "[]"}, {"children_spec", Json::array()}}});
  const auto spec = [](const Json& tree) { return Json::array({1, tree}).dump(); };
  const Json signature = {{"inputs", Json::array()},
                          {"outputs", Json::array()},
                          {"in_spec", spec(args)},
                          {"out_spec", spec(outputs == 1 ? leaf() : tuple_of(outputs))},
                          {"forward_arg_names", model.info.user_input_names}};
  return Json::array({Json{{"fqn", ""}, {"signature", signature}}});
}

// The graph as a reader will see it: a .pt2 spells some things in other ways.
ir::Model as_read(const Json& program) {
  ir::Model out;
  const Json& module = member(program, "graph_module");
  Pt2GraphReader(out).read(member(module, "graph"), member(module, "signature"));
  return out;
}

// Into the graph module's metadata, "custom" of which torch.export.load and save keep.
void put_manifest(Json& program, const std::string& manifest) {
  Json& metadata = program["graph_module"]["metadata"];
  if (!metadata.is_object()) metadata = Json::object();
  const Json* text = find_member(metadata, "custom");
  Json custom = text && text->is_string() ? parse_json(text->get_ref<const std::string&>()) : Json::object();
  custom[manifest_attribute] = manifest;
  metadata["custom"] = custom.dump();
}

Json program_json(const ir::Model& model) {
  Pt2GraphWriter writer(model);
  Json other = model.info.other_json.empty() ? Json::object() : parse_json(model.info.other_json);
  Json module = other.contains("graph_module") ? other["graph_module"] : Json::object();
  module["graph"] = writer.graph();
  module["signature"] = writer.signature();
  module["module_call_graph"] = module_call_graph(model);
  if (!module.contains("metadata")) module["metadata"] = Json::object();
  if (!module.contains("treespec_namedtuple_fields")) module["treespec_namedtuple_fields"] = Json::object();

  Json program = other.contains("program") ? other["program"] : Json::object();
  program["graph_module"] = std::move(module);
  program["range_constraints"] = writer.range_constraints();
  program["schema_version"] = {
      {"major", pt2_schema_major},
      {"minor", model.info.schema_major == pt2_schema_major ? model.info.schema_minor : schema_minor}};
  program["torch_version"] = model.info.torch_version.empty() ? "2.13.0" : model.info.torch_version;
  program["guards_code"] = model.info.guards;
  if (!program.contains("opset_version")) program["opset_version"] = {{"aten", 10}};
  if (!program.contains("verifiers"))
    program["verifiers"] = Json::array({model.info.dialect.empty() ? "TRAINING" : model.info.dialect});
  return program;
}

}  // namespace

void write_pt2(const ir::Model& model, const std::string& path) {
  // Everything that can be refused is, before a byte is written.
  Json program = program_json(model);
  const auto manifest = model.extra.find(manifest_name);
  AtomicFile file(path, model.weight_bytes());
  ZipWriter zip(file);
  Seal seal;
  write_weights(model, zip, manifest == model.extra.end() ? nullptr : &seal);
  if (manifest != model.extra.end()) {
    seal.graph = graph_hash(*as_read(program).graph);
    put_manifest(program, sealed(manifest->second, seal));
  }
  zip.add(root + "models/model.json", program.dump());
  zip.add(root + "data/sample_inputs/model.pt", std::string_view());
  for (const auto& [name, content] : model.extra)
    if (name != manifest_name) zip.add(root + "extra/" + name, content);
  zip.add(root + "archive_format", "pt2");
  zip.add(root + "archive_version", "0");
  zip.add(root + ".data/version", "6\n");
  zip.add(root + "byteorder", "little");
  zip.finish();
  file.commit();
}

}  // namespace ttc
