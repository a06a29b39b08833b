// Sizes that fill no tiles, and dtypes: the numbers are those of LibTorch, whatever lies beside them in memory.
#include <limits>

#include "pass/conversions.h"
#include "tests/e2e/rewrites.h"

namespace {

using namespace rewrites;

// Functions of the input whose value at 0, which fills the padding of tiles that come from the host, is 1, minus
// infinity, infinity or NaN.
struct Garbage {
  const char *name, *nodes;
};
constexpr Garbage garbage[] = {
    {"1", "  %e: f32[@] = aten.exp.default(%x)\n"},
    {"-inf", "  %m: f32[@] = aten.abs.default(%x)\n  %e: f32[@] = aten.log.default(%m)\n"},
    {"inf", "  %m: f32[@] = aten.abs.default(%x)\n  %e: f32[@] = aten.rsqrt.default(%m)\n"},
    {"NaN",
     "  %m: f32[@] = aten.div.Tensor(%x, %x)\n  %p: f32[@] = aten.exp.default(%x)\n"
     "  %e: f32[@] = aten.mul.Tensor(%m, %p)\n"},
};

std::string with_shape(std::string text, const std::string& shape) {
  for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@')) text.replace(at, 1, shape);
  return text;
}

struct Job {
  const char *name, *body;
  double tolerance;
};

// `sizes` in an order in which programs are met again. What an earlier run left in memory must not be seen either.
void run_job(const Job& job, const std::string& ranges, const std::string& shape, const std::vector<Shape>& sizes,
             const std::string& weights = "") {
  for (const Garbage& kind : garbage) {
    const std::string text = "model {" + ranges + "}\ngraph main(%x: f32[" + shape + "] user" + weights + ") {\n" +
                             with_shape(kind.nodes, shape) + with_shape(job.body, shape) + "}";
    const auto reference = plain(text);
    Compiled on_device = compiled(text);
    CHECK(on_device.result.nodes.cpu == 0);
    unsigned seed = 50;
    for (const Shape& size : sizes) {
      INFO(job.name << " beside " << kind.name << " at " << size[size.size() - 2] << "x" << size.back());
      // Away from 0, where log and rsqrt are steep, and exact in bfloat16.
      HostTensor x = random_floats(size, ++seed);
      for (std::int64_t i = 0; i < x.numel(); ++i) x.as<float>()[i] += x.as<float>()[i] < 0 ? -0.5F : 0.5F;
      x = convert(convert(x, DType::bf16), DType::f32);
      expect_close(on_device.executor->run({x}), reference->run({x}), job.tolerance);
    }
    CHECK(on_device.executor->fallback_failures().empty());
    CHECK(on_device.executor->cached_plans() <= on_device.executor->options().program_cache);
  }
}

}  // namespace

TEST_CASE("padding never leaks into results", "[ragged]") {
  const Job jobs[] = {
      {"softmax", "  %y: f32[@] = aten.softmax.int(%e, dim=-1)\n  return %y\n", 0.05},
      {"softmax of columns", "  %y: f32[@] = aten.softmax.int(%e, dim=0)\n  return %y\n", 0.05},
      {"mean", "  %y: f32[r, 1] = aten.mean.dim(%e, dim=[-1], keepdim=true)\n  return %y\n", 0.04},
      {"mean of columns", "  %y: f32[1, c] = aten.mean.dim(%e, dim=[0], keepdim=true)\n  return %y\n", 0.04},
      {"sum", "  %y: f32[r, 1] = aten.sum.dim_IntList(%e, dim=[-1], keepdim=true)\n  return %y\n", 0.04},
      {"sum of all", "  %y: f32[] = aten.sum.default(%e)\n  return %y\n", 0.04},
      {"variance", "  %y: f32[r, 1] = aten.var.correction(%e, [-1], correction=0, keepdim=true)\n  return %y\n", 0.05},
      {"norm", "  %y: f32[r, 1] = aten.linalg_vector_norm.default(%e, 2, [-1], true)\n  return %y\n", 0.04},
      {"smallest", "  %y: f32[r, 1] = aten.amin.default(%e, dim=[-1], keepdim=true)\n  return %y\n", 0.01},
      {"largest of columns", "  %y: f32[1, c] = aten.amax.default(%e, dim=[0], keepdim=true)\n  return %y\n", 0.01},
      {"largest of negatives",
       "  %n: f32[@] = aten.neg.default(%e)\n  %y: f32[r, 1] = aten.amax.default(%n, dim=[-1], keepdim=true)\n"
       "  return %y\n",
       0.01},
      {"largest with its place", "  %y: f32[r], %i: i64[r] = aten.max.dim(%e, -1)\n  return %y\n", 0.01},
      {"two largest", "  %y: f32[r, 2], %i: i64[r, 2] = aten.topk.default(%e, 2)\n  return %y\n", 0.01},
      {"running sums", "  %y: f32[@] = aten.cumsum.default(%e, -1)\n  return %y\n", 0.05},
      {"running sums of columns", "  %y: f32[@] = aten.cumsum.default(%e, 0)\n  return %y\n", 0.05},
      {"product with itself",
       "  %t: f32[c, r] = aten.transpose.int(%e, 0, 1)\n  %y: f32[r, r] = aten.matmul.default(%e, %t)\n  return %y\n",
       0.04},
  };
  for (const Job& job : jobs) DYNAMIC_SECTION(job.name) {
      run_job(job, "range r in [1, 128] range c in [2, 128]", "r, c",
              {{64, 96}, {33, 65}, {31, 2}, {70, 33}, {2, 31}, {32, 32}, {33, 65}});
    }
}

