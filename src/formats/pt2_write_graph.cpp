// See pt2_write_graph.h. What PyTorch's loader needs was tried member by member: names must be unique Python
// identifiers, every value needs an entry in its table, arguments carry the names of the operator's schema.
#include "formats/pt2_write_graph.h"

#include <algorithm>
#include <cmath>

#include "formats/pt2_names.h"
#include "ir/manifest_name.h"
#include "ir/node_counts.h"
#include "ir/sym_text.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Graph;
using ir::InputKind;
using ir::OutputKind;
using ir::TypeKind;
using ir::Value;

enum ArgumentKind { unknown_kind = 0, positional_kind = 1, keyword_kind = 2 };

Json floating(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

bool is_tensor_list(std::string_view type) { return type.starts_with("Tensor") && type.find('[') != type.npos; }

// A list tag where every element satisfies a predicate.
template <typename T>
bool all_are(const Arg::List& list) {
  return std::all_of(list.begin(), list.end(), [](const Arg& item) { return item.get_if<T>() != nullptr; });
}

Json empty_list(std::string_view type) {
  if (type.starts_with("float")) return tagged("as_floats", Json::array());
  if (type.starts_with("bool")) return tagged("as_bools", Json::array());
  if (type.starts_with("str")) return tagged("as_strings", Json::array());
  if (type.starts_with("int") || type.starts_with("SymInt") || type.starts_with("Scalar"))
    return tagged("as_ints", Json::array());
  return tagged("as_tensors", Json::array());
}

// The scalar literals; nullopt for values, lists and graphs. `is_hop`: operators pass as strings there.
std::optional<Json> scalar(const Arg& arg, bool is_hop) {
  if (arg.is_none()) return tagged("as_none", true);
  if (const auto* v = arg.get_if<bool>()) return tagged("as_bool", *v);
  if (const auto* v = arg.get_if<std::int64_t>()) return tagged("as_int", *v);
  if (const auto* v = arg.get_if<double>()) return tagged("as_float", floating(*v));
  if (const auto* v = arg.get_if<std::string>())
    return tagged(is_hop && v->starts_with("torch.ops.") ? "as_operator" : "as_string", *v);
  if (const auto* v = arg.get_if<DType>()) return tagged("as_scalar_type", pt2_code(*v));
  if (const auto* v = arg.get_if<ir::MemoryFormatArg>()) return tagged("as_memory_format", v->code);
  if (const auto* v = arg.get_if<ir::LayoutArg>()) return tagged("as_layout", v->code);
  if (const auto* v = arg.get_if<ir::DeviceArg>())
    return tagged("as_device", {{"type", v->type}, {"index", v->index ? Json(*v->index) : Json()}});
  if (const auto* v = arg.get_if<std::complex<double>>())
    return tagged("as_complex", {{"real", floating(v->real())}, {"imag", floating(v->imag())}});
  return std::nullopt;
}

const char* sym_tag(TypeKind kind) {
  return kind == TypeKind::integer    ? "as_sym_int"
         : kind == TypeKind::boolean  ? "as_sym_bool"
         : kind == TypeKind::floating ? "as_sym_float"
                                      : nullptr;
}

// An empty stack: a node of ours belongs to the module around it, which torch.export.unflatten wants to be told.
constexpr std::string_view no_modules =
    "_empty_nn_module_stack_from_metadata_hook,_empty_nn_module_stack_from_metadata_hook,"
    "_empty_nn_module_stack_from_metadata_hook";

// Text that may stand between the separators of nn_module_stack.
bool is_plain(const std::string& text) {
  return text.find_first_of(",;") == text.npos &&
         std::count(text.begin(), text.end(), '(') == std::count(text.begin(), text.end(), ')') &&
         std::count(text.begin(), text.end(), '[') == std::count(text.begin(), text.end(), ']');
}

// A graph within a node, as a whole.
class GraphTree final : public Pt2GraphParts {
 public:
  Json json = {{"inputs", Json::array()}, {"nodes", Json::array()}};

  GraphTree() {
    for (const char* table : pt2_value_tables) json[table] = Json::object();
  }
  void input(Json input, Pt2TypeEntries types, Json) override {
    json["inputs"].push_back(std::move(input));
    add(types);
  }
  void node(Json node, Pt2TypeEntries types) override {
    json["nodes"].push_back(std::move(node));
    add(types);
  }
  void outputs(Json outputs, Json) override { json["outputs"] = std::move(outputs); }

 private:
  void add(const Pt2TypeEntries& types) {
    for (const auto& [table, name, type] : types) json[table][name] = type->json;
  }
};

}  // namespace

