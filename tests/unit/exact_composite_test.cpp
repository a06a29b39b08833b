// Reductions, softmax, norms, rotary embedding and attention: recorded cases bit-exact, and properties of the rows.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "device/exact_attention.h"
#include "replay/replay.h"
#include "tests/catch.h"

using namespace ttrt;
using namespace ttrt::replay;

namespace {

const std::string golden = std::string(TTC_TEST_DATA) + "/golden";

std::vector<float> random_bf16(std::size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& v : values) v = round_bf16_away(normal(generator));
  return values;
}

}  // namespace

TEST_CASE("recorded composite ops are bit-exact") {
  const std::vector<std::string> ops = {"mean",       "max",      "argmax",           "softmax",
                                        "layer_norm", "rms_norm", "rotary_embedding", "scaled_dot_product_attention"};
  std::vector<std::string> seen;
  for (const CaseResult& r : replay_directory(golden, {})) {
    if (std::find(ops.begin(), ops.end(), r.op) == ops.end()) continue;
    INFO(r.id << ": " << r.mismatches << " of " << r.elements << " differ, " << r.reason);
    CHECK(r.status == Status::bit_exact);
    seen.push_back(r.op);
  }
  for (const std::string& op : ops) {
    INFO(op);
    CHECK(std::count(seen.begin(), seen.end(), op) > 0);
  }
}

TEST_CASE("equal elements of sort and topk stand where the network leaves them") {
  const auto results = replay_directory(std::string(TTC_TEST_DATA) + "/golden_ties", {});
  CHECK(results.size() == 3);
  for (const CaseResult& r : results) {
    INFO(r.id << ": " << r.mismatches << " of " << r.elements << " differ, " << r.reason);
    CHECK(r.status == Status::bit_exact);
  }
}

TEST_CASE("sums of small integers are exact, and a mean's scaler is a bfloat16") {
  std::vector<float> row(70);
  std::iota(row.begin(), row.end(), -3.0F);
  const exact::RowConfig wide{.dest = Dest::bits32};
  const float sum = 70 * 69 / 2 - 3 * 70;
  CHECK(exact::reduce(exact::Reduce::sum, row.data(), 70, 1, wide) == sum);
  CHECK(exact::reduce(exact::Reduce::max, row.data(), 70, 1, wide) == 66);
  CHECK(exact::reduce(exact::Reduce::min, row.data(), 70, 1, wide) == -3);
  CHECK(exact::reduce(exact::Reduce::mean, row.data(), 64, 1, wide) == 28.5F);
  // 1 / 70 cut to 8 significant bits is 0.0142822266.
  CHECK(exact::reduce(exact::Reduce::mean, row.data(), 70, 1, wide) == Approx(sum * 0.0142822266).epsilon(1e-5));
}

TEST_CASE("a sum down a column is that along a row where nothing is rounded") {
  std::vector<float> columns(3 * 45);
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<float>(i % 7) - 2;
  for (std::size_t c = 0; c < 3; ++c) {
    std::vector<float> row;
    for (std::size_t i = c; i < columns.size(); i += 3) row.push_back(columns[i]);
    CHECK(exact::reduce(exact::Reduce::sum, columns.data() + c, 45, 3, {}) ==
          exact::reduce(exact::Reduce::sum, row.data(), 45, 1, {}));
  }
}

TEST_CASE("softmax rows add up to one, and equal values share it equally") {
  for (const Dest dest : {Dest::bits16, Dest::bits32}) {
    std::vector<float> row = random_bf16(77, 3);
    exact::softmax_row(row.data(), 77, {.dest = dest}, true);
    CHECK(std::accumulate(row.begin(), row.end(), 0.0) == Approx(1.0).epsilon(0.02));
    std::vector<float> same(32, -5.0F);
    exact::softmax_row(same.data(), 32, {.dest = dest}, true);
    CHECK(std::all_of(same.begin(), same.end(), [](float v) { return v == 0.03125F; }));
  }
}

