// Types and STATIC: the recorded cases. Better than the reference: STA-08 (two operations may share a kernel of a
// static map, as its documentation shows); get_kernel_for_operation knows aliases from the start (STA-11).
#include <type_traits>

#include "dispatch/static_dispatcher.h"
#include "tests/dispatch/cases.h"
#include "tests/dispatch/fixtures.h"

using namespace dispatch_test;

namespace {

DispatchOptions with_map(StaticMap map) {
  DispatchOptions options;
  options.static_kernel_map = std::move(map);
  return options;
}

std::string run_static(StaticDispatcher& dispatcher, Symbol operation) {
  CallArgs args;
  const Result result = dispatcher.dispatch(operation, args);
  REQUIRE(result.output.get_if<std::string>());
  REQUIRE(*result.output.get_if<std::string>() == result.kernel_id());
  return std::string(result.kernel_id());
}

std::string default_of(const StaticKernelRegistry& registry) { return registry.get_default("op.x")->id.str(); }

void typ_01() {
  const DispatchConfig c;
  REQUIRE(c->mode == DispatchMode::DYNAMIC);
  REQUIRE((c->enable_cache && c->cache_size == 10000 && c->cache_ttl_seconds == 3600));
  REQUIRE((c->enable_fallback && c->max_fallback_attempts == 3 && c->fallback_timeout_ms == 100));
  REQUIRE((c->config_path.empty() && c->watch_interval_seconds == 1 && c->validate_on_reload));
  REQUIRE((c->enable_telemetry && c->record_timing && c->log_fallbacks));
  REQUIRE((c->circuit_breaker_enabled && c->failure_threshold == 5 && c->recovery_timeout_seconds == 30));
  REQUIRE(c->static_kernel_map.empty());
}

void typ_02() {
  REQUIRE_THAT(error_of([] { DispatchConfig(DispatchOptions{.cache_size = -1}); }), ContainsSubstring("cache_size"));
  REQUIRE_THAT(error_of([] { DispatchConfig(DispatchOptions{.max_fallback_attempts = 0}); }),
               ContainsSubstring("max_fallback_attempts"));
  REQUIRE_THAT(error_of([] { DispatchConfig(DispatchOptions{.failure_threshold = -3}); }),
               ContainsSubstring("failure_threshold"));
  REQUIRE(DispatchConfig(DispatchOptions{.cache_size = 0})->cache_size == 0);
}

void typ_04() {
  DispatchOptions options = with_map({{"op.x", "a"}});
  const DispatchConfig config(options);
  options.static_kernel_map["op.x"] = "b";
  options.static_kernel_map["op.y"] = "c";
  REQUIRE(config->static_kernel_map == StaticMap{{"op.x", "a"}});
  static_assert(!std::is_assignable_v<decltype((config->static_kernel_map)), StaticMap>);
}

void typ_05() {
  const DispatchError error = circuit_open_error("op.x", "k", 12.34);
  REQUIRE(error.kernel_id() == "k");
  REQUIRE(error.retry_after_seconds() == 12.34);
  REQUIRE_THAT(error.what(), ContainsSubstring("12.3 "));
  REQUIRE_THAT(error.what(), !ContainsSubstring("12.34"));
  REQUIRE(error.phase() == Phase::CIRCUIT);
}

void sta_01() {
  const auto d =
      StaticDispatcherBuilder().with_kernel(kernel("a", "op.x", 50)).with_kernel(kernel("b", "op.x", 80)).build();
  REQUIRE(d->registry().frozen());
  REQUIRE(run_static(*d, "op.x") == "b");
}

void sta_02() {
  const auto d = StaticDispatcherBuilder()
                     .with_kernel(kernel("a", "op.x", 50), {}, true)
                     .with_kernel(kernel("b", "op.x", 100))
                     .build();
  REQUIRE(run_static(*d, "op.x") == "a");
}

void sta_04() {
  const auto d = StaticDispatcherBuilder()
                     .with_kernel(kernel("a", "op.x", 10), {}, true)
                     .with_kernel(kernel("b", "op.x", 20), {}, true)
                     .build();
  REQUIRE(run_static(*d, "op.x") == "b");
}

void sta_05() {
  StaticKernelRegistry registry;
  registry.add(kernel("a", "op.x", 50), true);
  registry.add(kernel("b", "op.x", 80));
  REQUIRE(default_of(registry) == "b");
  registry.freeze();
  REQUIRE(default_of(registry) == "a");
  REQUIRE(phase_of([&] { registry.add(kernel("c")); }) == Phase::REGISTRATION);
}

void sta_07() {
  StaticKernelRegistry registry;
  registry.add(kernel("a", "op.x"));
  REQUIRE_THROWS_AS(registry.add(kernel("a", "op.x")), ttc::Error);
  REQUIRE_THROWS_AS(registry.add(kernel("a", "op.y")), ttc::Error);
  REQUIRE(registry.kernel_count() == 1);
}

void sta_08() {
  KernelRegistry kernels;
  kernels.add(kernel("a", "attention.causal"));
  const auto d = StaticDispatcher::from_config(
      DispatchConfig(with_map({{"attention.causal", "a"}, {"attention.cross", "a"}})), kernels);
  REQUIRE(run_static(*d, "attention.causal") == "a");
  REQUIRE(run_static(*d, "attention.cross") == "a");
  REQUIRE((d->registry().operations().size() == 2 && d->registry().kernel_count() == 1));
}

void sta_09() {
  KernelRegistry kernels;
  kernels.add(kernel("a"));
  try {
    StaticDispatcher::from_config(DispatchConfig(with_map({{"op.x", "zz"}})), kernels);
    FAIL("a missing kernel is accepted");
  } catch (const ttc::Error& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("'op.x'") && ContainsSubstring("'zz'"));
  }
}

