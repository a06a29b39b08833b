// Instructions that run together give what each of them gives alone, bit for bit: a plan's first run, in which they run
// one after the other, against those after it has settled.
#include <algorithm>

#include "device/parallel.h"
#include "tests/catch.h"
#include "tests/e2e/rewrites.h"

namespace {

using namespace rewrites;

struct Case {
  const char* name;
  std::string text;
  std::vector<RtValue> inputs;
  std::size_t together;  // instructions that run with one before them
};

// Three projections that become one product, attention, a projection, the residual sum and a norm.
std::string encoder(const std::string& batch, const std::string& rows, std::int64_t heads, std::int64_t dim) {
  const std::string w = std::to_string(heads * dim), h = std::to_string(heads), d = std::to_string(dim);
  const std::string x = "f32[" + batch + ", " + rows + ", " + w + "]";
  const std::string apart = batch + ", " + rows + ", " + h + ", " + d,
                    turned = batch + ", " + h + ", " + rows + ", " + d;
  std::string text = "model {}\ngraph main(%x: " + x + " user";
  for (const char* name : {"q", "k", "v", "o"})
    text += ", $w" + std::string(name) + ": f32[" + w + ", " + w + "] parameter \"w" + name + "\", $b" + name +
            ": f32[" + w + "] parameter \"b" + name + "\"";
  text += ", $g: f32[" + w + "] parameter \"g\", $h: f32[" + w + "] parameter \"h\") {\n";
  for (const char* name : {"q", "k", "v"}) {
    const std::string n = name;
    text += "  %" + n + "0: " + x + " = aten.linear.default(%x, $w" + n + ", $b" + n + ")\n  %" + n + "1: f32[" +
            apart + "] = aten.view.default(%" + n + "0, [" + apart + "])\n  %" + n + "2: f32[" + turned +
            "] = aten.permute.default(%" + n + "1, [0, 2, 1, 3])\n";
  }
  return text + "  %a: f32[" + turned + "] = aten.scaled_dot_product_attention.default(%q2, %k2, %v2)\n  %b: f32[" +
         apart + "] = aten.permute.default(%a, [0, 2, 1, 3])\n  %c: " + x + " = aten.reshape.default(%b, [" + batch +
         ", " + rows + ", " + w + "])\n  %d: " + x + " = aten.linear.default(%c, $wo, $bo)\n  %e: " + x +
         " = aten.add.Tensor(%x, %d)\n  %y: " + x + " = aten.layer_norm.default(%e, normalized_shape=[" + w +
         "], weight=$g, bias=$h)\n  return %y\n}\n";
}

// Sums, products, functions and norms of tensors of these sizes, of which some are read again later.
std::string chain(const std::string& sizes, const std::string& last) {
  const std::string t = ": f32[" + sizes + "] = ";
  return "model {}\ngraph main(%x: f32[" + sizes + "] user, %y: f32[" + sizes + "] user, $w: f32[" + last +
         "] parameter \"w\") {\n  %a" + t + "aten.add.Tensor(%x, %y)\n  %b" + t + "aten.mul.Tensor(%a, $w)\n  %c" + t +
         "aten.sigmoid.default(%b)\n  %d" + t + "aten.mul.Tensor(%c, %a)\n  %e" + t + "aten.sub.Tensor(%d, %x)\n  %f" +
         t + "aten.layer_norm.default(%e, normalized_shape=[" + last + "], weight=$w)\n  %g" + t +
         "aten.add.Tensor(%f, %a)\n  %h" + t + "aten.softmax.int(%g, -1)\n  %i" + t + "aten.rms_norm.default(%h, [" +
         last + "], $w)\n  return %i, %d\n}\n";
}

std::vector<std::byte> bytes_of(const std::vector<RtValue>& outputs) {
  std::vector<std::byte> out;
  for (const RtValue& output : outputs) {
    const HostTensor dense = contiguous(*output.get_if<HostTensor>());
    out.insert(out.end(), dense.data, dense.data + dense.nbytes());
  }
  return out;
}

std::vector<Case> cases() {
  const auto two = [](const Shape& sizes) {
    return std::vector<RtValue>{random_floats(sizes, 1), random_floats(sizes, 2)};
  };
  const auto one = [](const Shape& sizes) { return std::vector<RtValue>{random_floats(sizes, 1)}; };
  std::vector<Case> all{
      {"heads of whole tiles", encoder("2", "64", 2, 32), one({2, 64, 64}), 3},
      {"many rows", encoder("4", "128", 4, 64), one({4, 128, 256}), 3},
      {"ragged rows", encoder("3", "37", 4, 32), one({3, 37, 128}), 3},
      {"a few rows of a batch", encoder("5", "3", 4, 32), one({5, 3, 128}), 3},
      {"one row", encoder("1", "1", 8, 32), one({1, 1, 256}), 3},
      {"heads that share tiles", encoder("2", "40", 4, 16), one({2, 40, 64}), 1},
      {"a chain", chain("64, 96", "96"), two({64, 96}), 8},
      {"a long one", chain("8, 96, 352", "352"), two({8, 96, 352}), 8},
      {"ragged", chain("3, 37, 75", "75"), two({3, 37, 75}), 8},
      // Functions take several tiles with a few rows at a time, which is no part of a call.
      {"a few rows", chain("2, 3, 40", "40"), two({2, 3, 40}), 5},
  };
  // The product's own result is an output too: its tiles stay where they are.
  std::string kept = encoder("2", "64", 2, 32);
  kept.replace(kept.rfind("return %y"), 9, "return %y, %d, %a");
  all.push_back({"what somebody else reads", kept, one({2, 64, 64}), 2});
  return all;
}

}  // namespace

