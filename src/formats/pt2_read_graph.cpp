// See pt2_read_graph.h. Field names follow PyTorch's torch/_export/serde/schema.py, major version 8.
#include "formats/pt2_read_graph.h"

#include <algorithm>
#include <cctype>

#include "formats/pt2_names.h"
#include "ir/node_counts.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Graph;
using ir::InputKind;
using ir::Node;
using ir::OutputKind;
using ir::Type;
using ir::TypeKind;
using ir::Value;

constexpr int max_graph_depth = 48;

// Calls f(name) for each value that an output argument of a node defines.
template <typename F>
void for_each_defined(const Json& argument, F&& f) {
  const auto [tag, value] = as_union(argument);
  if (tag == "as_tensor" || tag == "as_custom_obj") {
    f(as_string(member(value, "name")));
  } else if (tag == "as_tensors") {
    for (const Json& item : as_array(value)) f(as_string(member(item, "name")));
  } else if (tag == "as_optional_tensors") {
    for (const Json& item : as_array(value)) for_each_defined(item, f);
  } else if (tag == "as_optional_tensor") {
    for_each_defined(value, f);
  } else if (tag.starts_with("as_sym_") && value.is_object()) {
    if (const Json* name = find_member(value, "as_name")) f(as_string(*name));
  }
}

const Json& array_member(const Json& object, const char* key) {
  const Json& found = member(object, key);
  as_array(found);
  return found;
}

Type literal_type(const Arg& literal) {
  if (literal.get_if<bool>()) return Type::of(TypeKind::boolean);
  if (literal.get_if<std::int64_t>()) return Type::integer();
  if (literal.get_if<double>()) return Type::of(TypeKind::floating);
  if (literal.get_if<std::string>()) return Type::of(TypeKind::string);
  return Type::of(TypeKind::none);
}

// The scalar literals that inputs and outputs of the signature can be; nullopt for other tags.
std::optional<Arg> scalar_literal(std::string_view tag, const Json& value) {
  if (tag == "as_none") return Arg();
  if (tag == "as_int") return Arg(as_int(value));
  if (tag == "as_float") return Arg(as_double(value));
  if (tag == "as_bool") return Arg(as_bool(value));
  if (tag == "as_string") return Arg(as_string(value));
  return std::nullopt;
}

// Arguments that name no value and no graph; nullopt for other tags.
std::optional<Arg> enum_literal(std::string_view tag, const Json& value) {
  if (tag == "as_scalar_type") {
    const auto dtype = dtype_from_pt2(static_cast<int>(std::clamp<std::int64_t>(as_int(value), -1, 1 << 20)));
    if (!dtype) throw bad_file("", "unknown dtype code " + value.dump());
    return Arg(*dtype);
  }
  const auto small = [&] { return static_cast<int>(std::clamp<std::int64_t>(as_int(value), -1, 1 << 20)); };
  if (tag == "as_memory_format") return Arg(ir::MemoryFormatArg{small()});
  if (tag == "as_layout") return Arg(ir::LayoutArg{small()});
  if (tag == "as_device") {
    ir::DeviceArg device{as_string(member(value, "type")), std::nullopt};
    if (const Json* index = find_member(value, "index"))
      device.index = static_cast<int>(std::clamp<std::int64_t>(as_int(*index), -1, 1 << 20));
    return Arg(std::move(device));
  }
  if (tag == "as_complex")
    return Arg(std::complex<double>(as_double(member(value, "real")), as_double(member(value, "imag"))));
  if (tag == "as_operator") return Arg(as_string(value));
  return std::nullopt;
}

