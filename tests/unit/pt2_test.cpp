// The .pt2 reader: what it makes of a file, and one clear refusal for each way a file can be wrong.
#include <cstring>
#include <random>

#include "report/inspect.h"
#include "formats/pt2_read.h"
#include "formats/pt2_read_graph.h"
#include "formats/pt2_wrappers.h"
#include "tests/catch.h"
#include "tests/unit/format_test_util.h"

using namespace ttc;
using namespace format_test;

namespace {

// The error for a model, which names the file and has the exit code of bad input.
Error refusal(const Entries& entries) {
  const TempDir dir;
  const std::string path = dir.file("model.pt2");
  write_archive(path, entries);
  const auto error = error_of([&] { read_pt2(path); });
  REQUIRE(error);
  CHECK(error->code() == Exit::bad_file);
  CHECK(error->file() == path);
  return *error;
}
std::string refused(const TinyModel& model) { return refusal(model.entries()).what(); }

Entries without(Entries entries, const std::string& name) {
  std::erase_if(entries, [&](const auto& entry) { return entry.first == name; });
  return entries;
}
Entries with(Entries entries, const std::string& name, const std::string& content) {
  entries = without(std::move(entries), name);
  entries.emplace_back(name, content);
  return entries;
}

std::unique_ptr<ir::Model> read(const TinyModel& model) {
  const TempDir dir;
  write_archive(dir.file("model.pt2"), model.entries());
  return read_pt2(dir.file("model.pt2"));
}

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1U ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

// Overwrites the checksum of entry `name` in both of its headers.
void fix_checksum(std::string& archive, const std::string& name, std::string_view content) {
  const std::uint32_t crc = crc32(content);
  char bytes[4];
  std::memcpy(bytes, &crc, 4);
  for (const auto& [magic, crc_at, name_at] : {std::tuple{"PK\3\4", 14, 30}, std::tuple{"PK\1\2", 16, 46}})
    for (auto at = archive.find(magic); at != std::string::npos; at = archive.find(magic, at + 1))
      if (archive.compare(at + name_at, name.size(), name) == 0) archive.replace(at + crc_at, 4, bytes, 4);
}

// Reads a file that may be anything, and uses what it gives. True where it was accepted.
bool try_model(const std::string& path) {
  try {
    const auto model = read_pt2(path);
    unsigned sum = 0;
    for (const auto& [name, weight] : model->weights)
      if (weight.numel() > 0 && weight.data()) {
        std::int64_t last = 0;
        for (std::size_t i = 0; i < weight.sizes.size(); ++i) last += (weight.sizes[i] - 1) * weight.strides[i];
        sum += std::to_integer<unsigned>(weight.data()[0]) +
               std::to_integer<unsigned>(weight.data()[last * size_of(weight.dtype)]);
      }
    CHECK(ir::print(*model).size() + sum > 0);
    CHECK_FALSE(inspect_text(inspect(*model), true).empty());
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == Exit::bad_file);
    CHECK(std::strlen(error.what()) > 0);
    return false;
  }
}

}  // namespace

TEST_CASE("pt2: a model is read with weights, signature and provenance", "[pt2]") {
  TinyModel tiny;
  const float first = 1.5F;
  std::memcpy(tiny.weight_bytes.data(), &first, sizeof first);
  const auto model = read(tiny);
  REQUIRE(model->graph->nodes().size() == 1);
  const ir::Node& node = *model->graph->nodes().front();
  CHECK(node.op() == "aten.linear.default");
  CHECK(node.result()->type.str() == "f32[2, 4]");
  CHECK(node.provenance->module_path == "fc");
  CHECK(node.provenance->module_class == "torch.nn.modules.linear.Linear");
  CHECK(node.provenance->source == "zoo.py:7");
  REQUIRE(model->graph->inputs().size() == 2);
  CHECK(model->graph->inputs()[0].kind == ir::InputKind::parameter);
  CHECK(model->graph->inputs()[0].target == "fc.weight");
  CHECK(model->info.user_input_names == std::vector<std::string>{"x"});
  const ir::Weight& weight = model->weights.at("fc.weight");
  CHECK(weight.sizes == std::vector<std::int64_t>{4, 3});
  float read_back = 0;
  std::memcpy(&read_back, weight.data(), sizeof read_back);
  CHECK(read_back == first);
  CHECK(ir::verify(*model).empty());
}

