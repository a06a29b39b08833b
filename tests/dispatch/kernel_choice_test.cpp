// What the executor's steps are served by: the breaker over every mode, static maps, dispatchers of one's own, counts.
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "executor/kernel_choice.h"
#include "tests/catch.h"
#include "tests/dispatch/fixtures.h"

using namespace dispatch_test;
using namespace std::chrono_literals;
using ttrt::HostTensor;
using ttrt::KernelChoiceOptions;
using ttrt::KernelChooser;
using ttrt::RtValue;
using ttrt::StepKernel;

namespace {

// A step that notes which kernel it ran as; those in `broken` fail.
struct Step final : StepCall {
  std::set<std::string> broken;
  std::vector<std::string> tried_kernels, failures;
  std::vector<RtValue> results;

  void run_as(const KernelSpec& spec, const DeviceKernel&) override {
    tried_kernels.push_back(spec.id.str());
    if (broken.contains(spec.id.str())) throw std::runtime_error("it broke");
  }
  std::vector<RtValue> arguments(bool on_host) override {
    return {on_host ? RtValue(ttrt::empty_host(ttc::DType::f32, {2, 2})) : RtValue(), RtValue(std::int64_t{-1})};
  }
  void take_results(std::vector<RtValue> values) override { results = std::move(values); }
  void failed(const KernelSpec& spec, const std::string& why) override {
    failures.push_back(spec.id.str() + ": " + why);
  }
};

SelectionContext softmax(const std::string& operation = "tt.softmax") {
  SelectionContext c = context_of(operation);
  c.device.platform = Platform::tt;
  c.dtype = ttc::DType::bf16;
  c.format_a = static_cast<std::uint8_t>(ttrt::DataType::bfloat16);
  c.batch_size = 64;
  return c;
}

// One row of two tiles.
SelectionContext narrow_linear() {
  SelectionContext c = softmax("tt.linear");
  c.format_b = c.format_a;
  c.device.grid_x = c.device.grid_y = 8;
  c.m = 32, c.n = 64, c.k = 64;
  return c;
}

struct Chosen {
  const SelectionContext context;
  std::vector<std::string> reports;
  std::mutex mutex;
  std::unique_ptr<KernelChooser> chooser;
  StepKernel kernel;
  Step step;