// Lists of literals; nullopt for other tags.
std::optional<Arg> list_literal(std::string_view tag, const Json& value) {
  const auto list = [&](auto&& convert) {
    Arg::List items;
    for (const Json& item : as_array(value)) items.push_back(convert(item));
    return Arg(std::move(items));
  };
  if (tag == "as_ints") return list([](const Json& item) { return Arg(as_int(item)); });
  if (tag == "as_floats") return list([](const Json& item) { return Arg(as_double(item)); });
  if (tag == "as_bools") return list([](const Json& item) { return Arg(as_bool(item)); });
  if (tag == "as_strings") return list([](const Json& item) { return Arg(as_string(item)); });
  if (tag == "as_int_lists") return list([](const Json& item) { return *list_literal("as_ints", item); });
  if (tag == "as_float_lists") return list([](const Json& item) { return *list_literal("as_floats", item); });
  return std::nullopt;
}

std::string text_name(const std::string& name) {
  std::string out = name;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  return out.empty() ? "_" : out;
}

// What ttc itself wrote about a node of a rewritten model: its place and the nodes it stands for.
void read_placement(const Json& json, Node& node) {
  const Json* metadata = find_member(json, "metadata");
  if (!metadata) return;
  if (const Json* place = find_member(*metadata, "ttc_place")) node.place = as_string(*place);
  if (const Json* origins = find_member(*metadata, "ttc_origins"))
    node.origins = ir::parse_origins(as_string(*origins));
}

// Puts named arguments into the order of the schema and fills in its defaults.
std::vector<Arg> normalise(const ir::OpSchema& schema, std::vector<std::pair<std::string, Arg>> given) {
  std::vector<Arg> args(schema.args.size());
  std::vector<bool> present(schema.args.size());
  for (auto& [name, arg] : given) {
    const int index = schema.index_of(name);
    if (index < 0) throw bad_file("", "argument '" + name + "' is not in the schema of " + schema.op);
    if (present[index]) throw bad_file("", "argument '" + name + "' is given twice");
    args[index] = std::move(arg);
    present[index] = true;
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (present[i]) continue;
    if (!schema.args[i].default_value) throw bad_file("", "argument '" + schema.args[i].name + "' is missing");
    args[i] = *schema.args[i].default_value;
  }
  return args;
}

}  // namespace

void Pt2GraphReader::read(const Json& graph, const Json& signature) {
  reserve_names(graph);
  Scope scope{.graph = *model_.graph, .json = &graph, .values = {}, .defined_later = {}};
  const Json& input_specs = array_member(signature, "input_specs");
  const Json& output_specs = array_member(signature, "output_specs");
  const auto check_number = [&](const Json& specs, const char* of) {
    if (const std::size_t there = array_member(graph, of).size(); specs.size() != there)
      throw bad_file(
          "", "the signature has " + std::to_string(specs.size()) + " " + of + ", the graph " + std::to_string(there));
  };
  check_number(input_specs, "inputs");
  check_number(output_specs, "outputs");
  read_graph(scope, &input_specs, &output_specs);
}

void Pt2GraphReader::read_graph(Scope& scope, const Json* input_specs, const Json* output_specs) {
  const Json& nodes = array_member(*scope.json, "nodes");
  read_inputs(scope, array_member(*scope.json, "inputs"), input_specs);
  for (const Json& node : nodes)
    for (const Json& output : array_member(node, "outputs"))
      for_each_defined(output, [&](const std::string& name) { scope.defined_later.insert(name); });
  for (const Json& node : nodes) read_node(scope, node);
  read_outputs(scope, array_member(*scope.json, "outputs"), output_specs);
}

void Pt2GraphReader::read_input(const Json& input, const Pt2TypeEntries& types, const Json& spec) {
  main_.types = &types;
  read_input(main_, input, &spec, main_.graph.inputs().size());
}

void Pt2GraphReader::read_node(const Json& node, const Pt2TypeEntries& types) {
  main_.types = &types;
  read_node(main_, node);
}

void Pt2GraphReader::read_outputs(const Json& outputs, const Json& specs) { read_outputs(main_, outputs, &specs); }