std::string Pt2GraphWriter::unique(Scope& scope, std::string_view stem) {
  const std::string base = python_identifier(stem);
  if (scope.names.insert(base).second) return base;
  int& tried = scope.tried[base];
  while (true)
    if (const auto [name, fresh] = scope.names.insert(base + "_" + std::to_string(++tried)); fresh) return *name;
}

void Pt2GraphWriter::graph(Pt2GraphParts& parts) { write_graph(*model_.graph, parts); }

void Pt2GraphWriter::write_graph(const Graph& graph, Pt2GraphParts& parts) {
  const bool main = graph.parent() == nullptr;
  Scope scope{.graph = graph, .names = {}};
  // All names first: names of nodes must not take those of later values.
  const std::size_t values = graph.inputs().size() + graph.nodes().size();  // about
  names_.reserve(names_.size() + values);
  scope.names.reserve(values);
  parts.expect(values);
  for (const auto& input : graph.inputs()) names_[input.value.get()] = unique(scope, input.value->name);
  for (const auto& node : graph.nodes())
    for (const auto& result : node->results())
      if (result->type.kind != TypeKind::none) names_[result.get()] = unique(scope, result->name);
  for (const auto& input : graph.inputs()) {
    if (!input.literal) declare(scope, *input.value);
    Json json = input.literal ? argument(scope, nullptr, *input.literal) : value_argument(*input.value);
    parts.input(std::move(json), scope.take_types(), main ? input_spec(input) : Json());
  }
  const auto provenance = written_provenance(graph);
  for (std::size_t at = 0; const auto& node : graph.nodes()) {
    for (const auto& result : node->results()) declare(scope, *result);
    Json json = write_node(scope, *node, *provenance[at++]);
    parts.node(std::move(json), scope.take_types());
  }
  std::set<const Value*> mutations;
  Json outputs = Json::array(), specs = Json::array();
  for (const auto* output : ordered_outputs(graph)) {
    const Value* value = output->arg.value();
    const bool again = output->kind != OutputKind::user && value && !mutations.insert(value).second;
    outputs.push_back(again ? copied_output(scope, *output, parts) : argument(scope, nullptr, output->arg));
    if (main) specs.push_back(output_spec(*output));
  }
  parts.outputs(std::move(outputs), std::move(specs));
}

// PyTorch looks mutations up by the value's name: a value that becomes the state of two buffers is two values there.
Json Pt2GraphWriter::copied_output(Scope& scope, const ir::GraphOutput& output, Pt2GraphParts& parts) {
  const Value& value = *output.arg.value();
  const std::string& name = copies_[&output] = unique(scope, value.name + "_copy");
  scope.types.push_back({"tensor_values", name, tensor_type(value)});
  const Json result = tagged("as_tensor", {{"name", name}});
  parts.node({{"target", "torch.ops.aten.clone.default"},
              {"inputs", Json::array({{{"name", "self"}, {"arg", value_argument(value)}, {"kind", positional_kind}}})},
              {"outputs", Json::array({result})},
              {"metadata", {{"nn_module_stack", std::string(no_modules)}}},
              {"is_hop_single_tensor_return", nullptr},
              {"name", name}},
             scope.take_types());
  return result;
}

