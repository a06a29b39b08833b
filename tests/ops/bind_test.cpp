// The binder: arguments of every kind against schemas, literals in their three forms, pack rules, and a bound call on
// the device and in its reference.
#include "ops/bind.h"

#include "device/metrics.h"
#include "harness.h"
#include "support/error.h"
#include "tests/catch.h"
#include "torch/cpu_op.h"

using namespace ttrt;

namespace {

namespace ir = ttc::ir;
using List = RtValue::List;
using Ints = std::vector<std::int64_t>;

const OpRecord& record(std::string_view name) { return *find_op(name); }

// A tensor that need not hold anything.
RtValue on_device(Shape sizes, DataType format = DataType::bfloat16) {
  return DeviceTensor{.spec = {.logical = std::move(sizes), .dtype = format, .layout = Layout::tile, .memory = {}},
                      .buffer = nullptr};
}
RtValue on_host(Shape sizes, DType dtype = DType::f32) {
  HostTensor out;
  out.dtype = dtype;
  out.sizes = std::move(sizes);
  return out;
}

HostTensor counting(Shape sizes, float step) {
  HostTensor out = empty_host(DType::f32, std::move(sizes));
  for (std::int64_t i = 0; i < out.numel(); ++i) out.as<float>()[i] = step * static_cast<float>(i % 17 - 8);
  return out;
}

BoundCall bound(std::string_view op, const std::vector<RtValue>& args, const BindOptions& options = {}) {
  auto made = bind_call(record(op), args, options);
  if (const auto* reason = std::get_if<ttc::Reason>(&made)) FAIL(reason->text());
  return std::get<BoundCall>(std::move(made));
}

std::string refusal(std::string_view op, const std::vector<RtValue>& args) {
  const auto made = bind_call(record(op), args);
  REQUIRE(std::holds_alternative<ttc::Reason>(made));
  return std::get<ttc::Reason>(made).detail;
}

}  // namespace

TEST_CASE("literals keep their order and kind in all three forms") {
  const RtValue mixed = List{RtValue(std::int64_t{3}), RtValue(0.5), RtValue(std::int64_t{-1}), RtValue(true)};
  CHECK(op_literal(mixed) == OpArg(std::vector<double>{3, 0.5, -1, 1}));
  CHECK(op_literal(List{RtValue(true), RtValue(std::int64_t{7})}) == OpArg(Ints{1, 7}));
  CHECK(op_literal(List{}) == OpArg(Ints{}));
  CHECK(op_literal(RtValue()) == OpArg());
  CHECK(op_literal(true) == OpArg(true));
  CHECK_FALSE(op_literal(List{RtValue(std::int64_t{1}), RtValue()}));  // None is no number
  CHECK_FALSE(op_literal(List{RtValue(std::string("x"))}));
  CHECK_FALSE(op_literal(ir::DeviceArg{"cpu", {}}));
  CHECK_FALSE(op_literal(on_host({2})));

  const ir::Arg arg = ir::Arg::List{std::int64_t{3}, 0.5, std::string("x"), ir::Arg(), ir::MemoryFormatArg{1}};
  const RtValue value = literal_value(arg);
  REQUIRE(value.get_if<List>() != nullptr);
  CHECK(value.get_if<List>()->at(3).is_none());
  CHECK(literal_arg(value) == arg);
  for (const OpArg& literal : {OpArg(), OpArg(std::int64_t{4}), OpArg(0.25), OpArg(false), OpArg(std::string("sum")),
                               OpArg(DType::bf16), OpArg(Ints{4, 5}), OpArg(std::vector<double>{0.5, 2})})
    CHECK(op_literal(literal_value(literal)) == literal);
  CHECK(literal_value(OpArg(TensorRef{0})).is_none());
}

TEST_CASE("arguments by position and by name come into schema order") {
  const ir::OpSchema& schema = *ir::find_schema("tt.softmax");
  const auto x = on_device({2, 32});
  const std::vector<RtValue> one{x};
  const auto order = [&](std::vector<RtValue> args, std::vector<Keyword> kwargs) {
    return schema_order(schema, args, kwargs);
  };
  const auto named = order({x}, {{"approx", true}, {"dim", std::int64_t{-1}}});
  REQUIRE(std::holds_alternative<std::vector<RtValue>>(named));
  const auto& values = std::get<std::vector<RtValue>>(named);
  REQUIRE(values.size() == 6);
  CHECK(*values[1].get_if<std::int64_t>() == -1);
  CHECK(*values[4].get_if<std::string>() == "HiFi4");  // a default between the given ones
  CHECK(*values[5].get_if<bool>());
  CHECK(std::holds_alternative<ttc::Reason>(order({x}, {})));  // dim is missing
  CHECK(std::holds_alternative<ttc::Reason>(order({x, std::int64_t{0}}, {{"dim", std::int64_t{1}}})));
  CHECK(std::holds_alternative<ttc::Reason>(order({x, std::int64_t{0}}, {{"axis", std::int64_t{1}}})));
  CHECK(std::holds_alternative<ttc::Reason>(order(std::vector<RtValue>(9, RtValue()), {})));
}