TEST_CASE("instructions that run together give the bits that they give alone") {
  for (const int threads : {1, 2}) {
    set_parallel_threads(threads);
    for (const DataType activation : {DataType::bfloat16, DataType::bfloat8_b, DataType::float32}) {
      for (const Case& one : cases()) {
        INFO(one.name << ", " << to_string(activation) << ", " << threads << " threads");
        Compiled made = compiled(one.text, Mode::device, activation);
        INFO(made.result.summary());
        const std::vector<std::byte> alone = bytes_of(made.executor->run(copies(one.inputs)));
        CHECK(made.executor->together() == 0);
        made.executor->run(copies(one.inputs));
        if (activation == DataType::bfloat16) CHECK(made.executor->together() == one.together);
        const auto cycles = made.executor->work().device_cycles;
        for (int run = 0; run < 2; ++run) CHECK(bytes_of(made.executor->run(copies(one.inputs))) == alone);
        CHECK(made.executor->work().device_cycles == cycles);
      }
    }
  }
}

TEST_CASE("a result that takes the place of an operand is written when that has been read") {
  // Each sum is the last to read the one before the last, so that memory is used again after two of them.
  std::string text = "model {}\ngraph main(%x0: f32[96, 160] user, %x1: f32[96, 160] user) {\n";
  for (int i = 2; i < 40; ++i) {
    const auto name = [](int n) { return "%x" + std::to_string(n); };
    const char* op = i % 3 == 0 ? "aten.mul.Tensor" : i % 3 == 1 ? "aten.sub.Tensor" : "aten.add.Tensor";
    text += "  " + name(i) + ": f32[96, 160] = " + op + "(" + name(i - 1) + ", " + name(i - 2) + ")\n";
  }
  text += "  return %x39\n}\n";
  Compiled made = compiled(text);
  const std::vector<RtValue> inputs{random_floats({96, 160}, 1), random_floats({96, 160}, 2)};
  const std::vector<std::byte> alone = bytes_of(made.executor->run(copies(inputs)));
  for (int run = 0; run < 3; ++run) CHECK(bytes_of(made.executor->run(copies(inputs))) == alone);
  CHECK(made.executor->together() >= 30);
}

TEST_CASE("what reads a buffer settles too, until the buffer starts anew") {
  // An average that moves, and what is made of it.
  const std::string text = R"(model {}
graph main(%x: f32[64, 96] user, $w: f32[96, 96] parameter "w", $mean: f32[64, 96] buffer "mean") {
  %u: f32[64, 96] = aten.mul.Tensor(%x, 0.75)
  %a: f32[64, 96] = aten.mul.Tensor($mean, 0.25)
  %b: f32[64, 96] = aten.add.Tensor(%a, %u)
  %c: f32[64, 96] = aten.linear.default(%b, $w)
  %d: f32[64, 96] = aten.tanh.default(%c)
  %y: f32[64, 96] = aten.layer_norm.default(%d, normalized_shape=[96])
  return %y, mutation buffer "mean" = %b
})";
  Compiled made = compiled(text);
  const auto steps = [&] {
    made.executor->reset_state();
    std::vector<std::vector<std::byte>> out;
    for (unsigned step = 0; step < 6; ++step)
      out.push_back(bytes_of(made.executor->run({random_floats({64, 96}, step)})));
    return out;
  };
  const auto first = steps();
  CHECK(made.executor->together() == 1);  // the sum with the product before it
  CHECK(first[4] != first[5]);
  for (int again = 0; again < 2; ++again) CHECK(steps() == first);
}

TEST_CASE("a buffer changes places with its next value, also where that is all there is") {
  Compiled made = compiled(R"(model {}
graph main($n: f32[4, 40] buffer "n") {
  %a: f32[4, 40] = aten.mul.Tensor($n, -2)
  return mutation buffer "n" = %a, %a
})");
  const auto steps = [&] {
    made.executor->reset_state();
    std::vector<std::vector<std::byte>> out;
    for (int step = 0; step < 6; ++step) out.push_back(bytes_of(made.executor->run({})));
    return out;
  };
  const auto first = steps();
  CHECK(first[1] != first[2]);
  CHECK(steps() == first);
  const auto float_of = [](const std::vector<std::byte>& bytes) {
    float value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  };
  for (std::size_t step = 1; step < first.size(); ++step)
    CHECK(float_of(first[step]) == -2 * float_of(first[step - 1]));
}
