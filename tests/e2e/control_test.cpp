// What a compile must not change: fused operators written out, control flow on the device, state, in-place operators.
// Every case runs the model as it is in LibTorch and compares the rewritten one with it.
#include "tests/e2e/rewrites.h"

namespace {

using namespace rewrites;

std::string encoder_layer(bool gelu, bool norm_first, const std::string& mask) {
  std::string weights;
  for (const char* w :
       {"qkv: f32[96, 32]", "qkv_b: f32[96]", "p: f32[32, 32]", "p_b: f32[32]", "n1: f32[32]", "n1_b: f32[32]",
        "n2: f32[32]", "n2_b: f32[32]", "f1: f32[64, 32]", "f1_b: f32[64]", "f2: f32[32, 64]", "f2_b: f32[32]"}) {
    const std::string text(w);
    weights += ", $" + text + " parameter \"" + text.substr(0, text.find(':')) + "\"";
  }
  return "graph main(%x: f32[3, 7, 32] user, %pad: bool[3, 7] user, %causal: bool[7, 7] user" + weights +
         ") {\n  %y: f32[3, 7, 32] = aten._transformer_encoder_layer_fwd.default(%x, 32, 4, $qkv, $qkv_b, $p, $p_b, " +
         (gelu ? "true, " : "false, ") + (norm_first ? "true" : "false") +
         ", 1e-05, $n1, $n1_b, $n2, $n2_b, $f1, $f1_b, $f2, $f2_b" + mask + ")\n  return %y\n}";
}

HostTensor causal(std::int64_t n) {
  HostTensor out = empty_host(DType::i64, {n, n});
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) out.as<std::int64_t>()[i * n + j] = j > i ? 1 : 0;
  return convert(out, DType::boolean);
}

// "lstm" with `layers` and directions, weights as PyTorch orders them.
std::string recurrent(const std::string& kind, int gates, int layers, bool both, bool batch_first, bool biases) {
  const std::int64_t hidden = 16, input = 12, steps = 5, batch = 3, directions = both ? 2 : 1;
  std::string formal, actual;
  for (int layer = 0; layer < layers; ++layer)
    for (std::int64_t d = 0; d < directions; ++d) {
      const std::string n = std::to_string(layer) + "_" + std::to_string(d);
      const auto add = [&](const std::string& name, const std::string& sizes) {
        formal += ", $" + name + n + ": f32[" + sizes + "] parameter \"" + name + n + "\"";
        actual += (actual.empty() ? "$" : ", $") + name + n;
      };
      const std::string rows = std::to_string(gates * hidden);
      add("wi", rows + ", " + std::to_string(layer == 0 ? input : hidden * directions));
      add("wh", rows + ", " + std::to_string(hidden));
      if (biases) add("bi", rows), add("bh", rows);
    }
  const std::string state =
      "f32[" + std::to_string(layers * directions) + ", " + std::to_string(batch) + ", " + std::to_string(hidden) + "]";
  const auto sequence = [&](std::int64_t width) {
    return "f32[" + std::to_string(batch_first ? batch : steps) + ", " + std::to_string(batch_first ? steps : batch) +
           ", " + std::to_string(width) + "]";
  };
  const bool lstm = kind == "lstm";
  const auto flag = [](bool b) { return std::string(b ? "true" : "false"); };
  return "graph main(%x: " + sequence(input) + " user, %h: " + state + " user" +
         (lstm ? ", %c: " + state + " user" : "") + formal + ") {\n  %y: " + sequence(hidden * directions) +
         ", %hn: " + state + (lstm ? ", %cn: " + state : "") + " = aten." + kind + ".input(%x, " +
         (lstm ? "[%h, %c]" : "%h") + ", [" + actual + "], " + flag(biases) + ", " + std::to_string(layers) +
         ", 0.0, false, " + flag(both) + ", " + flag(batch_first) + ")\n  return %y, %hn" + (lstm ? ", %cn" : "") +
         "\n}";
}

}  // namespace

// ---- fused operators ----------------------------------------------------------------------------------------------

