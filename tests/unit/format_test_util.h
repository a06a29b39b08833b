// Archives for the tests of src/formats: a small well-formed .pt2 as a list of entries, to be broken one way at a time.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/zip_write.h"
#include "support/error.h"
#include "support/json_util.h"

namespace format_test {

// The models of the repository.
inline const std::string models = TTC_MODELS;

// A directory that goes away with its files.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "ttc-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) std::abort();
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

using Entries = std::vector<std::pair<std::string, std::string>>;  // below the root directory

inline void write_archive(const std::string& path, const Entries& entries, const std::string& root = "m/") {
  ttc::AtomicFile file(path);
  ttc::ZipWriter zip(file);
  for (const auto& [name, content] : entries) zip.add(root + name, std::string_view(content));
  zip.finish();
  file.commit();
}

// y = linear(x, w): x f32[2, 3], w f32[4, 3], as torch.export.save writes it. Parts are JSON to change before
// entries().
struct TinyModel {
  ttc::Json program = ttc::Json::parse(R"({
    "graph_module": {
      "graph": {
        "inputs": [{"as_tensor": {"name": "p_w"}}, {"as_tensor": {"name": "x"}}],
        "outputs": [{"as_tensor": {"name": "y"}}],
        "nodes": [{"target": "torch.ops.aten.linear.default", "inputs": [
            {"name": "input", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}, {"name": "weight", "arg": {"as_tensor": {"name": "p_w"}}, "kind": 1}],
          "outputs": [{"as_tensor": {"name": "y"}}], "name": "y", "is_hop_single_tensor_return": null,
          "metadata": {"nn_module_stack": "L__self__,,zoo.M;L__self__fc,fc,torch.nn.modules.linear.Linear",
            "stack_trace": "File \"/home/somebody/zoo.py\", line 7, in forward\n File \"/x/site-packages/torch/nn/modules/linear.py\", line 134, in forward"}}],
        "tensor_values": {"p_w": null, "x": null, "y": null},
        "sym_int_values": {}, "sym_bool_values": {}, "sym_float_values": {}, "custom_obj_values": {}, "is_single_tensor_return": false},
      "signature": {
        "input_specs": [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "fc.weight"}}, {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
        "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "y"}}}}]},
      "module_call_graph": [{"fqn": "", "signature": null}], "metadata": {}, "treespec_namedtuple_fields": {}},
    "opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"],
    "torch_version": "2.13.0", "guards_code": []})");
  ttc::Json weights;
  std::string weight_bytes = std::string(48, '\0');

  TinyModel() {
    graph()["tensor_values"]["p_w"] = tensor({4, 3});
    graph()["tensor_values"]["x"] = tensor({2, 3});
    graph()["tensor_values"]["y"] = tensor({2, 4});
    weights["config"]["fc.weight"] = {
        {"path_name", "weight_0"}, {"is_param", true}, {"use_pickle", false}, {"tensor_meta", tensor({4, 3})}};
  }

  static ttc::Json tensor(const std::vector<std::int64_t>& sizes) {
    ttc::Json meta = {{"dtype", 7},
                      {"sizes", ttc::Json::array()},
                      {"strides", ttc::Json::array()},
                      {"storage_offset", {{"as_int", 0}}},
                      {"requires_grad", false},
                      {"device", {{"type", "cpu"}, {"index", nullptr}}},
                      {"layout", 7}};
    std::int64_t stride = 1;
    for (std::size_t i = sizes.size(); i-- > 0; stride *= sizes[i])
      meta["strides"].insert(meta["strides"].begin(), ttc::Json{{"as_int", stride}});
    for (const auto size : sizes) meta["sizes"].push_back(ttc::Json{{"as_int", size}});
    return meta;
  }

  ttc::Json& graph() { return program["graph_module"]["graph"]; }
  ttc::Json& node(std::size_t i = 0) { return graph()["nodes"][i]; }
  ttc::Json& payload() { return weights["config"]["fc.weight"]; }
  ttc::Json& meta() { return payload()["tensor_meta"]; }

  Entries entries() const {
    return {{"data/weights/weight_0", weight_bytes},
            {"data/weights/model_weights_config.json", weights.dump()},
            {"data/constants/model_constants_config.json", R"({"config": {}})"},
            {"models/model.json", program.dump()},
            {"data/sample_inputs/model.pt", ""},
            {"archive_format", "pt2"},
            {"archive_version", "0"},
            {".data/version", "6\n"},
            {"byteorder", "little"}};
  }
};

// The error that f throws; nullopt where it throws none.
inline std::optional<ttc::Error> error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const ttc::Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace format_test
