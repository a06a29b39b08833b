// The .pt2 writer: what it keeps of a model, what it adds to a rewritten one, and that it leaves nothing half-written.
#include <cstring>

#include "formats/pt2_names.h"
#include "formats/pt2_read.h"
#include "formats/pt2_read_graph.h"
#include "formats/pt2_write.h"
#include "report/inspect.h"
#include "tests/catch.h"
#include "tests/unit/format_test_util.h"

using namespace ttc;
using namespace format_test;

namespace {

std::unique_ptr<ir::Model> tiny() {
  const TempDir dir;
  write_archive(dir.file("model.pt2"), TinyModel().entries());
  return read_pt2(dir.file("model.pt2"));
}

}  // namespace

TEST_CASE("pt2: reading, writing and reading again gives the same model", "[pt2]") {
  for (const std::string name :
       {"tiny", "dtypes", "hop_cond", "input_mut", "custom_op", "tiny_core", "dtypes_core", "hop_cond_core",
        "input_mut_core", "bert_small_dyn_core", "llama_small_decode_core", "gpt2_small_eager_dyn", "vit_small"}) {
    const TempDir dir;
    INFO(name);
    const auto model = read_pt2(models + "/" + name + ".pt2");
    write_pt2(*model, dir.file("a.pt2"));
    write_pt2(*model, dir.file("b.pt2"));
    CHECK(dir.entries() == 2);
    CHECK(read_bytes(dir.file("a.pt2")) == read_bytes(dir.file("b.pt2")));
    const auto again = read_pt2(dir.file("a.pt2"));
    CHECK(ir::print(*model) == ir::print(*again));
    CHECK(model->info.hints == again->info.hints);
    CHECK(model->info.guards == again->info.guards);
    CHECK(model->info.other_json == again->info.other_json);
    CHECK(model->extra == again->extra);
    for (const auto& [fqn, weight] : model->weights) {
      const ir::Weight& copy = again->weights.at(fqn);
      CHECK(copy.strides == weight.strides);
      REQUIRE(copy.storage->bytes == weight.storage->bytes);
      CHECK(std::memcmp(copy.storage->data, weight.storage->data, weight.storage->bytes) == 0);
      CHECK(reinterpret_cast<std::uintptr_t>(copy.storage->data) % 64 == 0);
      for (const auto& [other, twin] : model->weights)
        CHECK((again->weights.at(other).storage == copy.storage) ==
              (twin.storage == weight.storage && twin.dtype == weight.dtype));
    }
  }
}

TEST_CASE("pt2: a failed write leaves nothing behind", "[pt2]") {
  const TempDir dir;
  auto model = read_pt2(models + "/hop_cond.pt2");
  write_bytes(dir.file("out.pt2"), "before");
  model->weights.clear();
  CHECK(error_of([&] { write_pt2(*model, dir.file("out.pt2")); }).value().code() == Exit::unsupported);
  CHECK(read_bytes(dir.file("out.pt2")) == "before");
  CHECK(dir.entries() == 1);
}

TEST_CASE("pt2: placement, origins and rewritten operators survive", "[pt2]") {
  const TempDir dir;
  const auto model = tiny();
  ir::Node* node = model->graph->nodes().front().get();
  node->set_op("tt.linear");
  node->place = "device";
  node->origins = {0, 3};
  model->extra[std::string(manifest_name)] = R"({"ttc": "0.1", "arch": "n150", "summary": "1/1 nodes on device"})";
  write_pt2(*model, dir.file("out.pt2"));
  const auto again = read_pt2(dir.file("out.pt2"));
  const ir::Node& copy = *again->graph->nodes().front();
  CHECK(copy.op() == "tt.linear");
  CHECK(copy.place == "device");
  CHECK(copy.origins == std::vector<int>{0, 3});
  CHECK(copy.provenance->module_path == "fc");
  CHECK(copy.provenance->source == "zoo.py:7");
  CHECK_THAT(inspect_text(inspect(*again), false), ContainsSubstring("rewritten by ttc 0.1 for n150"));
}

TEST_CASE("pt2: models that came from elsewhere get a signature of flat tuples", "[pt2]") {
  const TempDir dir;
  const auto model = ir::parse(R"(model {range s0 in [2, 64]}
graph main(%x: f32[s0, 3] user) {
  %y: f32[s0, 3] = aten.relu.default(%x)
  return %y
}
)");
  write_pt2(*model, dir.file("out.pt2"));
  const auto again = read_pt2(dir.file("out.pt2"));
  CHECK(again->ranges.at("s0").max == 64);
  CHECK(again->graph->nodes().front()->result()->type.str() == "f32[s0, 3]");
  CHECK(again->info.hints.contains("s0"));
  const Json calls = parse_json(again->info.module_call_graph);
  CHECK(calls[0]["signature"]["in_spec"].get<std::string>().starts_with("[1,"));
}

TEST_CASE("pt2: names and traces", "[pt2]") {
  for (const std::string target : {"torch.ops.aten.add.Tensor", "torch.ops.tt.linear.default",
                                   "torch.ops.higher_order.cond", "_operator.mul", "math.trunc", "torch.sym_not"})
    CHECK(target_from_op(op_from_target(target)) == target);
  CHECK(op_from_target("torch.ops.tt.linear.default") == "tt.linear");
  CHECK(python_identifier("a.b-c") == "a_b_c");
  CHECK(python_identifier("4") == "_4");
  CHECK(python_identifier("lambda") == "lambda_");
  CHECK(source_of_trace("File \"/a/b.py\", line 3, in f\n  File \"/v/site-packages/torch/nn/x.py\", line 9, in g") ==
        "b.py:3");
  CHECK(source_of_trace("no frame") == "");
  ir::Provenance where;
  read_module_stack("k,L['self'].layer[0].fc,a.B;k2@x,x,c.D", where);
  REQUIRE(where.stack.size() == 2);
  CHECK(where.stack[0] == std::pair<std::string, std::string>("layer.0.fc", "a.B"));
  CHECK(where.calls.empty());
  ir::Provenance again;
  read_module_stack("k,layer,a.C;k@12,layer.fc,a.B", again);
  CHECK(again.calls == std::vector<int>{0, 12});
}

TEST_CASE("inspect: counts what a model holds", "[pt2]") {
  const auto model = read_pt2(models + "/tiny.pt2");
  const Json about = inspect(*model);
  CHECK(about["format"] == "pt2");
  CHECK(about["schema"] == "8.20");
  CHECK(about["inputs"].size() == 4);
  CHECK(about["inputs"][0]["shape"] == Json({"s17", "s27"}));
  CHECK(about["inputs"][2]["fixed"] == 3);
  CHECK(about["weights"]["tied"].size() == 2);
  CHECK(about["weights"]["parameters"]["tensors"] == 5);
  std::size_t nodes = 0;
  for (const Json& op : about["ops"]) nodes += op["count"].get<std::size_t>();
  CHECK(about["nodes"] == nodes);
  CHECK(about["rewritten"].is_null());
  const std::string html = render_graph(*model, graph_form("html"));
  CHECK(html.find("http") == std::string::npos);
  CHECK(html.find("higher_order.cond") != std::string::npos);
  CHECK(render_graph(*model, graph_form("dot")).starts_with("digraph"));
  CHECK_THROWS_AS(graph_form("png"), Error);
}
