// The orchestrator and AUTO: the recorded cases. Those that do better than the reference: ORC-07 (everything derived
// from a configuration is made anew) and ORC-10 (CONFIG with a path works).
#include "dispatch/config_dispatcher.h"
#include "dispatch/orchestrator.h"
#include "tests/dispatch/cases.h"
#include "tests/dispatch/fixtures.h"

using namespace dispatch_test;

namespace {

struct Mock final : Dispatcher {
  explicit Mock(DispatchMode m) : own_mode(m), spec(kernel("mock")) {}
  DispatchMode mode() const override { return own_mode; }
  void attempt(Symbol, CallArgs&, const SelectionContext*, Result& result) override {
    if (fails) throw std::runtime_error("mock failed");
    result.kernel = &spec;
    result.mode = own_mode;
    result.timing = {.selection_ns = 1000, .execution_ns = 3000, .total_ns = 4000};
  }
  const KernelSpec* choose(Symbol, const SelectionContext&) override { return &spec; }
  DispatchError nothing_serves(Symbol, const SelectionContext*) const override { return {Phase::SELECTION, "none"}; }
  Json telemetry() const override { return {{"mock", true}}; }
  void reset_telemetry() override { ++resets; }
  void update_config(const DispatchConfig& config) override { threshold = config->failure_threshold; }
  void stop_watching() override { ++stopped; }
  void shutdown() override { ++shut; }