Json Pt2GraphWriter::write_node(Scope& scope, const ir::Node& node, const ir::Provenance& where) {
  const bool hop = node.op().starts_with("higher_order.");
  if (!node.regions().empty() && !hop) throw cannot_write(&node, "control flow of TorchScript");
  const ir::OpSchema* schema = node.schema();
  Json inputs = schema && !schema->varargs ? inputs_by_schema(scope, node) : inputs_in_order(scope, node);
  const bool one = node.results().size() == 1 && node.result()->type.kind != TypeKind::none;
  // A higher-order operator gives a tuple, unless it passes on what its only graph returns bare (wrap_with_*).
  const bool single =
      one && hop && (node.regions().empty() || (node.regions().size() == 1 && node.regions()[0]->returns_single));
  const bool named_by_result =
      one && (hop ? single : !(schema && schema->returns.size() == 1 && is_tensor_list(schema->returns[0])));
  std::string name =
      named_by_result ? name_of(*node.result()) : unique(scope, node.op().substr(node.op().find('.') + 1));
  return json_of("inputs", std::move(inputs), "is_hop_single_tensor_return", hop ? Json(single) : Json(), "metadata",
                 metadata(node, where), "name", std::move(name), "outputs", results(node), "target",
                 target_from_op(node.op()));
}

// Positional arguments up to the last that is not its default, then the keyword-only ones that are not.
Json Pt2GraphWriter::inputs_by_schema(Scope& scope, const ir::Node& node) {
  const auto& formal = node.schema()->args;
  const auto is_default = [&](std::size_t i) {
    return formal[i].default_value && *formal[i].default_value == node.arg(i);
  };
  std::size_t positional = 0;
  for (std::size_t i = 0; i < formal.size() && i < node.args().size(); ++i)
    if (!formal[i].kwarg_only && !is_default(i)) positional = i + 1;
  Json inputs = Json::array();
  for (std::size_t i = 0; i < formal.size() && i < node.args().size(); ++i) {
    if (formal[i].kwarg_only ? is_default(i) : i >= positional) continue;
    inputs.push_back(json_of("arg", argument(scope, &node, node.arg(i), formal[i].type), "kind",
                             formal[i].kwarg_only ? keyword_kind : positional_kind, "name", formal[i].name));
  }
  return inputs;
}

Json Pt2GraphWriter::inputs_in_order(Scope& scope, const ir::Node& node) {
  Json inputs = Json::array();
  for (std::size_t i = 0; i < node.args().size(); ++i) {
    const std::string name = i < node.arg_names.size() ? node.arg_names[i] : "";
    const int kind = name.empty() ? positional_kind : node.schema() ? keyword_kind : unknown_kind;
    inputs.push_back(json_of("arg", argument(scope, &node, node.arg(i)), "kind", kind, "name", name));
  }
  return inputs;
}

Json Pt2GraphWriter::results(const ir::Node& node) {
  const auto& all = node.results();
  static const std::vector<std::string> no_returns;
  const auto& returns = node.schema() && !node.schema()->varargs ? node.schema()->returns : no_returns;
  const auto lists = std::count_if(returns.begin(), returns.end(), is_tensor_list);
  if (lists > 1) throw cannot_write(&node, "an operator with several lists of results");
  Json outputs = Json::array();
  if (lists == 0) {
    for (const auto& result : all) outputs.push_back(value_argument(*result));
    return outputs;
  }
  std::size_t next = 0;
  for (const auto& type : returns) {
    if (!is_tensor_list(type)) {
      outputs.push_back(value_argument(*all.at(next++)));
      continue;
    }
    Json list = Json::array();
    for (std::size_t left = all.size() + 1 - returns.size(); left > 0; --left)
      list.push_back({{"name", name_of(*all.at(next++))}});
    outputs.push_back(tagged("as_tensors", std::move(list)));
  }
  return outputs;
}

