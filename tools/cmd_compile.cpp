// ttc compile: rewrites a model and saves it as a file that stock PyTorch opens.
#include <sys/stat.h>

#include <chrono>
#include <iostream>

#include "compile_flags.h"
#include "formats/model_file.h"
#include "fit_note.h"
#include "json_out.h"
#include "search_report.h"
#include "pass/conversions.h"
#include "session/compile.h"
#include "session/kept.h"
#include "support/atomic_file.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags : CompileFlags {
  std::string output;
  Luggage luggage;
  SearchFlags search;
} flags;

void options(FlagSet& app) {
  add_compile_flags(app, flags);
  app.group("Options");
  app.add_option("-o,--output", flags.output,
                 "Where the rewritten model goes; its ending says the format: " + written_extensions())
      .result()
      .required();
  add_search_flags(app, flags.search);
  app.group("What the file carries along");
  app.add_option("--embed-tests", flags.luggage.tests,
                 "Calls with their outputs (safetensors), which ttc verify runs; repeatable")
      .repeatable();
  app.add_option("--test-pcc", flags.luggage.pcc, "What each output of the embedded calls has to reach")
      .range(-1.0, 1.0);
  app.add_flag("--keep-original", flags.luggage.original, "Keep the whole input file, which ttc undo gives back");
}

int run(const Globals& globals) {
  const auto start = std::chrono::steady_clock::now();
  output_format(flags.output);  // refused before anything is done
  if (flags.luggage.tests.empty()) refuse_unchecked({"--test-pcc"}, "no calls are embedded, which --embed-tests names");
  const ModelSource source(flags.model);
  check_output(flags.output);
  std::optional<PrecisionSearch> search;
  CompileSettings settings = flags;
  if (flags.search.any()) {
    search = searched(globals, source, settings, flags.search);
    settings = with_choice(settings, search->choice);
  } else if (!flags.search.pareto.empty() || !flags.search.choice.empty()) {
    throw usage_error("--pareto and --choice write what a search found", "--min-pcc asks for one");
  }
  Compiled done = compiled(globals, source, settings, true);
  // Kept until the next one, or the end of the process, which gives it back as a whole: to take the graph of a large
  // model apart is a 50th of the time.
  static auto* const kept = new std::shared_ptr<ir::Model>;
  *kept = std::move(done.model);
  const std::shared_ptr<ir::Model>& model = *kept;
  const CompileResult& result = done.result;
  carry_along(source, model, flags.luggage);
  check_warnings(globals);
  {
    const Timed timed(globals, "writing");
    save_model(*model, flags.output);
  }
  const double wall_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const std::vector<FitOption> options = options_where_needed(globals, source, settings, result.memory.fits());
  if (globals.json) {
    OrderedJson out{{"input", flags.model}, {"output", flags.output}};
    out.update(OrderedJson::parse(report_json(result, *model)));
    if (!options.empty()) out["memory"]["options"] = to_json(options);
    if (search) out["search"] = search_json(*search);
    out["wall_ms"] = wall_ms;
    out["peak_rss"] = peak_rss();
    print_json(out);
    return 0;
  }
  std::cout << result.summary() << '\n';
  print_fit_options(options);
  if (const std::string converted = conversions_text(*model); !converted.empty()) std::cout << converted << '\n';
  struct stat written{};
  if (::stat(flags.output.c_str(), &written) == 0)
    note(globals, "wrote " + flags.output + ", " + bytes_text(static_cast<double>(written.st_size)) + " in " +
                      number_text(wall_ms / 1000, 3) + " s");
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"compile", "Rewrite a model for the device and save it", ttc::options, ttc::run,
                      "ttc compile models/bert_small_dyn.pt2 -o bert.pt2 --weight-dtype '*=bfloat8_b'"})
