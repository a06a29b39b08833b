// Convolutions, transposed convolutions and pooling against ATen over random sizes, strides, paddings, dilations and
// groups: what a handful of cases per record would miss.
#include <algorithm>
#include <random>
#include <sstream>

#include "harness.h"
#include "ops/activation.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<unsigned>(high - low + 1));
  }
  std::vector<std::int64_t> list(std::size_t n, std::int64_t low, std::int64_t high) {
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < n; ++i) out.push_back((*this)(low, high));
    return out;
  }

 private:
  std::mt19937 random_;
};

std::string text(const std::vector<std::int64_t>& list) {
  std::ostringstream out;
  out << "[";
  for (std::size_t i = 0; i < list.size(); ++i) out << (i ? ", " : "") << list[i];
  out << "]";
  return out.str();
}

std::vector<std::int64_t> joined(std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string type(const std::vector<std::int64_t>& sizes) { return "f32" + text(sizes); }

// The graph on the device in bfloat16 and float32; the result must have `sizes`.
void check(const std::string& graph, const std::vector<std::int64_t>& sizes, const std::string& served) {
  for (const DataType format : {DataType::bfloat16, DataType::float32}) {
    const Config config{.activation = format, .weight = format};
    INFO(graph << "\n" << to_string(config));
    const CaseRun run = run_case({"random", graph}, config, device());
    REQUIRE(run.outputs.size() == 1);
    const Output& out = run.outputs[0];
    CHECK(run.served.contains(served));
    CHECK(out.expected.sizes == sizes);
    CHECK(problem(out, allowed(*find_op(served), config)) == "");
  }
}

}  // namespace

TEST_CASE("convolutions of random shapes agree with ATen") {
  Draw draw(1);
  for (int i = 0; i < 60; ++i) {
    const auto dims = static_cast<std::size_t>(i % 5 == 4 ? 3 : i % 2 + 1);
    const std::int64_t groups = draw(0, 2) == 0 ? draw(1, 40) : 1;
    const std::int64_t in = groups * draw(1, groups > 8 ? 2 : 20), out = groups * draw(1, groups > 8 ? 3 : 40);
    const auto kernel = draw.list(dims, 1, 4), stride = draw.list(dims, 1, 3), padding = draw.list(dims, 0, 3),
               dilation = draw.list(dims, 1, 3);
    std::vector<std::int64_t> size, result;
    for (std::size_t d = 0; d < dims; ++d) {
      const std::int64_t span = dilation[d] * (kernel[d] - 1) + 1;
      size.push_back(std::max<std::int64_t>(1, span - 2 * padding[d]) + draw(0, dims == 1 ? 90 : 12));
      result.push_back((size[d] + 2 * padding[d] - span) / stride[d] + 1);
    }
    const std::int64_t batch = draw(1, 3);
    const auto y = joined({batch, out}, result);
    std::ostringstream graph;
    graph << "graph main(%x: " << type(joined({batch, in}, size))
          << " user, $w: " << type(joined({out, in / groups}, kernel))
          << " parameter \"w\" = rand(1), $b: " << type({out}) << " parameter \"b\" = rand(2)) {\n  %y: " << type(y)
          << " = aten.convolution.default(%x, $w, " << (i % 3 == 0 ? "none" : "$b") << ", " << text(stride) << ", "
          << text(padding) << ", " << text(dilation) << ", false, " << text(std::vector<std::int64_t>(dims, 0)) << ", "
          << groups << ")\n  return %y\n}";
    check(graph.str(), y, "tt.conv2d");
  }
}

