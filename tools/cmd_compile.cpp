// ttc compile: rewrites a model and saves it as a file that stock PyTorch opens.
#include <chrono>
#include <iostream>

#include "compile_flags.h"
#include "formats/model_file.h"
#include "json_out.h"
#include "pass/conversions.h"
#include "session/compile.h"
#include "support/error.h"

namespace ttc {
namespace {

struct Flags : CompileFlags {
  std::string output;
} flags;

void options(FlagSet& app) {
  add_compile_flags(app, flags);
  app.add_option("-o,--output", flags.output,
                 "Where the rewritten model goes; its ending says the format: " + written_extensions())
      .required();
}

int run(const Globals& globals) {
  const auto start = std::chrono::steady_clock::now();
  output_format(flags.output);  // refused before anything is done
  const auto [model, result] = compile_source(ModelSource(flags.model), flags, notes_of(globals), true);
  save_model(*model, flags.output);
  const double wall_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (globals.json) {
    OrderedJson out{{"input", flags.model}, {"output", flags.output}};
    out.update(OrderedJson::parse(report_json(result, *model)));
    out["wall_ms"] = wall_ms;
    out["peak_rss"] = peak_rss();
    print_json(out);
  }
  std::ostream& text = globals.json ? std::cerr : std::cout;
  text << result.summary() << '\n';
  if (const std::string converted = conversions_text(*model); !converted.empty()) text << converted << '\n';
  return static_cast<int>(Exit::ok);
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"compile", "Rewrite a model for the device and save it", ttc::options, ttc::run})
