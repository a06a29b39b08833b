// Tensors that stay on the device between runs: caches that are outputs and then inputs, inputs that the model writes.
// The numbers are those of the way over the host, the transfers are fewer.
#include "tests/e2e/rewrites.h"

namespace {

using namespace rewrites;

HostTensor on_host(const RtValue& value) {
  if (const auto* kept = value.get_if<ResidentTensor>()) return to_host(kept->tensor, kept->dtype);
  const auto* host = value.get_if<HostTensor>();
  REQUIRE(host != nullptr);
  return *host;
}

void check_equal(const RtValue& actual, const RtValue& expected) {
  const HostTensor a = contiguous(on_host(actual)), e = contiguous(on_host(expected));
  REQUIRE(a.sizes == e.sizes);
  REQUIRE(a.dtype == e.dtype);
  CHECK(std::vector<float>(a.as<float>(), a.as<float>() + a.numel()) ==
        std::vector<float>(e.as<float>(), e.as<float>() + e.numel()));
}

// A key cache that grows by one row a step, attended to by the row's query.
const char* const growing = R"(model {
  range s0 in [1, 4096]
}
graph main(%x: f32[1, 2, 1, 32] user, %cache: f32[1, 2, s0, 32] user) {
  %n: int(s0) = aten.sym_size.int(%cache, dim=2)
  %k: f32[1, 2, 1, 32] = aten.tanh.default(%x)
  %next: f32[1, 2, s0 + 1, 32] = aten.cat.default([%cache, %k], dim=2)
  %y: f32[1, 2, 1, 32] = aten.scaled_dot_product_attention.default(%x, %next, %next)
  return %y, %next, %n
})";

}  // namespace

TEST_CASE("a cache that grows from step to step stays on the device", "[resident]") {
  const auto round_trip = compiled(growing).executor, kept = compiled(growing).executor;
  REQUIRE(kept->program().keepable.size() == 2);
  RtValue cache = random_floats({1, 2, 30, 32}, 1), resident = cache;
  for (unsigned step = 0; step < 5; ++step) {  // over the edge of a tile
    CAPTURE(step);
    const HostTensor x = random_floats({1, 2, 1, 32}, 10 + step);
    const auto expected = round_trip->run({x, cache}), actual = kept->run({x, resident}, {false, true});
    check_equal(actual[0], expected[0]);
    REQUIRE(actual[1].get_if<ResidentTensor>() != nullptr);
    check_equal(actual[1], expected[1]);
    CHECK(*actual[2].get_if<std::int64_t>() == 30 + step);
    CHECK(kept->work().transfers.to_device == (step == 0 ? 2 : 1));
    CHECK(kept->work().transfers.to_host == 1);
    CHECK(round_trip->work().transfers.to_device == 2);
    CHECK(round_trip->work().transfers.to_host == 2);
    CHECK(kept->work().transfers.to_host_bytes < round_trip->work().transfers.to_host_bytes);
    cache = expected[1];
    resident = actual[1];
  }
}

TEST_CASE("what a caller holds on the device is not written by later runs", "[resident]") {
  const auto e = compiled(growing).executor;
  const HostTensor x = random_floats({1, 2, 1, 32}, 2), start = random_floats({1, 2, 31, 32}, 3);
  const RtValue first = e->run({x, start}, {true, true})[1];
  const HostTensor before = on_host(first);
  const auto one = e->run({x, first}, {false, true}),
             other = e->run({random_floats({1, 2, 1, 32}, 4), start}, {false, true});
  check_equal(first, before);
  CHECK(on_host(one[1]).sizes == Shape{1, 2, 33, 32});
  check_equal(e->run({x, first})[1], one[1]);  // now over the host
  check_equal(other[1], e->run({random_floats({1, 2, 1, 32}, 4), start})[1]);
}

TEST_CASE("resident tensors are checked like others, and brought back where the host wants them", "[resident]") {
  const auto e = compiled(growing).executor;
  const HostTensor x = random_floats({1, 2, 1, 32}, 2);
  const auto out = e->run({x, random_floats({1, 2, 5, 32}, 3)}, {true, true});
  CHECK_THROWS_AS(e->run({out[1], out[1]}), ttc::Error);  // a cache is no row
  check_equal(e->run({out[0], out[1]})[0], e->run({on_host(out[0]), on_host(out[1])})[0]);
  // Another executor has another device; in cpu mode there is none.
  const auto other = compiled(growing).executor, cpu = compiled(growing, Mode::cpu).executor;
  check_equal(other->run({x, out[1]})[0], e->run({x, out[1]})[0]);
  CHECK(cpu->run({x, out[1]}, {true, true})[1].get_if<HostTensor>() != nullptr);
  // The host reads this input too.
  const auto mixed = compiled(R"(model {}
graph main(%x: f32[1, 2, 1, 32] user) {
  %a: f32[1, 2, 1, 32] = aten.tanh.default(%x)
  %b: f32[1, 2, 1, 32] = aten.lgamma.default(%x)
  return %a, %b
})")
                         .executor;
  const auto actual = mixed->run({out[0]}, {true, true}), expected = mixed->run({on_host(out[0])});
  check_equal(actual[0], expected[0]);
  check_equal(actual[1], expected[1]);
}

