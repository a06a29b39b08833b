// Operator schemas: the text LibTorch prints, names, the registry.
#include "ir/op_name.h"
#include "ir/op_schema.h"
#include "support/error.h"
#include "tests/catch.h"

using namespace ttc::ir;
using ttc::DType;

TEST_CASE("schema text gives names, types, defaults", "[ir][schema]") {
  const OpSchema s = parse_schema(
      "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=[0, 0], "
      "*, ScalarType? dtype=None, Scalar alpha=1, float eps=1e-05, str pad='zeros', MemoryFormat f=contiguous_format, "
      "bool b=False) -> Tensor");
  CHECK(s.op == "aten.conv2d.default");
  REQUIRE(s.args.size() == 11);
  CHECK(s.args[2].type == "Tensor?");
  CHECK(s.args[2].default_value->is_none());
  CHECK(*s.args[3].default_value == Arg::ints({1, 1}));
  CHECK(*s.args[4].default_value == Arg::ints({0, 0}));
  CHECK_FALSE(s.args[4].kwarg_only);
  CHECK(s.args[5].kwarg_only);
  CHECK(*s.args[6].default_value == Arg(1));
  CHECK(*s.args[7].default_value == Arg(1e-05));
  CHECK(*s.args[8].default_value == Arg("zeros"));
  CHECK(*s.args[9].default_value == Arg(MemoryFormatArg{1}));
  CHECK(*s.args[10].default_value == Arg(false));
  CHECK(s.returns == std::vector<std::string>{"Tensor"});
  CHECK(s.index_of("eps") == 7);
  CHECK(s.index_of("nothing") == -1);
}

TEST_CASE("alias annotations say what is written and what aliases", "[ir][schema]") {
  const OpSchema in_place =
      parse_schema("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  CHECK(in_place.op == "aten.add_.Tensor");
  CHECK(in_place.mutates());
  CHECK(in_place.args[0].type == "Tensor");
  CHECK(in_place.returns_alias == std::vector<bool>{true});
  const OpSchema split =
      parse_schema("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]");
  CHECK(split.returns == std::vector<std::string>{"Tensor[]"});
  CHECK(split.returns_alias == std::vector<bool>{true});
  CHECK_FALSE(split.mutates());
  const OpSchema many = parse_schema(
      "(Tensor(a!)[] self, Dict(str, Tensor) d, (int, int)? t=None, ...) -> (Tensor out, Tensor[] rest)", "tt.foreach");
  CHECK(many.op == "tt.foreach");
  CHECK(many.varargs);
  CHECK(many.args[1].type == "Dict(str, Tensor)");
  CHECK(many.returns == std::vector<std::string>{"Tensor", "Tensor[]"});
  CHECK(parse_schema("aten::_assert_async(Tensor self) -> ()").returns.empty());
}

TEST_CASE("enumerations of c10 become those of .pt2 files", "[ir][schema]") {
  const OpSchema s = parse_schema("x::y(ScalarType a=6, Layout b=0, MemoryFormat c=1, Device d='cpu') -> ()");
  CHECK(*s.args[0].default_value == Arg(DType::f32));
  CHECK(*s.args[1].default_value == Arg(LayoutArg{7}));
  CHECK(*s.args[2].default_value == Arg(MemoryFormatArg{4}));
  CHECK(*s.args[3].default_value == Arg(DeviceArg{"cpu", {}}));
}

TEST_CASE("malformed schemas are errors", "[ir][schema]") {
  const std::string good = "a::b(Tensor(a!) x, int[2] y=[1, 2], *, str s='q') -> (Tensor, int n)";
  REQUIRE(parse_schema(good).args.size() == 3);
  for (std::size_t n = 0; n < good.size(); ++n) {
    INFO(good.substr(0, n));
    CHECK_THROWS_AS(parse_schema(good.substr(0, n)), ttc::Error);
  }
  CHECK_THROWS_AS(parse_schema("a::b(" + std::string(10000, '(')), ttc::Error);
  CHECK_THROWS_AS(parse_schema("a::b(int[99999999999] x=1) -> ()"), ttc::Error);
}

TEST_CASE("names map to LibTorch's and back", "[ir][schema]") {
  CHECK(torch_op_name("aten.add.Tensor") == std::pair<std::string, std::string>("aten::add", "Tensor"));
  CHECK(torch_op_name("aten.linear.default") == std::pair<std::string, std::string>("aten::linear", ""));
  CHECK(torch_op_name("tt.linear") == std::pair<std::string, std::string>("tt::linear", ""));
  for (const std::string name : {"aten.add.Tensor", "aten.linear.default", "tt.linear", "prim.NumToTensor.Scalar"}) {
    const auto [base, overload] = torch_op_name(name);
    CHECK(ir_op_name(base, overload) == name);
    CHECK(ir_op_name(overload.empty() ? base : base + "." + overload) == name);
    CHECK(ir_op_name(name) == name);
  }
  CHECK(parse_schema("tt::linear(Tensor x) -> Tensor").op == "tt.linear");
}

TEST_CASE("unknown operators are asked of the resolver", "[ir][schema]") {
  CHECK(find_schema("schema_test.unknown.default") == nullptr);
  REQUIRE(find_schema("prim.if") != nullptr);
  CHECK(find_schema("prim.if")->varargs);
  set_schema_resolver([](std::string_view op) -> std::optional<OpSchema> {
    if (op != "schema_test.late.default") return {};
    OpSchema schema = parse_schema("schema_test::late(Tensor a) -> Tensor", std::string(op));
    schema.random = true;
    return schema;
  });
  const OpSchema* late = find_schema("schema_test.late.default");
  set_schema_resolver({});
  REQUIRE(late != nullptr);
  CHECK(late->args.size() == 1);
  CHECK(late->random);
  CHECK(find_schema("schema_test.late.default") == late);
}
