// Circuits of DYNAMIC (CBM) and the stand-alone breaker (CBS): the recorded cases. Better than the reference: CBS-07
// (the number of probes in flight never goes below zero).
#include <nlohmann/json.hpp>

#include "dispatch/breaker.h"
#include "tests/dispatch/cases.h"
#include "tests/dispatch/fixtures.h"

using namespace dispatch_test;

namespace {

void cbm_01() {
  CircuitManager m;
  REQUIRE(m.is_allowed("fresh"));
  REQUIRE_FALSE(m.retry_after("fresh"));
  REQUIRE((m.stats()["total_circuits"] == 1 && m.stats()["closed"] == 1));
}

void cbm_02() {
  ManualClock clock;
  CircuitManager m(3, 30, clock);
  m.record_failure("k");
  m.record_failure("k");
  REQUIRE(m.is_allowed("k"));
  m.record_failure("k");
  REQUIRE_FALSE(m.is_allowed("k"));
  REQUIRE((*m.retry_after("k") > 0 && *m.retry_after("k") <= 30));
  REQUIRE(m.is_allowed("another"));
  REQUIRE(m.stats()["open"] == 1);
}

void cbm_04() {
  ManualClock clock;
  CircuitManager m(1, 10, clock);
  m.record_failure("k");
  clock.advance_seconds(9.99);
  REQUIRE_FALSE(m.is_allowed("k"));
  clock.advance_seconds(0.01);
  REQUIRE(m.state("k") == CircuitState::OPEN);  // only asking moves it
  REQUIRE(m.is_allowed("k"));
  REQUIRE(m.state("k") == CircuitState::HALF_OPEN);
}

struct HalfOpen {
  ManualClock clock;
  CircuitManager manager{1, 10, clock};
  HalfOpen() {
    manager.record_failure("k");
    clock.advance_seconds(10);
    REQUIRE(manager.is_allowed("k"));
  }
};

void cbm_05() {
  HalfOpen h;
  h.manager.record_success("k");
  REQUIRE((h.manager.state("k") == CircuitState::CLOSED && h.manager.circuit("k").failures() == 0));
  HalfOpen again;
  again.manager.record_failure("k");
  REQUIRE(again.manager.state("k") == CircuitState::OPEN);
  REQUIRE(*again.manager.retry_after("k") == Approx(10));
}

void cbm_07() {
  HalfOpen h;
  for (int i = 0; i < 100; ++i) REQUIRE(h.manager.is_allowed("k"));
  REQUIRE(h.manager.state("k") == CircuitState::HALF_OPEN);
}

void cbm_08() {
  ManualClock clock;
  CircuitManager m(1, 10, clock);
  m.record_failure("k");
  clock.advance_seconds(6);
  REQUIRE(*m.retry_after("k") == Approx(4));
  m.record_failure("k");
  REQUIRE(*m.retry_after("k") == Approx(10));
  m.record_success("k");
  REQUIRE((m.state("k") == CircuitState::CLOSED && m.is_allowed("k")));
}

void cbm_10() {
  ManualClock clock;
  CircuitManager m(-7, -1, clock);
  REQUIRE((m.failure_threshold() == 1 && m.cooldown_seconds() == 0));
  m.record_failure("k");
  REQUIRE(m.state("k") == CircuitState::OPEN);
  REQUIRE(m.is_allowed("k"));
  REQUIRE(m.state("k") == CircuitState::HALF_OPEN);
}

void cbs_01() {
  const BreakerOptions o;
  REQUIRE((o.failure_threshold == 5 && o.success_threshold == 2 && o.cooldown_seconds == 30 &&
           o.half_open_max_calls == 3 && !o.reset_timeout_seconds));
  REQUIRE_THROWS_AS(CircuitBreaker("b", {.failure_threshold = 0}), ValueError);
  REQUIRE_THROWS_AS(CircuitBreaker("b", {.success_threshold = 0}), ValueError);
  REQUIRE_THROWS_AS(CircuitBreaker("b", {.cooldown_seconds = 0}), ValueError);
}

void fail(CircuitBreaker& b, int times = 1) {
  for (int i = 0; i < times; ++i) b.record_failure();
}

void cbs_02() {
  CircuitBreaker b("b", {.failure_threshold = 3});
  fail(b, 2);
  REQUIRE((b.state() == CircuitState::CLOSED && b.can_execute()));
  fail(b);
  REQUIRE((b.state() == CircuitState::OPEN && !b.can_execute()));
}

struct HalfOpenBreaker {
  ManualClock clock;
  CircuitBreaker b;
  explicit HalfOpenBreaker(BreakerOptions options = {.failure_threshold = 1}) : b("b", options, clock) {
    fail(b, static_cast<int>(options.failure_threshold));
    clock.advance_seconds(options.cooldown_seconds);
    REQUIRE(b.can_execute());
    REQUIRE(b.state() == CircuitState::HALF_OPEN);
  }
};

void cbs_04() {
  HalfOpenBreaker h;
  h.b.record_success();
  REQUIRE(h.b.state() == CircuitState::HALF_OPEN);
  h.b.record_success();
  REQUIRE(h.b.state() == CircuitState::CLOSED);
}

void cbs_05() {
  HalfOpenBreaker h;
  h.b.record_failure();
  REQUIRE(h.b.state() == CircuitState::OPEN);
  REQUIRE(h.b.cooldown_remaining() == Approx(30));
  h.clock.advance_seconds(10);
  h.b.record_failure();  // does not extend it
  REQUIRE(h.b.cooldown_remaining() == Approx(20));
}

void cbs_07() {
  HalfOpenBreaker h;
  h.b.record_success();
  REQUIRE(h.b.probes_in_flight() == 0);
  // The limit holds for wrapped calls: a fourth one inside three is refused.
  HalfOpenBreaker limited;
  int inside = 0;
  bool refused = false;
  const std::function<void(int)> nest = [&](int left) {
    limited.b.call([&] {
      ++inside;
      REQUIRE(limited.b.probes_in_flight() == inside);
      try {
        nest(left - 1);
      } catch (const CircuitOpenError&) {
        refused = true;
      }
    });
  };
  nest(9);
  REQUIRE((inside == 3 && refused));
}

void cbs_08() {
  ManualClock clock;
  CircuitBreaker b("b", {.failure_threshold = 1, .cooldown_seconds = 12}, clock);
  fail(b);
  clock.advance_seconds(5);
  bool called = false;
  try {
    b.call([&] { called = true; });
    FAIL("an open breaker was called through");
  } catch (const CircuitOpenError& error) {
    REQUIRE(error.retry_after_seconds() == 12);
  }
  REQUIRE((!called && b.stats().total_rejections == 1));
}

void cbs_09() {
  CircuitBreaker b("b");
  REQUIRE_THROWS_AS(b.call([]() -> int { throw std::out_of_range("as it was"); }), std::out_of_range);
  REQUIRE(b.stats().total_failures == 1);
  REQUIRE(b.call([] { return 5; }) == 5);
  REQUIRE((b.stats().total_successes == 1 && b.stats().failure_rate() == 0.5));
}

void cbs_11() {
  CircuitBreaker b("b", {.failure_threshold = 1});
  int told = 0;
  b.add_listener([&](CircuitState, CircuitState) { ++told; });
  b.add_listener([](CircuitState, CircuitState) { throw std::runtime_error("a listener's own trouble"); });
  fail(b);
  REQUIRE(told == 1);
  b.reset();
  REQUIRE((b.state() == CircuitState::CLOSED && told == 1 && b.cooldown_remaining() == 0));
  const BreakerStats s = b.stats();
  REQUIRE((s.total_calls == 0 && s.total_failures == 0 && s.consecutive_failures == 0 && s.state_changes == 0));
}

void cbs_12() {
  CircuitBreaker b("name", {.failure_threshold = 1});
  REQUIRE(b.to_json()["cooldown_remaining"] == 0);
  fail(b);
  const Json j = b.to_json();
  REQUIRE((j["name"] == "name" && j["state"] == "OPEN" && j["cooldown_remaining"].get<double>() > 0));
  for (const char* key : {"total_calls", "total_successes", "total_failures", "total_rejections",
                          "consecutive_failures", "consecutive_successes", "failure_rate", "state_changes"})
    REQUIRE(j["stats"].contains(key));
}

void cbs_14() {
  ManualClock clock;
  CircuitBreaker b("b", {.failure_threshold = 2, .success_threshold = 2, .cooldown_seconds = 1}, clock);
  std::vector<CircuitState> path;
  b.add_listener([&](CircuitState, CircuitState to) { path.push_back(to); });
  fail(b, 2);
  clock.advance_seconds(1);
  REQUIRE(b.can_execute());
  fail(b);
  clock.advance_seconds(1);
  REQUIRE(b.can_execute());
  b.record_success();
  b.record_success();
  REQUIRE(b.stats().state_changes == 5);
  REQUIRE(path == std::vector<CircuitState>{CircuitState::OPEN, CircuitState::HALF_OPEN, CircuitState::OPEN,
                                            CircuitState::HALF_OPEN, CircuitState::CLOSED});
}

const CaseTable circuits{{"CBM-01", cbm_01}, {"CBM-02", cbm_02}, {"CBM-04", cbm_04}, {"CBM-05", cbm_05},
                         {"CBM-07", cbm_07}, {"CBM-08", cbm_08}, {"CBM-10", cbm_10}};
const CaseTable breakers{{"CBS-01", cbs_01}, {"CBS-02", cbs_02}, {"CBS-04", cbs_04}, {"CBS-05", cbs_05},
                         {"CBS-07", cbs_07}, {"CBS-08", cbs_08}, {"CBS-09", cbs_09}, {"CBS-11", cbs_11},
                         {"CBS-12", cbs_12}, {"CBS-14", cbs_14}};

}  // namespace

