// The parts of an emitted program: names, statements, lives of variables, blocks of modules, files of tensors.
#include <cstring>

#include "emit/program.h"
#include "emit/python_text.h"
#include "emit/scope.h"
#include "emit/tensor_file.h"
#include "tests/catch.h"

using namespace ttc;
using namespace ttc::emit;
using ttrt::Python;

TEST_CASE("names of classes and paths in Python") {
  CHECK(snake_case("transformers.models.vit.modeling_vit.ViTLayer") == "vit_layer");
  CHECK(snake_case("ViTMLP") == "vit_mlp");
  CHECK(snake_case("BertSelfAttention") == "bert_self_attention");
  CHECK(snake_case("LlamaRMSNorm") == "llama_rms_norm");
  CHECK(snake_case("GPT2MLP") == "gpt2_mlp");
  CHECK(snake_case("Conv2d") == "conv2d");
  CHECK(identifier("a b.c") == "a_b_c");
  CHECK(identifier("class") == "class_");
  CHECK(identifier("2x") == "_2x");
  CHECK(attribute_path("layers.0.self.q-proj") == "layers[0].self.q_proj");
}

TEST_CASE("sizes as Python computes them") {
  const auto s = ir::SymExpr::symbol("s0");
  CHECK(symbolic(s * 2 + 1).find("s0") != std::string::npos);
  CHECK(symbolic(ir::SymExpr::call("floordiv", {s, 4})) == "(s0 // 4)");
  CHECK(symbolic(ir::SymExpr::call("max", {s, 4})).starts_with("max("));
  CHECK(symbolic(ir::SymExpr::call("ModularIndexing", {s, 4, 2})).empty());
}

TEST_CASE("a long call has a line for each argument, and so has a call inside it") {
  CHECK(statement({"y"}, Python("ttnn.relu").arg("x"), 4) == "    y = ttnn.relu(x)\n");
  Python inner("configuration");
  for (const char* name : {"one", "two", "three", "four"}) inner.key(name, std::string(25, '1'));
  Python outer("ttnn.linear");
  outer.arg("x").key("program_config", inner.str());
  const std::string text = statement({"y"}, outer, 4);
  CHECK(text.find("        program_config=configuration(\n") != std::string::npos);
  CHECK(text.find("            one=") != std::string::npos);
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    CHECK(end - begin <= line_width);
}

TEST_CASE("a buffer is freed after the last of its names; what is returned is not") {
  Scope scope;
  for (const char* name : {"a", "b", "c", "d"}) {
    CHECK(scope.fresh(name) == name);
    scope.owns(name);
  }
  CHECK(scope.fresh("a") == "a_2");
  CHECK(scope.fresh("max") == "max_out");  // sizes may need Python's own
  scope.add({"a"}, Python("ttnn.relu").arg("x"));
  scope.add({"b"}, Python("ttnn.reshape").arg("a").arg("[4]"));
  scope.add({"c"}, Python("ttnn.add").arg("b").arg("b"));
  scope.add({"d"}, Python("ttnn.neg").arg("c"));
  scope.returns("d");
  CHECK(scope.text(0) ==
        "a = ttnn.relu(x)\nb = ttnn.reshape(a, [4])\nc = ttnn.add(b, b)\nttnn.deallocate(b)\nd = ttnn.neg(c)\n"
        "ttnn.deallocate(c)\n");
}

TEST_CASE("modules of the same text are one function") {
  const auto model = ir::parse(R"(graph main(%x: bf16[2, 64] user) {
  %a: bf16[2, 64] = tt.relu(%x) place="device"  @net.0 : Layer  at net.py:3
  %b: bf16[2, 64] = tt.neg(%a) place="device"  @net.0 : Layer  at net.py:4
  %c: bf16[2, 64] = tt.relu(%b) place="device"  @net.1 : Layer  at net.py:3
  %d: bf16[2, 64] = tt.neg(%c) place="device"  @net.1 : Layer  at net.py:4
  %e: bf16[2, 64] = tt.exp(%d) place="device"  @net.2 : Layer  at net.py:3
  %f: bf16[2, 64] = tt.neg(%e) place="device"  @net.2 : Layer  at net.py:4
  return %f
})");
  const Program program = write_program(*model, ttrt::default_profile());
  CHECK(program.refused.empty());
  CHECK(program.device_calls == 6);
  CHECK(program.functions == 2);
  CHECK(program.text.find("def layer(x):\n    \"\"\"Layer: net.0, net.1.\"\"\"") != std::string::npos);
  CHECK(program.text.find("def layer_2(x):\n    \"\"\"Layer: net.2.\"\"\"") != std::string::npos);
  CHECK(program.inputs == std::vector<std::string>{"x"});
}

