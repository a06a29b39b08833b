// inspect(): everything is counted from the IR, nothing from the file itself.
#include "report/inspect.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

namespace ttc {
namespace {

using ir::InputKind;
using ir::OutputKind;
using ir::TypeKind;

Json shape_json(const ir::Type& type) {
  Json shape = Json::array();
  for (const auto& size : type.sizes) shape.push_back(size.is_number() ? Json(size.number()) : Json(size.str()));
  return shape;
}

Json type_json(const ir::Type& type) {
  if (!type.is_tensor()) return {{"type", type.str()}};
  Json json = {{"dtype", type.has_dtype ? Json(torch_name(type.dtype)) : Json()},
               {"shape", type.has_shape ? shape_json(type) : Json()}};
  return json;
}

Json literal_json(const ir::Arg& arg) {
  if (const auto* flag = arg.get_if<bool>()) return *flag;
  if (const auto* number = arg.get_if<std::int64_t>()) return *number;
  if (const auto* number = arg.get_if<double>()) return *number;
  if (const auto* text = arg.get_if<std::string>()) return *text;
  return nullptr;
}

Json inputs_json(const ir::Model& model) {
  Json inputs = Json::array();
  std::size_t position = 0;
  const auto& names = model.info.user_input_names;
  for (const auto& input : model.graph->inputs()) {
    if (input.kind != InputKind::user) continue;
    Json json = type_json(input.value->type);
    json["name"] = position < names.size() ? names[position] : input.value->name;
    ++position;
    if (input.literal) json["fixed"] = literal_json(*input.literal);
    inputs.push_back(std::move(json));
  }
  return inputs;
}

const char* kind_name(OutputKind kind) {
  switch (kind) {
    case OutputKind::user:
      return "user";
    case OutputKind::buffer_mutation:
      return "buffer mutation";
    case OutputKind::user_input_mutation:
      return "input mutation";
    case OutputKind::parameter_mutation:
      return "parameter mutation";
    case OutputKind::token:
      return "token";
    default:
      return "other";
  }
}

Json outputs_json(const ir::Model& model) {
  Json outputs = Json::array();
  for (const auto& output : model.graph->outputs()) {
    const ir::Value* value = output.arg.value();
    Json json = value ? type_json(value->type) : Json{{"fixed", literal_json(output.arg)}};
    if (value) json["name"] = value->name;
    json["kind"] = kind_name(output.kind);
    if (!output.target.empty()) json["target"] = output.target;
    outputs.push_back(std::move(json));
  }
  return outputs;
}

Json ops_json(const ir::Model& model, std::size_t& nodes) {
  std::map<std::string, int> counts;
  ir::walk(*model.graph, [&](ir::Node* node) {
    ++counts[node->op()];
    ++nodes;
  });
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Json ops = Json::array();
  for (const auto& [op, count] : sorted) ops.push_back({{"op", op}, {"count", count}});
  return ops;
}

// Orders paths as a tree: "layer.2" before "layer.10", children after their parent.
bool path_less(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& path) {
    std::vector<std::pair<long, std::string>> parts;
    for (std::size_t begin = 0; !path.empty() && begin <= path.size();) {
      const auto end = std::min(path.find('.', begin), path.size());
      const std::string part = path.substr(begin, end - begin);
      const bool number = !part.empty() && part.size() < 10 &&
                          std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
      parts.emplace_back(number ? std::stol(part) : -1, part);
      begin = end + 1;
    }
    return parts;
  };
  return key(a) < key(b);
}

Json modules_json(const ir::Model& model) {
  struct Module {
    std::string type;
    std::int64_t nodes = 0, parameters = 0, bytes = 0;
  };
  std::map<std::string, Module> modules;
  ir::walk(*model.graph, [&](ir::Node* node) {
    for (const auto& [path, type] : node->provenance->stack) modules[path].type = type;
    if (!node->provenance->stack.empty()) ++modules[node->provenance->module_path].nodes;
  });
  for (const auto& input : model.graph->inputs()) {
    const auto weight = model.weights.find(input.target);
    if (input.kind != InputKind::parameter || weight == model.weights.end()) continue;
    const auto dot = input.target.rfind('.');
    auto& owner = modules[dot == std::string::npos ? "" : input.target.substr(0, dot)];
    owner.parameters += weight->second.numel();
    owner.bytes += static_cast<std::int64_t>(weight->second.nbytes());
  }
  std::vector<std::string> paths;
  for (const auto& [path, module] : modules) paths.push_back(path);
  std::sort(paths.begin(), paths.end(), path_less);
  Json out = Json::array();
  for (const auto& path : paths) {
    const Module& module = modules[path];
    out.push_back({{"path", path},
                   {"class", module.type},
                   {"nodes", module.nodes},
                   {"parameters", module.parameters},
                   {"bytes", module.bytes}});
  }
  return out;
}

Json weights_json(const ir::Model& model) {
  const auto empty = [] { return Json{{"tensors", 0}, {"elements", 0}, {"bytes", 0}}; };
  Json out = {{"parameters", empty()}, {"buffers", empty()}, {"constants", empty()}};
  std::map<const ir::Storage*, std::vector<std::string>> storages;
  bool absent = false;
  for (const auto& input : model.graph->inputs()) {
    const auto weight = model.weights.find(input.target);
    if (weight == model.weights.end() || input.kind == InputKind::user || input.kind == InputKind::token) continue;
    Json& group = out[input.kind == InputKind::parameter ? "parameters"
                      : input.kind == InputKind::buffer  ? "buffers"
                                                         : "constants"];
    group["tensors"] = group["tensors"].get<std::int64_t>() + 1;
    group["elements"] = group["elements"].get<std::int64_t>() + weight->second.numel();
    group["bytes"] = group["bytes"].get<std::int64_t>() + static_cast<std::int64_t>(weight->second.nbytes());
    if (!weight->second.storage) continue;
    storages[weight->second.storage.get()].push_back(input.target);
    absent |= weight->second.storage->absent();
  }
  std::size_t bytes = 0;
  std::set<std::vector<std::string>> tied;
  for (const auto& [storage, names] : storages) {
    bytes += storage->bytes;
    if (names.size() > 1) tied.insert(names);
  }
  out["bytes"] = bytes;
  out["tied"] = tied;
  out["absent"] = absent;
  return out;
}

Json symbols_json(const ir::Model& model) {
  Json symbols = Json::array();
  for (const auto& [name, range] : model.ranges) {
    const auto hint = model.info.hints.find(name);
    symbols.push_back({{"name", name},
                       {"min", range.min ? Json(*range.min) : Json()},
                       {"max", range.max ? Json(*range.max) : Json()},
                       {"example", hint == model.info.hints.end() ? Json() : Json(hint->second)}});
  }
  return symbols;
}

}  // namespace