  DispatchMode own_mode;
  KernelSpec spec;
  bool fails = false;
  int stopped = 0, shut = 0, resets = 0;
  std::int64_t threshold = 0;
};

DispatchOptions options_of(DispatchMode mode, std::map<std::string, std::string, std::less<>> map = {}) {
  DispatchOptions options;
  options.mode = mode;
  options.static_kernel_map = std::move(map);
  return options;
}

struct OrchestratorSetup {
  KernelRegistry kernels;
  std::unique_ptr<Orchestrator> orchestrator;
  explicit OrchestratorSetup(DispatchOptions options, DispatchMode default_mode = DispatchMode::DYNAMIC) {
    kernels.add({kernel("x1"), kernel("x2", "op.x", 80), kernel("y", "op.y")});
    orchestrator = std::make_unique<Orchestrator>(DispatchConfig(std::move(options)), kernels, default_mode);
  }
  Orchestrator* operator->() const { return orchestrator.get(); }
  Result dispatch(const std::string& operation, std::optional<DispatchMode> mode = {}) {
    const SelectionContext context = context_of(operation);
    CallArgs args;
    return orchestrator->dispatch(operation, args, &context, mode);
  }
};

void all_modes_fail() {
  OrchestratorSetup s(options_of(DispatchMode::STATIC));
  try {
    s.dispatch("op.none");
    FAIL("no error");
  } catch (const DispatchError& error) {
    REQUIRE(error.phase() == Phase::EXECUTION);
    REQUIRE(error.operation() == "op.none");
    REQUIRE_THAT(error.what(), ContainsSubstring("STATIC: ") && ContainsSubstring("; DYNAMIC: "));
  }
  const Json telemetry = s->telemetry();
  REQUIRE(telemetry["total_errors"] == 1);
  REQUIRE(telemetry["total_dispatches"] == 1);
  REQUIRE(telemetry["errors_by_mode"] == Json::parse(R"({"STATIC": 1})"));
  REQUIRE(telemetry["fallbacks_between_modes"] == 0);
}

void registered_dispatchers() {
  OrchestratorSetup s(options_of(DispatchMode::DYNAMIC));
  REQUIRE(s->get_dispatcher(DispatchMode::HOT_RELOAD) == nullptr);
  const auto mock = std::make_shared<Mock>(DispatchMode::HOT_RELOAD);
  s->register_dispatcher(DispatchMode::HOT_RELOAD, mock);
  REQUIRE(s->get_dispatcher(DispatchMode::HOT_RELOAD) == mock);
  REQUIRE(s.dispatch("op.x", DispatchMode::HOT_RELOAD).kernel_id() == "mock");
  s->shutdown();
  REQUIRE(mock->stopped == 1);
  REQUIRE(mock->shut == 1);
  REQUIRE(s->get_dispatcher(DispatchMode::HOT_RELOAD) == nullptr);
  REQUIRE(s->get_dispatcher(DispatchMode::DYNAMIC) == nullptr);
}

void reloaded_configuration() {
  OrchestratorSetup s(options_of(DispatchMode::STATIC, {{"op.x", "x1"}}));
  const auto mock = std::make_shared<Mock>(DispatchMode::HOT_RELOAD);
  s->register_dispatcher(DispatchMode::HOT_RELOAD, mock);
  REQUIRE(s.dispatch("op.x").kernel_id() == "x1");
  DispatchOptions next = options_of(DispatchMode::STATIC, {{"op.x", "x2"}});
  next.failure_threshold = 9;
  s->reload_config(DispatchConfig(next));
  REQUIRE(s->config()->failure_threshold == 9);
  REQUIRE(mock->threshold == 9);
  REQUIRE(s.dispatch("op.x").kernel_id() == "x2");
  REQUIRE_THROWS_AS(s->reload_config(DispatchConfig(options_of(DispatchMode::STATIC, {{"op.x", "nowhere"}}))),
                    ttc::Error);
  REQUIRE(s.dispatch("op.x").kernel_id() == "x2");
}

void telemetry() {
  OrchestratorSetup s(options_of(DispatchMode::DYNAMIC));
  REQUIRE(s->telemetry()["avg_execution_time_us"] == 0.0);
  const auto mock = std::make_shared<Mock>(DispatchMode::DYNAMIC);
  s->register_dispatcher(DispatchMode::DYNAMIC, mock);
  s.dispatch("op.x");
  s.dispatch("op.x");
  const Json telemetry = s->telemetry();
  REQUIRE(telemetry["total_dispatches"] == 2);
  REQUIRE(telemetry["dispatches_by_mode"] == Json::parse(R"({"DYNAMIC": 2})"));
  REQUIRE(telemetry["total_errors"] == 0);
  REQUIRE(telemetry["avg_execution_time_us"] == 3.0);
  REQUIRE(telemetry["avg_selection_time_us"] == 1.0);
  REQUIRE(telemetry["dispatchers"]["DYNAMIC"]["mock"] == true);
  s->reset_telemetry();
  REQUIRE(mock->resets == 1);
  REQUIRE(s->telemetry()["total_dispatches"] == 0);
}

void global_instance() {
  const auto first = global_orchestrator();
  REQUIRE(global_orchestrator() == first);
  const auto mock = std::make_shared<Mock>(DispatchMode::DYNAMIC);
  first->register_dispatcher(DispatchMode::DYNAMIC, mock);
  CallArgs args;
  const SelectionContext context = context_of();
  REQUIRE(dispatch("op.x", args, &context).kernel_id() == "mock");
  KernelRegistry kernels;
  kernels.add(kernel("other"));
  set_global_orchestrator(std::make_shared<Orchestrator>(DispatchConfig(), kernels));
  REQUIRE(mock->shut == 1);
  REQUIRE(global_orchestrator() != first);
  REQUIRE(dispatch("op.x", args, &context).kernel_id() == "other");
  set_global_orchestrator(nullptr);
}

void configured_by_file() {
  TemporaryFile file;
  file.write("version: \"1.0\"\ndispatch_rules: [{operation: op.x, kernel: x1}]\n");
  DispatchOptions options = options_of(DispatchMode::CONFIG);
  options.config_path = file.path();
  OrchestratorSetup s(options);
  const Result result = s.dispatch("op.x");
  REQUIRE(result.kernel_id() == "x1");
  REQUIRE(result.mode == DispatchMode::CONFIG);
  REQUIRE(s.dispatch("op.y").mode == DispatchMode::DYNAMIC);  // no rule: the next mode answers
}

void kernels_without_running() {
  OrchestratorSetup s(options_of(DispatchMode::DYNAMIC));
  REQUIRE(s->get_kernel_for_operation("op.x", context_of()).id == Symbol("x2"));
  REQUIRE(phase_of([&] { s->get_kernel_for_operation("op.x", context_of(), DispatchMode::STATIC); }) ==
          Phase::SELECTION);
  REQUIRE_THROWS_AS(s->get_kernel_for_operation("op.none", context_of("op.none")), ttc::Error);
  REQUIRE(s->telemetry()["total_dispatches"] == 0);
}

const CaseTable auto_table{
    {"AUT-01",
     [] {
       OrchestratorSetup s(options_of(DispatchMode::AUTO, {{"op.x", "x1"}}));
       REQUIRE(s.dispatch("op.x").mode == DispatchMode::STATIC);
       REQUIRE(s.dispatch("op.x").kernel_id() == "x1");
       REQUIRE(s.dispatch("op.y").mode == DispatchMode::DYNAMIC);
     }},
    {"AUT-02",
     [] {
       OrchestratorSetup s(options_of(DispatchMode::AUTO, {{"op.x", "x1"}}));
       REQUIRE_THROWS_AS(s->set_default_mode(DispatchMode::AUTO), ttc::Error);
       REQUIRE(s->default_mode() == DispatchMode::DYNAMIC);
       s->set_default_mode(DispatchMode::STATIC);
       REQUIRE(s->resolve("op.y", DispatchMode::AUTO) == DispatchMode::STATIC);
       REQUIRE_THROWS_AS(OrchestratorSetup(options_of(DispatchMode::DYNAMIC), DispatchMode::AUTO), ttc::Error);
     }},
};

const CaseTable orchestrator_cases{
    {"ORC-01",
     [] {
       OrchestratorSetup s(options_of(DispatchMode::DYNAMIC, {{"op.x", "x1"}}));
       REQUIRE(s.dispatch("op.x").kernel_id() == "x2");
       const Result result = s.dispatch("op.x", DispatchMode::STATIC);
       REQUIRE(result.mode == DispatchMode::STATIC);
       REQUIRE(result.kernel_id() == "x1");
     }},
    {"ORC-02",
     [] {
       OrchestratorSetup s(options_of(DispatchMode::DYNAMIC));
       const Result result = s.dispatch("op.x", DispatchMode::STATIC);
       REQUIRE(result.mode == DispatchMode::DYNAMIC);
       REQUIRE_FALSE(result.fallback_used);
       const Json telemetry = s->telemetry();
       REQUIRE(telemetry["dispatches_by_mode"] == Json::parse(R"({"DYNAMIC": 1})"));
       REQUIRE(telemetry["fallbacks_between_modes"] == 1);
       REQUIRE(telemetry["total_errors"] == 0);
     }},
    {"ORC-04", all_modes_fail},
    {"ORC-05", registered_dispatchers},
    {"ORC-07", reloaded_configuration},
    {"ORC-08", telemetry},
    {"ORC-09", global_instance},
    {"ORC-10", configured_by_file},
    {"ORC-12", kernels_without_running},
};

}  // namespace