TEST_CASE("convolutions and transposed ones of one channel a group agree with ATen") {
  Draw draw(5);
  for (int i = 0; i < 40; ++i) {
    const auto dims = static_cast<std::size_t>(i % 5 == 4 ? 3 : i % 3 == 0 ? 1 : 2);
    const bool transposed = i % 4 == 3;
    const std::int64_t in = draw(2, 40), each = draw(1, 3), batch = draw(1, 2);
    const auto kernel = draw.list(dims, 1, 5), stride = draw.list(dims, 1, 4), dilation = draw.list(dims, 1, 3);
    std::vector<std::int64_t> padding, size, result;
    for (std::size_t d = 0; d < dims; ++d) {
      const std::int64_t span = dilation[d] * (kernel[d] - 1);
      padding.push_back(draw(0, transposed ? span : 4));
      size.push_back(span + 1 + draw(0, dims == 1 ? 300 : dims == 2 && i % 7 == 0 ? 140 : 8));
      result.push_back(transposed ? (size[d] - 1) * stride[d] - 2 * padding[d] + span + 1
                                  : (size[d] + 2 * padding[d] - span - 1) / stride[d] + 1);
    }
    const auto y = joined({batch, in * each}, result);
    const auto sizes = transposed ? std::vector<std::int64_t>{in, each} : std::vector<std::int64_t>{in * each, 1};
    std::ostringstream graph;
    graph << "graph main(%x: " << type(joined({batch, in}, size)) << " user, $w: " << type(joined(sizes, kernel))
          << " parameter \"w\" = rand(1), $b: " << type({in * each})
          << " parameter \"b\" = rand(2)) {\n  %y: " << type(y) << " = aten.convolution.default(%x, $w, "
          << (i % 3 == 0 ? "none" : "$b") << ", " << text(stride) << ", " << text(padding) << ", " << text(dilation)
          << ", " << (transposed ? "true" : "false") << ", " << text(std::vector<std::int64_t>(dims, 0)) << ", " << in
          << ")\n  return %y\n}";
    check(graph.str(), y, transposed ? "tt.conv_transpose2d" : "tt.conv2d");
  }
}

TEST_CASE("transposed convolutions of random shapes agree with ATen") {
  Draw draw(2);
  for (int i = 0; i < 40; ++i) {
    const auto dims = static_cast<std::size_t>(i % 7 == 6 ? 3 : i % 2 + 1);
    const std::int64_t groups = draw(0, 2) == 0 ? draw(1, 12) : 1;
    const std::int64_t in = groups * draw(1, 12), out = groups * draw(1, 20);
    const auto kernel = draw.list(dims, 1, 4), stride = draw.list(dims, 1, 4), padding = draw.list(dims, 0, 3),
               dilation = draw.list(dims, 1, 2);
    std::vector<std::int64_t> size, extra, result;
    for (std::size_t d = 0; d < dims; ++d) {
      extra.push_back(draw(0, std::max(stride[d], dilation[d]) - 1));
      const std::int64_t fixed =
          dilation[d] * (kernel[d] - 1) + 1 + extra[d] - 2 * padding[d];  // size of the result for one element
      size.push_back(draw(0, 9) + (fixed >= 1 ? 1 : (1 - fixed + stride[d] - 1) / stride[d] + 1));
      result.push_back((size[d] - 1) * stride[d] + fixed);
    }
    const std::int64_t batch = draw(1, 2);
    const auto y = joined({batch, out}, result);
    std::ostringstream graph;
    graph << "graph main(%x: " << type(joined({batch, in}, size))
          << " user, $w: " << type(joined({in, out / groups}, kernel))
          << " parameter \"w\" = rand(1), $b: " << type({out}) << " parameter \"b\" = rand(2)) {\n  %y: " << type(y)
          << " = aten.convolution.default(%x, $w, " << (i % 3 == 0 ? "none" : "$b") << ", " << text(stride) << ", "
          << text(padding) << ", " << text(dilation) << ", true, " << text(extra) << ", " << groups
          << ")\n  return %y\n}";
    check(graph.str(), y, "tt.conv_transpose2d");
  }
}

TEST_CASE("a long one-dim convolution runs in blocks of windows") {
  // 40000 windows of 12 * 25 values: many blocks, the last one not full; two images.
  const std::string graph =
      "graph main(%x: f32[2, 12, 80013] user, $w: f32[9, 12, 25] parameter \"w\" = rand(1)) {\n"
      "  %y: f32[2, 9, 20000] = aten.conv1d.default(%x, $w, none, [4], [5])\n  return %y\n}";
  check(graph, {2, 9, 20000}, "tt.conv2d");
}

