// Both files are described as maps from names to texts; what differs between the maps is told.
#include "session/diff.h"

#include <map>

#include "formats/seal.h"
#include "ir/manifest_name.h"
#include "pass/call.h"
#include "support/json_util.h"

namespace ttc {
namespace {

using Texts = std::map<std::string, std::string>;

void add(std::string_view kind, const Texts& before, const Texts& after, std::vector<Difference>& out) {
  Texts names = before;
  names.insert(after.begin(), after.end());
  const auto in = [](const Texts& texts, const std::string& name) {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string() : found->second;
  };
  for (const auto& [name, text] : names)
    if (in(before, name) != in(after, name))
      out.push_back({.kind = std::string(kind), .name = name, .before = in(before, name), .after = in(after, name)});
}

Texts file_texts(const ir::Model& model) {
  Texts out{{"format", model.info.format},
            {"weights", std::to_string(model.weight_bytes()) + " bytes"},
            {"arch", is_rewritten(model) ? profile_for(model, "").name : ""}};
  std::size_t nodes = 0;
  ir::walk(*model.graph, [&](ir::Node*) { ++nodes; });
  out["nodes"] = std::to_string(nodes);
  if (const auto manifest = model.extra.find(manifest_name); manifest != model.extra.end()) {
    const Json root = parse_json(manifest->second.str());
    for (const char* name : {"summary", "activation"})
      if (const Json* text = find_member(root, name); text && text->is_string()) out[name] = text->get<std::string>();
  }
  return out;
}

// By position: "0 input_ids" -> "i64[2, s0]".
Texts input_texts(const ir::Model& model) {
  Texts out;
  std::size_t i = 0;
  for (const auto& input : model.graph->inputs())
    if (input.kind == ir::InputKind::user)
      out["in" + std::to_string(i++)] = input.value->name + ": " + input.value->type.str();
  return out;
}

Texts output_texts(const ir::Model& model) {
  Texts out;
  std::size_t i = 0;
  for (const auto& output : model.graph->outputs()) {
    const ir::Value* value = output.arg.value();
    const std::string type = value ? value->type.str() : "a literal";
    if (output.kind == ir::OutputKind::user)
      out["out" + std::to_string(i++)] = type;
    else
      out["state " + output.target] = type;
  }
  return out;
}

// "tt.linear bfloat8_b HiFi2", "aten.gelu.default on the CPU"
std::string node_text(const ir::Node& node, bool rewritten) {
  std::string out = node.op();
  for (const char* name : {"activation", "weight_format", "fidelity"})
    if (const ir::Arg* arg = node.arg(name))
      if (const auto* text = arg->get_if<std::string>(); text && !text->empty()) out += " " + *text;
  if (const ir::Arg* arg = node.arg("fp32_acc"); arg && arg->boolean() == false) out += " bfloat16 sums";
  return out + (rewritten && !is_device_node(node) && !node.origins.empty() ? " on the CPU" : "");
}

struct Operators {
  Texts ops;                                                // count by operator
  std::map<std::string, std::map<std::string, int>> nodes;  // by module: count of each text
};

Operators operators_of(const ir::Model& model) {
  Operators out;
  std::map<std::string, int> counts;
  const bool rewritten = is_rewritten(model);
  ir::walk(*model.graph, [&](ir::Node* node) {
    ++counts[node->op()];
    ++out.nodes[node->provenance->module_path][node_text(*node, rewritten)];
  });
  for (const auto& [op, count] : counts) out.ops[op] = std::to_string(count);
  return out;
}

// What `a` has more of than `b`: "tt.linear bfloat8_b, 2 tt.add".
std::string more_in(const std::map<std::string, int>& a, const std::map<std::string, int>& b) {
  std::string out;
  for (const auto& [text, count] : a) {
    const auto other = b.find(text);
    const int more = count - (other == b.end() ? 0 : other->second);
    if (more > 0) out += (out.empty() ? "" : ", ") + (more > 1 ? std::to_string(more) + " " : "") + text;
  }
  return out;
}

void add_modules(const Operators& before, const Operators& after, std::vector<Difference>& out) {
  std::map<std::string, std::map<std::string, int>> all = before.nodes;
  all.insert(after.nodes.begin(), after.nodes.end());
  static const std::map<std::string, int> none;
  for (const auto& [path, texts] : all) {
    const auto a = before.nodes.find(path), b = after.nodes.find(path);
    const auto &x = a == before.nodes.end() ? none : a->second, &y = b == after.nodes.end() ? none : b->second;
    if (x != y) out.push_back({.kind = "module", .name = path, .before = more_in(x, y), .after = more_in(y, x)});
  }
}

// The hash only where the other file has a weight of this name.
Texts weight_texts(const ir::Model& model, const ir::Model& other) {
  Texts out;
  for (const auto& [name, weight] : model.weights) {
    std::string& text = out[name];
    text = ir::Type::tensor(weight.dtype, {weight.sizes.begin(), weight.sizes.end()}).str();
    if (!other.weights.contains(name) || weight.storage->absent()) continue;
    const auto [owner, data] = weight.storage->load();
    text += " " + weight_hash(weight, data).substr(0, 12);
  }
  return out;
}

}  // namespace

std::vector<Difference> diff_models(const ir::Model& before, const ir::Model& after) {
  std::vector<Difference> out;
  add("file", file_texts(before), file_texts(after), out);
  add("input", input_texts(before), input_texts(after), out);
  add("output", output_texts(before), output_texts(after), out);
  const Operators a = operators_of(before), b = operators_of(after);
  add("op", a.ops, b.ops, out);
  add_modules(a, b, out);
  add("weight", weight_texts(before, after), weight_texts(after, before), out);
  return out;
}

}  // namespace ttc
