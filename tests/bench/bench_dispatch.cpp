// What dispatch costs, in nanoseconds per call: bench_dispatch [--json] [--rounds N] [--only NAME]
//
// --json prints one object, name -> minimum ns; without it a table with minimum, median and target.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/error.h"
#include "tests/bench/dispatch_bench.h"

namespace ttrt::dispatch {
namespace {

constexpr std::array json_names{"indirect_call",
                                "table",
                                "static",
                                "dynamic_cached",
                                "dynamic_3_candidates",
                                "dynamic_20_candidates",
                                "config_cached",
                                "config_10_rules",
                                "config_100_rules",
                                "breaker",
                                "orchestrator",
                                "reload_100_rules",
                                "c10_noop"};
constexpr double batch_ns = 100'000;

struct Timed {
  BenchCase bench;
  std::int64_t n = 1;  // calls per batch
  std::vector<double> ns_per_call = {};
};

double time_ns(const Timed& timed) {
  const auto start = std::chrono::steady_clock::now();
  timed.bench.run(timed.n);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

// As many calls as make a batch of 25 to 100 us. The best of several tries counts: the first ones are cold, and a
// moment that went to somebody else must not make the batch too short.
void calibrate(Timed& timed) {
  for (timed.n = 1; timed.n < (1 << 24); timed.n *= 4) {
    double best = time_ns(timed);
    for (int i = 0; i < 4; ++i) best = std::min(best, time_ns(timed));
    if (best > batch_ns / 4) break;
  }
}

void measure(std::vector<Timed>& all, int rounds) {
  for (Timed& timed : all) calibrate(timed);
  for (int round = 0; round < rounds; ++round)
    for (Timed& timed : all) timed.ns_per_call.push_back(time_ns(timed) / static_cast<double>(timed.n));
  for (Timed& timed : all) std::sort(timed.ns_per_call.begin(), timed.ns_per_call.end());
}

// What a case adds to another: sorted batch against sorted batch, so minimum meets minimum.
void subtract(std::vector<Timed>& all) {
  const std::vector<Timed> whole = all;
  for (Timed& timed : all)
    for (const Timed& other : whole)
      if (!timed.bench.minus.empty() && other.bench.name == timed.bench.minus)
        for (std::size_t i = 0; i < timed.ns_per_call.size(); ++i) timed.ns_per_call[i] -= other.ns_per_call[i];
}

void print_json(const std::vector<Timed>& all) {
  nlohmann::ordered_json out;
  for (const char* name : json_names)
    for (const Timed& timed : all)
      if (timed.bench.name == name) out[name] = timed.ns_per_call.front();
  std::printf("%s\n", out.dump(2).c_str());
}

void print_text(const std::vector<Timed>& all) {
  std::printf("%-26s %10s %10s %10s\n", "case", "min ns", "median ns", "target ns");
  for (const Timed& timed : all) {
    const double median = timed.ns_per_call[timed.ns_per_call.size() / 2];
    const std::string target =
        timed.bench.target_ns > 0 ? std::to_string(static_cast<std::int64_t>(timed.bench.target_ns)) : "";
    std::printf("%-26s %10.2f %10.2f %10s  %s\n", timed.bench.name.c_str(), timed.ns_per_call.front(), median,
                target.c_str(), timed.bench.what.c_str());
  }
}

int run(int argc, char** argv) {
  bool json = false;
  int rounds = 200;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--json"))
      json = true;
    else if (!std::strcmp(argv[i], "--rounds") && i + 1 < argc)
      rounds = std::max(1, std::atoi(argv[++i]));
    else if (!std::strcmp(argv[i], "--only") && i + 1 < argc)
      only = argv[++i];
    else
      throw ttc::usage_error("unknown argument '" + std::string(argv[i]) + "'",
                             "bench_dispatch [--json] [--rounds N] [--only NAME]");
  }
  std::vector<BenchCase> cases;
  add_core_cases(cases);
  add_config_cases(cases);
  add_c10_cases(cases);
  std::vector<Timed> all;
  for (BenchCase& bench : cases)
    if (only.empty() || bench.name == only) all.push_back({std::move(bench)});
  measure(all, rounds);
  subtract(all);
  json ? print_json(all) : print_text(all);
  return 0;
}

}  // namespace
}  // namespace ttrt::dispatch

int main(int argc, char** argv) {
  try {
    return ttrt::dispatch::run(argc, argv);
  } catch (const ttc::Error& error) {
    std::fputs(error.message().c_str(), stderr);
    return static_cast<int>(error.code());
  }
}
