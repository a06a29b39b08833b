// Models that are larger than the device's memory: weights are moved in when they are read, the numbers stay what they
// are where all of them fit.
#include <regex>

#include "device/buffer.h"
#include "tests/e2e/rewrites.h"
#include "torch/random_state.h"

namespace {

using namespace rewrites;

ArchProfile with_dram(std::int64_t kib) {
  ArchProfile out = default_profile();
  out.name = "small";
  out.dram_banks = 2;
  out.dram_bank_bytes = kib * 1024 / 2;
  return out;
}

std::unique_ptr<Executor> on(const std::string& text, const ArchProfile& compiled_for, const ArchProfile& profile,
                             bool stream = true) {
  auto model = parse(text);
  ttc::CompileOptions options;
  options.profile = compiled_for;
  ttc::compile(*model, options);
  return std::make_unique<Executor>(std::shared_ptr<const ttc::ir::Model>(std::move(model)),
                                    ExecutorOptions{.profile = profile, .stream_weights = stream});
}

std::unique_ptr<Executor> on(const std::string& text, std::int64_t kib) {
  return on(text, with_dram(kib), with_dram(kib));
}

bool same(const std::vector<RtValue>& a, const std::vector<RtValue>& b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i) {
    const HostTensor x = contiguous(*a[i].get_if<HostTensor>()), y = contiguous(*b[i].get_if<HostTensor>());
    equal = x.sizes == y.sizes && std::memcmp(x.data, y.data, static_cast<std::size_t>(x.nbytes())) == 0;
  }
  return equal;
}

// Weights of 32 KiB in bfloat16, one of which is read twice; a constant that set-up computes; rows of any number.
const char* const layers = R"(model {
  range s0 in [1, 512]
}
graph main(%x: f32[s0, 128] user, $a: f32[128, 128] parameter "a", $b: f32[128, 128] parameter "b", $c: f32[128, 128] parameter "c", $d: f32[128, 128] parameter "d", $e: f32[128, 128] parameter "e", $l: f32[128, 128] parameter "l") {
  %1: f32[s0, 128] = aten.linear.default(%x, $a)
  %2: f32[s0, 128] = aten.relu.default(%1)
  %3: f32[s0, 128] = aten.linear.default(%2, $b)
  %4: f32[s0, 128] = aten.linear.default(%3, $c)
  %5: f32[s0, 128] = aten.linear.default(%4, $d)
  %6: f32[s0, 128] = aten.linear.default(%5, $a)
  %7: f32[s0, 128] = aten.linear.default(%6, $e)
  %8: f32[s0, 128] = aten.mm.default(%7, $l)
  %9: f32[128, 128] = aten.mm.default($l, $l)
  %10: f32[s0, 128] = aten.mm.default(%8, %9)
  return %10
})";

}  // namespace

TEST_CASE("a model larger than the device's memory gives the numbers that it gives where it fits", "[streaming]") {
  const auto fits = on(layers, 1024);
  const HostTensor x = random_floats({32, 128}, 1);
  const auto expected = fits->run({x});
  CHECK(fits->work().weights.streamed == 0);
  std::int64_t before = -1;
  for (const std::int64_t kib : {192, 160, 128, 96}) {
    CAPTURE(kib);
    const auto streamed = on(layers, kib);
    for (int run = 0; run < 3; ++run) {
      CHECK(same(streamed->run({x}), expected));
      const WeightMoves& moves = streamed->work().weights;
      CHECK(moves.weights == fits->work().weights.weights);
      CHECK(moves.streamed > 0);
      CHECK(moves.bytes == moves.moves * 32 * 1024);
      CHECK(moves.cycles > 0);
      CHECK(streamed->work().transfer_cycles() == streamed->work().transfers.cycles + moves.cycles);
    }
    CHECK(streamed->fallback_failures().empty());
    const MemoryUsage dram = streamed->device()->memory_report().dram;
    CHECK(dram.peak_per_bank <= dram.bank_bytes);
    CHECK(streamed->work().weights.bytes >= before);  // the less memory, the more is moved
    before = streamed->work().weights.bytes;
  }
}

