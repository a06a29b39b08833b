// Flags of compile and check.
#include "compile_flags.h"

namespace ttc {

void add_compile_flags(FlagSet& app, CompileFlags& flags) {
  const auto list = [&](const char* name, std::vector<std::string>& into, const std::string& help) {
    app.add_option(name, into, help).repeatable();
  };
  const auto names = [&](const char* name, std::vector<std::string>& into, const char* help) {
    app.add_option(name, into, help).separated().repeatable();
  };
  app.add_option("model", flags.model, "A .pt2 or TorchScript file").required();
  app.add_option("--arch", flags.arch, "An architecture profile (ttc archs) or a profile file");
  list("--replace", flags.replace, "CLASS=tt.OP or module:GLOB=tt.OP; everything that can be where none is given");
  app.add_option("--replace-file", flags.replace_file, "The same as a JSON object");
  list("--exclude", flags.exclude, "Modules (glob) that stay as they are; their children are still visited");
  list("--weight-dtype", flags.weight_dtype, "GLOB=FORMAT: " + ttrt::weight_format_names());
  app.add_option("--activation-dtype", flags.activation_dtype, "bfloat16 or float32");
  list("--fidelity", flags.fidelity, "GLOB=LoFi|HiFi2|HiFi3|HiFi4");
  list("--fp32-acc", flags.fp32_acc, "GLOB=on|off: accumulate in float32");
  list("--fallback-op", flags.fallback_op, "Ops (glob) kept on the CPU");
  list("--fallback-module", flags.fallback_module, "Modules (glob) kept on the CPU");
  list("--fallback-node", flags.fallback_node, "Nodes (glob) kept on the CPU");
  app.add_flag("--require-full", flags.require_full, "Fail (exit code 3) where anything stays on the CPU");
  list("--shape", flags.shapes,
       "NAME=8x128 or NAME=i64:8x128: sizes of free dims, for placement and for models without shapes");
  list("--input", flags.inputs, "NAME=16000: the number that a TorchScript model is compiled for, where it takes one");
  app.add_option("--io", flags.io, "Take the shapes from these inputs (safetensors)");
  names("--passes", flags.passes.passes, "Run these passes, in this order");
  names("--disable", flags.passes.disable, "Leave these passes out");
  app.add_option("--dump-dir", flags.passes.dump_dir, "Write dumps here, one file each");
  names("--dump-before", flags.passes.dump_before, "Dump the graph before these passes, or 'all'");
  names("--dump-after", flags.passes.dump_after, "Dump the graph after these passes, 'all' or 'change'");
  app.add_flag("--print-pipeline", flags.passes.print_pipeline, "Print the passes that run");
  app.add_flag("--time-passes", flags.passes.time_passes, "Print the time of each pass");
  app.add_flag("--stats", flags.passes.stats, "Print what each pass matched and refused");
  app.add_flag("--verify-each", flags.passes.verify_each, "Verify the graph after each pass");
  app.add_option("--stop-after", flags.passes.stop_after, "The last pass to run");
  app.add_option("--rewrite-limit", flags.passes.rewrite_limit, "At most so many rewrites");
}

}  // namespace ttc