// Names of the main graph are kept; nested graphs reuse names, so theirs give way.
void Pt2GraphReader::reserve_names(const Json& graph) {
  const auto reserve = [&](const std::string& name) { taken_.insert(text_name(name)); };
  for (const Json& input : array_member(graph, "inputs")) for_each_defined(input, reserve);
  for (const Json& node : array_member(graph, "nodes"))
    for (const Json& output : array_member(node, "outputs")) for_each_defined(output, reserve);
}

std::string Pt2GraphReader::fresh_name(const Scope& scope, const std::string& name) {
  const std::string stem = text_name(name);
  if (scope.depth == 0 && stem == name) return stem;
  std::string candidate = stem;
  for (int& last = last_suffix_[stem]; !taken_.insert(candidate).second;)
    candidate = stem + "_r" + std::to_string(++last);
  return candidate;
}

Value* Pt2GraphReader::find_value(const Scope& scope, const std::string& name) const {
  const auto found = scope.values.find(name);
  if (found != scope.values.end()) return found->second;
  if (scope.defined_later.contains(name))
    throw bad_file(
        "", "it uses value '" + name + "' before the node that defines it: the graph has a cycle or is out of order");
  throw bad_file("", "it uses value '" + name + "', which nothing defines");
}

void Pt2GraphReader::define(Scope& scope, const std::string& name, Value* value) {
  if (!scope.values.emplace(name, value).second) throw bad_file("", "value '" + name + "' is defined twice");
}

void Pt2GraphReader::read_inputs(Scope& scope, const Json& inputs, const Json* input_specs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    try {
      read_input(scope, inputs[i], input_specs ? &(*input_specs)[i] : nullptr, i);
    } catch (const Error& error) {
      throw add_context(error, "input " + std::to_string(i));
    }
  }
}

void Pt2GraphReader::read_input(Scope& scope, const Json& argument, const Json* spec, std::size_t index) {
  InputKind kind = InputKind::user;
  std::string target, name = "arg" + std::to_string(index);
  bool persistent = true;
  if (spec) {
    const auto [spec_tag, content] = as_union(*spec);
    if (spec_tag == "parameter") {
      kind = InputKind::parameter, target = as_string(member(content, "parameter_name"));
    } else if (spec_tag == "buffer") {
      kind = InputKind::buffer, target = as_string(member(content, "buffer_name"));
      const Json* flag = find_member(content, "persistent");
      persistent = !flag || as_bool(*flag);
    } else if (spec_tag == "tensor_constant") {
      kind = InputKind::constant, target = as_string(member(content, "tensor_constant_name"));
    } else if (spec_tag == "custom_obj") {
      kind = InputKind::custom_obj, target = as_string(member(content, "custom_obj_name"));
    } else if (spec_tag == "token") {
      kind = InputKind::token;
    } else if (spec_tag == "constant_input") {
      if (const auto& given = as_string(member(content, "name")); !given.empty()) name = given;
    } else if (spec_tag != "user_input") {
      throw bad_file("", "unknown kind of input '" + std::string(spec_tag) + "'");
    }
  }
  const auto [tag, value] = as_union(argument);
  std::optional<Arg> literal = scalar_literal(tag, value);
  Type type;
  if (literal) {
    type = literal_type(*literal);
  } else if (tag == "as_tensor" || tag == "as_custom_obj") {
    name = as_string(member(value, "name"));
    type = type_of(scope, name, tag);
  } else if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool") {
    name = as_string(member(value, "as_name"));
    type = type_of(scope, name, tag);
  } else {
    throw bad_file("", "unknown kind of graph input '" + std::string(tag) + "'");
  }
  Value* input = scope.graph.add_input(std::move(type), fresh_name(scope, name), kind, target);
  auto& added = scope.graph.input(scope.graph.inputs().size() - 1);
  added.persistent = persistent;
  added.literal = std::move(literal);
  if (kind == InputKind::user && spec) model_.info.user_input_names.push_back(name);
  // The name of a literal is only a label; nothing refers to it.
  if (!added.literal) define(scope, as_string(member(value, value.contains("name") ? "name" : "as_name")), input);
}

