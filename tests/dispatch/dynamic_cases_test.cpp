// DYNAMIC: the recorded cases. Better than the reference: DYN-12 (a fallback's failure counts once), DYN-13 (all
// switches are honoured), DYN-16 (a hit says cached), DYN-19 (a new kernel is seen at once), DYN-24 (a missing context
// is built), MVC-10 in plan_cache_cases_test.cpp (the key is the whole context).
#include "dispatch/dynamic.h"
#include "tests/dispatch/cases.h"
#include "tests/dispatch/fixtures.h"

using namespace dispatch_test;
using ttrt::HostTensor;
using ttrt::RtValue;
using ttrt::Shape;

namespace {

struct Setup {
  KernelRegistry kernels;
  ManualClock clock;
  std::vector<std::string> log;
  std::unique_ptr<DynamicDispatcher> dispatcher;

  explicit Setup(std::vector<KernelSpec> specs, DispatchOptions options = {}) {
    kernels.add(std::move(specs));
    dispatcher = std::make_unique<DynamicDispatcher>(
        DispatchConfig(options), kernels,
        ModeOptions{.clock = &clock, .report = [this](const std::string& line) { log.push_back(line); }});
  }
  Result dispatch(const SelectionContext& context = context_of()) {
    CallArgs args;
    return dispatcher->dispatch(context.operation, args, &context);
  }
  std::string run_x(const SelectionContext& context = context_of()) {
    return std::string(dispatch(context).kernel_id());
  }
  Json telemetry() const { return dispatcher->telemetry(); }
};

// A kernel that counts its calls and fails while told to.
struct Flaky {
  int calls = 0;
  bool fails = true;
  KernelSpec spec(const std::string& id, std::int64_t priority) {
    KernelSpec out = kernel(id, "op.x", priority);
    out.impl = [this, id](CallArgs& args) {
      ++calls;
      if (fails) throw std::runtime_error(id + " broke");
      *args.output = id;
    };
    return out;
  }
};

void dyn_01() {
  Setup s({kernel("a", "op.x", 25), kernel("b", "op.x", 50)});
  const Result result = s.dispatch();
  REQUIRE((result.kernel_id() == "b" && result.mode == DispatchMode::DYNAMIC && !result.fallback_used));
  REQUIRE(*result.output.get_if<std::string>() == "b");
}

void dyn_02() {
  Setup s({kernel("first"), kernel("second")});
  REQUIRE(s.run_x() == "first");
}

void expect_no_kernel(Setup& s) {
  try {
    s.dispatch();
    FAIL("something was selected");
  } catch (const DispatchError& error) {
    REQUIRE(error.phase() == Phase::SELECTION);
    REQUIRE(error.operation() == "op.x");
  }
  REQUIRE((s.telemetry()["error_count"] == 1 && s.telemetry()["dispatch_count"] == 0));
}

void dyn_04() {
  Setup none({kernel("a", "op.y")});
  expect_no_kernel(none);
  KernelSpec other = kernel("a");
  other.platform = Platform::cuda;
  Setup filtered({other});
  expect_no_kernel(filtered);
  Setup denied({kernel("a")});
  denied.dispatcher->set_policy(Policy{.denies = {{.kernel = "a"}}});
  expect_no_kernel(denied);
  try {
    filtered.dispatcher->get_kernel_for_operation("op.x", context_of());
    FAIL("something was selected");
  } catch (const DispatchError& error) {
    REQUIRE(error.operation() == "op.x");
    REQUIRE(tried(error) == std::vector<std::string>{"a"});
    REQUIRE_THAT(error.tried()[0].why, ContainsSubstring("platform"));
  }
}

void dyn_05() {
  Setup s({throwing("a", "op.x", 100)});
  KernelSpec second = kernel("b", "op.x", 50);
  second.impl = [&s](CallArgs& args) {
    s.clock.advance_ns(300);
    *args.output = "b";
  };
  KernelSpec primary = kernel("p", "op.x", 200);
  primary.impl = [&s](CallArgs&) {
    s.clock.advance_ns(700);
    throw std::runtime_error("p broke");
  };
  s.kernels.remove("a");
  s.kernels.add(second);
  s.kernels.add(primary);
  const Result result = s.dispatch();
  REQUIRE((result.kernel_id() == "b" && result.fallback_used));
  REQUIRE_THAT(result.fallback_reason, ContainsSubstring("Primary kernel failed") && ContainsSubstring("p broke"));
  REQUIRE(result.timing.execution_ns == 1000);
  REQUIRE(s.telemetry()["fallback_count"] == 1);
}

void dyn_07() {
  Flaky second;
  Setup s({throwing("a", "op.x", 100), second.spec("b", 50)}, {.enable_fallback = false});
  try {
    s.dispatch();
    FAIL("it did not fail");
  } catch (const DispatchError& error) {
    REQUIRE(tried(error) == std::vector<std::string>{"a"});
    REQUIRE(error.phase() == Phase::FALLBACK);
    REQUIRE_THAT(error.tried().at(0).why, ContainsSubstring("a broke"));
  }
  REQUIRE(second.calls == 0);
  REQUIRE(s.telemetry()["error_count"] == 1);
}

void dyn_08() {
  Setup s({throwing("k10", "op.x", 10), throwing("k50", "op.x", 50), throwing("k30", "op.x", 30),
           throwing("k40", "op.x", 40), throwing("k20", "op.x", 20)},
          {.max_fallback_attempts = 2});
  try {
    s.dispatch();
    FAIL("it did not fail");
  } catch (const DispatchError& error) {
    REQUIRE(tried(error) == std::vector<std::string>{"k50", "k40", "k30"});
    REQUIRE(error.tried().size() == 3);
  }
}

void dyn_10() {
  Flaky primary;
  Setup s({primary.spec("a", 100), kernel("b")}, {.failure_threshold = 2});
  for (int i = 0; i < 2; ++i) {
    const Result result = s.dispatch();
    REQUIRE(result.kernel_id() == "b");
    REQUIRE_THAT(result.fallback_reason, ContainsSubstring("Primary kernel failed"));
  }
  REQUIRE(primary.calls == 2);
  const Result third = s.dispatch();
  REQUIRE((third.kernel_id() == "b" && third.fallback_used && primary.calls == 2));
  REQUIRE_THAT(third.fallback_reason, ContainsSubstring("circuit open"));
}

void dyn_11() {
  for (const bool fallback : {false, true}) {
    Flaky primary;
    Setup s({primary.spec("a", 100)},
            {.enable_fallback = fallback, .failure_threshold = 1, .recovery_timeout_seconds = 30});
    REQUIRE(phase_of([&] { s.dispatch(); }) == Phase::FALLBACK);
    s.clock.advance_seconds(12);
    try {
      s.dispatch();
      FAIL("an open circuit was called");
    } catch (const DispatchError& error) {
      REQUIRE(error.phase() == Phase::CIRCUIT);
      REQUIRE(error.kernel_id() == "a");
      REQUIRE(error.retry_after_seconds() == Approx(18).margin(0.01));
    }
    REQUIRE(primary.calls == 1);
    REQUIRE(s.telemetry()["error_count"] == 1);
    // After the cooldown a probe goes through and closes it.
    s.clock.advance_seconds(18.001);
    primary.fails = false;
    REQUIRE(s.run_x() == "a");
    REQUIRE(s.dispatcher->circuits().circuit("a").state() == CircuitState::CLOSED);
  }
}

void dyn_12() {
  Setup s({throwing("a", "op.x", 100), throwing("b", "op.x", 50), kernel("c", "op.x", 10)}, {.failure_threshold = 5});
  REQUIRE(s.run_x() == "c");
  REQUIRE(s.dispatcher->circuits().circuit("b").failures() == 1);
  REQUIRE(s.dispatcher->circuits().circuit("a").failures() == 1);
}

void dyn_13() {
  Flaky primary;
  Setup off({primary.spec("a", 100), kernel("b")}, {.circuit_breaker_enabled = false, .failure_threshold = 1});
  off.run_x();
  off.run_x();
  REQUIRE(primary.calls == 2);
  REQUIRE(off.dispatcher->circuits().circuit("a").state() == CircuitState::CLOSED);

  Setup quiet({throwing("a", "op.x", 100), kernel("b")},
              {.enable_telemetry = false, .record_timing = false, .log_fallbacks = false});
  REQUIRE(quiet.dispatch().timing.total_ns == 0);
  REQUIRE((quiet.log.empty() && quiet.telemetry()["dispatch_count"] == 0));
  Setup loud({throwing("a", "op.x", 100), kernel("b")});
  loud.run_x();
  REQUIRE(loud.log.size() == 1);
  REQUIRE_THAT(loud.log[0], ContainsSubstring("op.x") && ContainsSubstring("a broke") && ContainsSubstring("b served"));

  Setup late({kernel("z")}, {.fallback_timeout_ms = 100});
  const auto slow = [&](const std::string& id, std::int64_t priority) {
    KernelSpec spec = throwing(id, "op.x", priority);
    spec.impl = [&late, id](CallArgs&) {
      late.clock.advance_seconds(0.08);
      throw std::runtime_error(id + " broke");
    };
    return spec;
  };
  late.kernels.add({slow("p", 100), slow("q", 90), slow("r", 80)});
  try {
    late.dispatch();
    FAIL("a fallback began after the timeout");
  } catch (const DispatchError& error) {
    REQUIRE(tried(error) == std::vector<std::string>{"p", "q", "r"});  // r began 80 ms after p failed, z would at 160
    REQUIRE_THAT(error.tried().back().why, ContainsSubstring("fallback_timeout_ms"));
  }
}

void dyn_15() {
  Setup s({kernel("a")});
  REQUIRE_FALSE(s.dispatch().cached);
  REQUIRE(s.dispatch().cached);
  Setup off({kernel("a")}, {.enable_cache = false});
  REQUIRE_FALSE(off.dispatch().cached);
  REQUIRE_FALSE(off.dispatch().cached);
  Setup zero({kernel("a")}, {.cache_size = 0});
  REQUIRE_FALSE(zero.dispatch().cached);
  REQUIRE_FALSE(zero.dispatch().cached);
}

void dyn_16() {
  Setup s({kernel("a")}, {.cache_size = 10000});
  REQUIRE_FALSE(s.dispatch().cached);
  REQUIRE(s.dispatch().cached);
  REQUIRE((s.telemetry()["cache"]["hits"] == 1 && s.telemetry()["cache"]["misses"] == 1));
}

void dyn_17() {
  Setup s({kernel("a")});
  s.run_x();
  s.dispatcher->invalidate_cache();
  const Result again = s.dispatch();
  REQUIRE((!again.cached && again.kernel_id() == "a"));
  REQUIRE(s.dispatch().cached);
}

void dyn_19() {
  Setup s({kernel("a", "op.x", 50)});
  s.run_x();
  REQUIRE(s.dispatch().cached);
  s.kernels.add(kernel("b", "op.x", 80));
  REQUIRE(s.run_x() == "b");
  REQUIRE(s.kernels.remove("b"));
  REQUIRE(s.run_x() == "a");
}

void dyn_23() {
  Setup s({kernel("a", "op.x", 60), kernel("b", "op.x", 50)});
  REQUIRE(s.run_x() == "a");
  REQUIRE(s.dispatcher->cache_stats().size == 1);
  s.dispatcher->set_policy(Policy{.denies = {{.kernel = "a"}}});
  REQUIRE(s.dispatcher->cache_stats().size == 0);
  const Result result = s.dispatch();
  REQUIRE((result.kernel_id() == "b" && !result.cached));
  s.dispatcher->set_policy(Policy());
  REQUIRE(s.run_x() == "a");
}

HostTensor floats(Shape sizes) {
  HostTensor out = ttrt::empty_host(ttc::DType::f32, std::move(sizes));
  for (std::int64_t i = 0; i < out.numel(); ++i) out.as<float>()[i] = static_cast<float>(i);
  return out;
}

void dyn_24() {
  KernelSpec plain = kernel("plain", "attention.causal", 90);
  plain.supports = [](const SelectionContext& c) -> ttc::Refusal {
    if (c.enable_gqa) return ttc::Reason{ttc::ReasonCode::Unsupported, "grouped queries"};
    return std::nullopt;
  };
  Setup s({plain, kernel("gqa", "attention.causal")});
  const RtValue q = floats({2, 7, 8, 16}), k = floats({2, 9, 4, 16}), v = k;
  const Input inputs[] = {{"query", &q}, {"key", &k}, {"value", &v}};
  CallArgs args{.inputs = inputs};
  REQUIRE(s.dispatcher->dispatch("attention.causal", args).kernel_id() == "gqa");
  const SelectionContext made = context_from_inputs("attention.causal", args);
  REQUIRE((made.batch_size == 2 && made.seq_len_q == 7 && made.seq_len_k == 9 && made.num_heads == 8 &&
           made.num_kv_heads == 4 && made.head_dim == 16));
  REQUIRE((made.enable_gqa && made.is_causal && made.dtype == ttc::DType::f32));
  CallArgs none;
  REQUIRE_THROWS_AS(s.dispatcher->dispatch("attention.causal", none), ttc::Error);
}

void dyn_27() {
  KernelSpec empty = kernel("empty");
  empty.impl = {};
  CallArgs args;
  try {
    execute(empty, "op.x", args);
    FAIL("it ran");
  } catch (const DispatchError& error) {
    REQUIRE((error.operation() == "op.x" && error.kernel_id() == "empty" && error.phase() == Phase::EXECUTION));
    REQUIRE_FALSE(error.original());
  }
  KernelSpec own = kernel("own");
  own.impl = [](CallArgs&) {
    throw DispatchError(Phase::EXECUTION, "from inside", {.operation = "inner.op", .kernel_id = "inner"});
  };
  try {
    execute(own, "op.x", args);
    FAIL("it ran");
  } catch (const DispatchError& error) {
    REQUIRE((error.operation() == "inner.op" && error.kernel_id() == "inner" && error.text() == "from inside"));
  }
  try {
    execute(throwing("t"), "op.x", args);
    FAIL("it ran");
  } catch (const DispatchError& error) {
    REQUIRE_THROWS_AS(std::rethrow_exception(error.original()), std::runtime_error);
    REQUIRE_THAT(error.text(), ContainsSubstring("t broke"));
  }
}

const CaseTable dynamic_cases{{"DYN-01", dyn_01}, {"DYN-02", dyn_02}, {"DYN-04", dyn_04}, {"DYN-05", dyn_05},
                              {"DYN-07", dyn_07}, {"DYN-08", dyn_08}, {"DYN-10", dyn_10}, {"DYN-11", dyn_11},
                              {"DYN-12", dyn_12}, {"DYN-13", dyn_13}, {"DYN-15", dyn_15}, {"DYN-16", dyn_16},
                              {"DYN-17", dyn_17}, {"DYN-19", dyn_19}, {"DYN-23", dyn_23}, {"DYN-24", dyn_24},
                              {"DYN-27", dyn_27}};

}  // namespace