TEST_CASE("Orchestrator: recorded cases") { run_cases("ORC-", orchestrator_cases); }
TEST_CASE("AUTO: recorded cases") { run_cases("AUT-", auto_table); }

TEST_CASE("a kernel that failed in one mode is not tried again in the next") {
  KernelRegistry kernels;
  int calls = 0;
  KernelSpec bad = kernel("bad", "op.x", 90);
  bad.impl = [&](CallArgs&) {
    ++calls;
    throw std::runtime_error("bad broke");
  };
  kernels.add({bad, kernel("good")});
  Orchestrator orchestrator(DispatchConfig(options_of(DispatchMode::STATIC, {{"op.x", "bad"}})), kernels);
  CallArgs args;
  const SelectionContext context = context_of();
  const Result result = orchestrator.dispatch("op.x", args, &context);
  REQUIRE((result.kernel_id() == "good" && result.fallback_used && calls == 1));
}

TEST_CASE("AUTO takes HOT_RELOAD where the configuration is and has a file") {
  TemporaryFile file;
  file.write("kernels: {op.x: {kernel: x1}}\n");
  DispatchOptions options = options_of(DispatchMode::HOT_RELOAD);
  options.config_path = file.path();
  OrchestratorSetup s(options);
  const Result result = s.dispatch("op.x", DispatchMode::AUTO);
  REQUIRE(result.mode == DispatchMode::HOT_RELOAD);
  REQUIRE(result.kernel_id() == "x1");
}
