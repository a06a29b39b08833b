// ttc emit: the rewritten model as a TT-NN program in Python.
#include <algorithm>
#include <iostream>
#include <map>

#include "compile_flags.h"
#include "emit/package.h"
#include "executor/executor.h"
#include "json_out.h"
#include "run_flags.h"
#include "session/model_source.h"
#include "session/values.h"
#include "support/error.h"
#include "table.h"

namespace ttc {
namespace {

struct Flags : CompileFlags {
  std::string output;
  bool overwrite = false, markdown = false;
} flags;

void options(FlagSet& app) {
  add_compile_flags(app, flags);
  app.group("The program");
  app.add_option("-o,--output", flags.output, "The folder that it goes into").result();
  app.add_flag("--md", flags.markdown, "Print model.py as Markdown instead");
  app.add_flag("--overwrite", flags.overwrite, "Write over a program that is there");
}

// A call of the model and what LibTorch makes of it, where the file does not say.
SafeTensors vectors_of(const ModelSource& source) {
  SafeTensors out;
  const std::shared_ptr<const ir::Model> model = source.read();
  InputOptions inputs{.io = flags.io, .inputs = flags.inputs, .shapes = flags.shapes};
  if (!flags.io.empty()) {
    const std::vector<InputOptions> ways = ways_to_call(read_safetensors(flags.io));
    if (!ways.empty()) inputs.io_prefix = ways[0].io_prefix, inputs.io_steps = ways[0].io_steps;
  }
  std::vector<Case> cases = load_cases(*model, inputs, true);
  if (cases.empty()) return out;
  Case& one = cases.front();
  const auto add = [&](const std::string& name, const ttrt::HostTensor& tensor) {
    out.tensors[name] = own_weight(tensor);
  };
  for (std::size_t i = 0; i < one.inputs.size(); ++i)
    if (const auto tensor = as_tensor(one.inputs[i])) add("in" + std::to_string(i), *tensor);
  if (!one.expected.empty()) {
    for (std::size_t i = 0; i < one.expected.size(); ++i)
      if (one.expected[i]) add("out" + std::to_string(i), *one.expected[i]);
    return out;
  }
  ttrt::Executor executor(model, {});
  const std::vector<ttrt::RtValue> made = flat_outputs(executor.run(std::move(one.inputs)));
  for (std::size_t i = 0; i < made.size(); ++i)
    if (const auto tensor = as_tensor(made[i])) add("out" + std::to_string(i), *tensor);
  return out;
}

// `without_shapes`: the file has none, as TorchScript has none, and nobody gave any.
[[noreturn]] void fail(const std::vector<emit::Refused>& refused, bool rewritten, bool without_shapes) {
  const emit::Refused& first = refused.front();
  const std::string hint = without_shapes ? "the file holds no shapes: give --shape NAME=8x128 or --io FILE"
                           : flags.require_full
                               ? "without --require-full they become torch calls where the host can run them"
                           : rewritten ? "of a model that is not rewritten yet they become torch calls"
                                       : "";
  throw Error(Exit::unsupported, flags.model,
              std::to_string(refused.size()) + " calls can't be written in TT-NN's Python, " + first.op + " (" +
                  first.node + ") the first: " + first.reason.detail,
              hint);
}

// What TT-NN cannot express stays on the host, where it is a torch call: by operator where the record has no spelling
// at all, by node where this call has none.
void keep_on_host(CompileSettings& settings, const std::vector<emit::Refused>& refused) {
  for (const emit::Refused& one : refused) {
    const ttrt::OpRecord* record = ttrt::find_op(one.op);
    if (record == nullptr || record->emit != nullptr || record->lowers.empty()) {
      settings.fallback_node.push_back(one.node);
      continue;
    }
    for (const ttrt::Lowering& lowering : record->lowers)
      if (std::ranges::find(settings.fallback_op, lowering.aten) == settings.fallback_op.end())
        settings.fallback_op.emplace_back(lowering.aten);
  }
}

struct Written {
  Compiled made;
  emit::Program program;
  std::vector<emit::Refused> refused;  // on the way
  CompileSettings settings;            // with what it keeps on the host
};

Written write(const Globals& globals, const ModelSource& source) {
  CompileSettings settings = flags;
  Written out{.made = compiled(globals, source, settings, false), .program = {}, .refused = {}, .settings = {}};
  const std::unique_ptr<ir::Model> read = source.read();
  const bool rewritten = is_rewritten(*read);
  const bool without_shapes = flags.shapes.empty() && flags.io.empty() && !has_shapes(*read);
  constexpr int rounds = 5;  // what stays on the host changes what is fused around it
  for (int round = 0;; ++round) {
    out.program = emit::write_program(*out.made.model, out.made.profile);
    if (out.program.refused.empty()) {
      out.settings = std::move(settings);
      return out;
    }
    out.refused.insert(out.refused.end(), out.program.refused.begin(), out.program.refused.end());
    if (flags.require_full || rewritten || round == rounds)
      fail(out.program.refused, rewritten, without_shapes);
    keep_on_host(settings, out.program.refused);
    out.made = compile_source(source, settings);
  }
}

int run(const Globals& globals) {
  if (flags.output.empty() == !flags.markdown)
    throw usage_error("a program goes into a folder, or to standard output", "give -o FOLDER, or --md");
  if (flags.markdown) warn_of_idle(globals, {"--overwrite"}, "--md writes no file");
  const ModelSource source(flags.model);
  const Written written = write(globals, source);
  const emit::Program& program = written.program;
  std::map<std::string, std::pair<std::string, int>> kept;
  for (const emit::Refused& one : written.refused) {
    auto& [reason, count] = kept[one.op];
    reason = one.reason.detail, ++count;
  }
  for (const auto& [op, why] : kept)
    note(globals, op + " stays on the host, " + std::to_string(why.second) + " of them: " + why.first);
  for (const std::string& text : program.warnings) warn(globals, text);
  if (flags.markdown && globals.json) {
    print_json({{"model", flags.model}, {"arch", written.made.profile.name}, {"program", program.text}});
    return 0;
  }
  if (flags.markdown) {
    std::cout << "```python\n" << program.text << "```\n";
    return 0;
  }
  const emit::Package package =
      emit::write_package(flags.output, *written.made.model, program, vectors_of(source), flags.overwrite);
  if (globals.json) {
    OrderedJson out{{"model", flags.model},
                    {"output", flags.output},
                    {"arch", written.made.profile.name},
                    {"functions", program.functions + 1},
                    {"device_calls", program.device_calls},
                    {"host_calls", program.host_calls},
                    {"weights", program.parameters.size()},
                    {"weight_bytes", package.weight_bytes},
                    {"fallback_op", written.settings.fallback_op},
                    {"fallback_node", written.settings.fallback_node},
                    {"refused", OrderedJson::array()},
                    {"warnings", program.warnings}};
    for (const emit::Refused& one : written.refused)
      out["refused"].push_back(
          OrderedJson{{"node", one.node}, {"op", one.op}, {"module", one.module}, {"reason", one.reason.detail}});
    print_json(out);
    return 0;
  }
  note(globals, "wrote " + flags.output + ": " + std::to_string(program.functions + 1) + " functions, " +
                    std::to_string(program.device_calls) + " calls of TT-NN, " + std::to_string(program.host_calls) +
                    " of torch, " + std::to_string(program.parameters.size()) + " weights of " +
                    bytes_text(static_cast<double>(package.weight_bytes)));
  return 0;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_COMMAND({"emit", "Write the model as a TT-NN program in Python", ttc::options, ttc::run,
                      "ttc emit models/vit_small.pt2 -o vit_program"})