TEST_CASE("DYNAMIC: recorded cases") { run_cases("DYN-", dynamic_cases); }

TEST_CASE("every limit of a kernel refuses with its reason") {
  KernelSpec k = kernel("k");
  k.dtypes = {ttc::DType::f16, ttc::DType::bf16};
  k.supports = [](const SelectionContext& context) -> ttc::Refusal {
    if (context.head_dim > 256) return ttc::Reason{ttc::ReasonCode::DeviceLimit, "head_dim is above 256"};
    return std::nullopt;
  };
  SelectionContext c = context_of();
  c.dtype = ttc::DType::f16;
  REQUIRE(k.check(c).empty());
  REQUIRE(k.accepts(c));
  for (const auto& change :
       std::vector<void (*)(SelectionContext&)>{[](SelectionContext& one) { one.dtype = ttc::DType::f32; },
                                                [](SelectionContext& one) { one.head_dim = 300; },
                                                [](SelectionContext& one) { one.requires_deterministic = 1; },
                                                [](SelectionContext& one) { one.device = device_record("cuda:0"); }}) {
    SelectionContext one = c;
    change(one);
    REQUIRE((k.check(one).size() == 1 && !k.accepts(one)));
  }
  c.dtype = ttc::DType::f32, c.head_dim = 300, c.requires_deterministic = 1;
  const auto reasons = k.check(c);
  REQUIRE_FALSE(k.accepts(c));
  const std::vector<std::string> expected{"dtype", "deterministic", "head_dim is above"};
  REQUIRE(reasons.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE_THAT(reasons[i].detail, ContainsSubstring(expected[i]));
  c.device = device_record("cuda:0");
  REQUIRE(k.check(c).size() == 1);
}

TEST_CASE("a policy moves, denies and allows kernels") {
  Setup s({kernel("a"), kernel("b"), kernel("c"), kernel("d", "op.y")});
  const auto chosen = [&](Policy policy) {
    s.dispatcher->set_policy(std::move(policy));
    return s.run_x();
  };
  REQUIRE(chosen({.prefers = {{.kernel = "c"}}}) == "c");
  REQUIRE(chosen({.denies = {{.kernel = "c"}}, .prefers = {{.kernel = "c"}}}) == "a");
  REQUIRE(chosen({.denies = {{.operation = "op.y", .kernel = "a"}}}) == "a");
  REQUIRE(chosen({.allows = {{.kernel = "[bc]"}}}) == "b");
}

TEST_CASE("a kernel out of place serves where no other can, and where it is asked for") {
  KernelSpec picky = kernel("picky", "op.x", 90);
  picky.out_of_place = [](const SelectionContext& c) -> ttc::Refusal {
    if (c.batch_size < 8) return ttc::Reason{ttc::ReasonCode::Unsupported, "a small batch"};
    return std::nullopt;
  };
  Setup s({picky, kernel("plain")});
  REQUIRE(s.run_x() == "plain");
  const Json first = s.dispatcher->explain_selection("op.x", context_of())["candidates"][0];
  REQUIRE((first["result"] == "out of place" && first["reasons"][0] == "a small batch"));
  SelectionContext big = context_of();
  big.batch_size = 8;
  REQUIRE(s.run_x(big) == "picky");
  s.kernels.remove("plain");
  REQUIRE(s.run_x() == "picky");
}

TEST_CASE("a new configuration of DYNAMIC takes effect") {
  Flaky primary;
  Setup s({primary.spec("a", 100), kernel("b")}, {.failure_threshold = 100});
  s.run_x();
  REQUIRE(s.dispatch().cached);
  s.dispatcher->update_config(DispatchConfig(DispatchOptions{.enable_cache = false, .failure_threshold = 3}));
  REQUIRE_FALSE(s.dispatch().cached);
  REQUIRE(s.dispatcher->circuits().circuit("a").state() == CircuitState::OPEN);
  REQUIRE(s.telemetry()["cache_enabled"] == false);
}
