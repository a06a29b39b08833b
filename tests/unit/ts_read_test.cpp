// TorchScript to IR: names, weights, shape arithmetic, control flow, state. The files are made by
// tests/data/ts/make.py.
#include "torchscript/read.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "torch/cpu_op.h"
#include "executor/executor.h"
#include "formats/model_file.h"
#include "formats/zip_read.h"
#include "formats/zip_write.h"
#include "session/input_places.h"
#include "shapes/shape_prop.h"
#include "torchscript/soundness.h"
#include "torchscript/write.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "support/mapped_file.h"
#include "tests/catch.h"
#include "tests/unit/host_values.h"

using namespace ttc;
using ttrt::RtValue;
using ttrt::test::floats;
using ttrt::test::tensor;

namespace {

std::string file(const std::string& name) { return "tests/data/ts/" + name; }

std::unique_ptr<ir::Model> read(const std::string& path) {
  ttrt::install_torch_schemas();
  auto model = load_model(path);
  CHECK(ir::verify(*model) == std::vector<std::string>{});
  return model;
}

struct Session {
  explicit Session(std::unique_ptr<ir::Model> model) : executor(std::move(model), {.mode = ttrt::Mode::cpu}) {}
  std::vector<RtValue> operator()(std::vector<RtValue> inputs) { return executor.run(std::move(inputs)); }
  ttrt::Executor executor;
};

const ir::Node* find(const ir::Graph& graph, std::string_view op) {
  for (const auto& node : graph.nodes())
    if (node->op() == op) return node.get();
  return nullptr;
}

std::string error_of(const std::string& path) {
  try {
    load_model(path);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::bad_file);
    CHECK(error.file() == path);
    return error.what();
  }
  return "";
}

struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("ttc_ts_" + std::to_string(::getpid()) + ".pt")).string();
  ~TemporaryFile() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("torchscript: weights keep their names, nodes their modules and source lines") {
  const auto model = read(file("shapes.pt"));
  CHECK(model->info.format == "torchscript");
  CHECK(model->info.user_input_names == std::vector<std::string>{"x"});
  REQUIRE(model->weights.contains("proj.0.weight"));
  CHECK(model->weights.at("proj.0.weight").sizes == std::vector<std::int64_t>{4, 4});
  const ir::Node* linear = find(*model->graph, "aten.linear.default");
  REQUIRE(linear != nullptr);
  CHECK(linear->provenance->module_path == "proj.0");
  CHECK(linear->provenance->module_class == "torch.nn.modules.linear.Linear");
  CHECK(linear->provenance->source.starts_with("linear.py:"));
  REQUIRE(linear->provenance->stack.size() == 3);
  CHECK(linear->provenance->stack[1].first == "proj");
  CHECK(ir::weight_input(linear->operand(1))->kind == ir::InputKind::parameter);
}

TEST_CASE("torchscript: traced shape arithmetic stays symbolic and runs at other shapes") {
  auto model = read(file("shapes.pt"));
  CHECK(find(*model->graph, "aten.sym_size.int") != nullptr);
  CHECK(find(*model->graph, "_operator.mul") != nullptr);
  CHECK(find(*model->graph, "_operator.floordiv") != nullptr);
  CHECK(ir::print(*model).find("NumToTensor") == std::string::npos);
  const ShapeReport report = propagate_shapes(*model, {{"x", {.sizes = {2, 3, 4}, .dtype = DType::f32}}});
  CHECK(report.notes.empty());
  CHECK(report.symbols ==
        std::map<std::string, std::int64_t>{{"s0", 2}, {"s1", 3}});  // the last dim meets a weight of 4
  CHECK(model->graph->outputs()[0].arg.value()->type.str() == "f32[s0*s1, 2]");
  CHECK(find(*model->graph, "aten.div.Tensor")->arg(1).value()->type.kind == ir::TypeKind::integer);
  CHECK(ir::verify(*model) == std::vector<std::string>{});
  Session run(std::move(model));
  CHECK(floats(run({tensor({1, 2, 4}, {1, 1, 1, 1, -9, -9, 0, 0})})[0]) == std::vector<float>{0.5, 1, 0, 0});
  CHECK(floats(run({tensor({1, 1, 4}, {1, 1, 1, 1})})[0]) == std::vector<float>{1, 2});
}