void Pt2GraphReader::read_outputs(Scope& scope, const Json& outputs, const Json* output_specs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    try {
      OutputKind kind = OutputKind::user;
      std::string target;
      if (output_specs) {
        const auto [tag, content] = as_union((*output_specs)[i]);
        if (tag == "buffer_mutation") {
          kind = OutputKind::buffer_mutation, target = as_string(member(content, "buffer_name"));
        } else if (tag == "parameter_mutation") {
          kind = OutputKind::parameter_mutation, target = as_string(member(content, "parameter_name"));
        } else if (tag == "user_input_mutation") {
          kind = OutputKind::user_input_mutation,
          target = find_value(scope, as_string(member(content, "user_input_name")))->name;
        } else if (tag == "token") {
          kind = OutputKind::token;
        } else if (tag != "user_output") {
          throw bad_file("",
                         "the model was exported for training ('" + std::string(tag) + "'); ttc takes inference models",
                         "export the model in eval() mode, without a loss");
        }
      }
      std::vector<const Json*> regions;
      scope.graph.add_output(read_argument(scope, outputs[i], regions, 0), kind, target);
      if (!regions.empty()) throw bad_file("", "a graph cannot be an output");
    } catch (const Error& error) {
      throw add_context(error, "output " + std::to_string(i));
    }
  }
}

Arg Pt2GraphReader::read_sym(Scope& scope, const Json& json) {
  const auto [tag, value] = as_union(json);
  if (tag == "as_name") return Arg(find_value(scope, as_string(value)));
  if (auto literal = scalar_literal(tag, value)) return std::move(*literal);
  throw bad_file("", "unknown kind of symbolic argument '" + std::string(tag) + "'");
}

Arg Pt2GraphReader::read_argument(Scope& scope, const Json& json, std::vector<const Json*>& regions, int first_region) {
  const auto [tag, value] = as_union(json);
  const auto named = [&](const Json& item) { return Arg(find_value(scope, as_string(member(item, "name")))); };
  if (tag == "as_tensor" || tag == "as_custom_obj") return named(value);
  if (auto literal = scalar_literal(tag, value)) return std::move(*literal);
  if (auto literal = enum_literal(tag, value)) return std::move(*literal);
  if (auto literal = list_literal(tag, value)) return std::move(*literal);
  const auto list = [&](const Json& items, auto&& convert) {
    Arg::List out;
    for (const Json& item : as_array(items)) out.push_back(convert(item));
    return Arg(std::move(out));
  };
  if (tag == "as_tensors") return list(value, named);
  if (tag == "as_nested_tensors") return list(value, [&](const Json& inner) { return list(inner, named); });
  if (tag == "as_sym_int" || tag == "as_sym_bool" || tag == "as_sym_float") return read_sym(scope, value);
  if (tag == "as_sym_ints" || tag == "as_sym_bools" || tag == "as_sym_floats")
    return list(value, [&](const Json& item) { return read_sym(scope, item); });
  const auto optional = [&](const Json& item) {
    const auto [item_tag, content] = as_union(item);
    return item_tag == "as_none" ? Arg() : named(content);
  };
  if (tag == "as_optional_tensor") return optional(value);
  if (tag == "as_optional_tensors") return list(value, optional);
  // Settings of wrappers (hints): key, value, key, value, ...
  if (tag == "as_string_to_argument") {
    Arg::List out;
    for (const auto& [key, item] : as_object(value)) {
      out.emplace_back(key);
      out.push_back(read_argument(scope, item, regions, first_region));
    }
    return Arg(std::move(out));
  }
  if (tag == "as_graph") {
    regions.push_back(&value);
    return Arg(ir::RegionArg{first_region + static_cast<int>(regions.size()) - 1});
  }
  throw bad_file("", "unknown kind of argument '" + std::string(tag) + "'");
}

