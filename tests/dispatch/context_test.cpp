// What a context tells of a call: devices as text, attention's operands in every order, options; and which kernels a
// registry takes.
#include "dispatch/context.h"
#include "dispatch/circuits.h"
#include "dispatch/kernel_registry.h"
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/dispatch/fixtures.h"

using namespace dispatch_test;
using ttc::DType;
using ttrt::RtValue;
using ttrt::Shape;

namespace {

RtValue tensor(const Shape& sizes, DType dtype = DType::f32) { return ttrt::empty_host(dtype, sizes); }

SelectionContext attention(const Shape& q, const Shape& k, AxisOrder order, const RtValue* mask = nullptr,
                           std::vector<Input> more = {}) {
  const RtValue query = tensor(q), key = tensor(k);
  more.push_back({"q", &query});
  more.push_back({"k", &key});
  if (mask != nullptr) more.push_back({"attn_mask", mask});
  const CallArgs args{.inputs = more};
  return context_from_inputs("attention", args, order);
}

}  // namespace

TEST_CASE("context: devices have a type and an index") {
  CHECK(device_record("tt").platform == Platform::tt);
  CHECK(device_record("cuda:3").index == 3);
  CHECK(device_record("cuda:0").text() == "cuda:0");
  CHECK(device_record("cpu").text() == "cpu");
  for (const char* wrong : {"cuda:", "cuda:x", "cuda:1x", "cuda:-1"})
    CHECK_THAT(error_of([&] { device_record(wrong); }), ContainsSubstring("bad device"));
}

TEST_CASE("context: attention's axes come in four orders") {
  struct Order {
    AxisOrder order;
    Shape q, k;
  };
  for (const Order& o : {Order{AxisOrder::BSHD, {2, 7, 8, 16}, {2, 9, 4, 16}},
                         {AxisOrder::BHSD, {2, 8, 7, 16}, {2, 4, 9, 16}},
                         {AxisOrder::NHD, {7, 8, 16}, {9, 4, 16}},
                         {AxisOrder::HND, {8, 7, 16}, {4, 9, 16}}}) {
    const SelectionContext made = attention(o.q, o.k, o.order);
    CHECK(made.batch_size == (o.q.size() == 4 ? 2 : 1));
    CHECK(made.seq_len_q == 7);
    CHECK(made.seq_len_k == 9);
    CHECK(made.num_heads == 8);
    CHECK(made.num_kv_heads == 4);
    CHECK(made.head_dim == 16);
    CHECK(made.enable_gqa);
    CHECK_FALSE(attention(o.q, o.q, o.order).enable_gqa);
    CHECK_THAT(error_of([&] { attention({2, 3}, o.k, o.order); }), ContainsSubstring("has rank 2"));
  }
}

TEST_CASE("context: masks, scale, dropout and causality are told") {
  const Shape q{2, 7, 8, 16};
  const RtValue boolean = tensor({7, 7}, DType::boolean), floats = tensor({7, 7}), none;
  CHECK(attention(q, q, AxisOrder::BSHD).attn_mask_type == MaskType::none);
  CHECK(attention(q, q, AxisOrder::BSHD, &none).attn_mask_type == MaskType::none);
  CHECK(attention(q, q, AxisOrder::BSHD, &boolean).attn_mask_type == MaskType::boolean);
  CHECK(attention(q, q, AxisOrder::BSHD, &floats).attn_mask_type == MaskType::floating);
  const RtValue yes = true, no = false, scale = 0.25, dropout = 0.5, two = std::int64_t{2};
  const SelectionContext plain = attention(q, q, AxisOrder::BSHD, nullptr, {{"is_causal", &no}});
  CHECK_FALSE(plain.is_causal);
  CHECK_FALSE(plain.has_scale);
  CHECK(plain.dropout_p == 0);
  const SelectionContext told =
      attention(q, q, AxisOrder::BSHD, nullptr, {{"is_causal", &yes}, {"scale", &scale}, {"dropout_p", &dropout}});
  CHECK(told.is_causal);
  CHECK(told.has_scale);
  CHECK(told.scale == 0.25);
  CHECK(told.dropout_p == 0.5);
  CHECK(attention(q, q, AxisOrder::BSHD, nullptr, {{"causal", &yes}, {"softmax_scale", &two}}).scale == 2);
  CHECK_THAT(error_of([] { context_from_inputs("attention", CallArgs{}); }),
             ContainsSubstring("needs an input named query or q"));
}