TEST_CASE("torchscript: sizes of strided windows are expressions of the image's sizes") {
  auto model = read(file("windows.pt"));
  const ShapeReport report = propagate_shapes(*model, {{"x", {.sizes = {2, 1, 32, 40}, .dtype = DType::f32}}});
  const ir::Type& conv = find(*model->graph, "aten.convolution.default")->result()->type;
  CHECK(conv.str() == "f32[s0, 2, floordiv(s1 + 1, 2) - 1, floordiv(s2 + 1, 2) - 1]");
  const ir::Type& resampled = model->graph->outputs()[0].arg.value()->type;
  const ir::Type& last = model->graph->outputs()[1].arg.value()->type;
  ir::SymBinding binding(report.symbols.begin(), report.symbols.end());
  const auto sizes = [&](const ir::Type& type) {
    std::vector<std::int64_t> out;
    for (const ir::SymExpr& size : type.sizes) out.push_back(size.evaluate(binding).value_or(-1));
    return out;
  };
  CHECK(sizes(resampled) == std::vector<std::int64_t>{2, 2, 16, 20});
  CHECK(sizes(last) == std::vector<std::int64_t>{2, 2, 64});
  binding["s0"] = 1, binding["s1"] = 77, binding["s2"] = 19;
  CHECK(sizes(resampled) == std::vector<std::int64_t>{1, 2, 40, 10});
  CHECK(sizes(last) == std::vector<std::int64_t>{1, 2, 80});
}

TEST_CASE("torchscript: what is missing to a multiple is arithmetic on sizes") {
  auto model = read(file("padded.pt"));
  CHECK(find(*model->graph, "aten.rsub.Scalar") == nullptr);
  const ShapeReport report = propagate_shapes(*model, {{"x", {.sizes = {2, 5}, .dtype = DType::f32}}});
  const ir::Type& padded = model->graph->outputs()[0].arg.value()->type;
  CHECK(find(*model->graph, "aten.ceil.default") == nullptr);
  CHECK(find(*model->graph, "aten.clamp.default") == nullptr);
  ir::SymBinding binding(report.symbols.begin(), report.symbols.end());
  CHECK(padded.sizes[1].evaluate(binding) == 8);
  binding["s1"] = 12;
  CHECK(padded.sizes[1].evaluate(binding) == 12);
  Session run(std::move(model));
  CHECK(floats(run({tensor({1, 3}, {1, 2, 3})})[0]) == std::vector<float>{2, 4, 6, 0});
  CHECK(floats(run({tensor({1, 4}, {1, 2, 3, 4})})[0]) == std::vector<float>{2, 4, 6, 8});
  CHECK(floats(run({tensor({1, 4}, {1, 2, 3, 4})})[1]) == std::vector<float>{2, 4, 6, 8, 0});
  CHECK(floats(run({tensor({1, 3}, {1, 2, 3})})[1]) == std::vector<float>{2, 4, 6, 0, 0});
}

TEST_CASE("torchscript: numbers of the source do not promote") {
  auto model = read(file("numbers.pt"));
  propagate_shapes(*model, {{"x", {.sizes = {2, 3}, .dtype = DType::f32}}});
  for (const auto& node : model->graph->nodes())
    for (const auto& result : node->results()) CHECK(result->type.dtype != DType::f64);
  Session run(std::move(model));
  CHECK(floats(run({tensor({1, 3}, {1, 2, 3})})[0]) == std::vector<float>{1, 2.5, 4});
}

TEST_CASE("torchscript: branches and loops on data run") {
  auto model = read(file("control.pt"));
  const ir::Node* loop = find(*model->graph, "prim.loop");
  REQUIRE(loop != nullptr);
  REQUIRE(loop->regions().size() == 1);
  CHECK(find(*loop->regions()[0], "prim.if") != nullptr);
  Session run(std::move(model));
  const ttrt::HostTensor x = tensor({2}, {1, 2});
  CHECK(floats(run({x, std::int64_t{3}})[0]) == std::vector<float>{1, 2, 2, 4, 30, 60});
  CHECK(floats(run({x, std::int64_t{0}})[0]) == std::vector<float>{1, 2});
  CHECK_THROWS_AS(run({x, std::int64_t{-1}}), Error);
}

