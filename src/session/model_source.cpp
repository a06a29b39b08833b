// One mapping for the readers and the hash.
#include "session/model_source.h"

#include <algorithm>
#include <filesystem>

#include "formats/model_file.h"
#include "formats/pt2_read.h"
#include "ir/manifest_name.h"
#include "pass/pass.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "support/json_util.h"
#include "support/progress.h"
#include "support/sha256.h"
#include "torch_library/torch_ops.h"

namespace ttc {
namespace {

// An operator or function that only Python has, so that LibTorch cannot run it.
bool is_python_op(const ir::Node& node) {
  constexpr std::string_view scopes[] = {"quantized_decomposed.", "prims.", "torch._functorch.predispatch."};
  return std::ranges::any_of(scopes, [&](std::string_view scope) { return node.op().starts_with(scope); });
}

// By the passes that write operators out: for LibTorch and for the compiler alike.
void write_out_python_ops(ir::Model& model) {
  const ir::Node* found = nullptr;
  const auto find = [&](ir::Node* node) { found = found || !is_python_op(*node) ? found : node; };
  ir::walk(*model.graph, find);
  if (!found) return;
  const CompileOptions options;
  PassContext context(model, options);
  find_pass("vmap-to-map")->run(context);
  context.parts = {"quantized", "prims"};
  find_pass("decompose")->run(context);
  found = nullptr;
  ir::walk(*model.graph, find);
  if (found)
    throw bad_file(model.info.path,
                   "node '" + ir::node_name(*found) + "' calls " + found->op() +
                       ", which only Python has, in a form that is not understood",
                   "export the model with run_decompositions(), which may write it out");
}

}  // namespace

ModelSource::ModelSource(const std::string& path) : file_(MappedFile::open(path)) {}

ModelSource::ModelSource(std::string name, std::vector<std::byte> content)
    : file_(MappedFile::hold(std::move(name), std::move(content))) {}

namespace {

std::shared_ptr<const MappedFile> saved(const ir::Model& model, std::string name) {
  const AtomicFolder folder((std::filesystem::temp_directory_path() / "ttc-part").string());
  const std::string path = folder.unfinished() + "/part.pt2";
  save_model(model, path);
  return MappedFile::open(path, std::move(name));  // which outlives the file's name
}

}  // namespace

ModelSource::ModelSource(const ir::Model& model, std::string name) : file_(saved(model, std::move(name))) {}

const std::shared_future<std::string>& ModelSource::begin_hash() const {
  std::call_once(hashed_, [&] {
    const auto hash = [file = file_] {
      Phase phase("hashing " + file->path(), file->bytes().size(), Phase::Unit::bytes);
      return sha256_hex(file->bytes(), &phase);
    };
    hash_ = std::async(std::launch::async | std::launch::deferred, hash).share();  // deferred: no thread is to be had
  });
  return hash_;
}

std::unique_ptr<ir::Model> ModelSource::read(bool to_run) const {
  const Phase phase("reading " + path());
  ttrt::register_torch_ops();  // rewritten TorchScript names tt operators
  std::unique_ptr<ir::Model> model = load_model(file_);
  if (!to_run) return model;
  write_out_python_ops(*model);
  check_known_ops(*model);
  return model;
}

std::unique_ptr<ir::Model> load(const std::string& path, bool to_run) { return ModelSource(path).read(to_run); }

bool is_rewritten(const ir::Model& model) {
  bool found = false;
  ir::walk(*model.graph, [&](ir::Node* node) { found = found || node->op().starts_with("tt."); });
  return found;
}

std::optional<ttrt::ArchProfile> profile_of(const ir::Model& model) {
  const auto manifest = model.extra.find(manifest_name);
  if (manifest == model.extra.end()) return std::nullopt;
  const std::string& file = model.info.path;
  try {
    const Json root = parse_json(manifest->second.str());
    if (const Json* own = find_member(root, "profile")) return ttrt::parse_profile(own->dump(), file);
    const Json* name = find_member(root, "arch");
    if (name == nullptr) return std::nullopt;
    return ttrt::find_profile(as_string(*name));
  } catch (const Error& error) {
    throw Error(Exit::bad_file, file, std::string(manifest_name) + ": " + error.what(), error.hint());
  }
}

ttrt::ArchProfile profile_for(const ir::Model& model, const std::string& argument) {
  if (!argument.empty()) return ttrt::profile_from_argument(argument);
  return profile_of(model).value_or(ttrt::default_profile());
}

}  // namespace ttc