TEST_CASE("a bound call has every argument, and operands in the formats of their kinds") {
  const BoundCall softmax = bound("tt.softmax", {on_host({4, 40}), std::int64_t{1}});
  CHECK(softmax.call.integer("dim") == 1);
  CHECK(softmax.call.boolean("stable"));
  CHECK(softmax.call.string("fidelity") == "HiFi4");
  REQUIRE(softmax.call.tensors.size() == 1);
  CHECK(softmax.call.tensors[0].dtype == DataType::bfloat16);
  CHECK(softmax.results().at(0).logical == Shape{4, 40});
  CHECK_FALSE(softmax.refusal());
  CHECK(bound("tt.softmax", {on_host({4, 40}), std::int64_t{1}}, {.activation = DataType::float32})
            .call.tensors[0]
            .dtype == DataType::float32);
  // What is on the device stays as it is there.
  CHECK(bound("tt.softmax", {on_device({4, 40}, DataType::float32), std::int64_t{1}}).call.tensors[0].dtype ==
        DataType::float32);

  const BoundCall where = bound("tt.where", {on_host({8}, DType::boolean), RtValue(), on_host({8}), 2.0});
  CHECK(where.call.tensor("a") == nullptr);
  CHECK(where.call.tensor_index("b") == 1);
  CHECK(where.call.number("a_number") == 2.0);
  CHECK(where.operands[0].kind == OperandKind::boolean);

  const BoundCall concat = bound("tt.concat", {RtValue(List{on_host({2, 8}), on_host({3, 8}, DType::bf16)})});
  CHECK(concat.results().at(0).logical == Shape{5, 8});
  CHECK(std::get<std::vector<TensorRef>>(concat.call.arg("xs")).size() == 2);
  CHECK(std::holds_alternative<std::vector<TensorRef>>(bound("tt.concat", {RtValue(List{})}).call.arg("xs")));
  const BoundCall upsample = bound("tt.upsample", {on_host({1, 2, 4, 4}), std::string("nearest"), RtValue(),
                                                   List{RtValue(std::int64_t{2}), RtValue(1.5)}});
  CHECK(std::get<std::vector<double>>(upsample.call.arg("scales")) == std::vector<double>{2, 1.5});
  CHECK_FALSE(upsample.call.has("sizes"));
}

TEST_CASE("what makes no call is refused with the argument's name") {
  const auto x = on_host({4, 40});
  CHECK_THAT(refusal("tt.softmax", {x}), ContainsSubstring("lacks argument 'dim'"));
  CHECK_THAT(refusal("tt.softmax", {x, x}), ContainsSubstring("no tensor as 'dim'"));
  CHECK_THAT(refusal("tt.softmax", {std::int64_t{1}, std::int64_t{1}}), ContainsSubstring("a tensor as 'x'"));
  CHECK_THAT(refusal("tt.softmax", {x, ir::DeviceArg{"cpu", {}}}), ContainsSubstring("'dim'"));
  CHECK_THAT(refusal("tt.softmax", std::vector<RtValue>(9, x)), ContainsSubstring("takes 7 arguments"));
  CHECK_THAT(refusal("tt.softmax", {on_host({4}, DType::i64), std::int64_t{0}}), ContainsSubstring("x is int64"));
  CHECK_THAT(refusal("tt.concat", {RtValue(List{x, RtValue()})}), ContainsSubstring("tensors only in the list 'xs'"));
  CHECK_THAT(refusal("tt.concat", {x}), ContainsSubstring("a list of tensors as 'xs'"));
  CHECK_THAT(refusal("tt.softmax", {RtValue(List{x}), std::int64_t{0}}), ContainsSubstring("one tensor as 'x'"));
  // A call that can be bound, but never be right.
  CHECK_THAT(bound("tt.softmax", {x, std::int64_t{5}}).refusal().value().text(), ContainsSubstring("dim"));
  CHECK_THAT(bound("tt.to_host", {on_device({4}), DType::f32}).refusal().value().text(),
             ContainsSubstring("no kernel of its own"));
}

TEST_CASE("an empty list is one of any element type; other kinds are told by name") {
  install_torch_schemas();
  const auto call = [](OpArg dims) {
    OpCall out;
    out.op = find_op("tt.permute");
    out.args = {TensorRef{0}, std::move(dims)};
    return out;
  };
  CHECK(call(Ints{}).integers("dims").empty());
  CHECK(call(std::vector<double>{}).integers("dims").empty());
  CHECK(call(std::vector<TensorRef>{}).integers("dims").empty());
  CHECK(call(std::int64_t{3}).integers("dims") == Ints{3});
  for (const OpArg& wrong :
       {OpArg(std::vector<double>{1}), OpArg(std::vector<TensorRef>{{0}}), OpArg(true), OpArg(0.5), OpArg()})
    CHECK_THROWS_WITH(call(wrong).integers("dims"),
                      ContainsSubstring("dims") && ContainsSubstring("a list of integers"));
}

