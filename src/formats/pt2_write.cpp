// See pt2_write.h. Entries and their order are those of torch.export.save; the root directory has a fixed name, so the
// bytes do not depend on the file's.
#include "formats/pt2_write.h"

#include <set>
#include <tuple>

#include "formats/pt2_names.h"
#include "formats/pt2_write_graph.h"
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
  PayloadFolder(ZipWriter& zip, std::string folder, const char* file_prefix)
      : zip_(zip), folder_(std::move(folder)), prefix_(file_prefix) {}

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
    config_[fqn] = {{"path_name", file_of(weight, object)},
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
  const std::string& file_of(const ir::Weight& weight, bool object) {
    const ir::Storage& storage = *weight.storage;
    const void* identity = storage.data ? static_cast<const void*>(storage.data) : &storage;
    std::string& file = files_[{identity, storage.bytes, weight.dtype}];
    if (!file.empty()) return file;
    int& count = object ? objects_ : tensors_;
    file = (object ? "custom_obj_" : prefix_) + std::to_string(count++);
    if (storage.absent()) {
      zip_.add(root + folder_ + file, std::string_view());
    } else {
      const auto [owner, data] = storage.load();
      zip_.add(root + folder_ + file, std::span(data, storage.bytes));
    }
    return file;
  }

  ZipWriter& zip_;
  const std::string folder_, prefix_;
  Json config_ = Json::object();
  std::map<std::tuple<const void*, std::size_t, DType>, std::string> files_;
  int tensors_ = 0, objects_ = 0;
};

bool is_constant(const ir::GraphInput& input) {
  return input.kind == ir::InputKind::constant || input.kind == ir::InputKind::custom_obj ||
         (input.kind == ir::InputKind::buffer && !input.persistent);
}

void write_weights(const ir::Model& model, ZipWriter& zip) {
  std::set<std::string_view> written;
  for (const bool constants : {false, true}) {
    PayloadFolder folder(zip, constants ? "data/constants/" : "data/weights/", constants ? "tensor_" : "weight_");
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

// The graph module's metadata, "custom" of which torch.export.load and save keep.
Json module_metadata(const ir::Model& model, Json metadata) {
  const auto manifest = model.extra.find(std::string(manifest_name));
  if (!metadata.is_object()) metadata = Json::object();
  if (manifest == model.extra.end()) return metadata;
  const Json* text = find_member(metadata, "custom");
  Json custom = text && text->is_string() ? parse_json(text->get_ref<const std::string&>()) : Json::object();
  custom[manifest_attribute] = manifest->second;
  metadata["custom"] = custom.dump();
  return metadata;
}

Json program_json(const ir::Model& model) {
  Pt2GraphWriter writer(model);
  Json other = model.info.other_json.empty() ? Json::object() : parse_json(model.info.other_json);
  Json module = other.contains("graph_module") ? other["graph_module"] : Json::object();
  module["graph"] = writer.graph();
  module["signature"] = writer.signature();
  module["module_call_graph"] = module_call_graph(model);
  module["metadata"] = module_metadata(model, module.contains("metadata") ? module["metadata"] : Json::object());
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
  const std::string program = program_json(model).dump();
  AtomicFile file(path, program.size() + model.weight_bytes());
  ZipWriter zip(file);
  write_weights(model, zip);
  zip.add(root + "models/model.json", program);
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