TEST_CASE("pooling of random shapes agrees with ATen") {
  Draw draw(3);
  for (int i = 0; i < 60; ++i) {
    const auto dims = static_cast<std::size_t>(i % 3 + 1);
    const bool mean = i % 2 == 0, ceil = draw(0, 1) == 1, counts = draw(0, 1) == 1;
    const auto kernel = draw.list(dims, 1, 4), stride = draw.list(dims, 1, 4);
    const auto dilation = mean ? std::vector<std::int64_t>(dims, 1) : draw.list(dims, 1, 2);
    std::vector<std::int64_t> padding, size, result;
    for (std::size_t d = 0; d < dims; ++d) {
      const std::int64_t span = dilation[d] * (kernel[d] - 1) + 1;
      padding.push_back(draw(0, kernel[d] / 2));
      size.push_back(span + draw(0, 12));
      const std::int64_t room = size[d] + 2 * padding[d] - span;
      std::int64_t n = (room + (ceil ? stride[d] - 1 : 0)) / stride[d] + 1;
      if (ceil && (n - 1) * stride[d] >= size[d] + padding[d]) --n;
      result.push_back(n);
    }
    const std::int64_t batch = draw(1, 3), channels = draw(1, 5);
    const auto y = joined({batch, channels}, result);
    std::ostringstream graph;
    graph << "graph main(%x: " << type(joined({batch, channels}, size)) << " user) {\n  %y: " << type(y) << " = aten."
          << (mean ? "avg" : "max") << "_pool" << dims << "d.default(%x, " << text(kernel) << ", " << text(stride)
          << ", " << text(padding) << ", ";
    if (mean)
      graph << (ceil ? "true" : "false") << ", " << (counts ? "true" : "false");
    else
      graph << text(dilation) << ", " << (ceil ? "true" : "false");
    graph << ")\n  return %y\n}";
    check(graph.str(), y, mean ? "tt.avg_pool2d" : "tt.max_pool2d");
  }
}

TEST_CASE("convolutions that cannot be are refused, with a reason") {
  const auto refusal = [](const std::string& graph) {
    const CaseRun run = run_case({"refused", graph}, {}, device());
    CHECK(run.outputs.empty());
    std::string all;
    for (const std::string& line : run.refusals) all += line + "\n";
    return all;
  };
  CHECK_THAT(refusal("graph main(%x: f32[1, 3, 8, 8] user, %w: f32[4, 3, 3, 3] user) {\n"
                     "  %y: f32[1, 4, 6, 6] = aten.conv2d.default(%x, %w)\n  return %y\n}"),
             Catch::Contains("the kernel is computed at run time"));
  CHECK_THAT(refusal("graph main(%x: f32[2, 3, 8, 8] user, $m: f32[3] buffer \"m\" = rand(1), $v: f32[3] buffer \"v\" "
                     "= splat(1.0)) {\n"
                     "  %y: f32[2, 3, 8, 8] = aten.batch_norm.default(%x, none, none, $m, $v, true, 0.1, 1e-05, "
                     "true)\n  return %y\n}"),
             Catch::Contains("statistics of the batch"));
}

TEST_CASE("an activation behind sums takes any number of them", "[windows][exact]") {
  const auto relu = ops::fused_activation("relu", Numerics::exact, DataType::bfloat16);
  for (const std::size_t count : {1U, 512U, 1024U, 1500U, 4096U}) {
    std::vector<float> sums(count + 1, -1.0F);
    relu(std::span(sums).first(count));
    CHECK(std::count(sums.begin(), sums.end(), 0.0F) == static_cast<std::ptrdiff_t>(count));
    CHECK(sums.back() == -1.0F);  // what stands behind them is left alone
  }
}