TEST_CASE("the fused encoder layer, written out", "[decompose]") {
  const std::vector<RtValue> inputs{
      random_floats({3, 7, 32}, 1),
      integers(DType::boolean, {3, 7}, {0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}), causal(7)};
  for (const char* mask : {"", ", mask=%pad, mask_type=1", ", mask=%causal, mask_type=0"})
    for (const bool norm_first : {false, true}) DYNAMIC_SECTION(mask << norm_first) {
        expect_rewrite(encoder_layer(norm_first, norm_first, mask), {"decompose:transformer"}, inputs);
      }
}

TEST_CASE("recurrent layers, written out", "[decompose]") {
  const auto inputs = [](bool lstm, int states, bool batch_first) {
    std::vector<RtValue> out{random_floats(batch_first ? Shape{3, 5, 12} : Shape{5, 3, 12}, 1),
                             random_floats({states, 3, 16}, 2)};
    if (lstm) out.push_back(random_floats({states, 3, 16}, 3));
    return out;
  };
  SECTION("lstm") {
    expect_rewrite(recurrent("lstm", 4, 1, false, false, true), {"decompose:rnn"}, inputs(true, 1, false));
  }
  SECTION("lstm, two layers, both directions, batch first") {
    expect_rewrite(recurrent("lstm", 4, 2, true, true, true), {"decompose:rnn"}, inputs(true, 4, true));
  }
  SECTION("gru, two layers") {
    expect_rewrite(recurrent("gru", 3, 2, false, true, true), {"decompose:rnn"}, inputs(false, 2, true));
  }
  SECTION("gru, both directions, no biases") {
    expect_rewrite(recurrent("gru", 3, 1, true, false, false), {"decompose:rnn"}, inputs(false, 2, false));
  }
  SECTION("tanh") {
    expect_rewrite(recurrent("rnn_tanh", 1, 2, true, false, true), {"decompose:rnn"}, inputs(false, 4, false));
  }
  SECTION("relu") {
    expect_rewrite(recurrent("rnn_relu", 1, 1, false, false, true), {"decompose:rnn"}, inputs(false, 1, false));
  }
}

TEST_CASE("recurrent cells, written out", "[decompose]") {
  const std::string weights =
      R"(, $wi: f32[ROWS, 12] parameter "wi", $wh: f32[ROWS, 16] parameter "wh", $bi: f32[ROWS] parameter "bi", $bh: f32[ROWS] parameter "bh") {)";
  const auto rows = [](std::string text, const std::string& n) {
    for (std::size_t at; (at = text.find("ROWS")) != std::string::npos;) text.replace(at, 4, n);
    return text;
  };
  const std::vector<RtValue> inputs{random_floats({3, 12}, 1), random_floats({3, 16}, 2), random_floats({3, 16}, 3)};
  expect_rewrite("graph main(%x: f32[3, 12] user, %h: f32[3, 16] user, %c: f32[3, 16] user" + rows(weights, "64") + R"(
  %hn: f32[3, 16], %cn: f32[3, 16] = aten.lstm_cell.default(%x, [%h, %c], $wi, $wh, $bi, $bh)
  return %hn, %cn
})",
                 {"decompose:rnn"}, inputs);
  expect_rewrite("graph main(%x: f32[3, 12] user, %h: f32[3, 16] user, %c: f32[3, 16] user" + rows(weights, "48") + R"(
  %hn: f32[3, 16] = aten.gru_cell.default(%x, %h, $wi, $wh, $bi, $bh)
  %y: f32[3, 16] = aten.add.Tensor(%hn, %c)
  return %y
})",
                 {"decompose:rnn"}, inputs);
}

// ---- control flow -------------------------------------------------------------------------------------------------