TEST_CASE("padding never leaks into windows", "[ragged]") {
  const Job jobs[] = {
      {"average pool", "  %y: f32[1, 3, h, w] = aten.avg_pool2d.default(%e, [3, 3], [1, 1], [1, 1])\n  return %y\n",
       0.05},
      {"largest pool", "  %y: f32[1, 3, h, w] = aten.max_pool2d.default(%e, [3, 3], [1, 1], [1, 1])\n  return %y\n",
       0.02},
      {"convolution", "  %y: f32[1, 2, h, w] = aten.conv2d.default(%e, $k, none, [1, 1], [1, 1])\n  return %y\n", 0.05},
      {"group norm", "  %y: f32[@] = aten.group_norm.default(%e, 3)\n  return %y\n", 0.05},
      {"mean of an image", "  %y: f32[1, 3] = aten.mean.dim(%e, dim=[2, 3])\n  return %y\n", 0.04},
  };
  for (const Job& job : jobs) DYNAMIC_SECTION(job.name) {
      run_job(job, "range h in [2, 64] range w in [2, 64]", "1, 3, h, w",
              {{1, 3, 33, 31}, {1, 3, 5, 7}, {1, 3, 32, 40}, {1, 3, 33, 31}}, ", $k: f32[2, 3, 3, 3] parameter \"k\"");
    }
}

TEST_CASE("padding never leaks into rows of layers", "[ragged]") {
  const Job jobs[] = {
      {"layer norm", "  %y: f32[@] = aten.layer_norm.default(%e, [33], $g)\n  return %y\n", 0.05},
      {"rms norm", "  %y: f32[@] = aten.rms_norm.default(%e, [33], $g)\n  return %y\n", 0.05},
      {"linear", "  %y: f32[r, 5] = aten.linear.default(%e, $w)\n  return %y\n", 0.05},
  };
  for (const Job& job : jobs) DYNAMIC_SECTION(job.name) {
      run_job(job, "range r in [1, 128]", "r, 33", {{64, 33}, {33, 33}, {1, 33}, {31, 33}, {33, 33}},
              ", $g: f32[33] parameter \"g\", $w: f32[5, 33] parameter \"w\"");
    }
}

TEST_CASE("the largest index of ragged rows is never a padded one", "[ragged]") {
  const char* text = R"(model {range r in [1, 128] range c in [1, 128]}
graph main(%x: f32[r, c] user) {
  %e: f32[r, c] = aten.abs.default(%x)
  %n: f32[r, c] = aten.neg.default(%e)
  %i: i64[r] = aten.argmax.default(%n, dim=-1)
  return %i
})";
  const auto reference = plain(text);
  Compiled on_device = compiled(text);
  unsigned seed = 80;
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{64, 96}, {33, 65}, {31, 2}, {5, 33}};
  for (const auto& [rows, columns] : sizes) {
    const HostTensor x = convert(convert(random_floats({rows, columns}, ++seed), DType::bf16), DType::f32);
    const auto actual = on_device.executor->run({x}), expected = reference->run({x});
    CHECK(tensor(actual[0]).dtype == DType::i64);
    // Where two are equal in bfloat16, either may be named.
    const HostTensor a = contiguous(tensor(actual[0])), e = contiguous(tensor(expected[0]));
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t at = a.as<std::int64_t>()[i];
      REQUIRE(at >= 0);
      REQUIRE(at < columns);
      CHECK(std::abs(x.as<float>()[i * columns + at]) ==
            std::abs(x.as<float>()[i * columns + e.as<std::int64_t>()[i]]));
    }
  }
}

// ---- dtypes -------------------------------------------------------------------------------------------------------