Json inspect(const ir::Model& model) {
  Json out;
  const ir::ModelInfo& info = model.info;
  struct stat file{};
  out["file"] = info.path;
  out["bytes"] = !info.path.empty() && ::stat(info.path.c_str(), &file) == 0 ? Json(file.st_size) : Json();
  out["format"] = info.format;
  out["torch"] = info.torch_version;
  out["schema"] = info.schema_major > 0
                      ? Json(std::to_string(info.schema_major) + "." + std::to_string(info.schema_minor))
                      : Json();
  out["dialect"] = info.dialect;
  out["inputs"] = inputs_json(model);
  out["outputs"] = outputs_json(model);
  std::size_t nodes = 0;
  out["ops"] = ops_json(model, nodes);
  out["nodes"] = nodes;
  out["modules"] = modules_json(model);
  out["weights"] = weights_json(model);
  out["symbols"] = symbols_json(model);
  out["guards"] = info.guards;
  out["extra"] = Json::array();
  for (const auto& [name, content] : model.extra)
    out["extra"].push_back({{"name", name}, {"bytes", content.str().size()}});
  out["rewritten"] = nullptr;
  if (const auto manifest = model.extra.find(std::string(manifest_name)); manifest != model.extra.end()) {
    try {
      out["rewritten"] = parse_json(manifest->second.str());
    } catch (const Error& error) {
      throw add_context(error, "extra/" + manifest->first).in_file(info.path);
    }
  }
  return out;
}

}  // namespace ttc