TEST_CASE("circuits of DYNAMIC: recorded cases") { run_cases("CBM-", circuits); }
TEST_CASE("stand-alone breaker: recorded cases") { run_cases("CBS-", breakers); }

TEST_CASE("breakers by name") {
  BreakerRegistry r;
  REQUIRE(r.can_execute("unknown"));
  r.record_success("unknown");
  REQUIRE(r.find("unknown") == nullptr);
  CircuitBreaker& b = r.get_or_create("b", {.failure_threshold = 1});
  REQUIRE(&r.get_or_create("b", {.failure_threshold = 9}) == &b);
  REQUIRE(b.options().failure_threshold == 1);
  r.record_failure("b");
  r.record_failure("made");
  REQUIRE(r.find("made") != nullptr);
  REQUIRE(r.get_open_circuits() == std::vector<std::string>{"b"});
  REQUIRE(r.get_all_stats().size() == 2);
  r.reset_all();
  REQUIRE(r.get_open_circuits().empty());
  REQUIRE_THROWS_AS(r.get_or_create("bad", {.cooldown_seconds = -1}), ValueError);
  REQUIRE(r.find("bad") == nullptr);
}

TEST_CASE("a breaker forgets failures that lie further apart than its reset timeout") {
  ManualClock clock;
  CircuitBreaker b("b", {.failure_threshold = 2, .reset_timeout_seconds = 5}, clock);
  fail(b);
  clock.advance_seconds(6);
  fail(b);
  REQUIRE(b.state() == CircuitState::CLOSED);
  clock.advance_seconds(4);
  fail(b);
  REQUIRE(b.state() == CircuitState::OPEN);
  b.force_close();
  REQUIRE(b.can_execute());
  b.force_open();
  REQUIRE_FALSE(b.can_execute());
}
