// See pt2_write.h. Entries and their order are those of torch.export.save; the root directory has a fixed name, so the
// bytes do not depend on the file's.
#include "formats/pt2_write.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "formats/pt2_graph_text.h"
#include "formats/pt2_names.h"
#include "formats/pt2_write_graph.h"
#include "formats/seal.h"
#include "formats/zip_write.h"
#include "ir/manifest_name.h"
#include "support/json_text.h"

namespace ttc {
namespace {

const std::string root = "archive/";
constexpr int schema_minor = 20;

// A storage to be written, and the weights that are views of it.
struct StoredBytes {
  ZipWriter::Entry* entry = nullptr;
  std::shared_ptr<const ir::Storage> storage;
  std::vector<std::pair<std::string, const ir::Weight*>> weights;
};

// One of the archive's two folders of tensors: files by storage and dtype, and the config that names them.
class PayloadFolder {
 public:
  // Adds to `payloads` what is to be written.
  PayloadFolder(ZipWriter& zip, std::string folder, const char* file_prefix, std::deque<StoredBytes>& payloads)
      : zip_(zip), folder_(std::move(folder)), prefix_(file_prefix), payloads_(payloads) {}

  void add(const std::string& fqn, const ir::Weight& weight, ir::InputKind kind) {
    const bool object = kind == ir::InputKind::custom_obj;
    const auto& [file, payload] = file_of(weight, object);
    payload->weights.emplace_back(fqn, &weight);
    const std::string path = json_text(file);
    const JsonMember members[] = {{"is_param", kind == ir::InputKind::parameter ? "true" : "false"},
                                  {"path_name", path},
                                  {"tensor_meta", object ? std::string_view("null") : meta_of(weight)},
                                  {"use_pickle", "false"}};
    config_[fqn] = json_sorted_table(members);
  }

  void finish(const std::string& config_name) {
    zip_.add(root + folder_ + config_name, json_table({{"config", json_table(config_)}}));
  }

 private:
  using File = std::pair<std::string, StoredBytes*>;

  static Json numbers(const std::vector<std::int64_t>& values) {
    Json out = Json::array();
    for (const auto value : values) out.push_back(tagged("as_int", value));
    return out;
  }

  // Many weights have the same.
  const std::string& meta_of(const ir::Weight& w) {
    std::string& text = metas_[{w.dtype, w.requires_grad, w.storage_offset, w.sizes, w.strides}];
    if (text.empty())
      text = json_text(json_of("dtype", pt2_code(w.dtype), "sizes", numbers(w.sizes), "requires_grad", w.requires_grad,
                               "device", host_device(), "strides", numbers(w.strides), "storage_offset",
                               tagged("as_int", w.storage_offset), "layout", 7));
    return text;
  }

  // That of a weight before this one where they share a storage.
  const File& file_of(const ir::Weight& weight, bool object) {
    const ir::Storage& storage = *weight.storage;
    const void* identity = storage.data ? static_cast<const void*>(storage.data) : &storage;
    File& file = files_[{identity, storage.bytes, weight.dtype}];
    if (file.second != nullptr) return file;
    int& count = object ? objects_ : tensors_;
    file.first = (object ? "custom_obj_" : prefix_) + std::to_string(count++);
    ZipWriter::Entry& entry = zip_.reserve(root + folder_ + file.first, storage.absent() ? 0 : storage.bytes);
    file.second = &payloads_.emplace_back(StoredBytes{.entry = &entry, .storage = weight.storage, .weights = {}});
    return file;
  }

