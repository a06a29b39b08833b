// ttc report: one HTML page about a model, with nothing beside it.
#include "html_report.h"
#include "report/page.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags : CompileFlags {
  std::string output;
  ReportParts parts;
} flags;

void options(FlagSet& app) {
  add_compile_flags(app, flags);
  app.add_option("-o,--output", flags.output, "Where the page goes (.html)").result().required();
  app.group("What the page shows beside the graph");
  app.add_option("--compare", flags.parts.compare,
                 "PCC by node: what ttc compare --json printed; without it the calls of --io are compared");
  app.add_option("--search", flags.parts.search,
                 "Accuracy against cost: what ttc compile --min-pcc ... --pareto wrote");
  app.add_option("--dumps", flags.parts.dumps,
                 "Before and after of passes: a folder that ttc compile --dump-dir wrote");
  app.add_flag("--what-if", flags.parts.what_if,
               "What a call would take on other boards, in other formats and fidelities, ...; and advice");
}

int run(const Globals& globals) {
  check_output(flags.output);
  if (!flags.output.ends_with(".html") && !flags.output.ends_with(".htm"))
    throw usage_error("cannot write " + flags.output + ": a page's name ends in .html");
  const Json data = report_data(globals, flags, flags.parts);
  const std::string page = html_page(flags.model, data);
  check_warnings(globals);
  write_file(flags.output, page);
  if (globals.json) {
    OrderedJson out{{"input", flags.model}, {"output", flags.output}, {"bytes", page.size()}};
    for (const char* part : {"compare", "search", "dumps", "what_if"}) out["parts"][part] = !data[part].is_null();
    print_json(out);
  } else {
    note(globals, "wrote " + flags.output + ", " + bytes_text(static_cast<double>(page.size())));
  }
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"report", "One HTML page: graph, placement, precision, time, memory", ttc::options, ttc::run,
                      "ttc report models/bert_small_dyn.pt2 -o bert.html --io models/bert_small.io.safetensors"})
