// LibTorch's operators through the dispatcher: every kind of argument, results that alias their arguments, errors.
#include "torch/cpu_op.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "ir/model.h"
#include "ir/op_schema.h"
#include "support/error.h"
#include "tests/catch.h"
#include "tests/unit/host_values.h"

using namespace ttrt;
using ttrt::test::floats;
using ttrt::test::tensor;

namespace {

std::vector<RtValue> call(std::string_view op, const std::vector<RtValue>& args) {
  const CpuOp* found = CpuOp::find(op);
  INFO(op);
  REQUIRE(found != nullptr);
  std::vector<RtValue> results;
  found->call(args, results);
  return results;
}

std::vector<float> one_float(std::string_view op, const std::vector<RtValue>& args) {
  const auto results = call(op, args);
  REQUIRE(results.size() == 1);
  const auto* host = results[0].get_if<HostTensor>();
  REQUIRE(host != nullptr);
  REQUIRE(host->dtype == DType::f32);
  return floats(results[0]);
}

RtValue ints(std::initializer_list<std::int64_t> values) {
  RtValue::List list;
  for (std::int64_t v : values) list.emplace_back(v);
  return list;
}

std::string error_of(std::string_view op, const std::vector<RtValue>& args) {
  try {
    call(op, args);
  } catch (const ttc::Error& error) {
    CHECK(error.code() == ttc::Exit::check_failed);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("cpu op: tensors, scalars and defaults") {
  const HostTensor a = tensor({2, 2}, {1, 2, 3, 4});
  const HostTensor b = tensor({2}, {10, 20});
  CHECK(one_float("aten.add.Tensor", {a, b, std::int64_t{2}}) == std::vector<float>{21, 42, 23, 44});
  CHECK(one_float("aten.add.Tensor", {a, b}) == std::vector<float>{11, 22, 13, 24});  // alpha left out
  CHECK(one_float("aten.linear.default", {a, a, RtValue()}) == std::vector<float>{5, 11, 11, 25});
  CHECK(one_float("aten.clamp.default", {a, 1.5, RtValue()}) == std::vector<float>{1.5, 2, 3, 4});
}

TEST_CASE("cpu op: a number where a tensor is asked for promotes as a Python number does") {
  const HostTensor a = tensor({2}, {1, 2});
  CHECK(one_float("aten.mul.Tensor", {a, 2.5}) == std::vector<float>{2.5, 5});  // stays float32
  const auto half = call("aten._to_copy.default", {a, DType::f16});
  const auto product = call("aten.mul.Tensor", {half[0], 2.5});
  CHECK(product[0].get_if<HostTensor>()->dtype == DType::f16);
}

TEST_CASE("cpu op: enums, devices, layouts, memory formats, strings") {
  const auto zeros = call("aten.zeros.default",
                          {ints({2, 3}), DType::i64, ttc::ir::LayoutArg{7}, ttc::ir::DeviceArg{"cuda", 0}, false});
  const auto* z = zeros[0].get_if<HostTensor>();
  REQUIRE(z != nullptr);
  CHECK(z->dtype == DType::i64);
  CHECK(z->sizes == Shape{2, 3});
  CHECK(z->as<std::int64_t>()[5] == 0);
  const auto last = call("aten.clone.default", {tensor({1, 2, 1, 2}, {1, 2, 3, 4}), ttc::ir::MemoryFormatArg{2}});
  CHECK(last[0].get_if<HostTensor>()->strides == Shape{4, 1, 4, 2});
  const HostTensor x = tensor({1}, {0.5F});
  CHECK(one_float("aten.gelu.default", {x, "tanh"}) != one_float("aten.gelu.default", {x, "none"}));
}

TEST_CASE("cpu op: lists of tensors, optional tensors, ints, bools and floats") {
  const HostTensor a = tensor({2, 2}, {1, 2, 3, 4});
  CHECK(one_float("aten.cat.default", {RtValue::List{a, a}, std::int64_t{1}}) ==
        std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4});
  const auto parts = call("aten.split.Tensor", {a, std::int64_t{1}, std::int64_t{0}});
  REQUIRE(parts.size() == 1);
  REQUIRE(parts[0].get_if<RtValue::List>() != nullptr);
  CHECK(floats(parts[0].get_if<RtValue::List>()->at(1)) == std::vector<float>{3, 4});
  const HostTensor index = empty_host(DType::i64, {1});
  index.as<std::int64_t>()[0] = 1;
  CHECK(one_float("aten.index.Tensor", {a, RtValue::List{RtValue(), index}}) == std::vector<float>{2, 4});
  CHECK(one_float("aten.sum.dim_IntList", {a, ints({0}), false}) == std::vector<float>{4, 6});
  const HostTensor image = tensor({1, 1, 2, 2}, {1, 2, 3, 4});
  CHECK(one_float("aten.max_pool2d.default", {image, std::int64_t{2}}) ==
        std::vector<float>{4});  // int[2] from one int
  CHECK(one_float("aten.upsample_nearest2d.vec", {image, RtValue(), RtValue::List{2.0, 1.0}}) ==
        std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4});
}

TEST_CASE("cpu op: several results, int results, complex numbers") {
  const auto top = call("aten.topk.default", {tensor({3}, {1, 5, 3}), std::int64_t{2}});
  REQUIRE(top.size() == 2);
  CHECK(floats(top[0]) == std::vector<float>{5, 3});
  CHECK(top[1].get_if<HostTensor>()->as<std::int64_t>()[0] == 1);
  CHECK(*call("aten.sym_size.int", {tensor({2, 2}, {1, 2, 3, 4}), std::int64_t{1}})[0].get_if<std::int64_t>() == 2);
  const auto product = call("aten.mul.Scalar", {tensor({1}, {2}), std::complex<double>(0, 1)});
  REQUIRE(product[0].get_if<HostTensor>()->dtype == DType::c64);
  CHECK(product[0].get_if<HostTensor>()->as<float>()[1] == 2);
  // A lazily conjugated tensor has no host form but its values do.
  const auto conj = call("aten.conj.default", {product[0]});
  CHECK(conj[0].get_if<HostTensor>()->as<float>()[1] == -2);
}

TEST_CASE("cpu op: views and in-place operators share bytes and owner") {
  HostTensor a = tensor({2, 2}, {1, 2, 3, 4});
  auto view = call("aten.transpose.int", {a, std::int64_t{0}, std::int64_t{1}});
  const auto* t = view[0].get_if<HostTensor>();
  CHECK(t->data == a.data);
  CHECK(t->owner == a.owner);
  CHECK(t->strides == Shape{1, 2});
  const auto row = call("aten.select.int", {view[0], std::int64_t{0}, std::int64_t{1}});
  CHECK(row[0].get_if<HostTensor>()->owner == a.owner);  // chains of views do not nest
  call("aten.add_.Scalar", {row[0], 10.0});
  CHECK(floats(a) == std::vector<float>{1, 12, 3, 14});
  const void* data = a.data;
  std::weak_ptr<void> alive = a.owner;
  a = {};
  CHECK(floats(row[0]) == std::vector<float>{12, 14});
  CHECK(row[0].get_if<HostTensor>()->data == static_cast<const std::byte*>(data) + 4);
  view.clear();
  CHECK_FALSE(alive.expired());
}

TEST_CASE("cpu op: results outlive everything that made them") {
  const auto results = call("aten.relu.default", {tensor({2}, {-1, 2})});
  const auto again = call("aten.view.default", {results[0], ints({2, 1})});
  CHECK(again[0].get_if<HostTensor>()->owner != nullptr);
  CHECK(floats(again[0]) == std::vector<float>{0, 2});
}

TEST_CASE("cpu op: what the device's world has no type for travels as an object") {
  const auto sparse = call("aten.to_sparse.default", {tensor({2}, {0, 7})});
  REQUIRE(sparse[0].get_if<std::shared_ptr<void>>() != nullptr);
  CHECK(one_float("aten.to_dense.default", {sparse[0]}) == std::vector<float>{0, 7});
}

TEST_CASE("cpu op: TorchScript's scalar and list operators") {
  CHECK(*call("aten.len.t", {ints({4, 5, 6})})[0].get_if<std::int64_t>() == 3);
  CHECK(*call("aten.Int.Tensor", {tensor({}, {3})})[0].get_if<std::int64_t>() == 3);
  CHECK(*call("aten.__contains__.int_list", {ints({8, 16}), std::int64_t{16}})[0].get_if<bool>());
  CHECK(*call("aten.format.default", {"{} of {}", std::int64_t{1}, std::int64_t{2}})[0].get_if<std::string>() ==
        "1 of 2");
}

TEST_CASE("cpu op: errors name the operator and give LibTorch's first line") {
  const HostTensor a = tensor({2}, {1, 2});
  const std::string message = error_of("aten.mm.default", {a, a});
  CHECK_THAT(message, ContainsSubstring("aten.mm.default: "));
  CHECK_THAT(message, ContainsSubstring("self must be a matrix"));
  CHECK(message.find('\n') == std::string::npos);
  CHECK_THAT(error_of("aten.mm.default", {a}), ContainsSubstring("argument 'mat2' is missing"));
  CHECK_THAT(error_of("aten.relu.default", {"text"}),
             ContainsSubstring("argument 'self': expected Tensor, got a string"));
  CHECK_THAT(error_of("aten.relu.default", {a, a}), ContainsSubstring("takes 1 arguments, got 2"));
  CHECK_THAT(error_of("aten.empty.memory_format", {ints({std::int64_t{1} << 45}), DType::f32}),
             ContainsSubstring("memory"));
  CHECK(CpuOp::find("aten.no_such_operator.default") == nullptr);
  CHECK(CpuOp::find("nonsense") == nullptr);
}

TEST_CASE("torch schemas: any operator's schema by IR name") {
  install_torch_schemas();
  const auto* add = ttc::ir::find_schema("aten.add.Tensor");
  REQUIRE(add != nullptr);
  REQUIRE(add->args.size() == 3);
  CHECK(add->args[2].name == "alpha");
  CHECK(add->args[2].type == "Scalar");
  CHECK(add->args[2].kwarg_only);
  CHECK(add->args[2].default_value->integer() == 1);
  const auto* zeros = ttc::ir::find_schema("aten.zeros.default");
  REQUIRE(zeros != nullptr);
  CHECK(zeros->args[0].type == "SymInt[]");
  CHECK(zeros->args[1].type == "ScalarType?");
  CHECK(ttc::ir::find_schema("aten.add_.Tensor")->mutates());
  CHECK(ttc::ir::find_schema("quantized.linear.default") != nullptr);
  CHECK(ttc::ir::find_schema("aten.no_such.default") == nullptr);
}

TEST_CASE("torch schemas: ATen's tags say what is random, what changes a shape in place, what may be its argument") {
  install_torch_schemas();
  for (const char* op : {"aten.rand.default", "aten.randn_like.default", "aten.bernoulli.p", "aten.normal_.default",
                         "aten.dropout.default", "aten.native_dropout.default", "aten.empty.memory_format",
                         "aten.new_empty_strided.default", "aten.multinomial.default", "aten.randperm.generator"}) {
    INFO(op);
    REQUIRE(ttc::ir::find_schema(op) != nullptr);
    CHECK(ttc::ir::find_schema(op)->random);
  }
  for (const char* op : {"aten.add.Tensor", "aten.zeros.default", "aten.repeat_interleave.self_int", "prim.if"}) {
    INFO(op);
    CHECK_FALSE(ttc::ir::find_schema(op)->random);
  }
  for (const char* op : {"aten.t_.default", "aten.resize_.default", "aten.squeeze_.dim", "aten.swapdims_.default"})
    CHECK(ttc::ir::find_schema(op)->inplace_view);
  CHECK_FALSE(ttc::ir::find_schema("aten.add_.Tensor")->inplace_view);
  CHECK(ttc::ir::find_schema("aten.dropout.default")->maybe_aliasing);
  CHECK_FALSE(ttc::ir::find_schema("aten.relu.default")->maybe_aliasing);
}

TEST_CASE("operators that drop out are random only where they do") {
  install_torch_schemas();
  const auto random = [](const std::string& call) {
    const auto model =
        ttc::ir::parse("graph main(%x: f32[1, 4] user) {\n  %y: f32[1, 4] = " + call + "\n  return %y\n}\n", "test");
    return ttc::ir::is_random(*model->graph->nodes().front());
  };
  CHECK(random("aten.dropout.default(%x, 0.5, true)"));
  CHECK_FALSE(random("aten.dropout.default(%x, 0.5, false)"));
  CHECK(random("aten.rrelu.default(%x, 0.1, 0.3, true)"));
  CHECK_FALSE(random("aten.rrelu.default(%x, 0.1, 0.3, false)"));
  CHECK(random("aten.scaled_dot_product_attention.default(%x, %x, %x, none, 0.1)"));
  CHECK_FALSE(random("aten.scaled_dot_product_attention.default(%x, %x, %x)"));
  CHECK(random("aten.rand_like.default(%x)"));
  CHECK_FALSE(random("aten.relu.default(%x)"));
}

TEST_CASE("a child of the process calls operators that take several threads") {
  const RtValue wide = tensor({1 << 20}, std::vector<float>(1 << 20, 1.0F));
  const int before = threads();
  set_threads(2);
  call("aten.add.Tensor", {wide, wide});  // LibTorch's threads are there now
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // what waits for threads that did not come along waits for ever
    const bool right = floats(call("aten.add.Tensor", {wide, wide})[0]).back() == 2.0F;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  set_threads(before);
}