TEST_CASE("an input that the model writes can live on the device", "[resident]") {
  const char* text = R"(model {}
graph main(%x: f32[64, 64] user, %cache: f32[64, 64] user) {
  %a: f32[64, 64] = aten.tanh.default(%x)
  %n: f32[64, 64] = aten.add.Tensor(%cache, %a)
  %y: f32[64, 64] = aten.mul.Tensor(%n, %x)
  return mutation input "cache" = %n, %y
})";
  const auto round_trip = compiled(text).executor, kept = compiled(text).executor;
  const HostTensor cache = random_floats({64, 64}, 1);
  const RtValue resident = kept->place_input(1, cache);
  REQUIRE(resident.get_if<ResidentTensor>() != nullptr);
  for (unsigned step = 0; step < 4; ++step) {
    const HostTensor x = random_floats({64, 64}, 10 + step);
    check_equal(kept->run({x, resident})[0], round_trip->run({x, cache})[0]);
    check_equal(resident, cache);
    CHECK(kept->work().transfers.to_device == 1);
    CHECK(kept->work().transfers.to_host == 1);
    CHECK(round_trip->work().transfers.to_device == 2);
    CHECK(round_trip->work().transfers.to_host == 2);
  }
}

TEST_CASE("inputs that become each other's next values can live on the device", "[resident]") {
  const bool computed = GENERATE(true, false);
  const char* text = computed ? R"(model {}
graph main(%x: f32[64, 64] user, %p: f32[64, 64] user, %q: f32[64, 64] user) {
  %n: f32[64, 64] = aten.add.Tensor(%q, %x)
  %m: f32[64, 64] = aten.mul.Tensor(%p, %x)
  %y: f32[64, 64] = aten.sub.Tensor(%n, %m)
  return mutation input "p" = %n, mutation input "q" = %m, %y
})"
                              : R"(model {}
graph main(%x: f32[64, 64] user, %p: f32[64, 64] user, %q: f32[64, 64] user) {
  %n: f32[64, 64] = tt.to_device(%q, format="bfloat16")
  %m: f32[64, 64] = tt.to_device(%p, format="bfloat16")
  %d: f32[64, 64] = tt.sub(%n, %m)
  %y: f32[64, 64] = tt.to_host(%d, dtype=f32)
  %a: f32[64, 64] = tt.to_host(%n, dtype=f32)
  %b: f32[64, 64] = tt.to_host(%m, dtype=f32)
  return mutation input "p" = %a, mutation input "q" = %b, %y
})";
  const auto round_trip = compiled(text).executor, kept = compiled(text).executor;
  const HostTensor p = random_floats({64, 64}, 1), q = random_floats({64, 64}, 2);
  const RtValue on_p = kept->place_input(1, p), on_q = kept->place_input(2, q);
  REQUIRE(on_p.get_if<ResidentTensor>() != nullptr);
  REQUIRE(on_q.get_if<ResidentTensor>() != nullptr);
  for (unsigned step = 0; step < 3; ++step)  // a plan in place, of tensors that come from the host
    kept->run({random_floats({64, 64}, 20), random_floats({64, 64}, 21), random_floats({64, 64}, 22)});
  for (unsigned step = 0; step < 4; ++step) {
    const HostTensor x = random_floats({64, 64}, 10 + step);
    check_equal(kept->run({x, on_p, on_q})[0], round_trip->run({x, p, q})[0]);
    check_equal(on_p, p);
    check_equal(on_q, q);
  }
}

TEST_CASE("inputs that the model writes are known, in place or by an output", "[resident]") {
  for (const char* body :
       {"%a: f32[2] = aten.add_.Tensor(%x, %y)\n  return %a",
        "%a: f32[2] = aten.add.Tensor(%x, %y)\n  return mutation input \"x\" = %a, %a",
        "%v: f32[2] = aten.view.default(%x, [2])\n  %a: f32[2] = aten.mul_.Tensor(%v, %y)\n  return %a"}) {
    INFO(body);
    const auto e = plain(
        "graph main(%x: f32[2] user, %y: f32[2] user, %z: f32[2] user) {\n  %b: f32[2] = aten.neg.default(%z)\n  " +
        std::string(body) + ", %b\n}");
    const Program& program = e->program();
    CHECK(program.slots[static_cast<std::size_t>(program.main.inputs[0])].written);
    CHECK_FALSE(program.slots[static_cast<std::size_t>(program.main.inputs[2])].written);
  }
}
