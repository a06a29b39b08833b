// Named dispatchers: what they take and run, the registry's rules, the environment, plug-ins.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "torch/cpu_op.h"
#include "dispatch/dispatchers.h"
#include "dispatch/table.h"
#include "tests/catch.h"
#include "tests/dispatch/fixtures.h"
#include "torch_library/torch_last_resort.h"

using namespace dispatch_test;
using ttc::DType;
using ttrt::HostTensor;
using ttrt::RtValue;

namespace {

// Restores the variable and the choice.
struct Environment {
  explicit Environment(const char* value = nullptr) {
    value ? setenv(dispatcher_variable, value, 1) : unsetenv(dispatcher_variable);
    ttrt::install_torch_schemas();
    ttrt::install_torch_last_resort();
  }
  ~Environment() {
    unsetenv(dispatcher_variable);
    set_dispatcher("default");
    set_dispatch_log({});
  }
};

HostTensor floats(ttrt::Shape sizes, float start, DType dtype = DType::f32) {
  HostTensor out = ttrt::empty_host(DType::f32, std::move(sizes));
  for (std::int64_t i = 0; i < out.numel(); ++i) out.as<float>()[i] = start + 0.5F * static_cast<float>(i % 7);
  return ttrt::convert(out, dtype);
}

const std::vector<RtValue> two{floats({2, 3}, 1), floats({2, 3}, 2)};

std::vector<float> numbers(const RtValue& value) {
  const HostTensor host = ttrt::convert(ttrt::contiguous(*value.get_if<HostTensor>()), DType::f32);
  return {host.as<float>(), host.as<float>() + host.numel()};
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const ttc::Error& error) {
    return error.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("default runs ATen operators on the device") {
  const Environment environment;
  REQUIRE(active_dispatcher_name() == "default");
  REQUIRE(can_dispatch_to_ttnn("aten::mul.Tensor", two));
  // 1, 1.5, ... times 2, 2.5, ...: exact in bfloat16.
  REQUIRE(numbers(dispatch_to_ttnn("aten::mul.Tensor", two)) == std::vector<float>{2, 3.75F, 6, 8.75F, 12, 15.75F});
  REQUIRE(numbers(dispatch_to_ttnn("aten::relu", std::vector<RtValue>{floats({4}, -1)})) ==
          std::vector<float>{0, 0, 0, 0.5F});
  const std::vector<RtValue> products{floats({2, 2}, 1), floats({2, 2}, 2)};
  REQUIRE(numbers(dispatch_to_ttnn("aten::mm", products)) == std::vector<float>{6.5F, 7.75F, 11.5F, 13.75F});
  REQUIRE_FALSE(can_dispatch_to_ttnn("aten::nonzero", std::vector<RtValue>{two[0]}));
  REQUIRE_FALSE(can_dispatch_to_ttnn("aten::no_such_operator", two));
  REQUIRE_FALSE(can_dispatch_to_ttnn("aten::mul.Tensor",
                                     std::vector<RtValue>{floats({2}, 1, DType::f64), floats({2}, 1, DType::f64)}));
  REQUIRE_FALSE(can_dispatch_to_ttnn("aten::mul.Tensor", {}));
  REQUIRE_THROWS_AS(dispatch_to_ttnn("aten::nonzero", std::vector<RtValue>{two[0]}), DispatchError);
}

TEST_CASE("optimized gives the same and keeps what it bound") {
  const Environment environment;
  REQUIRE(set_dispatcher("optimized"));
  for (int i = 0; i < 3; ++i)
    REQUIRE(numbers(dispatch_to_ttnn("aten::mul.Tensor", two)) == std::vector<float>{2, 3.75F, 6, 8.75F, 12, 15.75F});
  const std::vector<RtValue> wider{floats({1, 2}, 4), floats({1, 2}, 1)};
  REQUIRE(numbers(dispatch_to_ttnn("aten::mul.Tensor", wider)) == std::vector<float>{4, 6.75F});
}

TEST_CASE("names in any case; set_dispatcher takes effect; unknown names are listed and corrected") {
  const Environment environment;
  REQUIRE(set_dispatcher("CPU"));
  REQUIRE(active_dispatcher_name() == "cpu");
  REQUIRE_FALSE(can_dispatch_to_ttnn("aten::mul.Tensor", two));
  REQUIRE_THROWS_AS(dispatch_to_ttnn("aten::mul.Tensor", two), DispatchError);
  REQUIRE(set_dispatcher("Tensor_Ops"));
  REQUIRE(can_dispatch_to_ttnn("aten::mul.Tensor", two));
  REQUIRE_FALSE(can_dispatch_to_ttnn("aten::relu", std::vector<RtValue>{two[0]}));
  REQUIRE_THROWS_AS(set_dispatcher("optimised"), ttc::Error);
  const std::string message = message_of([] { set_dispatcher("optimised"); });
  REQUIRE_THAT(message, ContainsSubstring("Unknown dispatcher 'optimised'") && ContainsSubstring("tensor_ops") &&
                            ContainsSubstring("did you mean 'optimized'?"));
  REQUIRE(active_dispatcher_name() == "tensor_ops");
  for (const char* name : {"default", "optimized", "debug", "cpu", "tensor_ops"}) {
    const auto names = list_available_dispatchers();
    REQUIRE(std::find(names.begin(), names.end(), name) != names.end());
  }
}

TEST_CASE("the environment wins over the program") {
  const Environment environment("Cpu");
  REQUIRE_FALSE(set_dispatcher("default"));
  REQUIRE(active_dispatcher_name() == "cpu");
  REQUIRE_FALSE(can_dispatch_to_ttnn("aten::mul.Tensor", two));
  setenv(dispatcher_variable, "", 1);
  REQUIRE(active_dispatcher_name() == "default");
  setenv(dispatcher_variable, "nobody", 1);
  REQUIRE_THAT(message_of([] { get_active_dispatcher(); }), ContainsSubstring("Unknown dispatcher 'nobody'"));
}

TEST_CASE("debug logs every check and refusal with its reason") {
  const Environment environment;
  std::vector<std::string> lines;
  set_dispatch_log([&](const std::string& line) { lines.push_back(line); });
  set_dispatcher("debug");
  REQUIRE(can_dispatch_to_ttnn("aten::mul.Tensor", two));
  REQUIRE_FALSE(can_dispatch_to_ttnn("aten::nonzero", std::vector<RtValue>{two[0]}));
  REQUIRE(lines.size() == 2);
  REQUIRE_THAT(lines[0], ContainsSubstring("aten::mul.Tensor( float32[2, 3] float32[2, 3] ) can run"));
  REQUIRE_THAT(lines[1], ContainsSubstring("refused: Unimplemented: no device op serves aten.nonzero.default"));
  dispatch_to_ttnn("aten::mul.Tensor", two);
  REQUIRE(lines.size() == 4);
}

TEST_CASE("custom dispatchers from two functions") {
  const Environment environment;
  register_dispatcher(
      "Mine", [](const OperatorCall& call) { return call.name == "aten::foo"; },
      [](const OperatorCall&) { return RtValue("mine"); });
  set_dispatcher("mine");
  REQUIRE(can_dispatch_to_ttnn("aten::foo", {}));
  REQUIRE_FALSE(can_dispatch_to_ttnn("aten::bar", {}));
  REQUIRE(*dispatch_to_ttnn("aten::foo", {}).get_if<std::string>() == "mine");
  REQUIRE_THROWS_WITH(register_dispatcher("half", [](const OperatorCall&) { return true; }, {}),
                      ContainsSubstring("dispatch_to_ttnn"));
  REQUIRE_THROWS_WITH(register_dispatcher("half", {}, [](const OperatorCall&) { return RtValue(); }),
                      ContainsSubstring("can_dispatch_to_ttnn"));
  REQUIRE_THROWS_AS(register_dispatcher("null", std::shared_ptr<const TtnnDispatcher>()), ttc::Error);
  REQUIRE_THROWS_AS(register_dispatcher(
                        "", [](const OperatorCall&) { return true; }, [](const OperatorCall&) { return RtValue(); }),
                    ttc::Error);
}

TEST_CASE("plug-in libraries") {
  const Environment environment;
  const std::string path = TTC_GOOD_PLUGIN;
  REQUIRE(set_dispatcher(path));
  REQUIRE(can_dispatch_to_ttnn("aten::mul.Tensor", two));
  REQUIRE_FALSE(can_dispatch_to_ttnn("aten::relu", std::vector<RtValue>{two[0]}));
  // It doubles what default gives for a sum, and hands products to default as they are.
  REQUIRE(numbers(dispatch_to_ttnn("aten::add.Tensor", two)) == std::vector<float>{6, 8, 10, 12, 14, 16});
  REQUIRE(numbers(dispatch_to_ttnn("aten::mul.Tensor", two)) == std::vector<float>{2, 3.75F, 6, 8.75F, 12, 15.75F});
  REQUIRE_THROWS_WITH(dispatch_to_ttnn("aten::relu", std::vector<RtValue>{two[0]}),
                      ContainsSubstring("the plug-in has no relu"));
  bool found = false;
  for (const DispatcherInfo& info : dispatcher_infos()) found |= info.origin == path && info.active;
  REQUIRE(found);
  // The environment may name one too.
  set_dispatcher("default");
  setenv(dispatcher_variable, path.c_str(), 1);
  REQUIRE(numbers(dispatch_to_ttnn("aten::add.Tensor", two)) == std::vector<float>{6, 8, 10, 12, 14, 16});
}

TEST_CASE("a broken plug-in says why") {
  const Environment environment;
  REQUIRE_THAT(message_of([] { load_dispatcher_plugin(TTC_HALF_PLUGIN); }),
               ContainsSubstring("has no function 'dispatch_to_ttnn'") && ContainsSubstring(TTC_HALF_PLUGIN));
  REQUIRE_THAT(message_of([] { set_dispatcher("./nowhere.so"); }),
               ContainsSubstring("./nowhere.so") && ContainsSubstring("not there"));
  const TemporaryFile file("libtext.so");
  file.write("this is no library");
  REQUIRE_THAT(message_of([&] { set_dispatcher(file.path()); }), ContainsSubstring("cannot be loaded"));
  REQUIRE(active_dispatcher_name() == "default");
}

TEST_CASE("dispatchers decide which kernels serve a program's device ops") {
  const Environment environment;
  KernelRegistry kernels;
  for (const char* id :
       {"tt.softmax.device", "tt.softmax.host", "tt.matmul.2d", "tt.matmul.dram_sharded", "tt.matmul.host",
        "tt.gelu.device", "tt.gelu.host", "tt.permute.device", "tt.permute.host"})
    kernels.add(kernel(id, std::string(id).substr(0, std::string(id).rfind('.'))));
  const SelectionEngine engine(kernels);
  const auto chosen = [&](const std::string& dispatcher, const std::string& op) {
    return engine.select(context_of(op), *find_dispatcher(dispatcher)->policy())->id.str();
  };
  REQUIRE(chosen("default", "tt.softmax") == "tt.softmax.device");
  REQUIRE(chosen("default", "tt.matmul") == "tt.matmul.2d");
  REQUIRE(chosen("optimized", "tt.matmul") == "tt.matmul.dram_sharded");
  REQUIRE(chosen("cpu", "tt.matmul") == "tt.matmul.host");
  REQUIRE(chosen("tensor_ops", "tt.softmax") == "tt.softmax.host");
  REQUIRE(chosen("tensor_ops", "tt.matmul") == "tt.matmul.2d");
  REQUIRE(chosen("tensor_ops", "tt.gelu") == "tt.gelu.host");
  REQUIRE(chosen("tensor_ops", "tt.permute") == "tt.permute.device");
  register_dispatcher(
      "serves", [](const OperatorCall&) { return true; }, [](const OperatorCall&) { return RtValue(); });
  REQUIRE_FALSE(find_dispatcher("serves")->policy());
}

TEST_CASE("LibTorch's dispatcher is the last resort of a table, and shows its keys") {
  const Environment environment;
  DispatchTable table("aten::add.Tensor");
  const TableKey cpu{Platform::cpu, DType::f32, TableLayout::strided, true, false};
  REQUIRE(table.origin(cpu).step == FillStep::last_resort);
  const Input inputs[] = {{"other", &two[1]}, {"self", &two[0]}};  // by name, in any order
  RtValue out;
  CallArgs args{.inputs = inputs, .extras = {}, .payload = nullptr, .output = &out};
  table.call(cpu, args);
  REQUIRE(numbers(out) == std::vector<float>{3, 4, 5, 6, 7, 8});
  const Json torch = table.explain(cpu)["torch"];
  std::vector<std::string> keys;
  for (const Json& one : torch["keys"]) keys.push_back(one["key"]);
  INFO(torch.dump(1));
  for (const char* key : {"CPU", "AutogradCPU", "ADInplaceOrView", "AutocastCPU"})
    REQUIRE(std::find(keys.begin(), keys.end(), key) != keys.end());
  REQUIRE(torch["resolved"] == "AutogradCPU");
  const Json quantized = table.explain({Platform::cpu, DType::i8, TableLayout::strided, false, true})["torch"];
  REQUIRE(quantized["resolved"] == "QuantizedCPU");
  DispatchTable unknown("aten::no_such_operator");
  REQUIRE(unknown.kernels(cpu).empty());
}