TEST_CASE("pt2: weights are views of one storage, or absent where the file is empty", "[pt2]") {
  TinyModel tiny;
  tiny.weights["config"]["other"] = tiny.payload();
  tiny.weights["config"]["other"]["tensor_meta"] = TinyModel::tensor({2});
  tiny.weights["config"]["other"]["tensor_meta"]["storage_offset"]["as_int"] = 10;
  const auto model = read(tiny);
  CHECK(model->weights.at("other").storage == model->weights.at("fc.weight").storage);
  CHECK(model->weights.at("other").data() == model->weights.at("fc.weight").data() + 40);
  TinyModel meta;
  meta.weight_bytes.clear();
  const auto shapes_only = read(meta);
  CHECK(shapes_only->weights.at("fc.weight").storage->absent());
  CHECK(shapes_only->weights.at("fc.weight").storage->bytes == 48);
  CHECK(inspect(*shapes_only)["weights"]["absent"] == true);
}

TEST_CASE("pt2: containers and versions that ttc does not read are named", "[pt2][hostile]") {
  const TinyModel good;
  CHECK_THAT(refusal(without(good.entries(), "models/model.json")).what(),
             ContainsSubstring("holds no models/model.json"));
  CHECK_THAT(refusal(with(good.entries(), "archive_format", "pt3")).what(), ContainsSubstring("'pt3'"));
  CHECK_THAT(refusal(with(good.entries(), "archive_version", "1")).what(), ContainsSubstring("version is 1"));
  CHECK_THAT(refusal(with(good.entries(), "byteorder", "big")).what(), ContainsSubstring("big-endian"));
  // Without a reader for pickles, which only programs with LibTorch have.
  CHECK_THAT(refusal(with(good.entries(), "data/weights/model.pt", "x")).what(), ContainsSubstring("torch 2.8"));
  CHECK_THAT(refusal({{"serialized_exported_program.json", good.program.dump()}}).what(),
             ContainsSubstring("torch 2.8"));
  for (const int major : {7, 9}) {
    TinyModel other;
    other.program["schema_version"]["major"] = major;
    const Error error = refusal(other.entries());
    CHECK_THAT(error.what(), ContainsSubstring("schema version " + std::to_string(major)));
    CHECK_FALSE(error.hint().empty());
  }
}

TEST_CASE("pt2: JSON that is malformed, too deep or of another shape is refused", "[pt2][hostile]") {
  const TinyModel good;
  const auto model_json = [&](const std::string& text) {
    return std::string(refusal(with(good.entries(), "models/model.json", text)).what());
  };
  CHECK_THAT(model_json("{"), ContainsSubstring("malformed JSON"));
  CHECK_THAT(model_json("[]"), ContainsSubstring("expected an object"));
  CHECK_THAT(model_json("{}"), ContainsSubstring("'schema_version' is missing"));
  CHECK_THAT(model_json("\xff\xfe{}"), ContainsSubstring("malformed JSON"));
  CHECK_THAT(model_json(std::string(1000000, '[')), ContainsSubstring("nested deeper"));
  TinyModel wrong;
  wrong.graph()["nodes"] = "many";
  CHECK_THAT(refused(wrong), ContainsSubstring("expected an array, found string"));
}

TEST_CASE("pt2: graphs nested too deeply are refused", "[pt2][hostile]") {
  TinyModel deep;
  const Json leaf = {{"inputs", Json::array()},
                     {"outputs", Json::array()},
                     {"nodes", Json::array()},
                     {"tensor_values", Json::object()}};
  Json graph = leaf;
  for (int i = 0; i < 60; ++i) {
    const Json argument = {{"as_graph", {{"name", "g"}, {"graph", graph}}}};
    graph = leaf;
    graph["nodes"] = Json::array({Json{{"target", "torch.ops.higher_order.wrap"},
                                       {"outputs", Json::array()},
                                       {"inputs", Json::array({Json{{"name", ""}, {"arg", argument}}})}}});
  }
  deep.graph()["nodes"].push_back(graph["nodes"][0]);
  CHECK_THAT(refused(deep), ContainsSubstring("nested deeper"));
}

