// Flags of compile and check.
#include "compile_flags.h"

#include <limits>

#include "pass/pass.h"
#include "run_flags.h"
#include "table.h"

namespace ttc {

void add_compile_flags(FlagSet& app, CompileFlags& flags) {
  const auto list = [&](const char* name, std::vector<std::string>& into, const std::string& help) {
    app.add_option(name, into, help).repeatable();
  };
  const auto names = [&](const char* name, std::vector<std::string>& into, const char* help) {
    return app.add_option(name, into, help).separated().repeatable();
  };
  app.add_option("model", flags.model, "A .pt2 or TorchScript file").required();
  app.group("What is replaced");
  list("--replace", flags.replace, "CLASS=TO or module:GLOB=TO, a TT module (ttc modules) or a device op; everything that can be where none is given");
  app.add_option("--replace-file", flags.replace_file, "The same as a JSON object {KEY: TO or {op: TO, weight_dtype, activation_dtype, fidelity, fp32_acc, fallback}}, or a list of them: passes in order");
  list("--exclude", flags.exclude, "Modules (a glob, or re:EXPRESSION as everywhere) that stay as they are; their children are still visited");
  list("--fallback-op", flags.fallback_op, "Ops (glob) kept on the CPU");
  list("--fallback-module", flags.fallback_module, "Modules (glob) kept on the CPU");
  list("--fallback-node", flags.fallback_node, "Nodes (glob) kept on the CPU");
  app.add_flag("--require-full", flags.require_full,
               "Fail (exit code 3) where anything stays on the CPU, or does not fit the device's memory");
  app.group("Device and precision");
  add_arch_flag(app, flags.arch, "n150 where none is given");
  list("--weight-dtype", flags.weight_dtype, "GLOB=FORMAT: " + ttrt::weight_format_names() + "; bfloat16 otherwise");
  app.add_option("--activation-dtype", flags.activation_dtype, "The format of what is computed")
      .one_of({"bfloat16", "float32"});
  list("--fidelity", flags.fidelity,
       "GLOB=LoFi|HiFi2|HiFi3|HiFi4|library: of products; as the op library does where nobody says");
  list("--fp32-acc", flags.fp32_acc,
       "GLOB=on|off|library: accumulate in float32; as the op library does where nobody says");
  app.group("Shapes");
  list("--shape", flags.shapes,
       "NAME=8x128 or NAME=i64:8x128: sizes of free dims, for placement and for models without shapes");
  list("--input", flags.inputs, "NAME=16000: the number that a TorchScript model is compiled for, where it takes one");
  app.add_option("--io", flags.io, "Take the shapes from these inputs (safetensors)");
  app.group("Passes");
  std::vector<std::string> passes;
  for (const PassInfo* pass : all_passes()) passes.emplace_back(pass->name);
  names("--passes", flags.passes.passes, "Run these passes, in this order").among(passes);
  names("--disable", flags.passes.disable, "Leave these passes out").among(passes);
  app.add_option("--stop-after", flags.passes.stop_after, "The last pass to run").among(passes);
  app.add_option("--rewrite-limit", flags.passes.rewrite_limit, "At most so many rewrites; -1: any number")
      .range(-1, std::numeric_limits<int>::max());
  app.add_option("--dump-dir", flags.passes.dump_dir, "Write dumps here, one file each");
  names("--dump-before", flags.passes.dump_before, "Dump the graph before these passes, or 'all'").among(passes);
  names("--dump-after", flags.passes.dump_after, "Dump the graph after these passes, 'all' or 'change'").among(passes);
  app.add_flag("--print-pipeline", flags.passes.print_pipeline, "Print the passes that run");
  app.add_flag("--time-passes", flags.passes.time_passes, "Print the time of each pass");
  app.add_flag("--stats", flags.passes.stats, "Print what each pass matched and refused");
  app.add_flag("--verify-each", flags.passes.verify_each, "Verify the graph after each pass");
  app.add_option("--reproducer", flags.reproducer,
                 "Where a pass throws, or breaks the graph under --verify-each: write the graph before it, with its "
                 "weights and these flags, as a file that ttc check runs the pass on again").result();
  app.group("Options");
}

Compiled compiled(const Globals& globals, const ModelSource& source, const CompileSettings& settings, bool to_save) {
  Compiled out = [&] {
    const Timed timed(globals, "compiling " + source.path());
    return compile_source(source, settings, notes_of(globals), to_save);
  }();
  for (const PassReport& pass : out.result.passes)
    detail(globals, "  " + pass.name + ": " + number_text(pass.ms, 3) + " ms, " + std::to_string(pass.nodes_before) +
                        " -> " + std::to_string(pass.nodes_after) + " nodes, " + std::to_string(pass.matched) +
                        " rewrites, " + std::to_string(pass.refused) + " refusals");
  return out;
}

}  // namespace ttc