namespace {

const char* const branch = R"(
graph main(%x: f32[40, 64] user, %p: bool[] user, $w: f32[64, 64] parameter "w", $v: f32[64, 64] parameter "v") {
  %a: f32[40, 64] = aten.linear.default(%x, $w)
  %y: f32[40, 64] = higher_order.cond(%p, region(0), region(1), [%a, $w, $v]) { ^yes(%a1: f32[40, 64], %w1: f32[64, 64], %v1: f32[64, 64]):
    %l: f32[40, 64] = aten.linear.default(%a1, %w1)
    return %l
  } { ^no(%a2: f32[40, 64], %w2: f32[64, 64], %v2: f32[64, 64]):
    %k: f32[40, 64] = aten.linear.default(%a2, %v2)
    %n: f32[40, 64] = aten.neg.default(%k)
    return %n
  }
  %z: f32[40, 64] = aten.linear.default(%y, $v)
  return %z
})";

const char* const counted = R"(
graph main(%x: f32[40, 64] user, %i: i64[] user, $w: f32[64, 64] parameter "w") {
  %k: i64[], %v: f32[40, 64] = higher_order.while_loop(region(0), region(1), [%i, %x], [$w]) { ^cond(%i1: i64[], %x1: f32[40, 64], %w1: f32[64, 64]):
    %lt: bool[] = aten.lt.Scalar(%i1, 3)
    return %lt
  } { ^step(%i2: i64[], %x2: f32[40, 64], %w2: f32[64, 64]):
    %j: i64[] = aten.add.Tensor(%i2, 1)
    %l: f32[40, 64] = aten.linear.default(%x2, %w2)
    return %j, %l
  }
  return %v, %k
})";

std::size_t transfers_in(const Executor& executor) {
  std::size_t count = 0;
  ttc::ir::walk(*executor.model().graph,
                [&](ttc::ir::Node* node) { count += node->op() == "tt.to_device" || node->op() == "tt.to_host"; });
  return count;
}

}  // namespace

TEST_CASE("branches run on the device, and values stay there across them", "[control]") {
  const auto reference = plain(branch);
  Compiled on_device = compiled(branch);
  CHECK(on_device.result.nodes.device == 5);
  CHECK(on_device.result.nodes.cpu == 0);
  CHECK(transfers_in(*on_device.executor) == 2);  // x in, z out
  for (const bool taken : {true, false, true}) {
    const std::vector<RtValue> inputs{random_floats({40, 64}, 7), integers(DType::boolean, {}, {taken})};
    expect_close(on_device.executor->run(inputs), reference->run(inputs), bfloat16_noise);
  }
  CHECK(on_device.executor->fallback_failures().empty());
}

TEST_CASE("a loop carries its value on the device, whatever the number of rounds", "[control]") {
  const auto reference = plain(counted);
  Compiled on_device = compiled(counted);
  int floats_moved = 0;
  ttc::ir::walk(*on_device.executor->model().graph, [&](ttc::ir::Node* node) {
    const bool moves = node->op() == "tt.to_device" || node->op() == "tt.to_host";
    floats_moved += moves && node->graph()->parent() != nullptr && ttc::is_floating(node->result()->type.dtype);
  });
  CHECK(floats_moved == 0);  // once before the loop and once behind it, not once a round
  for (const std::int64_t start : {0, 2, 3, 1}) {
    const std::vector<RtValue> inputs{random_floats({40, 64}, 7), integers(DType::i64, {}, {start})};
    expect_close(on_device.executor->run(inputs), reference->run(inputs), bfloat16_noise);
  }
}

TEST_CASE("map, scan and TorchScript's loop with bodies on the device", "[control]") {
  const std::string map = R"(
graph main(%x: f32[5, 33, 64] user, $w: f32[64, 64] parameter "w") {
  %m: f32[5, 33, 64] = higher_order.map_impl(region(0), [%x], [$w]) { ^body(%row: f32[33, 64], %w1: f32[64, 64]):
    %a: f32[33, 64] = aten.linear.default(%row, %w1)
    return %a
  }
  return %m
})";
  const std::string scan = R"(