TEST_CASE("pt2: values must be defined once, and before they are used", "[pt2][hostile]") {
  TinyModel undefined;
  undefined.node()["inputs"][0]["arg"]["as_tensor"]["name"] = "nobody";
  CHECK_THAT(refused(undefined),
             ContainsSubstring("uses value 'nobody', which nothing defines") && ContainsSubstring("aten.linear"));
  TinyModel cycle;
  cycle.node()["inputs"][0]["arg"]["as_tensor"]["name"] = "y";
  CHECK_THAT(refused(cycle), ContainsSubstring("cycle"));
  TinyModel twice;
  twice.graph()["nodes"].push_back(twice.node());
  CHECK_THAT(refused(twice), ContainsSubstring("'y' is defined twice"));
  TinyModel output;
  output.graph()["outputs"][0]["as_tensor"]["name"] = "z";
  CHECK_THAT(refused(output), ContainsSubstring("'z'"));
  TinyModel untyped;
  untyped.graph()["tensor_values"].erase("y");
  CHECK_THAT(refused(untyped), ContainsSubstring("no entry in tensor_values"));
  TinyModel signature;
  signature.program["graph_module"]["signature"]["input_specs"].erase(1);
  CHECK_THAT(refused(signature), ContainsSubstring("the signature has 1 inputs, the graph 2"));
}

TEST_CASE("pt2: sizes, dtypes and expressions of values are checked", "[pt2][hostile]") {
  const auto changed = [](const std::function<void(Json&)>& change) {
    TinyModel model;
    change(model.graph()["tensor_values"]["y"]);
    return refused(model);
  };
  CHECK_THAT(changed([](Json& y) { y["dtype"] = 99; }), ContainsSubstring("unknown dtype code 99"));
  CHECK_THAT(changed([](Json& y) { y["sizes"][0]["as_int"] = -2; }), ContainsSubstring("impossible sizes"));
  CHECK_THAT(changed([](Json& y) { y["sizes"][0]["as_int"] = INT64_MAX; }), ContainsSubstring("impossible sizes"));
  CHECK_THAT(changed([](Json& y) { y["sizes"][0]["as_int"] = 18446744073709551615ULL; }),
             ContainsSubstring("does not fit in 64 bits"));
  CHECK_THAT(changed([](Json& y) { y["sizes"][0]["as_int"] = 1.5; }), ContainsSubstring("expected an integer"));
  CHECK_THAT(changed([](Json& y) { y["sizes"].erase(0); }), ContainsSubstring("differ in number"));
  CHECK_THAT(changed([](Json& y) { y["sizes"][0] = Json{{"as_expr", {{"expr_str", "Mul("}}}}; }),
             ContainsSubstring("malformed symbolic expression"));
}

TEST_CASE("pt2: every element of a weight must lie in its file", "[pt2][hostile]") {
  const TinyModel good;
  CHECK_THAT(refusal(without(good.entries(), "data/weights/weight_0")).what(),
             ContainsSubstring("'data/weights/weight_0' is missing"));
  CHECK_THAT(refusal(without(good.entries(), "data/weights/model_weights_config.json")).what(),
             ContainsSubstring("model_weights_config.json' is missing"));
  TinyModel shorter;
  shorter.weight_bytes.resize(44);
  CHECK_THAT(refused(shorter), ContainsSubstring("needs 48 bytes") && ContainsSubstring("holds 44"));
  const auto changed = [](const std::function<void(Json&)>& change) {
    TinyModel model;
    change(model.meta());
    return refused(model);
  };
  CHECK_THAT(changed([](Json& w) { w["sizes"][0]["as_int"] = 3; }),
             ContainsSubstring("is f32[3, 3] in the archive, but f32[4, 3] in the graph"));
  CHECK_THAT(changed([](Json& w) { w["dtype"] = 13; }), ContainsSubstring("bf16[4, 3]"));
  CHECK_THAT(changed([](Json& w) { w["strides"][0]["as_int"] = 4; }), ContainsSubstring("needs 60 bytes"));
  CHECK_THAT(changed([](Json& w) { w["storage_offset"]["as_int"] = 1; }), ContainsSubstring("needs 52 bytes"));
  CHECK_THAT(changed([](Json& w) { w["strides"][0]["as_int"] = INT64_MAX; }), ContainsSubstring("overflow"));
  CHECK_THAT(changed([](Json& w) { w["storage_offset"]["as_int"] = INT64_MAX; }), ContainsSubstring("overflow"));
  CHECK_THAT(changed([](Json& w) { w["sizes"][0]["as_int"] = INT64_MAX; }), ContainsSubstring("overflow"));
  CHECK_THAT(changed([](Json& w) { w["strides"][0]["as_int"] = -3; }), ContainsSubstring("negative"));
  CHECK_THAT(changed([](Json& w) { w["strides"].erase(0); }), ContainsSubstring("do not fit together"));
  CHECK_THAT(changed([](Json& w) { w["layout"] = 1; }), ContainsSubstring("sparse"));
}