  ZipWriter& zip_;
  const std::string folder_, prefix_;
  std::deque<StoredBytes>& payloads_;
  std::map<std::string, std::string> config_;
  std::map<std::tuple<DType, bool, std::int64_t, std::vector<std::int64_t>, std::vector<std::int64_t>>, std::string>
      metas_;
  std::map<std::tuple<const void*, std::size_t, DType>, File> files_;
  int tensors_ = 0, objects_ = 0;
};

// Makes and hashes storages on every processor, and writes them on whichever is not at it already: a file takes one
// write at a time, and a thread that waited for another's would spin. Those that are made, not mapped, wait for their
// turn where too many of them stand in memory: a model of any size needs no more than this, or what its largest storage
// needs.
class PayloadWriter {
 public:
  // `seal`: where each weight's hash goes, nullptr where none is wanted.
  PayloadWriter(ZipWriter& zip, std::deque<StoredBytes>& payloads, Seal* seal)
      : zip_(zip), payloads_(payloads), seal_(seal) {}

  void run() {
    const std::size_t threads = std::max(std::thread::hardware_concurrency(), 1U);
    {
      std::vector<std::jthread> others;
      try {
        while (others.size() + 1 < std::min(threads, payloads_.size())) others.emplace_back([this] { work(); });
      } catch (const std::system_error&) {  // fewer threads do the same work
      }
      work();
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 28;

  // What is to be written, and what keeps it.
  struct Ready {
    const StoredBytes* payload;
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };

  void work() {
    while (const StoredBytes* payload = next()) {
      try {
        Ready ready = load(*payload);
        std::unique_lock lock(mutex_);
        ready_.push_back(std::move(ready));
        if (!writing_) write_ready(lock);
      } catch (...) {
        fail(*payload);
      }
    }
  }

  // Locked but while it writes. What others make meanwhile is written, too.
  void write_ready(std::unique_lock<std::mutex>& lock) {
    writing_ = true;
    while (!ready_.empty()) {
      Ready one = std::move(ready_.front());
      ready_.pop_front();
      lock.unlock();
      try {
        zip_.fill(*one.payload->entry, one.bytes);
        one.owner.reset();
        release(*one.payload);
      } catch (...) {
        one.owner.reset();
        fail(*one.payload);
      }
      lock.lock();
    }
    writing_ = false;
  }

  void release(const StoredBytes& payload) {
    const std::lock_guard lock(mutex_);
    held_ -= made(payload);
    freed_.notify_all();
  }

  void fail(const StoredBytes& payload) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    held_ -= made(payload);
    freed_.notify_all();
  }

  static std::size_t made(const StoredBytes& payload) { return payload.storage->produce ? payload.storage->bytes : 0; }

  StoredBytes* next() {
    std::unique_lock lock(mutex_);
    if (error_ || begun_ == payloads_.size()) return nullptr;
    StoredBytes& payload = payloads_[begun_++];
    freed_.wait(lock, [&] { return held_ == 0 || held_ + made(payload) <= most_bytes; });
    held_ += made(payload);
    return &payload;
  }

  Ready load(const StoredBytes& payload) {
    auto [owner, data] = payload.storage->load();
    const std::byte* bytes = payload.storage->absent() ? nullptr : data;
    if (seal_ != nullptr)
      for (const auto& [fqn, weight] : payload.weights) {
        std::string hash = weight_hash(*weight, bytes);
        const std::lock_guard lock(mutex_);
        seal_->weights[fqn] = std::move(hash);
      }
    return {.payload = &payload, .owner = std::move(owner), .bytes = {bytes, payload.entry->size}};
  }

  ZipWriter& zip_;
  std::deque<StoredBytes>& payloads_;
  Seal* seal_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::deque<Ready> ready_;
  std::size_t begun_ = 0, held_ = 0;
  bool writing_ = false;
  std::exception_ptr error_;
};

bool is_constant(const ir::GraphInput& input) {
  return input.kind == ir::InputKind::constant || input.kind == ir::InputKind::custom_obj ||
         (input.kind == ir::InputKind::buffer && !input.persistent);
}

void write_weights(const ir::Model& model, ZipWriter& zip, Seal* seal) {
  std::set<std::string_view> written;
  std::deque<StoredBytes> payloads;
  for (const bool constants : {false, true}) {
    PayloadFolder folder(zip, constants ? "data/constants/" : "data/weights/", constants ? "tensor_" : "weight_",
                         payloads);
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
  PayloadWriter(zip, payloads, seal).run();
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

// A program whose graph is text already; `module`: the members of its graph module as yet.
struct Program {
  Json members, module;
  std::map<std::string, JsonPieces> parts;  // of the module
  std::unique_ptr<Pt2GraphText> graph;      // that its hash is asked of

  JsonPieces text() && {
    for (const auto& [key, value] : module.items())
      if (!parts.contains(key)) parts[key].push_back(json_text(value));
    std::map<std::string, JsonPieces> all;
    all["graph_module"] = json_object(std::move(parts));
    for (const auto& [key, value] : members.items())
      if (!all.contains(key)) all[key].push_back(json_text(value));
    return json_object(std::move(all));
  }
};

// Into the graph module's metadata, "custom" of which torch.export.load and save keep.
void put_manifest(Json& metadata, std::string manifest) {
  if (!metadata.is_object()) metadata = Json::object();
  const Json* text = find_member(metadata, "custom");
  Json custom = text && text->is_string() ? parse_json(text->get_ref<const std::string&>()) : Json::object();
  custom[manifest_attribute] = std::move(manifest);
  metadata["custom"] = json_text(custom);
}

Program program_of(const ir::Model& model, bool hashed) {
  Program out;
  Pt2GraphWriter writer(model);
  out.graph = std::make_unique<Pt2GraphText>(hashed);
  writer.graph(*out.graph);
  out.parts["graph"] = out.graph->graph();
  out.parts["signature"] = out.graph->signature();
  Json other = model.info.other_json.empty() ? Json::object() : parse_json(model.info.other_json);
  Json& module = out.module = other.contains("graph_module") ? other["graph_module"] : Json::object();
  module["module_call_graph"] = module_call_graph(model);
  if (!module.contains("metadata")) module["metadata"] = Json::object();
  if (!module.contains("treespec_namedtuple_fields")) module["treespec_namedtuple_fields"] = Json::object();

  Json& program = out.members = other.contains("program") ? other["program"] : Json::object();
  program["range_constraints"] = writer.range_constraints();
  program["schema_version"] = {
      {"major", pt2_schema_major},
      {"minor", model.info.schema_major == pt2_schema_major ? model.info.schema_minor : schema_minor}};
  program["torch_version"] = model.info.torch_version.empty() ? "2.13.0" : model.info.torch_version;
  program["guards_code"] = model.info.guards;
  if (!program.contains("opset_version")) program["opset_version"] = {{"aten", 10}};
  if (!program.contains("verifiers"))
    program["verifiers"] = Json::array({model.info.dialect.empty() ? "TRAINING" : model.info.dialect});
  return out;
}

}  // namespace

void write_pt2(const ir::Model& model, const std::string& path) {
  // Everything that can be refused is, before a byte is written.
  const auto manifest = model.extra.find(manifest_name);
  Program program = program_of(model, manifest != model.extra.end());
  AtomicFile file(path, model.weight_bytes());
  ZipWriter zip(file);
  Seal seal;
  write_weights(model, zip, manifest == model.extra.end() ? nullptr : &seal);
  if (manifest != model.extra.end()) {
    UnsealedManifest unsealed(manifest->second.str());
    seal.graph = program.graph->hash();
    put_manifest(program.module["metadata"], std::move(unsealed).sealed(seal));
  }
  zip.add(root + "models/model.json", std::move(program).text());
  zip.add(root + "data/sample_inputs/model.pt", std::string_view());
  for (const auto& [name, content] : model.extra)
    if (name != manifest_name) zip.add(root + "extra/" + name, content.str());
  zip.add(root + "archive_format", "pt2");
  zip.add(root + "archive_version", "0");
  zip.add(root + ".data/version", "6\n");
  zip.add(root + "byteorder", "little");
  zip.finish();
  file.commit();
}

}  // namespace ttc
