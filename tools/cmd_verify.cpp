// ttc verify: whether a rewritten file is what its compile wrote, and still computes what it has to.
#include <iostream>

#include "json_out.h"
#include "run_flags.h"
#include "session/verify.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags {
  std::string model;
  ExecFlags exec;
} flags;

void options(FlagSet& app) {
  app.add_option("model", flags.model, "A rewritten .pt2 or TorchScript file").required();
  add_exec_flags(app, flags.exec);
}

OrderedJson test_json(const TestResult& test) {
  OrderedJson out{{"name", test.name}, {"pass", test.pass()}, {"checks", OrderedJson::array()}};
  for (const Check& check : test.checks) {
    out["checks"].push_back({{"output", check.output},
                             {"pcc", json_number(check.metrics.pcc)},
                             {"max_abs", json_number(check.metrics.max_abs)},
                             {"max_rel", json_number(check.metrics.max_rel)},
                             {"nan", check.metrics.nan},
                             {"pass", check.pass}});
    if (!check.note.empty()) out["checks"].back()["note"] = check.note;
  }
  if (!test.problem.empty()) out["problem"] = test.problem;
  return out;
}

void print_text(const Verification& verification) {
  Table table({"", "what", "name", "found"});
  for (const Finding& finding : verification.findings)
    table.row({finding.pass ? "ok" : "FAIL", finding.kind, finding.name, finding.detail});
  for (const TestResult& test : verification.tests) {
    if (!test.problem.empty()) table.row({"FAIL", "test", test.name, test.problem});
    for (const Check& check : test.checks)
      table.row({check.pass ? "ok" : "FAIL", "test", check.output,
                 check.problem.empty()
                     ? "PCC " + number_text(check.metrics.pcc, 7) + ", max_rel " +
                           number_text(check.metrics.max_rel, 3) + (check.note.empty() ? "" : ", " + check.note)
                     : check.problem});
  }
  std::cout << table.text();
}

int run(const Globals& globals) {
  const ModelSource source(flags.model);
  const std::shared_ptr<const ir::Model> model = source.read();
  const Verification verification = verify_file(source, model, executor_options(globals, flags.exec, *model));
  if (verification.tests.empty()) {
    note(globals, "note: it carries no test vectors; compile --embed-tests FILE embeds them");
    warn_of_idle_exec_flags(globals, "there is nothing to run");
  }
  if (globals.json) {
    OrderedJson out{{"file", flags.model}, {"pass", verification.pass()}, {"weights", verification.weights}};
    out["findings"] = OrderedJson::array();
    for (const Finding& f : verification.findings)
      out["findings"].push_back({{"kind", f.kind}, {"name", f.name}, {"detail", f.detail}, {"pass", f.pass}});
    out["tests"] = OrderedJson::array();
    for (const TestResult& test : verification.tests) out["tests"].push_back(test_json(test));
    print_json(out);
  } else {
    print_text(verification);
  }
  return static_cast<int>(verification.pass() ? Exit::ok : Exit::check_failed);
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"verify", "Check a rewritten file's hashes, manifest and test vectors", ttc::options, ttc::run,
                      "ttc verify bert.pt2"})