graph main(%x: f32[5, 33, 64] user, %start: f32[33, 64] user, $w: f32[64, 64] parameter "w") {
  %last: f32[33, 64], %all: f32[5, 33, 64] = higher_order.scan(region(0), [%start], [%x], [$w]) { ^step(%c: f32[33, 64], %row: f32[33, 64], %w1: f32[64, 64]):
    %l: f32[33, 64] = aten.linear.default(%c, %w1)
    %n: f32[33, 64] = aten.add.Tensor(%l, %row)
    %o: f32[33, 64] = aten.tanh.default(%n)
    return %n, %o
  }
  return %last, %all
})";
  const std::string loop = R"(
graph main(%x: f32[33, 64] user, %n: int user, $w: f32[64, 64] parameter "w") {
  %y: f32[33, 64] = prim.loop(%n, true, %x) { ^body(%i: int, %c: f32[33, 64]):
    %l: f32[33, 64] = aten.linear.default(%c, $w)
    return true, %l
  }
  return %y
})";
  struct Job {
    std::string text;
    std::vector<RtValue> inputs;
  };
  for (const Job& job : {Job{map, {random_floats({5, 33, 64}, 1)}},
                         Job{scan, {random_floats({5, 33, 64}, 1), random_floats({33, 64}, 2)}},
                         Job{loop, {random_floats({33, 64}, 1), RtValue(std::int64_t{3})}}}) {
    Compiled on_device = compiled(job.text);
    INFO(on_device.result.summary());
    CHECK(on_device.result.nodes.cpu == 0);
    CHECK(on_device.result.nodes.device >= 1);
    const auto expected = plain(job.text)->run(job.inputs);
    for (int run = 0; run < 2; ++run) expect_close(on_device.executor->run(job.inputs), expected, bfloat16_noise);
  }
}

TEST_CASE("what a loop reads and does not change crosses once", "[control]") {
  const std::string loop = R"(
graph main(%x: f32[33, 64] user, %y: f32[33, 64] user, %n: int user) {
  %z: f32[33, 64] = prim.loop(%n, true, %x) { ^body(%i: int, %c: f32[33, 64]):
    %a: f32[33, 64] = aten.add.Tensor(%c, %y)
    %t: f32[33, 64] = aten.tanh.default(%a)
    return true, %t
  }
  return %z
})";
  Compiled looped = compiled(loop);
  const HostTensor x = random_floats({33, 64}, 1), y = random_floats({33, 64}, 2);
  for (const std::int64_t rounds : {0, 1, 7}) {
    const std::vector<RtValue> inputs{x, y, RtValue(rounds)};
    expect_close(looped.executor->run(inputs), plain(loop)->run(inputs), bfloat16_noise);
    CHECK(looped.executor->work().transfers.to_device == 2);
    CHECK(looped.executor->work().transfers.to_host == 1);
  }
  const std::string map = R"(
graph main(%x: f32[5, 33, 64] user, %y: f32[33, 64] user) {
  %m: f32[5, 33, 64] = higher_order.map_impl(region(0), [%x], [%y]) { ^body(%row: f32[33, 64], %other: f32[33, 64]):
    %a: f32[33, 64] = aten.add.Tensor(%row, %other)
    %t: f32[33, 64] = aten.tanh.default(%a)
    return %t
  }
  return %m
})";
  Compiled mapped = compiled(map);
  const std::vector<RtValue> inputs{random_floats({5, 33, 64}, 3), y};
  for (int run = 0; run < 2; ++run) {
    expect_close(mapped.executor->run(inputs), plain(map)->run(inputs), bfloat16_noise);
    CHECK(mapped.executor->work().transfers.to_device == 6);  // the rows, and the other operand
    CHECK(mapped.executor->work().transfers.to_host == 5);
  }
}

// ---- state --------------------------------------------------------------------------------------------------------

