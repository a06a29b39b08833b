// The circuit breaker: the recorded cases of circuits (CBM), and those of the reference's second breaker (CBS) as far
// as the one there is does the same (rows.json says what it does not).
#include <nlohmann/json.hpp>

#include "dispatch/dynamic.h"
#include "tests/dispatch/cases.h"
#include "tests/dispatch/fixtures.h"

using namespace dispatch_test;

namespace {

void cbm_01() {
  CircuitManager m;
  REQUIRE(m.circuit("fresh").is_allowed());
  REQUIRE_FALSE(m.circuit("fresh").retry_after());
  REQUIRE((m.stats()["total_circuits"] == 1 && m.stats()["closed"] == 1));
}

void cbm_02() {
  ManualClock clock;
  CircuitManager m(3, 30, clock);
  m.circuit("k").record_failure();
  m.circuit("k").record_failure();
  REQUIRE(m.circuit("k").is_allowed());
  m.circuit("k").record_failure();
  REQUIRE_FALSE(m.circuit("k").is_allowed());
  REQUIRE((*m.circuit("k").retry_after() > 0 && *m.circuit("k").retry_after() <= 30));
  REQUIRE(m.circuit("another").is_allowed());
  REQUIRE(m.stats()["open"] == 1);
}

void cbm_04() {
  ManualClock clock;
  CircuitManager m(1, 10, clock);
  m.circuit("k").record_failure();
  clock.advance_seconds(9.99);
  REQUIRE_FALSE(m.circuit("k").is_allowed());
  clock.advance_seconds(0.01);
  REQUIRE(m.circuit("k").state() == CircuitState::OPEN);  // only asking moves it
  REQUIRE(m.circuit("k").is_allowed());
  REQUIRE(m.circuit("k").state() == CircuitState::HALF_OPEN);
}

struct HalfOpen {
  ManualClock clock;
  CircuitManager manager{1, 10, clock};
  HalfOpen() {
    manager.circuit("k").record_failure();
    clock.advance_seconds(10);
    REQUIRE(manager.circuit("k").is_allowed());
  }
};

void cbm_05() {
  HalfOpen h;
  h.manager.circuit("k").record_success();
  REQUIRE((h.manager.circuit("k").state() == CircuitState::CLOSED && h.manager.circuit("k").failures() == 0));
  HalfOpen again;
  again.manager.circuit("k").record_failure();
  REQUIRE(again.manager.circuit("k").state() == CircuitState::OPEN);
  REQUIRE(*again.manager.circuit("k").retry_after() == Approx(10));
}

void cbm_07() {
  HalfOpen h;
  for (int i = 0; i < 100; ++i) REQUIRE(h.manager.circuit("k").is_allowed());
  REQUIRE(h.manager.circuit("k").state() == CircuitState::HALF_OPEN);
}

void cbm_08() {
  ManualClock clock;
  CircuitManager m(1, 10, clock);
  m.circuit("k").record_failure();
  clock.advance_seconds(6);
  REQUIRE(*m.circuit("k").retry_after() == Approx(4));
  m.circuit("k").record_failure();
  REQUIRE(*m.circuit("k").retry_after() == Approx(10));
  m.circuit("k").record_success();
  REQUIRE((m.circuit("k").state() == CircuitState::CLOSED && m.circuit("k").is_allowed()));
}

void cbm_10() {
  ManualClock clock;
  CircuitManager m(-7, -1, clock);
  REQUIRE((m.stats()["failure_threshold"] == 1 && m.stats()["cooldown_seconds"] == 0));
  m.circuit("k").record_failure();
  REQUIRE(m.circuit("k").state() == CircuitState::OPEN);
  REQUIRE(m.circuit("k").is_allowed());
  REQUIRE(m.circuit("k").state() == CircuitState::HALF_OPEN);
}

void cbs_01() {
  const CircuitManager m;
  REQUIRE((m.stats()["failure_threshold"] == 5 && m.stats()["cooldown_seconds"] == 30));
  const DispatchConfig config;
  REQUIRE((config->failure_threshold == 5 && config->recovery_timeout_seconds == 30));
  REQUIRE_THROWS_AS(DispatchConfig(DispatchOptions{.failure_threshold = 0}), ttc::Error);
  REQUIRE_THROWS_AS(DispatchConfig(DispatchOptions{.recovery_timeout_seconds = -1}), ttc::Error);
}

void fail(CircuitManager& m, int times = 1) {
  for (int i = 0; i < times; ++i) m.circuit("k").record_failure();
}

void cbs_02() {
  CircuitManager m(3);
  fail(m, 2);
  REQUIRE((m.circuit("k").state() == CircuitState::CLOSED && m.circuit("k").is_allowed()));
  fail(m);
  REQUIRE((m.circuit("k").state() == CircuitState::OPEN && !m.circuit("k").is_allowed()));
}

void cbs_05() {
  HalfOpen h;
  h.manager.circuit("k").record_failure();
  REQUIRE(h.manager.circuit("k").state() == CircuitState::OPEN);
  REQUIRE(*h.manager.circuit("k").retry_after() == Approx(10));
}

// A dispatcher is what wraps a kernel.
struct Wrapped {
  ManualClock clock;
  KernelRegistry kernels;
  int calls = 0;
  std::unique_ptr<DynamicDispatcher> dispatcher;
  Wrapped() {
    KernelSpec spec = kernel("k");
    spec.impl = [this](CallArgs&) {
      ++calls;
      throw std::out_of_range("as it was");
    };
    kernels.add(spec);
    dispatcher = std::make_unique<DynamicDispatcher>(
        DispatchConfig(DispatchOptions{.log_fallbacks = false, .failure_threshold = 1, .recovery_timeout_seconds = 12}),
        kernels, ModeOptions{.clock = &clock});
  }
};

void cbs_08() {
  Wrapped w;
  REQUIRE(phase_of([&] { run(*w.dispatcher); }) == Phase::FALLBACK);
  w.clock.advance_seconds(5);
  try {
    run(*w.dispatcher);
    FAIL("an open circuit was called through");
  } catch (const DispatchError& error) {
    REQUIRE(error.phase() == Phase::CIRCUIT);
    REQUIRE(error.retry_after_seconds() == Approx(7).margin(0.01));
  }
  REQUIRE((w.calls == 1 && w.dispatcher->circuits().circuit("k").to_json()["total_rejections"] == 1));
}

void cbs_09() {
  Wrapped w;
  CallArgs args;
  try {
    execute(*w.kernels.find("k"), "op.x", args);
    FAIL("it ran");
  } catch (const DispatchError& error) {
    REQUIRE_THROWS_AS(std::rethrow_exception(error.original()), std::out_of_range);
  }
  REQUIRE_THROWS_AS(run(*w.dispatcher), DispatchError);
  const Json j = w.dispatcher->circuits().circuit("k").to_json();
  REQUIRE(j["total_failures"] == 1);
  REQUIRE_THAT(j["last_failure"].get<std::string>(), ContainsSubstring("as it was"));
}

void cbs_11() {
  int told = 0;
  CircuitManager m(1, 30, system_clock(), [&](const Circuit&, CircuitState, CircuitState, const std::string&) {
    ++told;
    throw std::runtime_error("a listener's own trouble");
  });
  fail(m);
  REQUIRE(told == 1);
  m.circuit("k").reset();
  REQUIRE((m.circuit("k").state() == CircuitState::CLOSED && told == 1 && !m.circuit("k").retry_after()));
  const Json j = m.circuit("k").to_json();
  REQUIRE((j["total_failures"] == 0 && j["consecutive_failures"] == 0 && j["state_changes"] == 0));
}

void cbs_12() {
  CircuitManager m(1);
  REQUIRE(m.circuit("k").to_json()["cooldown_remaining"] == 0);
  fail(m);
  const Json j = m.stats()["kernels"]["k"];
  REQUIRE((j["state"] == "OPEN" && j["cooldown_remaining"].get<double>() > 0));
  for (const char* key :
       {"consecutive_failures", "total_failures", "total_rejections", "state_changes", "last_failure"})
    REQUIRE(j.contains(key));
}

void cbs_14() {
  ManualClock clock;
  std::vector<CircuitState> path;
  CircuitManager m(2, 1, clock,
                   [&](const Circuit&, CircuitState, CircuitState to, const std::string&) { path.push_back(to); });
  fail(m, 2);
  clock.advance_seconds(1);
  REQUIRE(m.circuit("k").is_allowed());
  fail(m);
  clock.advance_seconds(1);
  REQUIRE(m.circuit("k").is_allowed());
  m.circuit("k").record_success();
  REQUIRE(m.circuit("k").to_json()["state_changes"] == 5);
  REQUIRE(path == std::vector<CircuitState>{CircuitState::OPEN, CircuitState::HALF_OPEN, CircuitState::OPEN,
                                            CircuitState::HALF_OPEN, CircuitState::CLOSED});
}

const CaseTable circuits{{"CBM-01", cbm_01}, {"CBM-02", cbm_02}, {"CBM-04", cbm_04}, {"CBM-05", cbm_05},
                         {"CBM-07", cbm_07}, {"CBM-08", cbm_08}, {"CBM-10", cbm_10}};
const CaseTable breakers{{"CBS-01", cbs_01}, {"CBS-02", cbs_02}, {"CBS-05", cbs_05}, {"CBS-08", cbs_08},
                         {"CBS-09", cbs_09}, {"CBS-11", cbs_11}, {"CBS-12", cbs_12}, {"CBS-14", cbs_14}};

}  // namespace

TEST_CASE("circuits: recorded cases") { run_cases("CBM-", circuits); }
TEST_CASE("what was a breaker of its own, with circuits: recorded cases") { run_cases("CBS-", breakers); }
