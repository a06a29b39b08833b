// ttc extract: a module as a model of its own, with the inputs that it had in a run and what it made of them.
#include <iostream>

#include "formats/model_file.h"
#include "json_out.h"
#include "run_flags.h"
#include "session/extract.h"
#include "support/atomic_file.h"
#include "support/error.h"

namespace ttc {
namespace {

struct Flags {
  std::string model, module, output, save_io;
  InputOptions inputs;
} flags;

void options(FlagSet& app) {
  app.add_option("model", flags.model, "A .pt2 or TorchScript file that was not rewritten").required();
  app.add_option("--module", flags.module, "Its path, as in encoder.layer.0.attention").required();
  app.add_option("-o,--output", flags.output,
                 "Where the module goes; the ending says the format: " + written_extensions())
      .result()
      .required();
  app.add_option("--save-io", flags.save_io,
                 "Where its inputs and outputs go (safetensors); otherwise beside the module, as NAME.io.safetensors")
      .result();
  add_input_flags(app, flags.inputs);
}

int run(const Globals& globals) {
  output_format(flags.output);
  std::string io = flags.save_io;
  if (io.empty()) io = flags.output.substr(0, flags.output.rfind('.')) + ".io.safetensors";
  const ModelSource source(flags.model);
  check_output(flags.output);
  check_output(io);
  const Extracted part = extract_module(source, flags.module, flags.inputs, notes_of(globals));
  check_warnings(globals);
  save_model(*part.model, flags.output);
  write_safetensors(io, part.calls);
  std::size_t inputs = 0;
  for (const auto& input : part.model->graph->inputs()) inputs += input.kind == ir::InputKind::user;
  const std::size_t outputs = part.model->graph->outputs().size();
  if (globals.json)
    print_json({{"input", flags.model},
                {"module", flags.module},
                {"output", flags.output},
                {"io", io},
                {"nodes", part.nodes},
                {"inputs", inputs},
                {"outputs", outputs}});
  else
    note(globals, "wrote " + flags.output + " (" + std::to_string(part.nodes) + " nodes, " + std::to_string(inputs) +
                      " inputs, " + std::to_string(outputs) + " outputs) and " + io);
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"extract", "Cut a module out, with what went into it in a run", ttc::options, ttc::run,
                      "ttc extract models/bert_small_dyn.pt2 --module model.encoder.layer.0 --io "
                      "models/bert_small.io.safetensors -o layer0.pt2"})