TEST_CASE("torchscript: attributes that forward() writes are state") {
  auto model = read(file("state.pt"));
  REQUIRE(model->graph->outputs().size() == 4);
  CHECK(model->graph->outputs()[0].kind == ir::OutputKind::buffer_mutation);
  CHECK(model->graph->outputs()[0].target == "sum");
  CHECK(model->graph->outputs()[1].target == "steps");
  Session run(std::move(model));
  const ttrt::HostTensor x = tensor({2}, {1, 2});
  CHECK(floats(run({x})[0]) == std::vector<float>{1, 2});
  CHECK(floats(run({x})[0]) == std::vector<float>{2, 4});
  const auto third = run({x});  // reset: two steps were made
  CHECK(floats(third[0]) == std::vector<float>{1, 2});
  CHECK(*third[1].get_if<std::int64_t>() == 1);
}

TEST_CASE("torchscript: module lists, optional arguments, tuples and dicts vanish") {
  auto model = read(file("containers.pt"));
  CHECK(model->info.user_input_names == std::vector<std::string>{"pair_0", "pair_1", "extra"});
  CHECK(model->graph->inputs()[2].literal.has_value());
  for (const auto& node : model->graph->nodes()) CHECK(node->op().starts_with("aten."));
  CHECK_THAT(model->info.module_call_graph, ContainsSubstring("builtins.dict"));
  Session run(std::move(model));
  const auto results = run({tensor({2}, {1, 2}), tensor({2}, {10, 20})});
  CHECK(floats(results[0]) == std::vector<float>{36, 72});
  CHECK(floats(results[1]) == std::vector<float>{48, 96});
}

TEST_CASE("torchscript: lists that are read item by item, and shapes as arguments, get types") {
  auto model = read(file("items.pt"));
  CHECK(find(*model->graph, "aten.__getitem__.t") != nullptr);
  const ShapeReport report = propagate_shapes(*model, {{"x", {.sizes = {2, 6}, .dtype = DType::f32}},
                                                       {"y", {.sizes = {4, 1}, .dtype = DType::f32}},
                                                       {"i", {.sizes = {5}, .dtype = DType::i64}}});
  CHECK(report.notes.empty());
  CHECK(ir::verify(*model) == std::vector<std::string>{});
  CHECK(find(*model->graph, "aten.__getitem__.t") == nullptr);
  CHECK(find(*model->graph, "aten.size.default") == nullptr);
  const ir::Node* chunk = find(*model->graph, "aten.chunk.default");
  REQUIRE(chunk != nullptr);
  REQUIRE(chunk->results().size() == 3);
  CHECK(chunk->result(1)->type.dim(1) == 2);
  CHECK(model->graph->outputs()[1].arg.value()->type.dim(1) == 4);
  Session run(std::move(model));
  ttrt::HostTensor classes = ttrt::empty_host(DType::i64, {5});
  for (std::int64_t k = 0; k < 5; ++k) classes.as<std::int64_t>()[k] = k % 4;
  const auto results =
      run({tensor({2, 6}, {1, 2, 0, 0, 3, 4, 5, 6, 0, 0, 7, 8}), tensor({4, 1}, {1, 1, 1, 2}), classes});
  CHECK(floats(results[0]) == std::vector<float>{4, 9, 36, 50});
}