  explicit Chosen(DispatchOptions options, const std::string& dispatcher = "default",
                  const SelectionContext& of = softmax())
      : context(of) {
    KernelChoiceOptions choice{.dispatcher = dispatcher, .dispatch = std::move(options)};
    choice.report = [this](const std::string& text, std::string_view severity) {
      const std::lock_guard lock(mutex);
      reports.push_back(std::string(severity) + ": " + text);
    };
    choice.dispatch.log_fallbacks = false;
    chooser = std::make_unique<KernelChooser>(std::move(choice));
    kernel = chooser->bind(context, "node");
  }
  std::string run() {
    step.tried_kernels.clear();
    chooser->run(kernel, context, step);
    return kernel.served()->id.str();
  }
  bool reported(const std::string& text) {
    const std::lock_guard lock(mutex);
    return std::any_of(reports.begin(), reports.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }
};

// Taken out after two failures, told, left alone, tried again, told again.
void breaks_and_recovers(DispatchOptions options) {
  options.failure_threshold = 2;
  options.recovery_timeout_seconds = 0.2;
  Chosen c(std::move(options));
  REQUIRE((c.run() == "tt.softmax.device" && c.kernel.on_device()));
  c.step.broken = {"tt.softmax.device"};
  for (int i = 0; i < 2; ++i) {
    REQUIRE(c.run() == "tt.softmax.host");
    REQUIRE(c.step.tried_kernels == std::vector<std::string>{"tt.softmax.device", "tt.softmax.host"});
  }
  REQUIRE(c.reported("tt.softmax.device is taken out after 2 failures in a row"));
  REQUIRE((c.run() == "tt.softmax.host" && !c.kernel.on_device()));
  REQUIRE(c.step.tried_kernels == std::vector<std::string>{"tt.softmax.host"});
  c.step.broken.clear();
  std::this_thread::sleep_for(300ms);
  REQUIRE(c.run() == "tt.softmax.device");
  REQUIRE(c.reported("tt.softmax.device works again"));
  const Json telemetry = c.chooser->telemetry();
  REQUIRE(telemetry["kernels"] == Json::parse(R"({"tt.softmax.device": 2, "tt.softmax.host": 3})"));
  REQUIRE(telemetry["nodes"].size() == 2);
  REQUIRE(telemetry["circuit_breaker"]["kernels"]["tt.softmax.device"]["total_failures"] == 2);
}

}  // namespace

TEST_CASE("a kernel that keeps failing is taken out in every mode, and tried again later") {
  TemporaryFile file;
  file.write("version: \"1.0\"\nkernel_locks: {tt.softmax: tt.softmax.device}\n");
  for (const DispatchMode mode : {DispatchMode::STATIC, DispatchMode::DYNAMIC, DispatchMode::CONFIG,
                                  DispatchMode::HOT_RELOAD, DispatchMode::AUTO}) {
    INFO(to_string(mode));
    const bool by_file = mode == DispatchMode::CONFIG || mode == DispatchMode::HOT_RELOAD;
    breaks_and_recovers({.mode = mode, .config_path = by_file ? file.path() : ""});
  }
  breaks_and_recovers({.mode = DispatchMode::STATIC, .static_kernel_map = {{"tt.softmax", "tt.softmax.device"}}});
}

TEST_CASE("a static map fixes kernels, by hand or in the file; a kernel of another op is an error") {
  Chosen by_hand({.mode = DispatchMode::STATIC, .static_kernel_map = {{"tt.softmax", "tt.softmax.host"}}});
  REQUIRE(by_hand.run() == "tt.softmax.host");
  REQUIRE(by_hand.chooser->explain(softmax())["static"] == "tt.softmax.host");
  TemporaryFile file;
  file.write("version: \"1.0\"\nstatic_kernel_map: {tt.softmax: tt.softmax.host}\n");
  for (const DispatchMode mode : {DispatchMode::STATIC, DispatchMode::AUTO})
    REQUIRE(Chosen({.mode = mode, .config_path = file.path()}).run() == "tt.softmax.host");
  const auto given = [](const std::string& kernel) {
    Chosen c({.mode = DispatchMode::STATIC, .static_kernel_map = {{"tt.softmax", kernel}}});
  };
  REQUIRE_THROWS_WITH(given("tt.matmul.2d"), ContainsSubstring("'tt.matmul.2d' serves tt.matmul, not 'tt.softmax'"));
  REQUIRE_THROWS_WITH(given("tt.softmax.devise"), ContainsSubstring("did you mean 'tt.softmax.device'?"));
}

TEST_CASE("a kernel out of place serves what a rule gives it, and nothing else") {
  Chosen by_itself({.mode = DispatchMode::STATIC}, "default", narrow_linear());
  REQUIRE(by_itself.run() == "tt.linear.1d");
  const Json candidates = by_itself.chooser->explain(narrow_linear())["selection"]["candidates"];
  REQUIRE((candidates[0]["kernel"] == "tt.linear.2d" && candidates[0]["result"] == "out of place"));
  REQUIRE_THAT(candidates[0]["reasons"][0].get<std::string>(), ContainsSubstring("1 x 2 tiles"));
  TemporaryFile file;
  file.write("version: \"1.0\"\ndispatch_rules: [{operation: tt.linear, kernel: tt.linear.2d}]\n");
  Chosen by_rule({.mode = DispatchMode::CONFIG, .config_path = file.path()}, "default", narrow_linear());
  REQUIRE(by_rule.run() == "tt.linear.2d");
  REQUIRE(global_kernels().find("tt.linear.2d")->accepts(narrow_linear()));
}

TEST_CASE("a program's op runs through the table that explain shows") {
  Chosen c({.mode = DispatchMode::STATIC});
  const Json table = c.chooser->explain(softmax())["selection"]["table"];
  REQUIRE(table["kernels"] == Json::parse(R"(["tt.softmax.device", "tt.softmax.host"])"));
  REQUIRE(table["kernel"] == c.run());
  // What is put into the table in front of them serves from then on.
  KernelSpec mine = *global_kernels().find("tt.softmax.host");
  mine.id = "tt.softmax.mine";
  global_kernels().table("tt.softmax").add({.device = Platform::tt, .dtype = ttc::DType::bf16}, mine);
  Chosen after({.mode = DispatchMode::STATIC});
  REQUIRE(after.run() == "tt.softmax.mine");
  REQUIRE(global_kernels().table("tt.softmax").remove("tt.softmax.mine"));
}

TEST_CASE("a dispatcher of one's own serves a program's ops, refuses them, or hands them on") {
  enum class Does { serves, refuses, delegates, throws };
  static Does does = Does::serves;
  register_dispatcher(
      "own",
      [](const OperatorCall& call) {
        return does != Does::refuses && (does != Does::delegates || !find_dispatcher("default")->refusal_of(call));
      },
      [](const OperatorCall& call) -> RtValue {
        if (does == Does::delegates) return find_dispatcher("default")->dispatch(call);
        if (does == Does::throws) throw std::runtime_error("own broke");
        REQUIRE((call.name == "tt.softmax" && call.args.size() == 2));
        return *call.args[0].get_if<HostTensor>();
      });
  Chosen c({.mode = DispatchMode::STATIC, .failure_threshold = 1}, "own");
  REQUIRE((c.run() == "tt.softmax.own" && c.step.results.size() == 1 && !c.kernel.on_device()));
  does = Does::refuses;
  REQUIRE(c.run() == "tt.softmax.host");
  does = Does::delegates;
  REQUIRE((c.run() == "tt.softmax.device" && c.kernel.on_device()));
  does = Does::throws;
  REQUIRE(c.run() == "tt.softmax.host");
  REQUIRE(c.step.failures == std::vector<std::string>{"tt.softmax.own: own broke"});
  REQUIRE(c.reported("tt.softmax.own is taken out"));
}

TEST_CASE("debug says what was checked for a node, and what served it: once where that is fixed, else at each call") {
  for (const DispatchMode mode : {DispatchMode::STATIC, DispatchMode::DYNAMIC}) {
    INFO(to_string(mode));
    set_dispatcher("debug");
    Chosen c({.mode = mode}, "");  // the active one
    set_dispatcher("default");
    for (int i = 0; i < 3; ++i) c.run();
    const std::vector<std::string>& lines = c.reports;
    REQUIRE(lines.size() == (mode == DispatchMode::STATIC ? 3 : 5));
    REQUIRE(lines[0] == "debug: node: tt.softmax.device: selected");
    REQUIRE(lines.back() == "debug: node: served by tt.softmax.device");
  }
}

TEST_CASE("the cpu dispatcher reports no device kernel") {
  Chosen c({.mode = DispatchMode::STATIC}, "cpu");
  REQUIRE((c.run() == "tt.softmax.host" && !c.kernel.on_device()));
  for (const Json& node : c.chooser->telemetry()["nodes"]) REQUIRE(node["on_device"] == false);
}