TEST_CASE("a buffer that only the device reads and writes stays there between runs", "[state]") {
  const char* text = R"(
graph main(%x: f32[64, 64] user, $w: f32[64, 64] parameter "w", $cache: f32[64, 64] buffer "cache") {
  %l: f32[64, 64] = aten.linear.default(%x, $w)
  %n: f32[64, 64] = aten.add.Tensor($cache, %l)
  %y: f32[64, 64] = aten.tanh.default(%n)
  return %y, mutation buffer "cache" = %n
})";
  const auto reference = plain(text);
  Compiled on_device = compiled(text);
  REQUIRE(on_device.executor->program().device_state.size() == 1);
  for (int step = 0; step < 4; ++step) {
    const std::vector<RtValue> inputs{random_floats({64, 64}, 10 + static_cast<unsigned>(step))};
    expect_close(on_device.executor->run(inputs), reference->run(inputs), bfloat16_noise);
    CHECK(on_device.executor->work().transfers.to_device == (step == 0 ? 2 : 1));
    CHECK(on_device.executor->work().transfers.to_host == 1);
  }
  reference->reset_state();
  on_device.executor->reset_state();
  const std::vector<RtValue> inputs{random_floats({64, 64}, 20)};
  expect_close(on_device.executor->run(inputs), reference->run(inputs), bfloat16_noise);
}

TEST_CASE("a buffer that the host reads too is brought back", "[state]") {
  const char* text = R"(
graph main(%x: f32[64, 64] user, $w: f32[64, 64] parameter "w", $cache: f32[64, 64] buffer "cache") {
  %l: f32[64, 64] = aten.linear.default(%x, $w)
  %n: f32[64, 64] = aten.add.Tensor($cache, %l)
  %q: f32[64, 64] = aten.lgamma.default($cache)
  return %n, %q, mutation buffer "cache" = %n
})";
  const auto reference = plain(text);
  Compiled on_device = compiled(text);
  CHECK(on_device.executor->program().device_state.empty());
  for (int step = 0; step < 3; ++step) {
    const std::vector<RtValue> inputs{random_floats({64, 64}, 10 + static_cast<unsigned>(step))};
    const auto actual = on_device.executor->run(inputs), expected = reference->run(inputs);
    expect_close({actual[0]}, {expected[0]}, bfloat16_noise);
  }
}

// LibTorch decides by strides, which these graphs do not give, whether contiguous and reshape view or copy; as_strided
// is a view that nobody inverts. So the writes stay, between device operators that read the tensor.
TEST_CASE("what is still written in place is read as it is at that time", "[state]") {
  const std::string head = R"(
graph main(%x: f32[64, 64] user, $w: f32[64, 64] parameter "w") {
  %h: f32[64, 64] = aten.linear.default(%x, $w)
  %y: f32[64, 64] = aten.relu.default(%h)
)";
  const char* const texts[] = {
      R"(  %z: f32[64, 64] = aten.contiguous.default(%y)
  %w1: f32[64, 64] = aten.add_.Tensor(%z, 1)
  %a: f32[64, 64] = aten.linear.default(%y, $w)
  %w2: f32[64, 64] = aten.mul_.Tensor(%z, -3)
  %b: f32[64, 64] = aten.linear.default(%y, $w)
  return %a, %b, %z
})",
      R"(  %t: f32[64, 64] = aten.t.default(%y)
  %z: f32[32, 128] = aten.reshape.default(%t, [32, 128])
  %w1: f32[32, 128] = aten.add_.Tensor(%z, 1)
  %v: f32[128, 32] = aten.reshape.default(%y, [128, 32])
  %w2: f32[128, 32] = aten.sub_.Tensor(%v, 0.5)
  %b: f32[64, 64] = aten.linear.default(%y, $w)
  return %b, %z
})",
      R"(  %a: f32[64, 64] = aten.linear.default(%y, $w)
  %d: f32[64] = aten.as_strided.default(%y, [64], [65])
  %z: f32[64] = aten.fill_.Scalar(%d, 9.0)
  %n: f32[64, 64] = aten.matmul.default(%y, $w)
  %b: f32[64, 64] = aten.gelu.default(%n)
  return %a, %b
})"};
  for (const char* text : texts) {
    INFO(text);
    const std::vector<RtValue> inputs{random_floats({64, 64}, 41)};
    const auto expected = plain(head + text)->run(inputs);
    Compiled on_device = compiled(head + text);
    for (int run = 0; run < 2; ++run) expect_close(on_device.executor->run(inputs), expected, bfloat16_noise);
    INFO(on_device.result.summary());
    CHECK(on_device.result.nodes.device > 0);
  }
}