Json Pt2GraphWriter::metadata(const ir::Node& node, const ir::Provenance& from) {
  Json json = Json::object();
  std::string modules;
  std::set<std::string> keys;
  for (std::size_t at = 0; at < from.stack.size(); ++at) {
    const auto& [path, type] = from.stack[at];
    if (!is_plain(path) || !is_plain(type)) continue;
    int call = at < from.calls.size() ? from.calls[at] : 0;
    std::string key;
    do {  // one stack has each key once
      key = "L__self__" + path + (call > 0 ? "@" + std::to_string(call) : "");
      ++call;
    } while (!keys.insert(key).second);
    modules += (modules.empty() ? "" : ";") + key + "," + path + "," + type;
  }
  json["nn_module_stack"] = modules.empty() ? std::string(no_modules) : modules;
  if (const auto colon = from.source.rfind(':'); colon != std::string::npos)
    json["stack_trace"] =
        "File \"" + from.source.substr(0, colon) + "\", line " + from.source.substr(colon + 1) + ", in forward";
  // PyTorch's complaint about an unknown operator shows the node's metadata; the first of ours says what it needs.
  if (!names_library_ && node.op().starts_with("tt.")) {
    names_library_ = true;
    json["needs"] = "torch.ops.load_library('" + std::string(operator_library) + ".so') of ttc";
  }
  if (!node.place.empty()) json["ttc_place"] = node.place;
  if (!node.origins.empty()) json["ttc_origins"] = ir::origins_text(node.origins);
  return json;
}

Json Pt2GraphWriter::value_argument(const Value& value) {
  const ir::Graph* graph = value.graph();
  if (!value.def() && graph && graph->inputs().at(value.index()).literal)
    return *scalar(*graph->inputs()[value.index()].literal, false);
  if (value.type.kind == TypeKind::none) return tagged("as_none", true);
  if (const char* tag = sym_tag(value.type.kind)) return tagged(tag, tagged("as_name", name_of(value)));
  if (value.type.kind == TypeKind::object)
    return tagged("as_custom_obj", json_of("name", name_of(value), "class_fqn", value.type.object_class));
  return tagged("as_tensor", json_of("name", name_of(value)));
}

Json Pt2GraphWriter::argument(Scope& scope, const ir::Node* node, const Arg& arg, std::string_view type) {
  const bool hop = node && node->op().starts_with("higher_order.");
  if (auto literal = scalar(arg, hop)) return std::move(*literal);
  if (const Value* value = arg.value()) {
    if (!names_.contains(value)) throw cannot_write(node, "a value captured from an outer graph");
    return value_argument(*value);
  }
  if (const auto* region = arg.get_if<ir::RegionArg>()) return region_argument(scope, *node, region->index);
  return list_argument(scope, node, *arg.list(), type);
}

Json Pt2GraphWriter::region_argument(Scope& scope, const ir::Node& node, int index) {
  const Graph& region = *node.regions().at(index);
  std::string name = unique(scope, region.name);
  GraphTree tree;
  write_graph(region, tree);
  tree.json["is_single_tensor_return"] = region.returns_single;
  return tagged("as_graph", {{"name", std::move(name)}, {"graph", std::move(tree.json)}});
}

Json Pt2GraphWriter::list_argument(Scope& scope, const ir::Node* node, const Arg::List& list, std::string_view type) {
  if (list.empty()) return empty_list(type);
  const auto convert = [&](const char* tag, auto&& each) {
    Json items = Json::array();
    for (const Arg& item : list) items.push_back(each(item));
    return tagged(tag, std::move(items));
  };
  const auto content = [&](const Arg& item) { return argument(scope, node, item).begin().value(); };
  if (all_are<std::int64_t>(list)) return convert("as_ints", content);
  if (all_are<bool>(list)) return convert("as_bools", content);
  if (all_are<std::string>(list)) return convert("as_strings", content);
  if (std::all_of(list.begin(), list.end(),
                  [](const Arg& item) { return item.get_if<double>() || item.get_if<std::int64_t>(); }))
    return convert("as_floats", [](const Arg& item) { return floating(*item.number()); });
  const Value* first = nullptr;
  for (const Arg& item : list)
    if (!first) first = item.value();
  if (const char* tag = first ? sym_tag(first->type.kind) : nullptr) {
    const std::string plural = std::string(tag) + "s";
    // Literals among symbols keep their own tag: {"as_int": 2}.
    return convert(plural.c_str(), [&](const Arg& item) {
      const Json one = argument(scope, node, item);
      return one.contains(tag) ? one[tag] : one;
    });
  }
  if (all_are<Arg::List>(list)) {
    const Json head = argument(scope, node, list[0]);
    const std::string& inner = head.begin().key();
    const char* tag = inner == "as_ints"     ? "as_int_lists"
                      : inner == "as_floats" ? "as_float_lists"
                                             : "as_nested_tensors";
    return convert(tag, content);
  }
  const bool optional = type.starts_with("Tensor?") || !all_are<Value*>(list);
  if (!optional) return convert("as_tensors", content);
  return convert("as_optional_tensors", [&](const Arg& item) {
    if (!item.is_none() && !item.value()) throw cannot_write(node, "a list of mixed kinds");
    return argument(scope, node, item);
  });
}