TEST_CASE("integers of every width stay exact, overflow included", "[dtypes]") {
  struct Job {
    const char* dtype;
    DType type;
    std::int64_t big;
  };
  for (const Job& job : {Job{"i64", DType::i64, (std::int64_t{1} << 40) + 3}, Job{"i32", DType::i32, 2147483647},
                         Job{"i16", DType::i16, 32767}, Job{"i8", DType::i8, 127}, Job{"u8", DType::u8, 255}}) {
    INFO(job.dtype);
    const std::string d = job.dtype;
    const std::string text =
        "graph main(%x: " + d + "[5] user, %y: " + d + "[5] user) {\n  %a: " + d +
        "[5] = aten.add.Tensor(%x, %y)\n  %m: " + d + "[5] = aten.mul.Tensor(%a, %y)\n  %s: " + d +
        "[5] = aten.sub.Tensor(%m, 7)\n  %c: bool[5] = aten.gt.Tensor(%s, %x)\n  return %a, %m, %s, %c\n}";
    const std::vector<RtValue> inputs{integers(job.type, {5}, {1, 2, 3, job.big, 0}),
                                      integers(job.type, {5}, {3, 100, 5, 1, job.big})};
    Compiled on_device = compiled(text);
    expect_close(on_device.executor->run(inputs), plain(text)->run(inputs), 0);
  }
}

TEST_CASE("float16, float64 and bool come out as what they were", "[dtypes]") {
  for (const char* dtype : {"f16", "f64", "bf16"}) {
    INFO(dtype);
    const std::string d = dtype;
    const std::string text =
        "graph main(%x: " + d +
        "[40, 64] user, $w: f32[64, 64] parameter \"w\", %m: bool[40, 64] user) {\n  %wd: " + d +
        "[64, 64] = aten.to.dtype($w, " + d + ")\n  %l: " + d +
        "[40, 64] = aten.linear.default(%x, %wd)\n  %n: bool[40, 64] = aten.logical_not.default(%m)\n  %f: " + d +
        "[40, 64] = aten.masked_fill.Scalar(%l, %n, 0.0)\n  return %f, %n\n}";
    HostTensor mask = empty_host(DType::i64, {40, 64});
    for (std::int64_t i = 0; i < mask.numel(); ++i) mask.as<std::int64_t>()[i] = i % 3 == 0;
    const DType type = d == "f16" ? DType::f16 : d == "f64" ? DType::f64 : DType::bf16;
    const std::vector<RtValue> inputs{convert(random_floats({40, 64}, 5), type), convert(mask, DType::boolean)};
    const auto expected = plain(text)->run(inputs);
    const auto actual = compiled(text).executor->run(inputs);
    expect_close({actual[0]}, {expected[0]}, bfloat16_noise);
    expect_close({actual[1]}, {expected[1]}, 0);
  }
}

TEST_CASE("infinities and NaN are told apart on the device", "[dtypes]") {
  const char* text = R"(
graph main(%x: f32[2, 4] user) {
  %y: f32[2, 4] = aten.mul.Tensor(%x, 2)
  %a: bool[2, 4] = aten.isinf.default(%y)
  %b: bool[2, 4] = aten.isnan.default(%y)
  %c: bool[2, 4] = aten.isfinite.default(%y)
  return %a, %b, %c
})";
  HostTensor x = empty_host(DType::f32, {2, 4});
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float values[] = {1, inf, -inf, nan, 0, -5, nan, 2};
  std::copy(std::begin(values), std::end(values), x.as<float>());
  Compiled on_device = compiled(text);
  expect_close(on_device.executor->run({x}), plain(text)->run({x}), 0);
}