TEST_CASE("in-place operators, views of views and buffers keep their meaning", "[state]") {
  const char* const texts[] = {
      // A write through a view of a view is seen by its base and by views taken before.
      R"(
graph main(%x: f32[4, 6] user) {
  %c: f32[4, 6] = aten.clone.default(%x)
  %row: f32[6] = aten.select.int(%c, dim=0, index=1)
  %part: f32[3] = aten.slice.Tensor(%row, dim=0, start=1, end=4)
  %top: f32[2, 6] = aten.slice.Tensor(%c, dim=0, start=0, end=2)
  %w: f32[3] = aten.mul_.Tensor(%part, 10)
  %sum: f32[2, 6] = aten.add.Tensor(%top, 1)
  return %c, %row, %sum
})",
      // Two writes to overlapping slices, in order, and a read between them.
      R"(
graph main(%x: f32[4, 6] user) {
  %c: f32[4, 6] = aten.mul.Tensor(%x, 1.5)
  %a: f32[2, 6] = aten.slice.Tensor(%c, dim=0, start=0, end=2)
  %b: f32[2, 6] = aten.slice.Tensor(%c, dim=0, start=1, end=3)
  %w1: f32[2, 6] = aten.add_.Tensor(%a, 1)
  %between: f32[4, 6] = aten.neg.default(%c)
  %w2: f32[2, 6] = aten.mul_.Tensor(%b, 2)
  return %c, %between
})",
      // copy_ into a slice of a buffer, broadcast and cast; the buffer is read before and after.
      R"(
graph main(%x: f32[6] user, $k: f32[4, 6] buffer "k" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24]) {
  %before: f32[4, 6] = aten.mul.Tensor($k, 2)
  %part: f32[2, 6] = aten.slice.Tensor($k, dim=0, start=1, end=3)
  %w: f32[2, 6] = aten.copy_.default(%part, %x)
  %after: f32[4, 6] = aten.add.Tensor($k, 0.5)
  return %before, %after
})",
      // A transposed view is written, and the result of an in-place operator is used on.
      R"(
graph main(%x: f32[4, 6] user) {
  %c: f32[4, 6] = aten.clone.default(%x)
  %t: f32[6, 4] strides(1, 6) = aten.t.default(%c)
  %col: f32[6] = aten.select.int(%t, dim=1, index=2)
  %w: f32[6] = aten.fill_.Scalar(%col, 3.0)
  %r: f32[4, 6] = aten.relu_.default(%c)
  %y: f32[4, 6] = aten.add.Tensor(%r, %c)
  return %y, %w
})",
      // An input is written: its caller sees it.
      R"(
graph main(%x: f32[4, 6] user) {
  %v: f32[24] = aten.view.default(%x, size=[24])
  %w: f32[24] = aten.add_.Tensor(%v, 1)
  %y: f32[4, 6] = aten.mul.Tensor(%x, %x)
  return %y
})",
  };
  for (const char* text : texts) {
    INFO(text);
    const bool takes_row = std::string(text).find("%x: f32[6]") != std::string::npos;
    const auto reference = plain(text);
    Compiled on_host = compiled(text, Mode::cpu), on_device = compiled(text);
    for (unsigned step = 0; step < 3; ++step) {
      const std::vector<RtValue> inputs{random_floats(takes_row ? Shape{6} : Shape{4, 6}, 30 + step)};
      std::vector<RtValue> mine = copies(inputs), theirs = copies(inputs), third = copies(inputs);
      const auto expected = reference->run(theirs);
      expect_close(on_device.executor->run(mine), expected, bfloat16_noise);
      expect_close(mine, theirs, bfloat16_noise);
      expect_close(on_host.executor->run(third), expected, bfloat16_noise);
    }
  }
}
