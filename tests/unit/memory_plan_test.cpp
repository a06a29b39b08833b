// Where values lie that live at one time, and which weights stay.
#include "executor/memory_plan.h"

#include <algorithm>

#include "tests/catch.h"

using namespace ttrt;

TEST_CASE("the memory plan takes for each value, the largest first, the lowest place that is free") {
  for (int seed = 1; seed < 60; ++seed) {
    std::vector<PlannedValue> values;
    for (int i = 0; i < 50; ++i) {
      const int begin = i * seed % 31, length = i * 13 % (i % 3 == 0 ? 40 : 4);
      values.push_back({.id = i, .bytes = 1 + i * 389 * seed % 1500, .begin = begin, .end = begin + length});
    }
    const std::int64_t total = plan_memory(values);
    std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    for (std::size_t i = 0; i < values.size(); ++i) {
      const PlannedValue& one = values[i];
      const auto is_free = [&](std::int64_t at) {
        return std::none_of(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), [&](const auto& other) {
          return other.end >= one.begin && one.end >= other.begin && other.offset < at + one.bytes &&
                 at < other.offset + other.bytes;
        });
      };
      std::int64_t lowest = 0;
      while (!is_free(lowest)) lowest += 64;
      CHECK(one.offset == lowest);
      CHECK(one.offset + one.bytes <= total);
    }
  }
  std::vector<PlannedValue> chain;
  for (int i = 0; i < 40; ++i) chain.push_back({.id = i, .bytes = 128, .begin = i, .end = i + 1});
  CHECK(plan_memory(chain) == 256);
}

TEST_CASE("weights stay in memory by what their absence would cost, the rest arrives where it is read") {
  // Two values of 100 that live together at instruction 1; weights of 100 that instructions 0, 1, 2 read.
  std::vector<PlannedValue> values{{.id = 7, .bytes = 100, .begin = 0, .end = 1},
                                   {.id = 8, .bytes = 100, .begin = 1, .end = 2}};
  std::vector<PlannedWeight> weights{
      {.bytes = 100, .uses = {0}}, {.bytes = 100, .uses = {1}}, {.bytes = 100, .uses = {0, 2}}};
  const auto stays = [&] {
    std::vector<bool> out;
    for (const PlannedWeight& weight : weights) out.push_back(weight.stays);
    return out;
  };
  auto all = plan_residency(values, weights, 500, 1);
  REQUIRE(all);
  CHECK(stays() == std::vector<bool>{true, true, true});
  CHECK(all->arrivals.empty());
  CHECK(all->region_bytes == 200);
  auto some = plan_residency(values, weights, 400, 1);
  REQUIRE(some);
  CHECK(stays() == std::vector<bool>{false, false, true});  // what is read twice; 1 needs 400, so nothing else stays
  CHECK(some->region_bytes == 300);
  REQUIRE(some->arrivals.size() == 2);
  CHECK(some->arrivals[0].begin == 0);
  // Nothing of what lives at one time shares a byte, weights and values alike.
  std::vector<PlannedValue> placed = values;
  placed.insert(placed.end(), some->arrivals.begin(), some->arrivals.end());
  for (const PlannedValue& a : placed)
    for (const PlannedValue& b : placed)
      if (&a != &b && a.begin <= b.end && b.begin <= a.end)
        CHECK((a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset));
  auto few = plan_residency(values, weights, 300, 1);
  REQUIRE(few);
  CHECK(stays() == std::vector<bool>{false, false, false});
  CHECK(few->arrivals.size() == 4);  // the one that is read twice comes twice: between, there is no room for it
  CHECK_FALSE(plan_residency(values, weights, 299, 1));
  std::vector<PlannedWeight> twice{{.bytes = 100, .uses = {0, 1}}, {.bytes = 200, .uses = {2}}};
  auto kept = plan_residency(values, twice, 300, 1);
  REQUIRE(kept);
  CHECK(kept->arrivals.size() == 2);  // kept from one instruction to the next
}