TEST_CASE("context: other operations are told by their first tensor") {
  const RtValue x = tensor({5, 3}, DType::f16), y = tensor({6}), number = 2.0;
  const Input inputs[] = {{"alpha", &number}, {"x", &x}, {"y", &y}, {"missing", nullptr}};
  const SelectionContext made = context_from_inputs("op.x", CallArgs{.inputs = inputs});
  CHECK(made.batch_size == 5);
  CHECK(made.dtype == DType::f16);
  const Input nothing[] = {{"missing", nullptr}};
  CHECK(context_from_inputs("op.x", CallArgs{.inputs = nothing}) == context_of());
  CHECK(context_or_operation("attention", CallArgs{}).operation == Symbol("attention"));
}

TEST_CASE("configuration: each number has a least") {
  const auto said = [](auto set) {
    DispatchOptions options;
    set(options);
    return error_of([&] { DispatchConfig{options}; });
  };
  CHECK(said([](DispatchOptions& o) { o.cache_size = 0; }) == "");
  CHECK_THAT(said([](DispatchOptions& o) { o.cache_size = -1; }), ContainsSubstring("cache_size"));
  CHECK(said([](DispatchOptions& o) { o.max_fallback_attempts = 1; }) == "");
  CHECK_THAT(said([](DispatchOptions& o) { o.max_fallback_attempts = 0; }), ContainsSubstring("max_fallback_attempts"));
  CHECK(said([](DispatchOptions& o) { o.failure_threshold = 1; }) == "");
  CHECK_THAT(said([](DispatchOptions& o) { o.failure_threshold = 0; }), ContainsSubstring("failure_threshold"));
  CHECK_THAT(said([](DispatchOptions& o) { o.cache_ttl_seconds = 0; }), ContainsSubstring("cache_ttl_seconds"));
  CHECK(said([](DispatchOptions& o) { o.fallback_timeout_ms = 0; }) == "");
  CHECK_THAT(said([](DispatchOptions& o) { o.fallback_timeout_ms = -1; }), ContainsSubstring("fallback_timeout_ms"));
  CHECK_THAT(said([](DispatchOptions& o) { o.watch_interval_seconds = 0; }),
             ContainsSubstring("watch_interval_seconds"));
  CHECK(said([](DispatchOptions& o) { o.recovery_timeout_seconds = 0; }) == "");
  CHECK_THAT(said([](DispatchOptions& o) { o.recovery_timeout_seconds = -1; }),
             ContainsSubstring("recovery_timeout_seconds"));
}

TEST_CASE("circuits: what is left of the cooldown is told while it lasts") {
  ManualClock clock;
  CircuitManager manager(1, 10, clock);
  Circuit& circuit = manager.circuit("k");
  const auto remaining = [&] { return circuit.to_json().at("cooldown_remaining").get<double>(); };
  CHECK(remaining() == 0);
  circuit.record_failure("it broke");
  CHECK(remaining() == 10);
  CHECK(circuit.retry_after() == 10);
  clock.advance_seconds(4);
  CHECK(remaining() == 6);
  clock.advance_seconds(7);
  CHECK(remaining() == 0);
  REQUIRE(circuit.is_allowed());
  CHECK_FALSE(circuit.retry_after());
  circuit.record_failure("again");
  REQUIRE(remaining() == 10);
  circuit.reset();
  CHECK(remaining() == 0);
  CHECK_FALSE(circuit.retry_after());
}

TEST_CASE("registry: a kernel has an id of its own and an operation, or the whole batch is refused") {
  KernelRegistry registry;
  registry.add({kernel("first")});
  const auto refused = [&](std::vector<KernelSpec> kernels) {
    const std::string said = error_of([&] { registry.add(std::move(kernels)); });
    CHECK(registry.find("good") == nullptr);
    return said;
  };
  CHECK_THAT(refused({kernel("good"), kernel("")}), ContainsSubstring("a kernel needs an id"));
  CHECK_THAT(refused({kernel("good"), kernel("lost", "")}), ContainsSubstring("kernel 'lost' needs an operation"));
  CHECK_THAT(refused({kernel("good"), kernel("first")}), ContainsSubstring("kernel 'first' is registered already"));
  CHECK_THAT(refused({kernel("good"), kernel("good")}), ContainsSubstring("kernel 'good' is registered already"));
  registry.add({kernel("good")});
  CHECK(registry.find("good") != nullptr);
  CHECK(registry.remove("good"));
  CHECK_FALSE(registry.remove("good"));
  CHECK(registry.find("good") == nullptr);
}
