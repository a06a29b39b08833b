// ttc bisect: which modules, or which rewrite, take a model below a threshold.
#include <iostream>

#include "compile_flags.h"
#include "json_out.h"
#include "session/bisect.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags : CompileFlags {
  std::string by = "module";
  double pcc = 0.99;
} flags;

void options(FlagSet& app) {
  add_compile_flags(app, flags);
  app.group("Search");
  app.add_option("--by", flags.by, "Modules on the device, or rewrites in their order").one_of({"module", "rewrite"});
  app.add_option("--pcc", flags.pcc, "What each output has to reach").range(-1.0, 1.0);
}

OrderedJson json_of(const Bisection& found) {
  OrderedJson out{{"model", flags.model}, {"pcc", flags.pcc}, {"fails", found.fails}, {"by", flags.by}};
  out["candidates"] = found.candidates;
  out["modules"] = found.modules;
  if (found.rewrite)
    out["rewrite"] = {{"number", found.rewrite_number},  {"pass", found.rewrite->pass},
                      {"rule", found.rewrite->rule},     {"nodes", found.rewrite->nodes},
                      {"result", found.rewrite->result}, {"module", found.rewrite->module}};
  out["runs"] = OrderedJson::array();
  for (const BisectRun& run : found.runs)
    out["runs"].push_back({{"what", run.what}, {"pcc", json_number(run.pcc)}, {"pass", run.pass}});
  return out;
}

void print_text(const Bisection& found) {
  Table table({"on the device", ">pcc", ""});
  for (const BisectRun& run : found.runs) table.row({run.what, number_text(run.pcc, 7), run.pass ? "ok" : "FAIL"});
  std::cout << table.text();
  if (!found.fails) {
    std::cout << "nothing to find: all of it reaches a PCC of " << number_text(flags.pcc, 7) << '\n';
    return;
  }
  if (found.rewrite) {
    std::cout << "rewrite " << found.rewrite_number << " of " << found.candidates << ": " << found.rewrite->pass << ", "
              << found.rewrite->rule << ", " << found.rewrite->result << " (" << found.rewrite->module << ")\n"
              << "ttc compile --rewrite-limit " << found.rewrite_number - 1 << " leaves it out\n";
    return;
  }
  std::cout << "enough to miss it, of " << found.candidates << " modules:\n";
  for (const std::string& module : found.modules) std::cout << "  " << (module.empty() ? "(the root)" : module) << '\n';
}

int run(const Globals& globals) {
  refuse_unchecked({"--require-full"}, "a search leaves modules on the CPU");
  const ModelSource source(flags.model);
  if (is_rewritten(*source.read()))
    throw usage_error(flags.model + " is rewritten already: its modules cannot be taken off the device",
                      "search in the file that it was made of");
  const auto told = [&](const BisectRun& run) {
    detail(globals, run.what + ": PCC " + number_text(run.pcc, 7) + (run.pass ? "" : ", misses the threshold"));
  };
  const Thresholds thresholds{.pcc = flags.pcc};
  const Bisection found = flags.by == "module" ? bisect_modules(source, flags, thresholds, told)
                                               : bisect_rewrites(source, flags, thresholds, told);
  globals.json ? print_json(json_of(found)) : print_text(found);
  return static_cast<int>(found.fails ? Exit::check_failed : Exit::ok);
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"bisect", "Find the modules, or the rewrite, that take a model below a threshold", ttc::options,
                      ttc::run,
                      "ttc bisect models/bert_small_dyn.pt2 --io models/bert_small.io.safetensors --pcc 0.9999 "
                      "--weight-dtype '*=bfloat4_b'"})