TEST_CASE("torchscript: parts of shapes and lists from behind are items") {
  auto model = read(file("sizes.pt"));
  CHECK(find(*model->graph, "aten.slice.t") == nullptr);
  CHECK(find(*model->graph, "aten.sym_size.int")->arg(1).integer() == 0);
  const ShapeReport report = propagate_shapes(*model, {{"x", {.sizes = {2, 3, 4, 5}, .dtype = DType::f32}}});
  CHECK(report.notes.empty());
  const auto out = [&](std::size_t i) { return model->graph->outputs()[i].arg.value()->type.str(); };
  CHECK(out(0) == "f32[s0, s1, s2*2, s3*2]");
  CHECK(out(1) == "f32[s0, s1*2]");
  Session run(std::move(model));
  const auto results = run({tensor({1, 2, 2, 1}, {1, 3, 4, 8})});
  CHECK(floats(results[0]) == std::vector<float>{1, 1, 1, 1, 3, 3, 3, 3, 4, 4, 4, 4, 8, 8, 8, 8});
  CHECK(floats(results[1]) == std::vector<float>{2, 6, 4, 12});
}

TEST_CASE("torchscript: lists of the caller's length go in and come out") {
  Session run(read(file("lists.pt")));
  const auto results = run({tensor({1}, {3}), RtValue::List{tensor({2}, {1, 2}), tensor({1}, {4})}});
  const auto* items = results[0].get_if<RtValue::List>();
  REQUIRE(items != nullptr);
  REQUIRE(items->size() == 2);
  CHECK(floats((*items)[0]) == std::vector<float>{3, 6});
  CHECK(floats((*items)[1]) == std::vector<float>{12});
}

TEST_CASE("torchscript: dicts that go in are the keys that are looked up") {
  auto model = read(file("dicts.pt"));
  CHECK(model->info.user_input_names == std::vector<std::string>{"pair_0", "pair_1_shift", "more_x", "more_scale"});
  CHECK_THAT(model->info.module_call_graph, ContainsSubstring("scale"));
  Session run(std::move(model));
  const auto results = run({tensor({2}, {1, 2}), tensor({2}, {5, 6}), tensor({2}, {3, 4}), tensor({1}, {10})});
  CHECK(floats(results[0]) == std::vector<float>{26, 36});
  CHECK(floats(results[1]) == std::vector<float>{3, 4});
}

TEST_CASE("torchscript: lists of tuples go in and come out, their tensors are named and counted by item and part") {
  auto model = read(file("tuples.pt"));
  CHECK(model->info.user_input_names == std::vector<std::string>{"pairs", "x", "nested_in_3"});
  CHECK(model->graph->inputs()[0].value->type.str() == "list<tuple<tensor, tensor>>");

  const InputPlaces places(*model, {"in0", "in1", "in2", "in3", "in4", "in5"});
  std::vector<RtValue> inputs(3);
  const float values[] = {1, 2, 3, 4, 100, 5};
  for (std::size_t i = 0; i < std::size(values); ++i) {
    const auto place = places.find("in" + std::to_string(i));
    REQUIRE(place);
    places.put(inputs, *place, tensor({1}, {values[i]}));
  }
  const auto part = places.find("pairs.1.0");
  REQUIRE(part);
  CHECK(part->index == 0);
  CHECK(part->path == std::vector<InputPlaces::Step>{1, 0});
  CHECK_FALSE(places.find("pairs.1.2"));
  CHECK_THROWS_AS(places.put(inputs, {0, {1}}, tensor({1}, {0})), Error);  // a tuple is no tensor

  TemporaryFile copy;
  write_torchscript(*model, copy.path);
  for (const std::string& path : {file("tuples.pt"), copy.path}) {
    INFO(path);
    Session run(read(path));
    const auto results = run(inputs);
    CHECK(floats(results[0]) == std::vector<float>{100 + 2 + 12 + 50 + 3});
    const auto* second = results[1].get_if<RtValue::List>()->at(1).get_if<RtValue::List>();
    REQUIRE(second != nullptr);
    CHECK(floats(second->at(0)) == std::vector<float>{4});
    CHECK(floats(second->at(1)) == std::vector<float>{4});
  }
}

TEST_CASE("torchscript: members of enumerations decide branches, tensors written out are constants") {
  auto model = read(file("members.pt"));
  CHECK(model->weights.size() == 1);
  CHECK(find(*model->graph, "aten.tensor.default") == nullptr);
  CHECK(find(*model->graph, "prim.if") == nullptr);
  Session run(std::move(model));
  const auto results = run({tensor({2, 3}, {1, 2, 3, 4, 5, 6})});
  CHECK(floats(results[0]) == std::vector<float>{12, 14, 12, 18, 15, 16});
}