TEST_CASE("a literal is of its schema's type, and a word that the op knows") {
  const auto x = on_host({4, 40});
  CHECK_THAT(refusal("tt.softmax", {x, std::string("rows")}), ContainsSubstring("takes an integer as 'dim'"));
  CHECK_THAT(refusal("tt.softmax", {x, 0.5}), ContainsSubstring("takes an integer as 'dim'"));
  CHECK_THAT(refusal("tt.softmax", {x, RtValue()}), ContainsSubstring("'dim'"));
  CHECK_THAT(refusal("tt.permute", {x, List{RtValue(0.5)}}), ContainsSubstring("takes a list of integers as 'dims'"));
  CHECK_THAT(refusal("tt.leaky_relu", {x, std::string("0.1")}), ContainsSubstring("takes a number as"));
  CHECK(bound("tt.leaky_relu", {x, std::int64_t{1}}).call.number("negative_slope") == 1);
  CHECK_THAT(refusal("tt.gelu", {x, std::string("fast")}),
             ContainsSubstring("takes no approximate 'fast'; known are: none tanh"));
  CHECK(bound("tt.gelu", {x, std::string("tanh")}).call.string("approximate") == "tanh");

  // Every text of every op: nobody takes any word.
  int texts = 0;
  for (const OpRecord* op : all_ops()) {
    const ir::OpSchema& schema = *ir::find_schema(op->name);
    for (const ir::SchemaArg& text : schema.args) {
      if (!text.type.starts_with("str")) continue;
      INFO(op->name << " " << text.name);
      std::vector<RtValue> args;
      for (const ir::SchemaArg& formal : schema.args) {
        const bool index = operand_kind(*op, formal.name) == OperandKind::index;
        args.push_back(formal.name == text.name                ? RtValue(std::string("no such word"))
                       : formal.default_value                  ? literal_value(*formal.default_value)
                       : formal.type.starts_with("Tensor[")    ? RtValue(List{x})
                       : formal.type.starts_with("Tensor")     ? on_host({4, 40}, index ? DType::i64 : DType::f32)
                       : formal.type.ends_with("[]")           ? RtValue(List{RtValue(std::int64_t{1})})
                       : formal.type.starts_with("ScalarType") ? RtValue(DType::f32)
                       : formal.type.starts_with("str")        ? RtValue(std::string("float32"))
                                                               : RtValue(std::int64_t{1}));
      }
      const auto made = bind_call(*op, args);
      REQUIRE(std::holds_alternative<ttc::Reason>(made));
      CHECK_THAT(std::get<ttc::Reason>(made).detail, ContainsSubstring("no such word"));
      ++texts;
    }
  }
  CHECK(texts > 20);
}

TEST_CASE("a packed constant goes through its rule, on the device and back") {
  install_torch_schemas();
  const auto device = open_free_device(default_profile());
  const HostTensor x = counting({3, 40}, 0.25F), weight = counting({50, 40}, 0.125F), bias = counting({50}, 1.0F);
  const std::vector<RtValue> args{x, weight, bias, List{RtValue(std::int64_t{40}), RtValue(std::int64_t{50})}};
  const BoundCall call = bound("tt.linear", args);
  REQUIRE(call.operands.size() == 3);
  CHECK(call.call.tensor("weight")->logical == Shape{40, 50});
  CHECK(call.call.tensor("bias")->logical == Shape{1, 50});
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    const HostTensor& constant = i == 1 ? weight : bias;
    const TensorSpec& spec = call.call.tensors[i];
    const HostTensor back = unpacked_constant(contiguous(packed_matrix(constant, *call.operands[i].packed, spec)),
                                              *call.operands[i].packed, constant.sizes);
    CHECK(compare(back, constant).equal);
  }
  const auto results = call.run(args, *device);
  REQUIRE(std::holds_alternative<std::vector<DeviceTensor>>(results));
  const HostTensor y = to_host(std::get<std::vector<DeviceTensor>>(results).at(0), DType::f32);
  TorchReference torch;
  const std::vector<RtValue> host{x, contiguous(packed_matrix(weight, *call.operands[1].packed, call.call.tensors[1])),
                                  contiguous(packed_matrix(bias, *call.operands[2].packed, call.call.tensors[2]))};
  const HostTensor expected = contiguous(*call.reference(torch, host).at(0).get_if<HostTensor>());
  REQUIRE(y.sizes == Shape{3, 50});
  CHECK(compare(y, convert(expected, DType::f32)).max_rel < 0.005);
  const HostTensor aten = *call_torch("aten.linear.default", {x, weight, bias})[0].get_if<HostTensor>();
  CHECK(compare(convert(expected, DType::f32), contiguous(aten)).max_abs < 1e-4);
  // What is on the device already is not moved.
  const DeviceTensor there = call.upload(0, x, *device);
  CHECK(call.upload(0, there, *device).buffer == there.buffer);
}