void Pt2GraphReader::read_node(Scope& scope, const Json& json) {
  std::string target = "?";
  try {
    target = as_string(member(json, "target"));
    const std::string op = op_from_target(target);
    std::vector<std::pair<std::string, Arg>> given;
    std::vector<bool> positional;
    std::vector<const Json*> regions;
    for (const Json& input : as_array(member(json, "inputs"))) {
      const std::string& name = as_string(member(input, "name"));
      try {
        given.emplace_back(name, read_argument(scope, member(input, "arg"), regions, 0));
      } catch (const Error& error) {
        throw name.empty() ? error : add_context(error, "argument '" + name + "'");
      }
      const Json* kind = find_member(input, "kind");
      positional.push_back(kind && as_int(*kind) == 1);
    }
    const ir::OpSchema* schema = ir::find_schema(op);
    const bool ordered = schema && !schema->varargs;
    std::vector<Arg> args;
    std::vector<std::string> names;
    if (ordered) {
      args = normalise(*schema, std::move(given));
    } else {
      for (std::size_t i = 0; i < given.size(); ++i) {
        args.push_back(std::move(given[i].second));
        names.push_back(schema && positional[i] ? "" : given[i].first);
      }
      if (std::all_of(names.begin(), names.end(), [](const auto& name) { return name.empty(); })) names.clear();
    }
    Node* node = scope.graph.append(op, std::move(args));
    node->arg_names = std::move(names);
    node->provenance = provenance(json);
    read_placement(json, *node);
    for (const Json* region : regions) read_region(scope, *node, *region);
    read_results(scope, *node, member(json, "outputs"));
  } catch (const Error& error) {
    const Json* name = find_member(json, "name");
    const std::string label = name && name->is_string() ? " '" + name->get_ref<const std::string&>() + "'" : "";
    throw add_context(error, "node" + label + " (" + target + ")");
  }
}

void Pt2GraphReader::read_region(Scope& outer, Node& node, const Json& graph_argument) {
  if (outer.depth + 1 >= max_graph_depth)
    throw bad_file("", "graphs nested deeper than " + std::to_string(max_graph_depth) + " levels");
  const Json& json = member(graph_argument, "graph");
  Graph* region = node.add_region();
  region->name = as_string(member(graph_argument, "name"));
  const Json* single = find_member(json, "is_single_tensor_return");
  region->returns_single = single && as_bool(*single);
  Scope scope{.graph = *region, .json = &json, .values = {}, .defined_later = {}, .depth = outer.depth + 1};
  read_graph(scope, nullptr, nullptr);
}

void Pt2GraphReader::read_results(Scope& scope, Node& node, const Json& outputs) {
  for (const Json& output : as_array(outputs)) read_result(scope, node, output);
}

void Pt2GraphReader::read_result(Scope& scope, Node& node, const Json& argument) {
  const auto [tag, value] = as_union(argument);
  const auto add = [&](const std::string& name, std::string_view kind) {
    Value* result = node.add_result(type_of(scope, name, kind), fresh_name(scope, name));
    scope.defined_later.erase(name);
    define(scope, name, result);
  };
  if (tag == "as_none") {
    node.add_result(Type::of(TypeKind::none));
  } else if (tag == "as_tensor" || tag == "as_custom_obj") {
    add(as_string(member(value, "name")), tag);
  } else if (tag == "as_tensors") {
    for (const Json& item : as_array(value)) add(as_string(member(item, "name")), "as_tensor");
  } else if (tag == "as_optional_tensors") {
    for (const Json& item : as_array(value)) read_result(scope, node, item);
  } else if (tag == "as_optional_tensor") {
    read_result(scope, node, value);
  } else if (tag == "as_sym_int" || tag == "as_sym_bool" || tag == "as_sym_float") {
    add(as_string(member(value, "as_name")), tag);
  } else {
    throw bad_file("", "unknown kind of result '" + std::string(tag) + "'");
  }
}

}  // namespace ttc
