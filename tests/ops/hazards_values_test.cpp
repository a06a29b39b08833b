// Hazards of values: indices at their edges and beyond, tensors that do not fit, integers that a format cannot hold.
#include "hazards.h"

using namespace ttrt;
using namespace ttrt::test;

TEST_CASE("indices are taken as they are", "[hazards]") {
  const Hazard hazards[] = {
      {"indices from the end", R"(graph main(%a: f32[5, 40] user, %i: i64[7] user) {
  %x: f32[7, 40] = aten.index.Tensor(%a, [%i])
  return %x
})",
       "", -5, 5},
      {"two indices, and one of a later dim", R"(graph main(%a: f32[5, 6, 40] user, %i: i64[7] user, %j: i64[7] user) {
  %x: f32[7, 40] = aten.index.Tensor(%a, [%i, %j])
  %y: f32[5, 7, 40] = aten.index.Tensor(%a, [none, %i])
  return %x, %y
})",
       "", 0, 5},
      {"gather along a negative dim", R"(graph main(%a: f32[5, 40] user, %i: i64[5, 3] user) {
  %x: f32[5, 3] = aten.gather.default(%a, -1, %i)
  return %x
})",
       "", 0, 40},
      {"scatter of a number", R"(graph main(%a: f32[5, 40] user, %i: i64[5, 3] user) {
  %x: f32[5, 40] = aten.scatter.value(%a, 1, %i, -2.5)
  return %x
})",
       "", 0, 40},
      {"the padding index of an embedding is a row like others",
       R"(graph main(%i: i64[3, 9] user, $w: f32[50, 40] parameter "w" = rand(1)) {
  %x: f32[3, 9, 40] = aten.embedding.default($w, %i, 0)
  return %x
})",
       "", 0, 3},
      {"a mask as an index has a result of unknown size", R"(graph main(%a: f32[5, 40] user, %m: bool[5] user) {
  %x: f32[u0, 40] = aten.index.Tensor(%a, [%m])
  return %x
})",
       "a mask as index"},
  };
  check(hazards);
}

TEST_CASE("an index outside of its dim is an error on the device too", "[hazards]") {
  const char* graphs[] = {
      R"(graph main(%a: f32[5, 40] user, %i: i64[3] user) {
  %x: f32[3, 40] = aten.index.Tensor(%a, [%i])
  return %x
})",
      R"(graph main(%a: f32[5, 40] user, %i: i64[3, 40] user) {
  %x: f32[3, 40] = aten.gather.default(%a, 0, %i)
  return %x
})",
      R"(graph main(%a: f32[5, 40] user, %i: i64[3] user) {
  %x: f32[3, 40] = aten.embedding.default(%a, %i)
  return %x
})",
      R"(graph main(%a: f32[5, 40] user, %i: i64[3] user) {
  %x: f32[3, 40] = aten.index_select.default(%a, 0, %i)
  return %x
})"};
  for (const char* text : graphs) {
    INFO(text);
    const OnDevice device = on_device(text, DataType::bfloat16);
    CHECK(device.result.nodes.device == device.result.nodes.total);
    for (const std::int64_t outside : {std::int64_t{5}, std::int64_t{1} << 40}) {
      const auto inputs = inputs_of(*parse_text(text), {.first = outside, .last = outside + 1});
      CHECK_THROWS_AS(device.executor->run(inputs), ttc::Error);
    }
  }
}

TEST_CASE("tensors that do not fit are errors, not padded or cut", "[hazards]") {
  const char* graphs[] = {
      R"(graph main(%a: f32[3, 5] user, %b: f32[4, 5] user) {
  %x: f32[3, 10] = aten.cat.default([%a, %b], 1)
  return %x
})",
      R"(graph main(%a: f32[6, 35] user, %b: f32[4, 5] user) {
  %x: f32[10, 20] = aten.view.default(%a, [10, 20])
  return %x
})",
      R"(graph main(%a: f32[3, 5] user, %b: f32[3, 4] user) {
  %x: f32[3, 5] = aten.add.Tensor(%a, %b)
  return %x
})",
      R"(graph main(%a: f32[3, 5] user, %b: f32[4, 5] user) {
  %x: f32[3, 5] = aten.mm.default(%a, %b)
  return %x
})"};
  for (const char* text : graphs) {
    INFO(text);
    const auto inputs = inputs_of(*parse_text(text), {});
    CHECK_THROWS_AS(on_device(text, DataType::bfloat16).executor->run(inputs), ttc::Error);
  }
}

