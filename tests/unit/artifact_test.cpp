// What a rewritten file carries along: its seal, calls with their outputs, the original; and who notices a change.
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "formats/model_file.h"
#include "formats/safetensors.h"
#include "formats/seal.h"
#include "formats/zip_read.h"
#include "ir/manifest_name.h"
#include "session/compile.h"
#include "session/kept.h"
#include "session/verify.h"
#include "support/base64.h"
#include "support/error.h"
#include "support/json_util.h"
#include "tests/catch.h"
#include "tests/unit/session_test_util.h"

namespace {

namespace fs = std::filesystem;
using namespace ttc;
using ttc::test::models;

struct Scratch {
  fs::path path = fs::temp_directory_path() / ("ttc_artifact_" + std::to_string(::getpid()));
  Scratch() { fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
};

const std::string io = models + "llama_small.io.safetensors";

// llama_small, rewritten, with what `carry` adds to it.
void write_rewritten(const std::string& path, const std::function<void(ir::Model&, const ModelSource&)>& carry = {}) {
  const ModelSource source(models + "llama_small.pt2");
  const Compiled compiled = compile_source(source, {}, {}, true);
  if (carry) carry(*compiled.model, source);
  save_model(*compiled.model, path);
}

Verification verify(const std::string& path) {
  const ModelSource source(path);
  return verify_file(source, source.read(), {});
}

std::vector<std::string> failures(const Verification& verification) {
  std::vector<std::string> out;
  for (const Finding& finding : verification.findings)
    if (!finding.pass) out.push_back(finding.kind + " " + finding.name);
  return out;
}

// One bit of the first byte that `entry` of the archive holds.
void flip(const std::string& path, const std::string& entry) {
  std::uint64_t offset = 0;
  {
    const ZipArchive archive(MappedFile::open(path));
    REQUIRE(archive.find(entry) != nullptr);
    offset = archive.find(entry)->offset;
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

}  // namespace

TEST_CASE("bytes come back from base64, and other text is refused") {
  for (const std::size_t size : {0, 1, 2, 3, 4, 100}) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 37);
    CHECK(from_base64(base64(bytes)) == bytes);
  }
  CHECK(base64(std::as_bytes(std::span("Man", 3))) == "TWFu");
  CHECK_THROWS_AS(from_base64("abc"), Error);
  CHECK_THROWS_AS(from_base64("ab!?"), Error);
}

TEST_CASE("a rewritten file verifies in both formats, and with the tests that it carries") {
  const Scratch folder;
  for (const char* name : {"a.pt2", "a.pt"}) {
    INFO(name);
    write_rewritten(folder.file(name), [](ir::Model& model, const ModelSource& source) {
      keep_original(model, source);
      embed_tests(model, source.read(), {io}, 0.99);
    });
    const Verification found = verify(folder.file(name));
    CHECK(failures(found).empty());
    CHECK(found.weights > 20);
    REQUIRE(found.tests.size() == 1);
    CHECK(found.tests[0].checks.at(0).metrics.pcc > 0.999);
    CHECK(found.pass());
    const auto original = original_of(*load(folder.file(name)));
    REQUIRE(original);
    const auto expected = MappedFile::open(models + "llama_small.pt2");
    CHECK(std::ranges::equal(*original, expected->bytes()));
  }
}

TEST_CASE("a flipped bit of a weight is found, and the weight named") {
  const Scratch folder;
  write_rewritten(folder.file("a.pt2"));
  const Json config = [&] {
    const ZipArchive archive(MappedFile::open(folder.file("a.pt2")));
    return parse_json(archive.read(*archive.find("data/constants/model_constants_config.json")));
  }();
  const std::string weight = "model.model.layers.0.self_attn.o_proj.weight_bfloat16";
  flip(folder.file("a.pt2"), "data/constants/" + config["config"][weight]["path_name"].get<std::string>());
  const Verification found = verify(folder.file("a.pt2"));
  CHECK_FALSE(found.pass());
  CHECK(failures(found) == std::vector<std::string>{"archive ", "weight " + weight});
}

TEST_CASE("a changed graph, manifest or result is found") {
  const Scratch folder;
  write_rewritten(folder.file("a.pt2"));
  const auto changed = [&](const std::function<void(ir::Model&)>& change) {
    const ModelSource source(folder.file("a.pt2"));
    const std::shared_ptr<ir::Model> model = source.read();
    change(*model);
    return failures(verify_file(source, model, {}));
  };
  CHECK(changed([](ir::Model&) {}).empty());
  CHECK(changed([](ir::Model& model) {
          ir::walk(*model.graph, [](ir::Node* node) {
            if (node->op() == "tt.rms_norm") node->set_arg(2, 0.5);
          });
        }) == std::vector<std::string>{"graph "});
  CHECK(changed([](ir::Model& model) {
          Json manifest = parse_json(model.extra[std::string(manifest_name)].str());
          manifest["journal"].erase(0);
          model.extra[std::string(manifest_name)] = manifest.dump();
        }) == std::vector<std::string>{"manifest "});
  CHECK_THROWS_AS(changed([](ir::Model& model) { model.extra.erase(std::string(manifest_name)); }), Error);
}

TEST_CASE("outputs that the calls lack are LibTorch's; a model that misses them fails") {
  const Scratch folder;
  SafeTensors inputs = read_safetensors(io);
  std::erase_if(inputs.tensors, [](const auto& one) { return one.first.find("out") != std::string::npos; });
  write_safetensors(folder.file("in.safetensors"), inputs);
  for (const double pcc : {0.99, 0.9999999}) {
    write_rewritten(folder.file("a.pt2"), [&](ir::Model& model, const ModelSource& source) {
      embed_tests(model, source.read(), {folder.file("in.safetensors")}, pcc);
    });
    CHECK(verify(folder.file("a.pt2")).pass() == (pcc == 0.99));
  }
  const ModelSource source(models + "llama_small.pt2");
  const std::shared_ptr<ir::Model> model = source.read();
  CHECK_THROWS_AS(embed_tests(*model, model, {models + "vit_small.io.safetensors"}, 0.99), Error);
}

TEST_CASE("a rewritten file that is compiled again keeps its first journal, and what it was made from") {
  const Scratch folder;
  write_rewritten(folder.file("first.pt2"), keep_original);
  const ModelSource first(folder.file("first.pt2"));
  const Compiled again = compile_source(first, {}, {}, true);
  keep_original(*again.model, first);
  save_model(*again.model, folder.file("again.pt2"));
  CHECK(verify(folder.file("again.pt2")).pass());

  const std::unique_ptr<ir::Model> before = first.read(), after = load(folder.file("again.pt2"));
  Json was = parse_json(before->extra[std::string(manifest_name)].str());
  const Json is = parse_json(after->extra[std::string(manifest_name)].str());
  was.erase("seal");
  REQUIRE(is["earlier"].size() == 1);
  CHECK(is["earlier"][0] == was);
  CHECK(is["input"]["sha256"] == first.sha256());
  const auto original = original_of(*after);
  REQUIRE(original);
  CHECK(std::ranges::equal(*original, MappedFile::open(models + "llama_small.pt2")->bytes()));
  CHECK(*input_of(is, "") == was["input"]);
  CHECK(input_of(is, "0") == nullptr);
}

TEST_CASE("a weight without elements has the same hash in memory and in a file") {
  const ir::Weight none = ir::make_weight(DType::f32, {0, 8}, {});
  const std::byte somewhere[4] = {};
  CHECK_FALSE(weight_hash(none, nullptr).empty());
  CHECK(weight_hash(none, nullptr) == weight_hash(none, somewhere));
  CHECK(weight_hash(ir::make_weight(DType::f32, {1}, std::vector<std::byte>(4)), nullptr).empty());
}
