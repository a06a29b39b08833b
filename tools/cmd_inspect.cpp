// ttc inspect: what a model file holds.
#include <iostream>

#include "report/inspect.h"
#include "json_out.h"
#include "command.h"
#include "session/model_source.h"
#include "support/error.h"

namespace ttc {
namespace {

struct Flags {
  std::string model, graph;
} flags;

void options(FlagSet& app) {
  app.add_option("model", flags.model, "A .pt2, TorchScript or text IR file").required();
  app.add_option("--graph", flags.graph, "Print the graph instead").one_of({"text", "dot", "html"});
}

int run(const Globals& globals) {
  const std::unique_ptr<ir::Model> model = load(flags.model, false);
  if (!flags.graph.empty()) {
    const std::string text = render_graph(*model, graph_form(flags.graph));
    if (globals.json)
      print_json({{"graph", text}});
    else
      std::cout << text;
    return 0;
  }
  const Json description = inspect(*model);
  if (globals.json)
    print_json(OrderedJson(description));
  else
    std::cout << inspect_text(description, globals.verbose > 0);
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"inspect", "What a model file holds", ttc::options, ttc::run,
                      "ttc inspect models/bert_small_dyn.pt2"})
