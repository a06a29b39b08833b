// ttc compare: the device against the CPU, or one numerics against the other, node by node (or module by module).
#include "run_modes.h"
#include "support/error.h"

namespace ttc {
namespace {

struct Flags {
  std::string model, mode = "dpl", by = "node", against = "cpu";
  InputOptions inputs;
  ExecFlags exec;
  std::optional<double> pcc, max_rel;
} flags;

void options(FlagSet& app) {
  app.add_option("model", flags.model, "A .pt2 or TorchScript file").required();
  add_input_flags(app, flags.inputs);
  add_exec_flags(app, flags.exec);
  app.group("Checks");
  app.add_option("--mode", flags.mode,
                 "dpl: two runs, each of its own values; sel: each op beside its reference on what the device has; "
                 "dpl-no-error-prop: on what the references gave; TT_SYMBIOTE_RUN_MODE wins")
      .among(compare_modes());
  app.add_option("--by", flags.by, "Every node, or the last one of each module").one_of({"node", "module"});
  app.add_option("--against", flags.against, "What is right: LibTorch in float32, or the device's other numerics")
      .one_of({"cpu", "exact", "fast"});
  app.add_option("--pcc", flags.pcc,
                 "Threshold of each row; without it 0.997, 0.985 with bfloat8_b weights, 0.965 with bfloat4_b, 0.97 of "
                 "attention, 0.999 of norms, 0.99 of outputs")
      .range(-1.0, 1.0);
  app.add_option("--max-rel", flags.max_rel, "Threshold on max_rel too").not_negative();
  add_reproducer_flag(app, flags.exec);
}

int run(const Globals& globals) {
  if (flags.against != "cpu" && flags.against == flags.exec.numerics)
    throw usage_error("--against " + flags.against + " compares the run with itself",
                      std::string("--numerics ") + (flags.against == "exact" ? "fast" : "exact") + " is another");
  const auto model = load_for(globals, flags.model, flags.inputs, flags.exec);
  const std::vector<Case> cases = cases_for(globals, *model, flags.inputs);
  const CompareMode mode = compare_mode(mode_in_force(globals, flags.mode, compare_modes()));
  if (mode != CompareMode::dpl && flags.against != "cpu")
    throw usage_error("--against " + flags.against + " is for --mode dpl",
                      "the others compare each op with its reference in LibTorch");
  return compare_and_report(
      globals, flags.model, model, cases, flags.exec, flags.against,
      {.mode = mode, .by_module = flags.by == "module", .pcc = flags.pcc, .max_rel = flags.max_rel});
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"compare", "Compare the device with the CPU node by node", ttc::options, ttc::run,
                      "ttc compare bert.pt2 --io models/bert_small.io.safetensors --by module"})