TEST_CASE("softmax of columns and across tiles adds up to one, and its logarithm is log_softmax") {
  using exact::Along;
  for (const Along along : {Along::row, Along::column, Along::tiles}) {
    // A core has no room for 2000.
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{40}, std::int64_t{2000}}) {
      std::vector<float> line = random_bf16(static_cast<std::size_t>(n), 3), logarithms = line;
      exact::softmax_line(line.data(), n, along, false, 2048, {});
      exact::softmax_line(logarithms.data(), n, along, true, 2048, {});
      CHECK(std::accumulate(line.begin(), line.end(), 0.0) == Approx(1.0).epsilon(0.04));  // each sum is cut to TF32
      for (std::size_t i = 0; i < line.size(); i += 7) CHECK(std::exp(logarithms[i]) == Approx(line[i]).epsilon(0.02));
    }
  }
}

TEST_CASE("the reciprocal of a column's sum has one Newton step in the approximate mode") {
  int less = 0;
  for (std::int64_t n = 2; n < 200; ++n) {
    std::vector<float> accurate(static_cast<std::size_t>(n), 0.0F), approximate = accurate;
    exact::softmax_line(accurate.data(), n, exact::Along::column, false, 2048, {});
    exact::softmax_line(approximate.data(), n, exact::Along::column, false, 2048, {.approx = true});
    REQUIRE(approximate[0] <= accurate[0]);
    REQUIRE(approximate[0] == Approx(accurate[0]).epsilon(1e-3));
    less += approximate[0] < accurate[0] ? 1 : 0;
  }
  CHECK(less > 10);
}

TEST_CASE("attention by chunks of two tiles of keys is that by one, but for roundings") {
  const exact::AttentionShape shape{
      .queries = 128, .keys = 128, .width = 32, .value_width = 32, .keys_used = 100};  // the last chunk is ragged
  const std::vector<float> q = random_bf16(128 * 32, 1), k = random_bf16(128 * 32, 2), v = random_bf16(128 * 32, 3);
  for (const Dest dest : {Dest::bits16, Dest::bits32}) {
    for (const bool causal : {false, true}) {
      exact::AttentionCall call{.shape = shape, .scale = 0.18F, .causal = causal, .config = {.dest = dest}};
      std::vector<float> one(128 * 32), two(one.size());
      for (std::int64_t first = 0; first < 128; first += 32) {
        call.key_chunk = 32;
        exact::attention_rows(q.data(), k.data(), v.data(), call, first, one.data());
        call.key_chunk = 64;
        exact::attention_rows(q.data(), k.data(), v.data(), call, first, two.data());
      }
      CHECK(one != two);
      for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(two[i] == Approx(one[i]).margin(0.05));
    }
  }
}

TEST_CASE("norms have mean zero and size one") {
  std::vector<float> row = random_bf16(96, 5);
  exact::norm_row(row.data(), 96, {}, {});
  double sum = 0, squares = 0;
  for (const float v : row) sum += v, squares += static_cast<double>(v) * v;
  CHECK(std::abs(sum / 96) < 5e-3);
  CHECK(squares / 96 == Approx(1.0).epsilon(0.01));
}

TEST_CASE("causal attention of the first query is its own value; masked keys do not matter") {
  const exact::AttentionShape shape{64, 64, 32, 32};
  const exact::RowConfig config{.dest = Dest::bits16};
  const std::vector<float> q = random_bf16(64 * 32, 1), k = random_bf16(64 * 32, 2);
  std::vector<float> v = random_bf16(64 * 32, 4), out(64 * 32), other(64 * 32);
  const exact::AttentionCall call{.shape = shape, .scale = 0.1767767F, .causal = true, .config = config};
  const auto attend = [&](std::vector<float>& result) {
    for (const std::int64_t first : {0, 32})
      exact::attention_rows(q.data(), k.data(), v.data(), call, first, result.data());
  };
  attend(out);
  for (std::size_t i = 0; i < 32; ++i) CHECK(out[i] == Approx(v[i]).epsilon(0.01));
  for (std::size_t i = 63 * 32; i < v.size(); ++i) v[i] += 1;
  attend(other);
  CHECK(std::equal(out.begin(), out.begin() + 63 * 32, other.begin()));
  CHECK_FALSE(std::equal(out.begin() + 63 * 32, out.end(), other.begin() + 63 * 32));
}
