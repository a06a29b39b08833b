// What nobody exports on purpose. Every graph of tests/data/aten_ops.ir again with a dim of 0 or 1, with all of them 0
// or 1, without dims, and with NaN, infinities and denormals among the values; and graphs with sizes that no memory
// holds.
#include <sys/resource.h>

#include <new>
#include <set>

#include "sweep.h"
#include "support/error.h"
#include "tests/outputs.h"

using namespace ttrt;
using namespace ttrt::test;

namespace {

// The sizes that the user's inputs have.
std::set<std::int64_t> extents(const ttc::ir::Model& model) {
  std::set<std::int64_t> out;
  for (const auto& input : model.graph->inputs())
    if (model.weight_of(input.value.get()) == nullptr)
      for (const std::int64_t size : input.value->type.static_sizes()) out.insert(size);
  return out;
}

// The graph with every user's dim that `resize` changes changed; "" where there is none.
template <typename F>
std::string resized(const std::string& text, const F& resize) {
  return altered(text, [&](ttc::ir::Model& model) {
    bool changed = false;
    for (const auto& input : model.graph->inputs()) {
      if (model.weight_of(input.value.get()) != nullptr) continue;
      for (ttc::ir::SymExpr& size : input.value->type.sizes) {
        const std::int64_t now = size.number(), then = resize(now);
        changed |= now != then;
        size = ttc::ir::SymExpr(then);
      }
    }
    return changed;
  });
}

// Every user's tensor without dims.
std::string without_dims(const std::string& text) {
  return altered(text, [](ttc::ir::Model& model) {
    bool changed = false;
    for (const auto& input : model.graph->inputs()) {
      if (model.weight_of(input.value.get()) != nullptr) continue;
      changed |= !input.value->type.sizes.empty();
      input.value->type.sizes.clear();
      input.value->type.strides.clear();
    }
    return changed;
  });
}

// The graph in other sizes: one extent at a time, then all; no dims at all; and with other values.
std::vector<std::function<Try()>> resized(const std::string& text) {
  std::vector<std::function<Try()>> out;
  for (const std::int64_t extent : extents(*parse_text(text)))
    for (const std::int64_t other : {0, 1})
      out.emplace_back(
          [=] { return Try{resized(text, [&](std::int64_t size) { return size == extent ? other : size; })}; });
  for (const std::int64_t all : {0, 1})
    out.emplace_back([=] { return Try{resized(text, [&](std::int64_t) { return all; })}; });
  out.emplace_back([=] { return Try{without_dims(text)}; });
  for (const Values values : {Values::nan, Values::infinite, Values::denormal})
    out.emplace_back([=] { return Try{text, values}; });
  return out;
}

// In a child with little more address space than the device's memory takes: "" where the graph ends in a message, or
// gives what LibTorch gives where that takes it.
std::string run_huge(const std::string& graph) {
  return in_child([&]() -> std::string {
    const rlimit space{.rlim_cur = rlim_t{24} << 30, .rlim_max = rlim_t{24} << 30};
    setrlimit(RLIMIT_AS, &space);
    try {
      const auto inputs = inputs_of(*parse_text(graph), {.first = 0, .last = 1, .scale = 0});
      const auto actual = on_device(graph, DataType::float32).executor->run(inputs);
      return difference(tensor(actual.at(0)), tensor(in_torch(graph)->run(inputs).at(0)));
    } catch (const ttc::Error& error) {
      return *error.what() == '\0' ? "an error without a message" : "";
    } catch (const std::bad_alloc&) {
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  });
}

}  // namespace

TEST_CASE("dims of 0 and 1, no dims, and special values give what LibTorch gives", "[edges]") {
  check_sweep(resized, 1, 8, 1, 300);
}

// Behind the suite `long`.
TEST_CASE("the same of every graph", "[.long]") { check_sweep(resized, 1, 1, 1, 2500); }

TEST_CASE("sizes that no memory holds end in a message, or in what LibTorch gives", "[edges]") {
  const std::vector<std::string> huge = {
      R"(  %b: f32[1] = aten.slice.Tensor(%x, 0, 0, 1)
  %e: f32[1099511627776] = aten.expand.default(%b, [1099511627776])
  %y: f32[4] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %e: f32[1099511627776] = aten.full.default([1099511627776], 1.5)
  %y: f32[4] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %e: f32[4294967296, 4294967296] = aten.full.default([4294967296, 4294967296], 1.5)
  %y: f32[4, 4294967296] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %y: f32[0, 4611686018427387904] = aten.full.default([0, 4611686018427387904], 1.5)
  return %y)",
      R"(  %e: f32[4398046511104] = aten.repeat.default(%x, [1099511627776])
  %y: f32[4] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %e: f32[2199023255556] = aten.constant_pad_nd.default(%x, [1099511627776, 1099511627776])
  %y: f32[4] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %y: f32[0] = aten.constant_pad_nd.default(%x, [-9223372036854775807, 2])
  return %y)",
      R"(  %y: f32[4] = aten.slice.Tensor(%x, 0, 0, 9223372036854775807)
  return %y)",
      R"(  %y: f32[4] = aten.slice.Tensor(%x, 0, -9223372036854775808, 9223372036854775807)
  return %y)",
      R"(  %y: f32[1] = aten.slice.Tensor(%x, 0, 1, 9223372036854775807, 4611686018427387904)
  return %y)",
      R"(  %y: f32[] = aten.select.int(%x, 0, 4611686018427387904)
  return %y)",
      R"(  %e: i64[1152921504606846976] = aten.arange.start_step(0, 1152921504606846976, 1)
  %y: i64[4] = aten.slice.Tensor(%e, 0, 0, 4)
  return %y)",
      R"(  %y: f32[1, 2, 1] = aten.avg_pool1d.default(%m, [8], [1099511627776], [0])
  return %y)",
      R"(  %e: f32[1, 2, 1099511627776] = aten.upsample_nearest1d.default(%m, [1099511627776])
  %y: f32[1, 2, 4] = aten.slice.Tensor(%e, 2, 0, 4)
  return %y)",
      R"(  %y: f32[4], %j: i64[4] = aten.topk.default(%x, 1099511627776)
  return %y)",
      R"(  %y: f32[4] = aten.roll.default(%x, [4611686018427387905])
  return %y)",
      R"(  %j: i64[3] = aten.add.Tensor(%i, 1099511627776)
  %y: f32[3] = aten.index_select.default(%x, 0, %j)
  return %y)",
      R"(  %j: i64[3] = aten.add.Tensor(%i, 4611686018427387904)
  %y: i64[3] = aten.mul.Tensor(%j, 4)
  return %y)",
      R"(  %w: f32[2, 2, 3] = aten.full.default([2, 2, 3], 0.5)
  %y: f32[1, 2, 1] = aten.conv1d.default(%m, %w, none, [1], [1099511627776], [1099511627776])
  return %y)",
      R"(  %e: i64[3, 1099511627776] = aten.one_hot.default(%i, 1099511627776)
  %y: i64[3, 4] = aten.slice.Tensor(%e, 1, 0, 4)
  return %y)",
      R"(  %y: f32[4611686018427387904, 4] = aten.reshape.default(%x, [4611686018427387904, 4])
  return %y)"};
  for (const std::string& lines : huge) {
    INFO(lines);
    CHECK(run_huge("graph main(%x: f32[4] user, %m: f32[1, 2, 8] user, %i: i64[3] user) {\n" + lines + "\n}\n") == "");
  }
}