TEST_CASE("pt2: a config that leaves the archive or needs pickle is refused", "[pt2][hostile]") {
  for (const std::string path : {"../weight_0", "/etc/passwd", "a/b", "", "..", "a\\b"}) {
    TinyModel model;
    model.payload()["path_name"] = path;
    INFO(path);
    CHECK_THAT(refused(model), ContainsSubstring("leaves the archive"));
  }
  TinyModel pickled;
  pickled.payload()["use_pickle"] = true;
  CHECK_THAT(refused(pickled), ContainsSubstring("pickle"));
  TinyModel nameless;
  nameless.weights["config"].erase("fc.weight");
  CHECK_THAT(refused(nameless), ContainsSubstring("uses weight 'fc.weight', which the archive does not hold"));
}

TEST_CASE("pt2: an unknown operator is named with its module and source line", "[pt2][hostile]") {
  TinyModel model;
  model.node()["target"] = "torch.ops.nowhere.frobnicate.default";
  const auto read_model = read(model);
  const auto error = error_of([&] { check_known_ops(*read_model); });
  REQUIRE(error);
  CHECK(error->code() == Exit::bad_file);
  CHECK_THAT(error->what(), ContainsSubstring("nowhere.frobnicate.default") && ContainsSubstring("'fc'") &&
                                ContainsSubstring("zoo.py:7"));
}

