// Without a list, what a compile planned is expected, and what happened beyond is told but fails nothing.
#include "compatibility_report.h"

#include <iostream>

#include "json_out.h"
#include "support/atomic_file.h"

namespace ttc {

void add_compatibility_flags(FlagSet& app, CompatibilityFlags& flags) {
  app.group("Compatibility");
  app.add_option("--compatibility", flags.report,
                 "Write which modules the device has and what the host served (JSON, as TT-Symbiote's report)")
      .result();
  app.add_option("--expected-fallbacks", flags.expected,
                 "Fail where the host serves what this file does not name: a JSON list of classes, module:GLOBs, "
                 "operators and nodes, or an earlier report");
}

std::optional<ExpectedFallbacks> expected_fallbacks(const CompatibilityFlags& flags) {
  if (!flags.report.empty()) check_output(flags.report);
  if (flags.expected.empty()) return std::nullopt;
  return ExpectedFallbacks::read(flags.expected);
}

bool report_compatibility(const Globals& globals, const CompatibilityFlags& flags, Compatibility& found,
                          const std::optional<ExpectedFallbacks>& expected, const std::string& model) {
  if (expected) expected->judge(found);
  bool pass = true;
  for (const HostNode& one : found.host) {
    if (one.expected) continue;
    const std::string what = model + ": " + one.module + " (" + one.klass + "): " + one.op + " '" + one.node +
                             "' was left to the host: " + one.reason;
    if (expected)
      std::cerr << "error: " + what + "; " + flags.expected + " does not expect it\n";
    else
      note(globals, "note: " + what);
    pass = pass && !expected;
  }
  for (const std::string& name : found.no_longer)
    warn(globals, flags.expected + " expects " + name + ", which is on the device now or not there");
  if (!flags.report.empty()) write_file(flags.report, OrderedJson::parse(found.json()).dump(1) + "\n");
  return pass;
}

}  // namespace ttc
