// ttc replay: recorded single-op results against what the device computes here.
#include <iostream>

#include "command.h"
#include "json_out.h"
#include "replay/replay.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string directory, numerics = "exact";
  ttrt::replay::Options options;
} flags;

void options(CLI::App& app) {
  app.add_option("dir", flags.directory, "A folder of recorded cases, or one case")->required();
  app.add_option("--numerics", flags.numerics, "exact (default) or fast")->check(CLI::IsMember({"fast", "exact"}));
  app.add_option("--filter", flags.options.filter, "Only cases whose id contains this");
  app.add_option("--max-ulp", flags.options.max_ulp, "Tolerance of exact numerics, in units of the last place")->check(CLI::NonNegativeNumber);
  app.add_option("--pcc", flags.options.min_pcc, "Tolerance of fast numerics")->check(CLI::Range(-1.0, 1.0));
}

void print_text(const std::vector<ttrt::replay::CaseResult>& results) {
  Table table({"case", "status", ">elements", ">mismatches", ">max_ulp", ">pcc", "reason"});
  std::map<ttrt::replay::Status, int> totals;
  for (const auto& r : results) {
    ++totals[r.status];
    table.row({r.id, std::string(to_string(r.status)), std::to_string(r.elements), std::to_string(r.mismatches), number_text(r.max_ulp, 4), number_text(r.pcc, 7), r.reason});
  }
  std::cout << table.text();
  std::cout << results.size() << " cases";
  for (const auto& [status, count] : totals) std::cout << ", " << count << " " << to_string(status);
  std::cout << '\n';
}

int run(const Globals& globals) {
  flags.options.numerics = flags.numerics == "exact" ? ttrt::Numerics::exact : ttrt::Numerics::fast;
  const auto results = ttrt::replay::replay_directory(flags.directory, flags.options);
  if (globals.json)
    std::cout << ttrt::replay::report(results).dump(2) << '\n';
  else
    print_text(results);
  for (const auto& r : results)
    if (r.status == ttrt::replay::Status::failed) return static_cast<int>(Exit::check_failed);
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"replay", "Run recorded single-op cases and report bit-exact counts and errors", ttc::options, ttc::run})
