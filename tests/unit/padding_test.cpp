// Rows of tiles that hold no data: zero in every value, written or left as they are.
#include <algorithm>
#include <cstring>
#include <random>

#include "executor/executor.h"
#include "executor/memory_plan.h"
#include "tests/catch.h"

using namespace ttrt;

TEST_CASE("padding stays zero where nothing else that lies there has data") {
  const auto stays = [](const std::vector<PlacedTiles>& values) {
    const std::vector<char> out = padding_stays_zero(values);
    return std::vector<int>(out.begin(), out.end());
  };
  const PlacedTiles one{.begin = 0, .end = 4096, .tile_bytes = 2048, .rows = 1};
  const auto with = [&](PlacedTiles other) { return stays({one, other}); };
  CHECK(stays({one}) == std::vector{1});
  CHECK(with({.begin = 0, .end = 2048, .tile_bytes = 2048, .rows = 1}) == std::vector{1, 1});
  CHECK(with({.begin = 2048, .end = 6144, .tile_bytes = 2048, .rows = 4}) == std::vector{0, 1});
  CHECK(with({.begin = 4096, .end = 6144, .tile_bytes = 2048, .rows = 4}) == std::vector{1, 1});
  CHECK(with({.begin = 2048, .end = 4096, .tile_bytes = 2048, .rows = 32}) == std::vector{0, 0});
  CHECK(with({.begin = 1024, .end = 3072, .tile_bytes = 2048, .rows = 1}) == std::vector{0, 0});  // begins elsewhere
  CHECK(with({.begin = 0, .end = 4096, .tile_bytes = 4096, .rows = 1}) == std::vector{0, 0});
  CHECK(with({.begin = 0, .end = 0, .tile_bytes = 4096, .rows = 32}) == std::vector{1, 0});  // takes nothing
  // Three that lie one over the other in turn.
  CHECK(stays({one,
               {.begin = 2048, .end = 6144, .tile_bytes = 2048, .rows = 2},
               {.begin = 4096, .end = 8192, .tile_bytes = 2048, .rows = 3}}) == std::vector{0, 0, 1});
}

namespace {

HostTensor random_floats(Shape sizes, unsigned seed) {
  HostTensor out = empty_host(DType::f32, std::move(sizes));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1.0F, 1.0F);
  std::generate_n(out.as<float>(), out.numel(), [&] { return value(random); });
  return out;
}

// All bytes of rows that hold no data, of a tensor of less than 16 rows.
bool has_zero_padding(const DeviceTensor& tensor) {
  const std::int64_t bytes = tile_bytes(tensor.spec.dtype), face = bytes / 4, data = face / 16 * tensor.spec.rows();
  for (std::int64_t t = 0; t < tensor.spec.tiles(); ++t)
    for (std::int64_t f = 0; f < 4; ++f) {
      const std::byte *begin = tensor.data() + t * bytes + f * face, *end = begin + face;
      if (std::any_of(begin + (f < 2 ? data : 0), end, [](std::byte b) { return b != std::byte{0}; })) return false;
    }
  return true;
}

// A step of a decoder with `rows` tokens to each of two batches, and values of 40 rows: they come and go meanwhile or,
// `long_lived`, are there until the end, where separate places for them take no more memory.
std::string decoder_step(const std::string& rows, bool long_lived) {
  std::string text = R"(model {}
graph main(%x: f32[2, ROWS, 128] user, %w: f32[128, 128] user, %k: f32[2, 2, 40, 32] user, %c: f32[1, 1, ROWS, 32] user) {
  %a: bf16[2, ROWS, 128] = tt.to_device(%x, format="bfloat16")
  %l: bf16[2, 2, 40, 32] = tt.to_device(%k, format="bfloat16")
  %m: bf16[2, 2, 40, 32] = tt.relu(%l)
  %n: bf16[2, 2, 40, 32] = tt.add(%l, %m)
  %u: bf16[128, 128] = tt.to_device(%w, format="bfloat16")
  %d: bf16[1, 1, ROWS, 32] = tt.to_device(%c, format="bfloat16")
  %b: bf16[2, ROWS, 128] = tt.rms_norm(%a, normalized_size=128)
  %e: bf16[2, ROWS, 128] = tt.linear(%b, %u, weight_shape=[128, 128])
  %f: bf16[2, 4, ROWS, 32] = tt.split_heads(%e, num_heads=4)
  %g: bf16[2, 4, ROWS, 32] = tt.rotary_embedding(%f, %d, %d)
  %h: bf16[2, 4, ROWS, 32] = tt.attention(%g, %l, %n)
  %i: bf16[2, ROWS, 128] = tt.concat_heads(%h)
  %j: bf16[2, ROWS, 128] = tt.linear(%i, %u, weight_shape=[128, 128], activation="silu")
  %o: bf16[2, ROWS, 128] = tt.add(%a, %j)
  %p: bf16[2, ROWS, 128] = tt.exp(%o)
  %q: bf16[2, ROWS, 128] = tt.add(%p, %p, alpha=0.5)
  %r: bf16[2, ROWS, 128] = tt.where(%a, %q, %o)
  %t: bf16[2, 4, ROWS, 32] = tt.attention(%g, KEYS)
  %v: bf16[2, ROWS, 128] = tt.concat_heads(%t)
  %z: bf16[2, ROWS, 128] = tt.sub(%r, %v)
  %s: bf16[2, ROWS, 128] = tt.layer_norm(%z, normalized_size=128)
  %A: bf16[2, ROWS, 128] = tt.linear(%s, %u, weight_shape=[128, 128])
  %y: f32[2, ROWS, 128] = tt.to_host(%A, dtype=f32)
  return %y
})";
  const auto put = [&](std::string_view name, std::string_view value) {
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) text.replace(at, name.size(), value);
  };
  put("ROWS", rows);
  put("KEYS", long_lived ? "%l, %n" : "%g, %g");
  return text;
}

}  // namespace

TEST_CASE("values of few rows keep zeros below them from run to run, and the results that they had") {
  const std::int64_t rows = GENERATE(1, 3, 15);
  const bool long_lived = GENERATE(false, true);
  Executor e(std::shared_ptr<const ttc::ir::Model>(ttc::ir::parse(decoder_step(std::to_string(rows), long_lived))),
             ExecutorOptions{.mode = Mode::device});
  int checked = 0, kept = 0;
  const auto observe = [&](const Instruction& i, const Frame& frame) {
    for (const int slot : i.results) {
      const auto* tensor = frame[static_cast<std::size_t>(slot)].get_if<DeviceTensor>();
      if (tensor == nullptr || tensor->spec.rows() >= 16) continue;
      INFO(i.node->op());
      CHECK(has_zero_padding(*tensor));
      ++checked, kept += tensor->padding_is_zero;
    }
  };
  const auto run = [&](unsigned seed) {
    const RtValue out = e.run({random_floats({2, rows, 128}, seed), random_floats({128, 128}, seed + 1),
                               random_floats({2, 2, 40, 32}, seed + 2), random_floats({1, 1, rows, 32}, seed + 3)})[0];
    const HostTensor host = contiguous(*out.get_if<HostTensor>());
    return std::vector<float>(host.as<float>(), host.as<float>() + host.numel());
  };
  const std::vector<float> first = run(1);  // each value has memory of its own
  for (unsigned seed = 2; seed < 6; ++seed) run(seed);
  CHECK(run(1) == first);
  e.set_observer(observe);
  run(7);
  CHECK(run(1) == first);
  CHECK(checked == 2 * 18);
  CHECK(kept > 0);
  CHECK((kept == checked) == long_lived);
}
