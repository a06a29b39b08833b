// The dense table: the worked example of five axes, the fallback order, inspection, errors, registration under readers.
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "dispatch/last_resort.h"
#include "dispatch/table.h"
#include "tests/catch.h"
#include "tests/dispatch/fixtures.h"

using namespace dispatch_test;
using ttc::DType;
using ttrt::RtValue;

namespace {

TablePattern dense(Platform device, DType dtype, bool autograd) {
  return {device, dtype, TableLayout::strided, autograd, false};
}

// The matmul table of the worked example.
void fill_example(DispatchTable& table) {
  table.add(dense(Platform::cpu, DType::f32, false), kernel("mkl_sgemm"));
  table.add(dense(Platform::cpu, DType::f64, false), kernel("mkl_dgemm"));
  table.add(dense(Platform::cuda, DType::f32, false), kernel("cublas_sgemm"));
  table.add(dense(Platform::cuda, DType::f16, false), kernel("cublas_hgemm"));
  table.add(dense(Platform::cuda, DType::f32, true), kernel("autograd_cuda_sgemm"));
  table.add(dense(Platform::cpu, DType::i8, false), kernel("quantized_matmul_int8"));
}

TableKey key(Platform device, DType dtype, bool autograd = false) {
  return {device, dtype, TableLayout::strided, autograd, false};
}

std::string at(const DispatchTable& table, const TableKey& k) { return table.at(k).id.str(); }

}  // namespace

TEST_CASE("table: the worked example") {
  DispatchTable table("aten::matmul");
  fill_example(table);
  REQUIRE(at(table, key(Platform::cuda, DType::f32, true)) == "autograd_cuda_sgemm");
  REQUIRE(at(table, key(Platform::cuda, DType::f16)) == "cublas_hgemm");
  REQUIRE(at(table, key(Platform::cpu, DType::f32)) == "mkl_sgemm");
  REQUIRE(at(table, key(Platform::cpu, DType::i8)) == "quantized_matmul_int8");
  REQUIRE(at(table, key(Platform::cuda, DType::f32)) == "cublas_sgemm");
  REQUIRE(at(table, key(Platform::cpu, DType::f64)) == "mkl_dgemm");
  // Without a kernel for gradients, the one without serves.
  REQUIRE(at(table, key(Platform::cuda, DType::f16, true)) == "cublas_hgemm");
  REQUIRE(table.origin(key(Platform::cuda, DType::f16, true)).step == FillStep::autograd_dropped);
  REQUIRE(table.explain(key(Platform::cpu, DType::f32))["registered"].size() == 6);
  for (const bool grad : {false, true})
    REQUIRE_THROWS_AS(table.at(key(Platform::cpu, DType::bf16, grad)), DispatchError);
}

TEST_CASE("table: a missing entry names operator, key and what is registered") {
  DispatchTable table("aten::matmul");
  CallArgs args;
  REQUIRE_THROWS_WITH(table.call(key(Platform::tt, DType::bf16), args),
                      ContainsSubstring("aten::matmul") && ContainsSubstring("registered: nothing"));
  fill_example(table);
  REQUIRE_THROWS_WITH(table.call(key(Platform::tt, DType::bf16, true), args),
                      ContainsSubstring("'aten::matmul'") && ContainsSubstring("(tt, bfloat16, strided, autograd)") &&
                          ContainsSubstring("(cuda, float16, strided) -> cublas_hgemm") &&
                          ContainsSubstring("quantized_matmul_int8"));
  REQUIRE(table.kernels(key(Platform::tt, DType::bf16)).empty());
}