TEST_CASE("pt2: effects, wrappers, autocast and out_dtype are written out as operators", "[pt2]") {
  for (const char* schema :
       {"_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()", "relu(Tensor self) -> Tensor",
        "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", "mm(Tensor self, Tensor mat2) -> Tensor",
        "cat(Tensor[] tensors, int dim=0) -> Tensor"})
    ir::register_schema(ir::parse_schema(std::string("aten::") + schema,
                                         "aten." + std::string(schema, std::strchr(schema, '(')) + ".default"));
  const auto written_out = [](const std::string& text) {
    auto model = ir::parse(text);
    write_out_wrappers(*model);
    CHECK(ir::verify(*model).empty());
    return ir::print(*model->graph);
  };
  CHECK(written_out(R"(
graph main(%token: f32[0] token, %x: i32[1] user) {
  %t1: f32[0], %n: none = higher_order.with_effects(%token, "torch.ops.aten._linalg_check_errors.default", %x, "inv", is_matrix=true)
  %t2: f32[0], %y: f32[1] = higher_order.with_effects(%t1, "torch.ops.aten.relu.default", %x)
  return token %t2, %y
})") == R"(graph main(%x: i32[1] user) {
  aten._linalg_check_errors.default(%x, api_name="inv", is_matrix=true)
  %y: f32[1] = aten.relu.default(%x)
  return %y
}
)");
  CHECK(written_out(R"(
graph main(%x: f32[4] user) {
  %a: f32[4] = higher_order.invoke_subgraph(region(0), "subgraph_0", %x) { ^body(%b: f32[4]):
    %c: f32[4] = aten.relu.default(%b)
    return %c
  }
  %d: f32[4] = higher_order.hints_wrapper(region(0), [%a], [], hints=["key", true]) { ^body(%e: f32[4]):
    %f: f32[4] = aten.relu.default(%e)
    return %f
  }
  return %d
})") == R"(graph main(%x: f32[4] user) {
  %c_1: f32[4] = aten.relu.default(%x)
  %f_1: f32[4] = aten.relu.default(%c_1)
  return %f_1
}
)");
  CHECK(written_out(R"(
graph main(%x: i8[4, 4] user, %y: i8[4, 4] user) {
  %z: i32[4, 4] = higher_order.out_dtype("torch.ops.aten.mm.default", i32, %x, %y)
  return %z
})") == R"(graph main(%x: i8[4, 4] user, %y: i8[4, 4] user) {
  %x_cast: i32[4, 4] = aten.to.dtype(%x, i32, false, false, none)
  %y_cast: i32[4, 4] = aten.to.dtype(%y, i32, false, false, none)
  %z_1: i32[4, 4] = aten.mm.default(%x_cast, %y_cast)
  return %z_1
}
)");
  // linear in bfloat16, float64 left alone; relu as its operand; cat in the wider dtype.
  CHECK(written_out(R"(
graph main(%x: f32[4, 4] user, %w: f32[4, 4] user) {
  %r: f32[8, 4] = higher_order.wrap_with_autocast("cpu", bf16, true, none, region(0), %x, %w) { ^body(%a: f32[4, 4], %b: f32[4, 4]):
    %c: bf16[4, 4] = aten.linear.default(%a, %b)
    %d: bf16[4, 4] = aten.relu.default(%c)
    %e: f32[8, 4] = aten.cat.default([%d, %a])
    return %e
  }
  return %r
})") == R"(graph main(%x: f32[4, 4] user, %w: f32[4, 4] user) {
  %r: f32[8, 4] = higher_order.wrap_with_autocast("cpu", bf16, false, none, region(0), %x, %w) { ^body(%a: f32[4, 4], %b: f32[4, 4]):
    %a_cast: bf16[4, 4] = aten.to.dtype(%a, bf16, false, false, none)
    %b_cast: bf16[4, 4] = aten.to.dtype(%b, bf16, false, false, none)
    %c: bf16[4, 4] = aten.linear.default(%a_cast, %b_cast)
    %d: bf16[4, 4] = aten.relu.default(%c)
    %d_cast: f32[4, 4] = aten.to.dtype(%d, f32, false, false, none)
    %e: f32[8, 4] = aten.cat.default([%d_cast, %a])
    return %e
  }
  return %r
}
)");
}

TEST_CASE("pt2: truncated files never crash", "[pt2][hostile]") {
  const TempDir dir;
  const std::string bytes = read_bytes(models + "/hop_cond.pt2"), path = dir.file("cut.pt2");
  REQUIRE(bytes.size() > 1000);
  for (std::size_t length = 1; length < bytes.size(); length += 61) {
    write_bytes(path, std::string_view(bytes).substr(0, length));
    INFO(length);
    CHECK_FALSE(try_model(path));
  }
}

TEST_CASE("pt2: flipped bytes never crash", "[pt2][hostile]") {
  const TempDir dir;
  const std::string bytes = read_bytes(models + "/hop_cond.pt2"), path = dir.file("flipped.pt2");
  std::mt19937 random(7);
  int refusals = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string copy = bytes;
    // Half of the rounds aim at the directory at the end.
    const std::size_t from = round % 2 ? copy.size() - 1400 : 0;
    for (int i = 0; i < 1 + round % 4; ++i) copy[from + random() % (copy.size() - from)] = static_cast<char>(random());
    write_bytes(path, copy);
    INFO(round);
    refusals += !try_model(path);
  }
  CHECK(refusals > 500);
}

TEST_CASE("pt2: JSON changed under a right checksum never crashes", "[pt2][hostile]") {
  const TempDir dir;
  const std::string path = dir.file("changed.pt2");
  for (const std::string name : {"hop_cond", "tiny", "input_mut_core"}) {
    std::string bytes = read_bytes(models + "/" + name + ".pt2");
    const std::string folder = name == "input_mut_core" ? "input_mut_core" : name;
    std::mt19937 random(11);
    for (const std::string& entry :
         {folder + "/models/model.json", folder + "/data/weights/model_weights_config.json"}) {
      const ZipArchive archive(MappedFile::open(models + "/" + name + ".pt2"));
      const ZipEntry* found = archive.find(entry.substr(folder.size() + 1));
      REQUIRE(found != nullptr);
      const std::string json = archive.read(*found);
      int accepted = 0;
      for (int round = 0; round < 500; ++round) {
        std::string changed = json;
        for (int i = 0; i < 1 + round % 3; ++i) {
          const std::size_t at = random() % changed.size();
          if (round % 5 == 0)
            changed[at] = "{}[]\",:0123456789-enul"[random() % 22];
          else if (const auto digit = changed.find_first_of("0123456789", at); digit != std::string::npos)
            changed[digit] = static_cast<char>('0' + random() % 10);
        }
        std::string copy = bytes;
        copy.replace(found->offset, changed.size(), changed);
        fix_checksum(copy, entry, changed);
        write_bytes(path, copy);
        INFO(name << " " << entry << " " << round);
        accepted += try_model(path);
      }
      CHECK(accepted > 0);  // the checksum was right: some harmless changes are read
    }
  }
}