TEST_CASE("torchscript: a number of any kind stays one in what is written") {
  const auto model = read(file("bounds.pt"));
  TemporaryFile copy;
  write_torchscript(*model, copy.path);
  for (const std::string& path : {file("bounds.pt"), copy.path}) {
    INFO(path);
    auto one = read(path);
    CHECK(find(*one->graph, "aten.ScalarImplicit.default") != nullptr);
    Session run(std::move(one));
    const auto results = run({ttrt::convert(tensor({3}, {-1, 4, 7}), DType::i64)});
    CHECK(floats(results[0]) == std::vector<float>{0, 4, 5});
    CHECK(results[0].get_if<ttrt::HostTensor>()->dtype == DType::i64);
  }
}

TEST_CASE("torchscript: what is written reads back as the same graph and runs the same") {
  TemporaryFile copy;
  for (const char* name :
       {"shapes.pt", "control.pt", "state.pt", "containers.pt", "dicts.pt", "sizes.pt", "early.pt"}) {
    INFO(name);
    auto model = read(file(name));
    model->extra["note.txt"] = "kept";
    write_torchscript(*model, copy.path);
    const auto again = read(copy.path);
    CHECK(again->extra.at("note.txt") == "kept");
    CHECK(again->info.user_input_names == model->info.user_input_names);
    CHECK(again->graph->outputs().size() == model->graph->outputs().size());
    for (const auto& [target, weight] : model->weights) CHECK(again->weights.contains(target));
    if (std::string(name) == "early.pt") {
      Session early(read(copy.path));
      CHECK(floats(early({tensor({2}, {-9, 3})})[0]) == std::vector<float>{8, 2});
      CHECK(floats(early({tensor({2}, {-4, 3})})[0]) == std::vector<float>{4, 3});
      CHECK(floats(early({tensor({2}, {4, 3})})[0]) == std::vector<float>{3, 2});
    }
    if (std::string(name) != "control.pt") continue;
    Session before(std::move(model)), after(read(copy.path));
    const std::vector<RtValue> inputs = {tensor({2}, {2, 3}), std::int64_t{4}};
    CHECK(floats(before(inputs)[0]) == floats(after(inputs)[0]));
  }
}

TEST_CASE("torchscript: shapes that no model can have are refused") {
  auto model = read(file("shapes.pt"));
  CHECK_THROWS_AS(propagate_shapes(*model, {{"y", {.sizes = {2, 3, 4}, .dtype = {}}}}), Error);
  CHECK_THROWS_AS(propagate_shapes(*model, {{"x", {.sizes = {2, -3, 4}, .dtype = {}}}}), Error);
  CHECK_THROWS_AS(propagate_shapes(*model, {}), Error);
  const ShapeReport report =
      propagate_shapes(*model, {{"x", {.sizes = {2, 3, 5}, .dtype = {}}}});  // the weight wants 4
  REQUIRE_FALSE(report.notes.empty());
  CHECK_THAT(report.notes[0], ContainsSubstring("aten.linear.default"));
}

TEST_CASE("torchscript: a pickle's texts and indices fit into it") {
  using std::string_view_literals::operator""sv;
  CHECK(ts::sizes_fit("\x80\x02X\x03\0\0\0abc."sv));
  CHECK(
      ts::sizes_fit("\x80\x02"
                    "ctorch\nTensor\nK\x05J\0\0\0\0."sv));
  CHECK_FALSE(
      ts::sizes_fit("\x80\x02X\xff\xff\xff\xf0"
                    "abc."sv));
  CHECK_FALSE(ts::sizes_fit("\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff."sv));
  CHECK_FALSE(
      ts::sizes_fit("\x80\x02"
                    "ctorch\nTen"sv));
  CHECK_FALSE(ts::sizes_fit("\x80\x02J\0"sv));
  CHECK(ts::sizes_fit("\x80\x02]r\x01\0\0\0."sv));
  CHECK_FALSE(ts::sizes_fit("\x80\x02]r\x01\0\0\x1e."sv));
  CHECK_FALSE(ts::sizes_fit("\x80\x02]r\x01\0"sv));
}

