// Exact kernels of op records: every record has one, agrees with ATen within what the device's arithmetic costs, leaves
// clean padding and gives the same bits on every instruction set; and what only exact numerics do.
#include <algorithm>
#include <cmath>
#include <limits>

#include "device/cpu.h"
#include "call.h"
#include "harness.h"
#include "ir/op_schema.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

// Whether a kernel was asked for and refused for the reason that its record states.
bool refused_as_stated(const OpRecord& record, const CaseRun& run) {
  if (record.no_exact_kernel.empty() || run.refusals.size() != 1) return false;
  const std::string stated = std::string(record.name) + ": " + std::string(record.no_exact_kernel);
  return run.refusals.front().ends_with("exact numerics of " + stated);
}

std::vector<Config> exact_configs_of(const OpRecord& record) {
  std::vector<Config> out{{.numerics = Numerics::exact},
                          {.activation = DataType::float32, .numerics = Numerics::exact}};
  if (record.schema.find("bool? fp32_acc") != std::string_view::npos)
    out.push_back({.fp32_acc = false, .numerics = Numerics::exact});
  return out;
}

std::vector<float> waves(std::int64_t n, float step) {
  std::vector<float> out(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::sin(static_cast<float>(i) * step);
  return out;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

}  // namespace

TEST_CASE("every case of every record runs exact and agrees with ATen") {
  for (const OpRecord* record : all_ops()) {
    int refused = 0;
    for (const OpCase& c : record->cases) {
      for (const Config& config : exact_configs_of(*record)) {
        INFO(record->name << " / " << c.name << " / " << to_string(config));
        CaseRun run;
        CHECK_NOTHROW(run = run_case(c, config, device()));
        if (run.outputs.empty() && refused_as_stated(*record, run)) {
          ++refused;
          continue;
        }
        INFO("refused: " << (run.refusals.empty() ? "" : run.refusals.front()));
        CHECK_FALSE(run.outputs.empty());
        for (const Output& output : run.outputs) CHECK(problem(output, allowed(*record, config)) == "");
      }
    }
    INFO(record->name << " states: " << record->no_exact_kernel);
    CHECK((refused > 0) == !record->no_exact_kernel.empty());
  }
}

TEST_CASE("exact kernels give the same bits on every instruction set") {
  for (const OpRecord* record : all_ops()) {
    const OpCase& c = record->cases.front();
    INFO(record->name << " / " << c.name);
    const Config config{.numerics = Numerics::exact};
    const CaseRun best = run_case(c, config, device());
    for (const Isa level : {Isa::portable, Isa::avx2}) {
      const ScopedIsa lowered(level);
      const CaseRun other = run_case(c, config, device());
      REQUIRE(other.outputs.size() == best.outputs.size());
      for (std::size_t i = 0; i < best.outputs.size(); ++i) CHECK(other.outputs[i].bytes == best.outputs[i].bytes);
    }
  }
}

TEST_CASE("a sum's operand is shifted within 11 bits, so that it rounds twice") {
  // 1 + (2^-8 + 2^-12) is nearest to 1 + 2^-7. The matrix unit shifts the small operand by 8 of 11 bits first.
  const DeviceTensor one = upload({1.0F}, {1, 1}), small = upload({0.00390625F + 0.000244140625F}, {1, 1});
  CHECK(Call("tt.add", {one, small}).run().at(0) == 1.0078125F);
  CHECK(Call("tt.sub", {one, one}).run().at(0) == 0.0F);
  CHECK(Call("tt.mul", {upload({1.0625F}, {1, 1}), upload({1.0625F}, {1, 1})}).run().at(0) == 1.125F);
  // 2^-8 + 2^-12 - 2 is nearest to -255/128; shifted by 9 first it is -1022/512, halfway to -2.
  CHECK(Call("tt.rsub", {one, small}).set("alpha", 2.0).run().at(0) == -2.0F);
  CHECK(Call("tt.rsub", {one, small}).set("alpha", 2.0).run(Numerics::fast).at(0) == -1.9921875F);
}

TEST_CASE("comparisons test a difference that rounds to the operands' format") {
  const DeviceTensor a = upload({1.0F, -0.0F, 2.0F}, {1, 3}), b = upload({1.0F, 0.0F, 3.0F}, {1, 3});
  CHECK(Call("tt.eq", {a, b}).run() == std::vector<float>{1, 1, 0});
  CHECK(Call("tt.lt", {a, b}).run() == std::vector<float>{0, 0, 1});
  CHECK(Call("tt.ge", {a, b}).run() == std::vector<float>{1, 1, 0});
}

TEST_CASE("exact attention: queries and keys that pad a tile do not matter") {
  const std::int64_t heads = 2, queries = 7, keys = 45, width = 40;
  const auto q = waves(heads * queries * width, 0.37F), k = waves(heads * keys * width, 0.71F),
             v = waves(heads * keys * width, 1.3F);
  const DeviceTensor dq = upload(q, {1, heads, queries, width}), dk = upload(k, {1, heads, keys, width}),
                     dv = upload(v, {1, heads, keys, width});
  for (const bool wide : {false, true}) {
    const auto exact = Call("tt.attention", {dq, dk, dv}).set("fp32_acc", wide).run();
    const auto fast = Call("tt.attention", {dq, dk, dv}).set("fp32_acc", wide).run(Numerics::fast);
    CHECK(largest_difference(exact, fast) < (wide ? 0.01 : 0.04));
  }
}

TEST_CASE("exact attention: masks add to the scores after the scale, hidden keys give nothing") {
  const std::int64_t queries = 33, keys = 40, width = 32;
  const DeviceTensor q = upload(waves(queries * width, 0.37F), {1, 1, queries, width}),
                     k = upload(waves(keys * width, 0.71F), {1, 1, keys, width}),
                     v = upload(waves(keys * width, 1.3F), {1, 1, keys, width});
  // One key each: its value comes out.
  std::vector<float> one(static_cast<std::size_t>(queries * keys), 0.0F);
  for (std::int64_t i = 0; i < queries; ++i) one[static_cast<std::size_t>(i * keys + 39 - i)] = 1.0F;
  const auto chosen = Call("tt.attention", {q, k, v, upload(one, {1, 1, queries, keys})})
                          .set("mask_kind", std::string("boolean"))
                          .run();
  const auto values = Call("tt.flip", {v}).set("dims", std::vector<std::int64_t>{2}).run(Numerics::fast);
  CHECK(largest_difference(chosen, {values.begin(), values.begin() + queries * width}) < 0.008);
  // A finite bias keeps its weight whatever the scale is.
  const DeviceTensor bias = upload(waves(keys, 0.9F), {1, 1, 1, keys});
  const auto biased = Call("tt.attention", {q, k, v, bias}).run(),
             fast = Call("tt.attention", {q, k, v, bias}).run(Numerics::fast);
  CHECK(largest_difference(biased, fast) < 0.01);
  CHECK(largest_difference(biased, Call("tt.attention", {q, k, v}).run()) > 0.02);
}

TEST_CASE("exact attention: a query whose keys are all hidden gives the mean of the values, as the device does") {
  const DeviceTensor q = upload(waves(32 * 32, 0.37F), {1, 1, 32, 32}),
                     v = upload(std::vector<float>(32 * 32, 0.5F), {1, 1, 32, 32});
  const auto y = Call("tt.attention", {q, q, v, upload(std::vector<float>(32 * 32, -inf), {1, 1, 32, 32})}).run();
  CHECK(std::all_of(y.begin(), y.end(), [](float x) { return std::abs(x - 0.5F) < 0.01F; }));
}

TEST_CASE("exact attention: groups of heads share keys and values") {
  const std::int64_t queries = 40, keys = 40, width = 32;
  const auto q = waves(4 * queries * width, 0.37F), k = waves(2 * keys * width, 0.71F),
             v = waves(2 * keys * width, 1.3F);
  const auto repeated = [&](const std::vector<float>& x) {
    std::vector<float> out;
    for (std::size_t h = 0; h < 4; ++h) {
      const auto first = x.begin() + static_cast<std::ptrdiff_t>(h / 2 * static_cast<std::size_t>(keys * width));
      out.insert(out.end(), first, first + keys * width);
    }
    return out;
  };
  const DeviceTensor dq = upload(q, {1, 4, queries, width});
  const auto grouped = Call("tt.attention", {dq, upload(k, {1, 2, keys, width}), upload(v, {1, 2, keys, width})})
                           .set("is_causal", true)
                           .run();
  const auto whole =
      Call("tt.attention", {dq, upload(repeated(k), {1, 4, keys, width}), upload(repeated(v), {1, 4, keys, width})})
          .set("is_causal", true)
          .run();
  CHECK(grouped == whole);
}

TEST_CASE("exact reductions: steps leave tensors, sums over some of the dims keep float32 between theirs") {
  std::vector<float> x(32 * 33 * 2, 1.0F / 256.0F);
  x[0] = 1.0F;
  const DeviceTensor t = upload(x, {2, 33, 32});
  const auto some = Call("tt.sum", {t}).set("dims", std::vector<std::int64_t>{1, 2}).run();
  CHECK(some.at(0) == Approx(1.0 + (32 * 33 - 1) / 256.0).epsilon(0.004));
  const auto all = Call("tt.mean", {t}).set("dims", std::vector<std::int64_t>{}).run();
  CHECK(all.at(0) == Approx((1.0 + (32 * 33 * 2 - 1) / 256.0) / (32 * 33 * 2)).epsilon(0.01));
  const auto var = Call("tt.var", {upload({1, 2, 3, 4}, {1, 4})}).set("dims", std::vector<std::int64_t>{1}).run();
  CHECK(var.at(0) == Approx(5.0 / 3).epsilon(0.004));
}