TEST_CASE("dropout is the identity only where it is told so", "[hazards]") {
  const auto run = [](const std::string& text) {
    const auto inputs = inputs_of(*parse_text(text), {});
    const OnDevice device = on_device(text, DataType::float32);
    std::vector<HostTensor> out{tensor(inputs[0])};
    for (const RtValue& value : device.executor->run(inputs)) out.push_back(contiguous(tensor(value)));
    return out;
  };
  const auto evaluated = run(R"(graph main(%a: f32[64, 64] user) {
  %y: f32[64, 64] = aten.dropout.default(%a, 0.5, false)
  %z: f32[64, 64] = aten.mul.Tensor(%y, 1)
  return %z
})");
  CHECK(compare(evaluated[1], evaluated[0]).equal);
  const std::string training = R"(graph main(%a: f32[64, 64] user) {
  %y: f32[64, 64] = aten.dropout.default(%a, 0.5, true)
  return %y
})";
  const std::string with_mask = R"(graph main(%a: f32[64, 64] user) {
  %y: f32[64, 64], %m: bool[64, 64] = aten.native_dropout.default(%a, 0.5, true)
  return %y, %m
})";
  for (const std::string& text : {training, with_mask}) {
    INFO(text);
    CHECK_FALSE(on_device(text, DataType::float32).result.fallbacks.empty());
    const auto out = run(text);
    int zeros = 0;
    for (std::int64_t i = 0; i < out[1].numel(); ++i) {
      const float x = out[0].as<float>()[i], y = out[1].as<float>()[i];
      const bool dropped = y == 0.0F && x != 0.0F;
      zeros += dropped ? 1 : 0;
      if (!dropped) CHECK(y == 2 * x);
      if (out.size() > 2 && x != 0.0F) CHECK(out[2].as<bool>()[i] == !dropped);
    }
    CHECK(zeros > 64 * 64 / 4);
    CHECK(zeros < 64 * 64 * 3 / 4);
  }
}

TEST_CASE("integers that a format cannot hold are exact or not on the device", "[hazards]") {
  const Hazard hazards[] = {
      {"int64 beyond int32", R"(graph main(%a: i64[3, 40] user) {
  %x: i64[3, 40] = aten.add.Tensor(%a, 1)
  %y: i64[3, 40] = aten.mul.Tensor(%x, 3)
  %z: i64[3] = aten.sum.dim_IntList(%y, [1])
  return %x, %y, %z
})",
       "", 1, 50},
      {"uint8 wraps around", R"(graph main(%a: u8[3, 40] user, %b: u8[3, 40] user) {
  %x: u8[3, 40] = aten.add.Tensor(%a, %b)
  %y: u8[3, 40] = aten.mul.Tensor(%a, %b)
  return %x, %y
})",
       "", 100, 256},
      {"int8 wraps around", R"(graph main(%a: i8[3, 40] user) {
  %x: i8[3, 40] = aten.neg.default(%a)
  return %x
})",
       "", -128, -120},
      {"a float becomes an integer towards zero", R"(graph main(%a: f32[3, 40] user) {
  %x: i64[3, 40] = aten.to.dtype(%a, i64)
  return %x
})",
       "fraction", 0, 1, 20.0F},
      {"float64 is no narrower than float32", R"(graph main(%a: f64[3, 40] user) {
  %x: f64[3, 40] = aten.add.Tensor(%a, 1)
  return %x
})"},
  };
  check(hazards);
}

TEST_CASE("integers beyond int32 that reach a device kernel come out right", "[hazards]") {
  const char* text = R"(graph main(%a: i64[3, 40] user) {
  %x: i64[3, 40] = aten.add.Tensor(%a, 1)
  %y: i64[3, 40] = aten.mul.Tensor(%x, %a)
  %z: i64[3] = aten.sum.dim_IntList(%y, [1])
  %c: bool[3, 40] = aten.gt.Tensor(%y, %x)
  return %x, %y, %z, %c
})";
  for (const std::int64_t first : {std::int64_t{40000}, std::int64_t{2147483600}, std::int64_t{1} << 40}) {
    INFO(first);
    const auto inputs = inputs_of(*parse_text(text), {.first = first, .last = first + 100});
    expect_close(on_device(text, DataType::bfloat16).executor->run(inputs), in_torch(text)->run(inputs),
                 noise(DataType::bfloat16));
  }
}