TEST_CASE("table: the fallback order, step by step") {
  DispatchTable table("op");
  const TableKey k{Platform::tt, DType::bf16, TableLayout::tile, true, true};
  const auto step = [&] { return table.origin(k).step; };
  REQUIRE(step() == FillStep::missing);
  // From the most general registration to the exact one: each takes the slot from the one before.
  table.add({}, kernel("catch_all"));
  REQUIRE((at(table, k) == "catch_all" && step() == FillStep::catch_all));
  table.add({.dtype = DType::bf16}, kernel("any_device"));
  REQUIRE((at(table, k) == "any_device" && step() == FillStep::any_device));
  table.add({.device = Platform::tt}, kernel("any_dtype"));
  REQUIRE((at(table, k) == "any_dtype" && step() == FillStep::any_dtype));
  table.add({.device = Platform::tt, .dtype = DType::bf16}, kernel("any_layout"));
  REQUIRE((at(table, k) == "any_layout" && step() == FillStep::any_layout));
  table.add({.device = Platform::tt, .dtype = DType::bf16, .layout = TableLayout::tile}, kernel("any_quantization"));
  REQUIRE((at(table, k) == "any_quantization" && step() == FillStep::any_quantization));
  table.add({Platform::tt, DType::bf16, TableLayout::tile, false, true}, kernel("no_autograd"));
  REQUIRE((at(table, k) == "no_autograd" && step() == FillStep::autograd_dropped));
  table.add({Platform::tt, DType::bf16, TableLayout::tile, true, true}, kernel("exact"));
  REQUIRE((at(table, k) == "exact" && step() == FillStep::exact));
  // A kernel for gradients never serves a call without, nor a quantized one a plain call.
  const TableKey plain{Platform::tt, DType::bf16, TableLayout::tile, false, false};
  REQUIRE(at(table, plain) == "any_quantization");
  // Removal gives the slot back.
  REQUIRE(table.remove("exact"));
  REQUIRE(at(table, k) == "no_autograd");
  table.add({Platform::tt, DType::bf16, TableLayout::tile, false, true}, kernel("younger"));
  REQUIRE(at(table, k) == "younger");
  REQUIRE(table.remove("younger"));
  REQUIRE(at(table, k) == "no_autograd");
  REQUIRE_FALSE(table.remove("younger"));

  std::vector<std::string> order;
  for (const KernelSpec* one : table.kernels(k)) order.push_back(one->id.str());
  REQUIRE(order == std::vector<std::string>{"no_autograd", "any_quantization", "any_layout", "any_dtype", "any_device",
                                            "catch_all"});

  const Json explained = table.explain(k);
  REQUIRE((explained["kernel"] == "no_autograd" && explained["step"] == "autograd dropped" &&
           explained["registered"].size() == 6));
}

TEST_CASE(
    "table: an operation's own kernels stand by priority, the first registered first; those added by hand before") {
  KernelRegistry kernels;
  kernels.add({kernel("a"), kernel("b"), kernel("low", "op.x", 10)});
  DispatchTable& table = kernels.table("op.x");
  kernels.add(kernel("high", "op.x", 90));
  table.add({}, kernel("by hand"));
  const auto order = [&] {
    std::string out;
    for (const KernelSpec* one : table.kernels(key(Platform::cpu, DType::f32))) out += one->id.str() + " ";
    return out;
  };
  REQUIRE(order() == "by hand high a b low ");
  REQUIRE(kernels.remove("a"));
  REQUIRE(order() == "by hand high b low ");
  REQUIRE(kernels.find_table("op.y") == nullptr);
}

TEST_CASE("table: calls reach the kernel of the key") {
  DispatchTable table("op");
  table.add({.device = Platform::cpu}, kernel("c"));
  KernelSpec empty = kernel("empty");
  empty.impl = {};
  table.add({.device = Platform::tt}, empty);
  RtValue out;
  CallArgs args;
  args.output = &out;
  table.call(key(Platform::cpu, DType::f32), args);
  REQUIRE(*out.get_if<std::string>() == "c");
  REQUIRE_THROWS_AS(table.call(key(Platform::tt, DType::f32), args), DispatchError);
  REQUIRE_THROWS_AS(table.add({}, KernelSpec{}), ttc::Error);
}

TEST_CASE("table: readers while kernels come and go") {
  DispatchTable table("op");
  table.add({}, kernel("base"));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      RtValue out;
      CallArgs args;
      args.output = &out;
      while (!stop) {
        table.call(key(Platform::tt, DType::bf16), args);
        const auto& id = *out.get_if<std::string>();
        wrong += id != "base" && id != "fast";
      }
    });
  for (int i = 0; i < 50; ++i) {
    table.add({.device = Platform::tt}, kernel("fast"));
    REQUIRE(table.remove("fast"));
  }
  stop = true;
  for (std::thread& t : readers) t.join();
  REQUIRE(wrong == 0);
  REQUIRE(at(table, key(Platform::tt, DType::bf16)) == "base");
}

TEST_CASE("table: what nothing fills belongs to the last resort") {
  set_last_resort(
      {[](std::string_view op) {
         return op == "aten::known" ? KernelImpl([](CallArgs& args) { *args.output = "torch"; }) : KernelImpl();
       },
       [](std::string_view, const TableKey& k) { return Json{{"keys", Json::array({to_string(k.device)})}}; }});
  DispatchTable known("aten::known"), unknown("aten::unknown");
  set_last_resort({});
  known.add({.device = Platform::tt}, kernel("device"));
  REQUIRE(at(known, key(Platform::tt, DType::bf16)) == "device");
  REQUIRE(known.origin(key(Platform::cpu, DType::f32)).step == FillStep::last_resort);
  RtValue out;
  CallArgs args;
  args.output = &out;
  known.call(key(Platform::cpu, DType::f32), args);
  REQUIRE(*out.get_if<std::string>() == "torch");
  REQUIRE_THROWS_AS(unknown.at(key(Platform::cpu, DType::f32)), DispatchError);
}