TEST_CASE("torchscript: files that are none have one clear message") {
  TemporaryFile bad;
  std::ofstream(bad.path) << "no zip archive at all, but long enough to be one";
  CHECK_FALSE(error_of(bad.path).empty());
  std::ifstream whole(file("shapes.pt"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  bytes.resize(bytes.size() / 2);
  std::ofstream(bad.path, std::ios::binary | std::ios::trunc) << bytes;
  CHECK_FALSE(error_of(bad.path).empty());
  CHECK_THROWS_AS(load_model("tests/data/ts/none.pt"), Error);
}

namespace {

// shapes.pt with another content of one record, its checksum right.
void write_edited(const std::string& path, const std::string& record, const std::string& content) {
  const ZipArchive source(MappedFile::open(file("shapes.pt")));
  REQUIRE(source.find(record) != nullptr);
  AtomicFile out(path);
  ZipWriter zip(out);
  for (const ZipEntry& entry : source.entries())
    zip.add("shapes/" + entry.name, entry.name == record ? content : source.read(entry));
  zip.finish();
  out.commit();
}

std::string text_of(const std::string& record) {
  const ZipArchive source(MappedFile::open(file("shapes.pt")));
  return source.read(*source.find(record));
}

}  // namespace

TEST_CASE("torchscript: what LibTorch's reader takes on trust is checked first") {
  TemporaryFile bad;
  const std::string code = "code/__torch__.py", debug = "code/__torch__/torch/nn/modules/linear.py.debug_pkl";
  write_edited(bad.path, code, text_of(code));
  CHECK(error_of(bad.path).empty());

  std::ifstream whole(bad.path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  bytes[bytes.find("FORMAT_WITH_STRING_TABLE") + 40] ^= 1;
  std::ofstream(bad.path, std::ios::binary | std::ios::trunc) << bytes;
  CHECK_THAT(error_of(bad.path), ContainsSubstring("checksum"));

  for (const std::string deep : {"((", "[[", "- ", "not "}) {
    std::string nested;
    for (int i = 0; i < 100000; ++i) nested += deep;
    write_edited(bad.path, code, text_of(code) + "\n    x = " + nested + "1");
    CHECK_THAT(error_of(bad.path), ContainsSubstring("nested too deeply"));
  }

  // ("FORMAT_WITH_STRING_TABLE", ("a",), ((0, (([7], 0, 1), 0, 1), 0),)): there is no text 7.
  using namespace std::string_literals;
  const std::string source =
                        "(ctorch.jit._pickle\nbuild_intlist\n(](K\x07"
                        "etRK\0K\1t"s,
                    range = "(" + source + "K\0K\1t"s;
  write_edited(bad.path, debug, "\x80\2(X\x18\0\0\0FORMAT_WITH_STRING_TABLE(X\1\0\0\0at((K\0"s + range + "K\0ttt."s);
  const auto model = read(bad.path);
  CHECK_FALSE(find(*model->graph, "aten.linear.default")->provenance->source.starts_with("linear.py:"));
}

// legacy28_bert_small_dyn.pt2 is models/bert_small_dyn.pt2 in the container of torch 2.8.
TEST_CASE("weights of older .pt2 containers come out of their pickles") {
  ttrt::install_torch_schemas();
  const auto old = load_model("tests/data/legacy28_bert_small_dyn.pt2"), now = load_model("models/bert_small_dyn.pt2");
  REQUIRE(old->weights.size() == now->weights.size());
  for (const auto& [name, weight] : now->weights) {
    const ir::Weight& same = old->weights.at(name);
    REQUIRE(same.sizes == weight.sizes);
    REQUIRE(same.dtype == weight.dtype);
    CHECK(std::memcmp(same.data(), weight.data(), weight.nbytes()) == 0);
  }
}