TEST_CASE("buffers of layers have one name, below their layer") {
  const auto model = ir::parse(
      R"(graph main(%x: bf16[2, 64] user, $b_k_0: bf16[2, 64] buffer "k_0", $b_k_1: bf16[2, 64] buffer "k_1") {
  %b_k_0_dev: bf16[2, 64] = tt.to_device($b_k_0, format="bfloat16") place="device"
  %a: bf16[2, 64] = tt.add(%x, %b_k_0_dev) place="device"  @net.0 : Layer  at net.py:3
  %b: bf16[2, 64] = tt.neg(%a) place="device"  @net.0 : Layer  at net.py:4
  %b_k_1_dev: bf16[2, 64] = tt.to_device($b_k_1, format="bfloat16") place="device"
  %c: bf16[2, 64] = tt.add(%b, %b_k_1_dev) place="device"  @net.1 : Layer  at net.py:3
  %d: bf16[2, 64] = tt.neg(%c) place="device"  @net.1 : Layer  at net.py:4
  return %d
})");
  const Program program = write_program(*model, ttrt::default_profile());
  CHECK(program.functions == 1);
  REQUIRE(program.parameters.size() == 2);
  CHECK(program.parameters[0].name == "net.0.b_k");
  CHECK(program.parameters[1].name == "net.1.b_k");
  CHECK(program.text.find("parameters=parameters.net[1]") != std::string::npos);
}

TEST_CASE("what a function gives back of its argument keeps the argument's buffer") {
  const auto model = ir::parse(R"(graph main(%model: bf16[2, 64] user) {
  %a: bf16[2, 64] = tt.relu(%model) place="device"  @top : Model  at net.py:1
  %b: bf16[128] = tt.reshape(%a, size=[128]) place="device"  @net.0 : Flat  at net.py:3
  %c: bf16[1, 128] = tt.reshape(%b, size=[1, 128]) place="device"  @net.0 : Flat  at net.py:4
  %d: bf16[1, 128] = tt.neg(%c) place="device"  @top : Model  at net.py:5
  %e: bf16[1, 128] = tt.exp(%d) place="device"  @top : Model  at net.py:6
  return %e
})");
  const std::string text = write_program(*model, ttrt::default_profile()).text;
  const std::size_t call = text.find(" = flat("), next = text.find("ttnn.neg("),
                    freed = text.find("ttnn.deallocate(", call);
  REQUIRE(call != std::string::npos);
  CHECK(freed > next);  // not between the call and its result's reader
  // An input and a function of one name: the function keeps it.
  CHECK(text.find("def forward(model_out, ") != std::string::npos);
}

TEST_CASE("sizes that Python has no word for are refused; Python's own operators are written as they are") {
  const auto odd = ir::parse(R"(model {range s0 in [2, 1024] hint s0 = 15}
graph main(%x: bf16[s0, 64] user) {
  %a: bf16[ModularIndexing(s0, 2, 4), 64] = tt.slice(%x, dim=0, start=0, end=4) place="device"
  %b: bf16[ModularIndexing(s0, 2, 4), 64] = tt.reshape(%a, size=[-1, 64]) place="device"
  return %b
})");
  const Program program = write_program(*odd, ttrt::default_profile());
  REQUIRE_FALSE(program.refused.empty());
  CHECK(program.refused.back().reason.detail.find("ModularIndexing") != std::string::npos);
  const auto host = ir::parse(R"(graph main(%x: int user, %y: int user) {
  %m: int = torch.sym_max(%x, %y) place="cpu"
  %n: int = _operator.add(%m, 1) place="cpu"
  return %n
})");
  const std::string text = write_program(*host, ttrt::default_profile()).text;
  CHECK(text.find("= torch.sym_max(x, y)") != std::string::npos);
  CHECK(text.find("= operator.add(") != std::string::npos);
}

TEST_CASE("weights of modules with names that Python has no use for") {
  const auto model = ir::parse(R"(graph main(%x: bf16[2, 64] user, $w: f32[2, 64] parameter "net.lambda.a-b.weight") {
  %d: bf16[2, 64] = tt.to_device($w, format="bfloat16") place="device"
  %y: bf16[2, 64] = tt.add(%x, %d) place="device"  @net.lambda : Layer  at net.py:3
  return %y
})");
  const Program program = write_program(*model, ttrt::default_profile());
  REQUIRE(program.parameters.size() == 1);
  CHECK(program.parameters[0].name == "net.lambda_.a_b.weight");
  CHECK(program.text.find("parameters.net.lambda_.a_b.weight") != std::string::npos);
}

TEST_CASE("what a record cannot spell is refused with its reason") {
  const auto model = ir::parse(R"(graph main(%x: f32[2, 64] user) {
  %u: bf16[2, 64] = tt.to_device(%x, format="bfloat16") place="device"
  %a: bf16[2, 64] = tt.elu(%u, alpha=1.0, scale=2.0) place="device"
  %y: f32[2, 64] = tt.to_host(%a, dtype=f32) place="cpu"
  return %y
})");
  const Program program = write_program(*model, ttrt::default_profile());
  REQUIRE(program.refused.size() == 1);
  CHECK(program.refused[0].op == "tt.elu");
  CHECK(program.refused[0].reason.detail.find("scale") != std::string::npos);
}

TEST_CASE("a tensor's file: header, then the bytes on a multiple of 64") {
  const ttrt::TensorSpec spec{
      .logical = {3, 40}, .dtype = ttrt::DataType::bfloat8_b, .layout = ttrt::Layout::tile, .memory = {}};
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.nbytes()), std::byte{7});
  const std::string file = tensor_file(spec, bytes);
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  CHECK((header + sizeof header) % 64 == 0);
  REQUIRE(file.size() == header + sizeof header + bytes.size());
  CHECK(std::memcmp(file.data() + header + sizeof header, bytes.data(), bytes.size()) == 0);
  ttrt::TensorSpec other = spec;
  other.dtype = ttrt::DataType::int32;
  CHECK(tensor_file(other, bytes).substr(8, header) != file.substr(8, header));
}