void sta_11() {
  const auto d = StaticDispatcherBuilder().with_kernel(kernel("r", "norm.rms")).build();
  REQUIRE(run_static(*d, "rms_norm") == "r");
  REQUIRE(run_static(*d, "norm.rms") == "r");
  REQUIRE(d->get_kernel_for_operation("rms_norm", context_of()).id == Symbol("r"));
  REQUIRE(d->telemetry()["cache_size"] == 3);
  const auto both = StaticDispatcherBuilder()
                        .with_kernel(kernel("short", "rms_norm"))
                        .with_kernel(kernel("dotted", "norm.rms"))
                        .build();
  REQUIRE(run_static(*both, "rms_norm") == "short");
  REQUIRE(run_static(*both, "norm.rms") == "dotted");
}

void sta_12() {
  const auto d = StaticDispatcherBuilder().with_kernel(kernel("a")).build();
  SelectionContext context = context_of();
  context.device = device_record("cuda:0");
  REQUIRE_FALSE(kernel("a").accepts(context));
  CallArgs args;
  REQUIRE(d->dispatch("op.x", args, &context).kernel_id() == "a");
}

void sta_14() {
  KernelSpec slow = kernel("a");
  slow.impl = [](CallArgs& args) {
    for (int i = 0; i < 20000; ++i) *args.output = std::int64_t{i};
  };
  const auto d = StaticDispatcherBuilder().with_kernel(slow).build();
  CallArgs args;
  const Result result = d->dispatch("op.x", args);
  REQUIRE((result.mode == DispatchMode::STATIC && result.cached && !result.fallback_used));
  REQUIRE(result.timing.selection_ns >= 0);
  REQUIRE(result.timing.execution_ns > 0);
  REQUIRE(result.timing.total_ns >= result.timing.selection_ns + result.timing.execution_ns - 2);
  REQUIRE(result.timing.overhead_ns() == result.timing.total_ns - result.timing.execution_ns);
}

void sta_15() {
  const std::map<std::string, OperationType> expected{
      {"attention.causal", OperationType::ATTENTION_CAUSAL},
      {"attention.full", OperationType::ATTENTION_FULL},
      {"attention.sliding_window", OperationType::ATTENTION_SLIDING_WINDOW},
      {"attention.cross", OperationType::ATTENTION_CROSS},
      {"attention.prefill", OperationType::ATTENTION_PREFILL},
      {"attention.decode", OperationType::ATTENTION_DECODE},
      {"norm.rms", OperationType::NORM_RMS},
      {"rms_norm", OperationType::NORM_RMS},
      {"norm.layer", OperationType::NORM_LAYER},
      {"layer_norm", OperationType::NORM_LAYER},
      {"norm.group", OperationType::NORM_GROUP},
      {"group_norm", OperationType::NORM_GROUP},
      {"rope", OperationType::ROPE},
      {"rope.standard", OperationType::ROPE},
      {"rope.interleaved", OperationType::ROPE_INTERLEAVED},
      {"alibi", OperationType::ALIBI},
      {"swiglu", OperationType::SWIGLU},
      {"activation.swiglu", OperationType::SWIGLU},
      {"gelu", OperationType::GELU},
      {"activation.gelu", OperationType::GELU},
      {"silu", OperationType::SILU},
      {"activation.silu", OperationType::SILU},
      {"tt.gelu", OperationType::GELU},
      {"tt.layer_norm", OperationType::NORM_LAYER},
      {"matmul", OperationType::MATMUL}};
  for (const auto& [name, c] : expected) {
    INFO(name);
    REQUIRE(get_operation_type(name) == c);
  }
  for (const char* unknown : {"", "Matmul", "attention", "attention.causal.x", "norm", "matmul.fp16"})
    REQUIRE(get_operation_type(unknown) == OperationType::UNKNOWN);
}