// As input, as weight and in what is computed: the same values, or converted as the compile says.
TEST_CASE("every dtype is exact or converted as said", "[dtypes]") {
  struct Job {
    const char *dtype, *said, *said_float32;
    double tolerance;  // with bfloat16 activations; 0 with float32 ones
  };
  const Job jobs[] = {
      {"f32", "on the device float32 is bfloat16", "", 0.02},
      {"f16", "on the device float16 is bfloat16", "", 0.02},
      {"bf16", "", "", 0.01},
      {"f64", "on the device float64 is float32", "on the device float64 is float32", 0},
      {"i64", "on the device int64 is int32 (checked)", "on the device int64 is int32 (checked)", 0},
      {"i32", "", "", 0},
      {"i16", "", "", 0},
      {"i8", "", "", 0},
      {"u8", "", "", 0},
  };
  for (const Job& job : jobs) {
    INFO(job.dtype);
    const std::string d = job.dtype;
    const std::string text = "graph main(%x: " + d + "[2, 3] user, $w: " + d +
                             "[2, 3] parameter \"w\" = [100, 3, 0, 7, 120, 1]) {\n  %a: " + d +
                             "[2, 3] = aten.add.Tensor(%x, $w)\n  %m: " + d +
                             "[2, 3] = aten.mul.Tensor(%a, %x)\n  %g: bool[2, 3] = aten.gt.Tensor(%m, $w)\n" +
                             "  return %a, %m, %g\n}";
    const auto type = ttc::dtype_from_string(job.dtype);
    REQUIRE(type.has_value());
    const std::vector<RtValue> inputs{integers(*type, {2, 3}, {1, 0, 5, 100, 90, 3})};
    const auto expected = plain(text)->run(inputs);
    for (const DataType activation : {DataType::bfloat16, DataType::float32}) {
      const bool wide = activation == DataType::float32;
      Compiled on_device = compiled(text, Mode::device, activation);
      CHECK(ttc::conversions_text(on_device.executor->model()) == (wide ? job.said_float32 : job.said));
      expect_close(on_device.executor->run(inputs), expected, wide ? 0 : job.tolerance);
    }
  }
}

TEST_CASE("integers that do not fit 32 bits are exact wherever they come from", "[dtypes]") {
  const char* const bodies[] = {
      "%y: i64[4] = aten.add.Tensor(%x, 1099511627776)",
      "%y: i64[4] = aten.mul.Tensor(%x, 8589934592)",
      "%y: bool[4] = aten.lt.Scalar(%x, 1099511627776)",
      "%y: i64[4] = aten.clamp.default(%x, max=1099511627776)",
      "%y: i64[4] = aten.add.Tensor(%x, $w)",
      "%y: i64[4] = aten.mul.Tensor(%x, %x)",
      "%y: i64[] = aten.sum.default(%x)",
      "%y: i64[4] = aten.cumsum.default(%x, 0)",
      "%y: i64[4] = aten.where.ScalarOther(%p, %x, 1099511627776)",
      "%y: i64[4] = aten.full.default([4], 1099511627776, dtype=i64)",
  };
  for (const char* body : bodies) {
    INFO(body);
    const std::string text =
        "graph main(%x: i64[4] user, %p: bool[4] user, $w: i64[4] parameter \"w\" = [1099511627776, 1, "
        "-1099511627777, 2]) {\n  " +
        std::string(body) + "\n  return %y\n}";
    const auto reference = plain(text);
    Compiled on_device = compiled(text);
    const RtValue mask = integers(DType::boolean, {4}, {1, 0, 1, 0});
    for (const auto& values : {std::initializer_list<std::int64_t>{2000000000, 1, 2000000000, -3},
                               std::initializer_list<std::int64_t>{5, 6, 7, 8},
                               std::initializer_list<std::int64_t>{std::int64_t{1} << 41, 0, 1, -5}}) {
      const std::vector<RtValue> inputs{integers(DType::i64, {4}, values), mask};
      const HostTensor a = contiguous(convert(tensor(on_device.executor->run(inputs)[0]), DType::i64)),
                       e = contiguous(convert(tensor(reference->run(inputs)[0]), DType::i64));
      CHECK(std::vector<std::int64_t>(a.as<std::int64_t>(), a.as<std::int64_t>() + a.numel()) ==
            std::vector<std::int64_t>(e.as<std::int64_t>(), e.as<std::int64_t>() + e.numel()));
    }
  }
}

TEST_CASE("a constant that the device cannot hold sends the run to the host, with the reason", "[dtypes]") {
  const auto e = std::make_unique<Executor>(std::shared_ptr<const ttc::ir::Model>(parse(R"(
graph main(%x: i64[2] user, $w: i64[2] parameter "w" = [1099511627776, 1]) {
  %xd: i32[2] = tt.to_device(%x, format="int32") place="device"
  %wd: i32[2] = tt.to_device($w, format="int32") place="device"
  %y: i32[2] = tt.add(%xd, %wd) place="device"
  %h: i64[2] = tt.to_host(%y, dtype=i64) place="cpu"
  return %h
})")),
                                            in_mode(Mode::device));
  for (int run = 0; run < 2; ++run) {
    const auto out = e->run({integers(DType::i64, {2}, {5, 6})});
    CHECK(tensor(out[0]).as<std::int64_t>()[0] == 1099511627781);
    CHECK(tensor(out[0]).as<std::int64_t>()[1] == 7);
  }
  REQUIRE(e->fallback_failures().size() == 1);
  CHECK(e->fallback_failures()[0].reason.find("does not fit int32") != std::string::npos);
  CHECK(e->fallback_failures()[0].count == 2);
}