TEST_CASE("a run that is repeated draws the random numbers that it drew", "[streaming]") {
  const std::string drawing = std::regex_replace(
      std::string(layers), std::regex("  return %10"),
      "  %r: f32[4] = aten.rand.default([4], dtype=f32)\n  %i: i64[4] = aten.mul.Tensor(%n, %n)\n  return %10, %r, %i");
  const std::string text = std::regex_replace(drawing, std::regex("main\\(%x"), "main(%n: i64[4] user, %x");
  const auto fits = on(text, 1024), streamed = on(text, 128);
  const HostTensor x = random_floats({32, 128}, 1);
  const RandomState before;
  const auto draw = [&](Executor& executor, std::int64_t number) {
    HostTensor n = empty_host(DType::i64, {4});
    std::fill_n(n.as<std::int64_t>(), 4, number);
    before.restore();
    std::vector<RtValue> out;
    for (int run = 0; run < 2; ++run) out.push_back(executor.run({n, x}).at(1));
    return out;
  };
  const auto once = draw(*fits, 2);
  CHECK_FALSE(same({once[0]}, {once[1]}));
  CHECK(same(draw(*streamed, 2), once));  // found too little memory, and began again
  CHECK(streamed->work().weights.streamed > 0);
  CHECK(same(draw(*fits, 1 << 20), once));  // did not fit into int32, and was the host's
  CHECK(fits->fallback_failures().size() == 1);
}

TEST_CASE("signatures take turns in a memory that holds one of them", "[streaming]") {
  const auto fits = on(layers, 1024), streamed = on(layers, 128);
  const HostTensor small = random_floats({7, 128}, 2), large = random_floats({96, 128}, 3);
  const auto few = fits->run({small}), many = fits->run({large});
  for (int turn = 0; turn < 3; ++turn) {
    CHECK(same(streamed->run({small}), few));
    const std::int64_t moved = streamed->work().weights.bytes;
    CHECK(same(streamed->run({large}), many));
    CHECK(streamed->work().weights.bytes > moved);
  }
  CHECK(streamed->cached_plans() == 2);
}

TEST_CASE("without streaming a model that does not fit says so", "[streaming]") {
  const HostTensor x = random_floats({32, 128}, 1);
  const auto fixed = on(layers, with_dram(128), with_dram(128), false);
  for (int run = 0; run < 2; ++run) {
    try {
      fixed->run({x});
      FAIL("ran in 128 KiB");
    } catch (const ttc::Error& error) {
      CHECK(error.code() == ttc::Exit::unsupported);
      CHECK(std::string(error.what()).find("Out of Memory") != std::string::npos);
      CHECK(error.hint().find("--stream-weights") != std::string::npos);
    }
  }
}

TEST_CASE("an op that needs more than all of the memory stays on the host, with the reason", "[streaming]") {
  const char* const wide = R"(model {}
graph main(%x: f32[4, 64] user, $a: f32[1024, 64] parameter "a", $b: f32[64, 1024] parameter "b") {
  %1: f32[4, 1024] = aten.linear.default(%x, $a)
  %2: f32[4, 64] = aten.linear.default(%1, $b)
  return %2
})";
  const HostTensor x = random_floats({4, 64}, 5);
  const auto expected = plain(wide)->run({x});
  auto model = parse(wide);
  ttc::CompileOptions options;
  options.profile = with_dram(96);
  const ttc::CompileResult result = ttc::compile(*model, options);
  REQUIRE(result.fallbacks.size() == 2);
  CHECK(result.fallbacks[0].reason.code == ttc::ReasonCode::DeviceLimit);
  CHECK(result.fallbacks[0].reason.detail.find("DRAM") != std::string::npos);
  // Rewritten for a larger device.
  const auto moved = on(wide, default_profile(), with_dram(256));
  const auto refused = on(wide, default_profile(), with_dram(128));
  expect_close(moved->run({x}), expected, bfloat16_noise);
  CHECK(moved->fallback_failures().empty());
  expect_close(refused->run({x}), expected, bfloat16_noise);
  REQUIRE(refused->fallback_failures().size() == 2);
  CHECK(refused->fallback_failures()[0].reason.find("DRAM") != std::string::npos);
}

TEST_CASE("what a caller keeps on the device, and a profile of a run, beside streamed weights", "[streaming]") {
  const auto fits = on(layers, 1024), streamed = on(layers, 144);
  streamed->set_profiling(true);
  RtValue from = random_floats({32, 128}, 6), kept = from;
  for (int step = 0; step < 4; ++step) {
    CAPTURE(step);
    const auto expected = fits->run({from}, {true}), actual = streamed->run({kept}, {true});
    REQUIRE(actual[0].get_if<ResidentTensor>() != nullptr);
    const auto fetched = [](const RtValue& value) {
      const auto* one = value.get_if<ResidentTensor>();
      return std::vector<RtValue>{to_host(one->tensor, one->dtype)};
    };
    CHECK(same(fetched(actual[0]), fetched(expected[0])));
    CHECK(streamed->work().weights.streamed > 0);
    from = expected[0];
    kept = actual[0];
  }
  std::int64_t moved = 0;
  for (const InstructionProfile& row : streamed->profiler().profile())
    if (row.kernel == "weights") {
      CHECK(row.place == OpPlace::transfer);
      CHECK(row.bound == "pcie");
      moved += row.bytes;
    }
  CHECK(moved >= 4 * streamed->work().weights.bytes / 2);
}