void sta_17() {
  const auto d = StaticDispatcherBuilder().with_kernel(kernel("a")).with_kernel(throwing("t", "op.t")).build();
  for (int i = 0; i < 3; ++i) run_static(*d, "op.x");
  CallArgs args;
  REQUIRE(phase_of([&] { d->dispatch("op.t", args); }) == Phase::EXECUTION);
  REQUIRE(phase_of([&] { d->dispatch("op.unknown", args); }) == Phase::SELECTION);
  const Json t = d->telemetry();
  REQUIRE(t["dispatch_count"] == 3);
  REQUIRE(t["total_dispatch_ns"].get<std::int64_t>() > 0);
  REQUIRE(t["avg_dispatch_ns"].get<double>() == Approx(t["total_dispatch_ns"].get<double>() / 3));
  REQUIRE((t["kernel_count"] == 2 && t["operation_count"] == 2 && t["cache_size"] == 2));
  d->reset_telemetry();
  REQUIRE((d->telemetry()["dispatch_count"] == 0 && d->telemetry()["total_dispatch_ns"] == 0 &&
           d->telemetry()["kernel_count"] == 2));
}

// The value error of entries is a dispatch error of phase REGISTRATION.
void sta_18() {
  StaticKernelRegistry registry;
  REQUIRE(phase_of([&] { registry.add(kernel("a", "")); }) == Phase::REGISTRATION);
  try {
    registry.add(kernel(""));
    FAIL("a kernel without an id is accepted");
  } catch (const DispatchError& error) {
    REQUIRE(error.phase() == Phase::REGISTRATION);
    REQUIRE(error.code() == ttc::Exit::usage);
  }
}

const CaseTable types{{"TYP-01", typ_01}, {"TYP-02", typ_02}, {"TYP-04", typ_04}, {"TYP-05", typ_05}};
const CaseTable statics{{"STA-01", sta_01}, {"STA-02", sta_02}, {"STA-04", sta_04}, {"STA-05", sta_05},
                        {"STA-07", sta_07}, {"STA-08", sta_08}, {"STA-09", sta_09}, {"STA-11", sta_11},
                        {"STA-12", sta_12}, {"STA-14", sta_14}, {"STA-15", sta_15}, {"STA-17", sta_17},
                        {"STA-18", sta_18}};

}  // namespace

TEST_CASE("dispatch types: recorded cases") { run_cases("TYP-", types); }
TEST_CASE("STATIC: recorded cases") { run_cases("STA-", statics); }

TEST_CASE("STATIC call: the kernel and nothing else") {
  int calls = 0;
  KernelSpec counting = kernel("a");
  counting.impl = [&](CallArgs&) { ++calls; };
  KernelSpec empty = kernel("none", "op.none");
  empty.impl = {};
  const auto d = StaticDispatcherBuilder().with_kernel(counting).with_kernel(empty).build();
  CallArgs args;
  d->call("op.x", args);
  d->call("op.x", args);
  REQUIRE(calls == 2);
  REQUIRE(d->telemetry()["dispatch_count"] == 0);
  REQUIRE(phase_of([&] { d->call("op.none", args); }) == Phase::EXECUTION);
  REQUIRE_THROWS_WITH(d->call("op.y.never.seen", args), ContainsSubstring("op.y.never.seen"));
  try {
    d->call("op.xx", args);
    FAIL("an unknown operation is called");
  } catch (const DispatchError& error) {
    REQUIRE_THAT(error.hint(), ContainsSubstring("did you mean 'op.x'?") && ContainsSubstring("op.none"));
  }
}

TEST_CASE("STATIC honours record_timing and enable_telemetry") {
  DispatchOptions quiet;
  quiet.record_timing = quiet.enable_telemetry = false;
  const auto d = StaticDispatcherBuilder().with_kernel(kernel("a")).with_config(quiet).build();
  CallArgs args;
  REQUIRE(d->dispatch("op.x", args).timing.total_ns == 0);
  REQUIRE(d->telemetry()["dispatch_count"] == 0);
  d->update_config(DispatchConfig());
  REQUIRE(d->dispatch("op.x", args).timing.total_ns > 0);
  REQUIRE(d->telemetry()["dispatch_count"] == 1);
}

TEST_CASE("static dispatchers from records with defaults") {
  const auto d = StaticDispatcherBuilder()
                     .with_kernels({kernel("a", "op.x", 10), kernel("b", "op.x", 90)}, {{"op.x", "a"}})
                     .build();
  REQUIRE(run_static(*d, "op.x") == "a");
  REQUIRE_THROWS_AS(StaticDispatcherBuilder().with_kernels({kernel("a")}, {{"op.y", "a"}}), ttc::Error);
  StaticKernelRegistry registry;
  const KernelSpec a = kernel("a");
  registry.add_operation("op.x", a);
  registry.freeze();
  REQUIRE(phase_of([&] { registry.add_operation("op.z", a); }) == Phase::REGISTRATION);
}

TEST_CASE("modes by name") {
  REQUIRE(dispatch_mode_from_string("hot_reload") == DispatchMode::HOT_RELOAD);
  REQUIRE(dispatch_mode_from_string("HOT-RELOAD") == DispatchMode::HOT_RELOAD);
  REQUIRE(dispatch_mode_from_string("Static") == DispatchMode::STATIC);
  REQUIRE_FALSE(dispatch_mode_from_string("statically"));
}