// PyTorch's verifier wants mutations before user outputs.
std::vector<const ir::GraphOutput*> Pt2GraphWriter::ordered_outputs(const Graph& graph) const {
  std::vector<const ir::GraphOutput*> out;
  for (const auto& output : graph.outputs()) out.push_back(&output);
  std::stable_partition(out.begin(), out.end(), [](const auto* output) { return output->kind != OutputKind::user; });
  std::stable_partition(out.begin(), out.end(), [](const auto* output) { return output->kind == OutputKind::token; });
  return out;
}

Json Pt2GraphWriter::input_spec(const ir::GraphInput& input) {
  const std::string& name = name_of(*input.value);
  Json arg = json_of("name", name);
  switch (input.kind) {
    case InputKind::parameter:
      return tagged("parameter", json_of("arg", std::move(arg), "parameter_name", input.target));
    case InputKind::buffer:
      return tagged("buffer",
                    json_of("arg", std::move(arg), "buffer_name", input.target, "persistent", input.persistent));
    case InputKind::constant:
      return tagged("tensor_constant", json_of("arg", std::move(arg), "tensor_constant_name", input.target));
    case InputKind::custom_obj:
      return tagged("custom_obj", {{"arg", {{"name", name}, {"class_fqn", input.value->type.object_class}}},
                                   {"custom_obj_name", input.target}});
    case InputKind::token:
      return tagged("token", json_of("arg", std::move(arg)));
    case InputKind::user:
      break;
  }
  if (input.literal) return tagged("constant_input", {{"name", name}, {"value", *scalar(*input.literal, false)}});
  return tagged("user_input", {{"arg", value_argument(*input.value)}});
}

Json Pt2GraphWriter::output_spec(const ir::GraphOutput& output) {
  const Value* value = output.arg.value();
  const auto arg = [&]() -> Json {
    if (!value) throw cannot_write(nullptr, "a mutation without a value");
    const auto copy = copies_.find(&output);
    return {{"name", copy == copies_.end() ? name_of(*value) : copy->second}};
  };
  switch (output.kind) {
    case OutputKind::buffer_mutation:
      return tagged("buffer_mutation", {{"arg", arg()}, {"buffer_name", output.target}});
    case OutputKind::parameter_mutation:
      return tagged("parameter_mutation", {{"arg", arg()}, {"parameter_name", output.target}});
    case OutputKind::user_input_mutation:
      for (const auto& input : model_.graph->inputs())
        if (input.value->name == output.target)
          return tagged("user_input_mutation", {{"arg", arg()}, {"user_input_name", name_of(*input.value)}});
      throw cannot_write(nullptr, "a mutation of the unknown input '" + output.target + "'");
    case OutputKind::token:
      return tagged("token", {{"arg", arg()}});
    default:
      break;
  }
  Scope scope{.graph = *model_.graph, .names = {}};
  return tagged("user_output", {{"arg", argument(scope, nullptr, output.arg)}});
}

}  // namespace ttc
