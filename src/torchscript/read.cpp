// Loading, the signature, the pytree specifications that a .pt2 written from the model needs, and the format's record.
#include "torchscript/read.h"

#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "formats/file_format.h"
#include "ir/manifest_name.h"
#include "support/error.h"
#include "torchscript/lowering.h"
#include "torchscript/soundness.h"
#include "torchscript/write.h"

namespace ttc {
namespace {

using ir::Arg;
using nlohmann::ordered_json;
using ts::Abstract;

std::string first_line(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = c10_error ? c10_error->what_without_backtrace() : error.what();
  const std::size_t begin = std::min(text.find_first_not_of('\n'), text.size());  // some begin with an empty line
  return text.substr(begin, text.find('\n', begin) - begin);
}

// The mapping as the file that LibTorch reads, without some records: their names in the directory are others.
class MappedReader : public caffe2::serialize::ReadAdapterInterface {
 public:
  MappedReader(std::shared_ptr<const MappedFile> file, std::vector<std::uint64_t> hidden)
      : file_(std::move(file)), hidden_(std::move(hidden)) {}
  std::size_t size() const override { return file_->bytes().size(); }
  std::size_t read(std::uint64_t position, void* to, std::size_t size, const char*) const override {
    const auto bytes = file_->bytes().subspan(std::min<std::uint64_t>(position, file_->bytes().size()));
    const std::size_t taken = std::min(size, bytes.size());
    std::memcpy(to, bytes.data(), taken);
    for (const std::uint64_t at : hidden_)
      if (at >= position && at - position < taken) static_cast<char*>(to)[at - position] = '-';
    return taken;
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<std::uint64_t> hidden_;
};

torch::jit::Module load(const ZipArchive& archive) {
  const std::string& path = archive.path();
  archive.check_contents();
  std::vector<std::uint64_t> hidden;
  for (const ZipEntry& entry : archive.entries()) {
    if (entry.name.ends_with(".py") && ts::is_too_deep(archive.read(entry)))
      throw bad_file(path, "'" + entry.name + "' is nested too deeply");
    if (entry.name.ends_with(".pkl") && !ts::sizes_fit(archive.read(entry)))
      throw bad_file(path, "'" + entry.name + "' holds a text or an index that does not fit into it");
    if (entry.name.ends_with(".debug_pkl") && !ts::is_sound_debug_record(archive.read(entry)))
      hidden.push_back(entry.directory);
  }
  try {
    torch::jit::Module module =
        torch::jit::load(std::make_shared<MappedReader>(archive.file(), std::move(hidden)), c10::Device(c10::kCPU));
    module.eval();
    if (!module.find_method("forward")) throw bad_file(path, "the module has no forward method");
    return module;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw bad_file(path, "is not a TorchScript file that LibTorch can load: " + first_line(error),
                   "save it with torch.jit.save");
  }
}

// ---- pytree specifications (torch.utils._pytree.treespec_dumps, protocol 1) ----------------------------------------

ordered_json leaf() { return {{"type", nullptr}, {"context", nullptr}, {"children_spec", ordered_json::array()}}; }

ordered_json container(const char* type, std::string context, std::vector<ordered_json> children) {
  return {{"type", type}, {"context", std::move(context)}, {"children_spec", std::move(children)}};
}

std::string dump_spec(const ordered_json& spec) { return ordered_json::array({1, spec}).dump(); }

// Flattens a result as torch.utils._pytree does, in order; returns its specification.
ordered_json flatten(const Abstract& abstract, std::vector<Abstract>& leaves) {
  const auto all = [&](const std::vector<Abstract>& items) {
    std::vector<ordered_json> children;
    for (const Abstract& item : items) children.push_back(flatten(item, leaves));
    return children;
  };
  if (abstract.kind == Abstract::Kind::tuple) return container("builtins.tuple", "null", all(abstract.items));
  if (abstract.kind == Abstract::Kind::list && !abstract.cell->content.value)
    return container("builtins.list", "null", all(abstract.cell->content.items));
  if (abstract.kind == Abstract::Kind::dict && !abstract.cell->content.value) {
    std::vector<ordered_json> children;
    ordered_json keys = ordered_json::array();
    for (const auto& [key, item] : abstract.cell->content.entries) {
      if (const auto* text = key.get_if<std::string>())
        keys.push_back(*text);
      else if (const auto number = key.integer())
        keys.push_back(*number);
      children.push_back(flatten(item, leaves));
    }
    return container("builtins.dict", keys.dump(), std::move(children));
  }
  leaves.push_back(abstract);
  return leaf();
}

// Tensors, numbers, texts, and lists, tuples and dicts of those.
bool can_be_given(const ir::Type& type) {
  return type.kind != ir::TypeKind::object && std::ranges::all_of(type.elements, can_be_given);
}

// ---- inputs -------------------------------------------------------------------------------------------------------

// Element i of a tuple in the inlined code: all values that it has there.
std::vector<const torch::jit::Value*> elements(const std::vector<const torch::jit::Value*>& tuples, std::size_t i) {
  std::vector<const torch::jit::Value*> out;
  for (const torch::jit::Value* tuple : tuples)
    for (const torch::jit::Use& use : tuple->uses()) {
      if (use.user->kind() == c10::prim::TupleUnpack) out.push_back(use.user->output(i));
      if (use.user->kind() != c10::prim::TupleIndex) continue;
      const auto index = torch::jit::constant_as<std::int64_t>(use.user->input(1));
      if (index && *index == static_cast<std::int64_t>(i)) out.push_back(use.user->output());
    }
  return out;
}

// What the code does with one key of a dict that it is given: all values that it reads there.
struct KeyRead {
  Arg key;
  std::vector<const torch::jit::Value*> values = {};
};

// The keys that the code looks up, in its order, but for those that it has written before; nullopt where it does
// something else with the dict.
std::optional<std::vector<KeyRead>> keys_read(const std::vector<const torch::jit::Value*>& dicts) {
  std::vector<KeyRead> out;
  std::vector<std::pair<Arg, const torch::jit::Node*>> writes;
  for (const torch::jit::Value* dict : dicts)
    for (const torch::jit::Use& use : dict->uses()) {
      const std::string name = use.user->kind().toQualString();
      const auto constant = use.user->inputs().size() > 1 ? torch::jit::toIValue(use.user->input(1)) : std::nullopt;
      const auto key = constant ? ts::literal_of(*constant) : std::nullopt;
      if (!key || use.offset != 0) return std::nullopt;
      if (name == "aten::_set_item") writes.emplace_back(*key, use.user);
      if (name == "aten::_set_item" || name == "aten::__contains__") continue;
      if (name != "aten::__getitem__" && name != "aten::get") return std::nullopt;
      if (std::ranges::any_of(writes, [&](const auto& w) { return w.first == *key && w.second->isBefore(use.user); }))
        continue;
      auto found = std::ranges::find(out, *key, &KeyRead::key);
      if (found == out.end()) found = out.insert(out.end(), KeyRead{*key});
      found->values.push_back(use.user->output());
    }
  return out;
}

std::string key_text(const Arg& key) {
  const auto* text = key.get_if<std::string>();
  return text ? *text : std::to_string(key.integer().value_or(0));
}

// forward(x, state: Tuple[Tensor, Tensor], more: Dict[str, Tensor], flag: bool = False): tuples are taken apart, dicts
// into the keys that are looked up, if that is all the code does with them, defaults become literals. `values`: what
// the input is in the inlined code.
Abstract add_input(ir::Model& model, const c10::TypePtr& type, const std::string& name,
                   const std::vector<const torch::jit::Value*>& values, const std::optional<c10::IValue>& given,
                   ordered_json& spec) {
  ir::Graph& graph = *model.graph;
  std::vector<ordered_json> children;
  if (const auto tuple = type->cast<c10::TupleType>()) {
    Abstract out{.kind = Abstract::Kind::tuple};
    for (const auto& element : tuple->elements()) {
      const std::size_t i = out.items.size();
      children.emplace_back();
      out.items.push_back(add_input(model, element, name + "_" + std::to_string(i), elements(values, i), std::nullopt,
                                    children.back()));
    }
    spec = container("builtins.tuple", "null", std::move(children));
    return out;
  }
  const auto dict = type->cast<c10::DictType>();
  const auto keys = dict ? keys_read(values) : std::nullopt;
  if (keys && !keys->empty()) {
    Abstract out{.kind = Abstract::Kind::dict, .cell = std::make_shared<ts::Cell>(ts::Cell{.type = type})};
    ordered_json names = ordered_json::array();
    for (const KeyRead& read : *keys) {
      if (const auto* text = read.key.get_if<std::string>())
        names.push_back(*text);
      else
        names.push_back(read.key.integer().value_or(0));
      children.emplace_back();
      out.cell->content.entries.emplace_back(
          read.key, add_input(model, dict->getValueType(), name + "_" + key_text(read.key), read.values, std::nullopt,
                              children.back()));
    }
    spec = container("builtins.dict", names.dump(), std::move(children));
    return out;
  }
  spec = leaf();
  ir::Type ir_type = ts::ir_type(type);
  if (!can_be_given(ir_type))
    throw Error(Exit::unsupported, model.info.path, "input '" + name + "' is of type " + type->repr_str(),
                "wrap the module in one that takes tensors, numbers, and lists, tuples or dicts of them");
  const auto literal = given ? ts::literal_of(*given) : std::nullopt;
  if (literal) ir_type = ir::Type::of(literal->is_none() ? ir::TypeKind::none : ir_type.kind);
  ir::Value* value = graph.add_input(std::move(ir_type), graph.unique_name(name));
  model.info.user_input_names.push_back(value->name);
  if (literal) {
    graph.input(graph.inputs().size() - 1).literal = *literal;
    return Abstract{.arg = *literal};
  }
  if (!dict) return Abstract{.arg = value};
  return {.kind = Abstract::Kind::dict,
          .cell = std::make_shared<ts::Cell>(ts::Cell{.content = {.value = value}, .type = type})};
}

using ModulePaths = std::map<const void*, std::vector<std::string>>;

void collect_paths(const torch::jit::Module& module, const std::string& path, int depth, ModulePaths& out) {
  constexpr int deepest = 64;
  out[module._ivalue().get()].push_back(path);
  if (depth < deepest)
    for (const auto& child : module.named_children())
      collect_paths(child.value, path.empty() ? child.name : path + "." + child.name, depth + 1, out);
}

// A module that the tree holds under several names is called by one of them: its nodes get the others.
void name_shared_modules(const torch::jit::Module& module, ir::Model& model) {
  ModulePaths by_module;
  collect_paths(module, "", 0, by_module);
  std::map<std::string, const std::vector<std::string>*> all;
  for (const auto& [object, paths] : by_module)
    for (const std::string& path : paths)
      if (paths.size() > 1) all[path] = &paths;
  if (all.empty()) return;
  ir::walk(*model.graph, [&](ir::Node* node) {
    const auto found = all.find(node->provenance->module_path);
    if (found == all.end()) return;
    auto made = std::make_shared<ir::Provenance>(*node->provenance);
    for (const std::string& path : *found->second)
      if (path != made->module_path) made->aliases.push_back(path);
    node->provenance = std::move(made);
  });
}

std::unique_ptr<ir::Model> lower_whole(const torch::jit::Module& module, const std::string& path) {
  auto model = std::make_unique<ir::Model>();
  model->info.path = path;
  model->info.format = "torchscript";
  ts::LoweringState state(*model);
  const torch::jit::Method forward = module.get_method("forward");
  const auto& formal = forward.function().getSchema().arguments();
  const auto inlined = torch::jit::toGraphFunction(forward.function()).graph()->copy();
  torch::jit::Inline(*inlined);
  std::vector<Abstract> args(1);
  std::vector<ordered_json> arg_specs;
  ordered_json arg_names = ordered_json::array();
  for (std::size_t i = 1; i < formal.size(); ++i) {
    arg_specs.emplace_back();
    arg_names.push_back(formal[i].name());
    args.push_back(add_input(*model, formal[i].type(), formal[i].name(), {inlined->inputs().at(i)},
                             formal[i].default_value(), arg_specs.back()));
  }
  args[0] = ts::root(state, module);
  const Abstract result = ts::call(state, forward.function(), args);

  std::vector<Abstract> leaves;
  const ordered_json out_spec = flatten(result, leaves);
  ts::add_mutation_outputs(state);
  for (const Abstract& one : leaves) model->graph->add_output(ts::to_arg(state, one));
  const ordered_json in_spec =
      container("builtins.tuple", "null",
                {container("builtins.tuple", "null", std::move(arg_specs)), container("builtins.dict", "[]", {})});
  const ordered_json signature = {{"inputs", ordered_json::array()},
                                  {"outputs", ordered_json::array()},
                                  {"in_spec", dump_spec(in_spec)},
                                  {"out_spec", dump_spec(out_spec)},
                                  {"forward_arg_names", arg_names}};
  model->info.module_call_graph = ordered_json::array({{{"fqn", ""}, {"signature", signature}}}).dump();
  model->drop_unused_weights();
  name_shared_modules(module, *model);
  return model;
}

}  // namespace

std::unique_ptr<ir::Model> ts::lower_module(const torch::jit::Module& module, const std::string& path) {
  return lower_whole(module, path);
}

std::unique_ptr<ir::Model> read_torchscript(const ZipArchive& archive) {
  const std::string& path = archive.path();
  const torch::jit::Module module = load(archive);
  try {
    auto model = ts::lower_module(module, path);
    if (module.hasattr(std::string(manifest_attribute)) && module.attr(std::string(manifest_attribute)).isString())
      model->extra[std::string(manifest_name)] = module.attr(std::string(manifest_attribute)).toStringRef();
    for (const ZipEntry& entry : archive.entries())
      if (entry.name.starts_with("extra/")) model->extra[entry.name.substr(6)] = archive.read(entry);
    return model;
  } catch (const Error& error) {
    throw error.file().empty() ? error.in_file(path) : error;
  } catch (const std::exception& error) {  // lazily compiled methods fail when they are first seen
    throw bad_file(path, "a method of the module does not compile: " + first_line(error));
  }
}

namespace {

bool holds_torchscript(const InputFile& file) {
  const ZipArchive* archive = file.archive();
  return archive && archive->find("data.pkl") && archive->find("constants.pkl") &&
         std::any_of(archive->entries().begin(), archive->entries().end(),
                     [](const ZipEntry& entry) { return entry.name.starts_with("code/"); });
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_FORMAT({.name = "torchscript",
                     .extensions = {".pt"},
                     .detect = ttc::holds_torchscript,
                     .read = [](const ttc::InputFile& file) { return ttc::read_torchscript(file.as_archive()); },
                     .write = ttc::write_torchscript})
