// Flags of run, compare and bench.
#include "run_flags.h"

#include <algorithm>
#include <set>

#include "device/arch.h"
#include "dispatch/operation_type.h"
#include "dispatch/settings.h"
#include "formats/model_file.h"
#include "session/compile.h"
#include "session/reproducer.h"
#include "support/error.h"

namespace ttc {

void add_input_flags(FlagSet& app, InputOptions& flags) {
  app.group("Inputs");
  app.add_option(
      "--io", flags.io,
      "Inputs in0, in1, ... or by name (x.0, x.1, ... of a list x), expected outputs out0, ... (safetensors)");
  app.add_option("--io-prefix", flags.io_prefix, "Take PREFIX.in0 ... of the --io file");
  app.add_flag("--io-steps", flags.io_steps, "Run step0, step1, ... of the --io file in order, buffers kept");
  app.add_option("--input", flags.inputs,
                 "NAME=@x.npy | rand:SEED | zeros | ones | arange, a number or text where the model takes one; items "
                 "of a list or dict x are x.0, x.KEY; repeatable")
      .repeatable();
  app.add_option("--shape", flags.shapes, "NAME=8x128 where dims are free; repeatable").repeatable();
  app.add_option(
         "--carry", flags.carry,
         "outN=NAME: with --io-steps, input NAME of each step is output N of the step before; repeatable. Inputs "
         "that steps leave out are the outputs of their types")
      .repeatable();
  app.add_option("--seed", flags.seed, "Seed of the inputs that nothing else gives");
}

void add_arch_flag(FlagSet& app, std::string& arch, const std::string& otherwise) {
  std::vector<std::string> names;
  for (const ttrt::ArchProfile& profile : ttrt::arch_profiles()) names.push_back(profile.name);
  app.add_option("--arch", arch, "An architecture profile (ttc archs) or a profile file; " + otherwise).among(names);
}

void add_exec_flags(FlagSet& app, ExecFlags& flags) {
  app.group("Execution");
  app.add_option("--numerics", flags.numerics, "Fast, or as the hardware rounds").one_of({"fast", "exact"});
  add_arch_flag(app, flags.arch, "without it what the file was rewritten for, else n150");
  app.add_option("--stream-weights", flags.stream_weights,
                 "auto: weights that the device's memory does not hold are moved in when they are read; off: a run "
                 "that needs more memory fails")
      .one_of({"auto", "off"});
  add_dispatch_flags(app, flags.dispatch);
}

void add_dispatch_flags(FlagSet& app, DispatchFlags& flags) {
  app.group("Dispatch");
  app.add_option("--dispatcher", flags.dispatcher,
                 "Which kernels serve device ops (ttc dispatchers); TT_SYMBIOTE_DISPATCHER wins")
      .among(ttrt::dispatch::list_available_dispatchers());
  app.add_option("--dispatch-mode", flags.mode,
                 "static: kernels are fixed when shapes are known; the others choose at each call")
      .one_of({"static", "dynamic", "config", "hot_reload", "auto"});
  app.add_option("--dispatch-config", flags.config,
                 "Rules that choose kernels (YAML or JSON); implies --dispatch-mode config");
  app.add_option("--static-kernel", flags.static_kernels,
                 "OP=KERNEL: this kernel for the op, in modes static and auto; repeatable")
      .repeatable();
  std::string defaults;
  const ttrt::KernelChoiceOptions options;
  for (const ttrt::dispatch::DispatchSetting& setting : ttrt::dispatch::dispatch_settings())
    defaults +=
        (defaults.empty() ? "" : ", ") + std::string(setting.name) + "=" + setting_text(options.dispatch, setting);
  app.add_option("--dispatch-setting", flags.settings, "NAME=VALUE; repeatable. Defaults: " + defaults).repeatable();
}

ttrt::KernelChoiceOptions kernel_choice(const Globals& globals, const DispatchFlags& flags) {
  using ttrt::dispatch::DispatchMode;
  ttrt::KernelChoiceOptions out;
  out.report = [globals](const std::string& text, std::string_view severity) {
    const std::string line = std::string(severity) + ": " + text;
    severity == "warning" ? warn(globals, text) : severity == "debug" ? tell(line) : note(globals, line);
  };
  out.dispatcher = flags.dispatcher;
  out.dispatch.config_path = flags.config;
  out.dispatch.mode = !flags.mode.empty()    ? *ttrt::dispatch::dispatch_mode_from_string(flags.mode)
                      : flags.config.empty() ? DispatchMode::STATIC
                                             : DispatchMode::CONFIG;
  std::set<std::string> seen;
  const auto once = [&](const std::string& name, const std::string& flag) {
    if (!seen.insert(name).second) throw usage_error(flag + " gives '" + name + "' twice");
  };
  for (const std::string& flag : flags.settings) {
    ttrt::dispatch::set_dispatch_setting(out.dispatch, flag);
    const std::string name = flag.substr(0, flag.find('='));
    once(name, "--dispatch-setting");
    if (out.dispatch.mode != DispatchMode::HOT_RELOAD && ttrt::dispatch::is_of_reloading(name))
      warn(globals, "--dispatch-setting " + flag + " has no effect: only --dispatch-mode hot_reload reads files again");
  }
  for (const std::string& flag : flags.static_kernels) {
    const auto equals = flag.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == flag.size())
      throw usage_error("--static-kernel takes OP=KERNEL, got '" + flag + "'", "as in tt.linear=tt.linear.1d");
    if (out.dispatch.mode != DispatchMode::STATIC && out.dispatch.mode != DispatchMode::AUTO)
      throw usage_error("--static-kernel is for the dispatch modes static and auto",
                        "kernel_locks in the configuration do it for the others");
    once(flag.substr(0, equals), "--static-kernel");
    out.dispatch.static_kernel_map[flag.substr(0, equals)] = flag.substr(equals + 1);
  }
  return out;
}

namespace {

// Kernels that were chosen for ops which the model has not.
void warn_of_idle_kernels(const Globals& globals, const DispatchFlags& flags, const ir::Model& model) {
  std::set<std::string> ops;
  ir::walk(*model.graph, [&](const ir::Node* node) { ops.insert(node->op()); });
  for (const std::string& flag : flags.static_kernels) {
    const std::string op = flag.substr(0, flag.find('='));
    const auto& names = ttrt::dispatch::names_of(ttrt::dispatch::get_operation_type(op));
    const bool used = std::any_of(ops.begin(), ops.end(), [&](const std::string& one) {
      return one == op || std::find(names.begin(), names.end(), one) != names.end();
    });
    if (!used) warn(globals, "--static-kernel " + flag + ": the model has no " + op);
  }
}

}  // namespace

ttrt::ExecutorOptions executor_options(const Globals& globals, const ExecFlags& flags, const ir::Model& model) {
  ttrt::ExecutorOptions options;
  options.mode = flags.mode == "cpu" ? ttrt::Mode::cpu : ttrt::Mode::device;
  options.numerics = flags.numerics == "exact" ? ttrt::Numerics::exact : ttrt::Numerics::fast;
  options.profile = profile_for(model, flags.arch);
  options.stream_weights = flags.stream_weights == "auto";
  options.chooser = std::make_shared<ttrt::KernelChooser>(kernel_choice(globals, flags.dispatch));
  if (options.mode == ttrt::Mode::cpu) {
    warn_of_idle_exec_flags(globals, "--mode cpu uses no device");
    return options;
  }
  if (const auto own = profile_of(model); own && own->name != options.profile.name)
    warn(globals, "the file was rewritten for " + own->name + ", it runs on " + options.profile.name + " here");
  warn_of_idle_kernels(globals, flags.dispatch, model);
  return options;
}

void warn_of_idle_exec_flags(const Globals& globals, const std::string& why) {
  warn_of_idle(globals,
               {"--numerics", "--arch", "--stream-weights", "--dispatcher", "--dispatch-mode", "--dispatch-config",
                "--static-kernel", "--dispatch-setting"},
               why);
}

std::vector<Case> cases_for(const Globals& globals, const ir::Model& model, const InputOptions& inputs) {
  std::vector<Case> cases = load_cases(model, inputs, false, notes_of(globals));
  for (const std::string& line : cases.at(0).notes) note(globals, "note: " + line);
  return cases;
}

std::string arch_text(const ttrt::ArchProfile& profile) {
  return profile.name + (profile.chips > 1 ? ", one of its " + std::to_string(profile.chips) + " chips" : "");
}

void add_reproducer_flag(FlagSet& app, ExecFlags& flags) {
  app.add_option("--reproducer", flags.reproducer,
                 "Write the node that fails as a model of its own (.pt2 or .pt), with what it was given").result();
}

void write_node_reproducer(const Globals& globals, const ExecFlags& flags, const NodeOfStep& node,
                           const std::shared_ptr<const ir::Model>& model, const std::vector<Case>& cases,
                           const ttrt::ExecutorOptions& options, double pcc) {
  save_model(*node_reproducer(model, node, cases, options, pcc), flags.reproducer);
  note(globals, "wrote " + flags.reproducer + ": node '" + node.node + "' and what it was given" +
                    (cases.size() > 1 ? " in " + cases.at(node.step).name : "") + "; ttc compare " + flags.reproducer +
                    " runs it again");
}

void nothing_failed(const Globals& globals, const ExecFlags& flags) {
  note(globals, "note: no node failed; " + flags.reproducer + " was not written");
}

void add_threshold_flags(FlagSet& app, Thresholds& thresholds) {
  app.group("Checks");
  app.add_option("--pcc", thresholds.pcc, "Fail where the PCC of an output is lower").range(-1.0, 1.0);
  app.add_option("--atol", thresholds.atol, "Fail where |a - e| > atol + rtol |e|").not_negative();
  app.add_option("--rtol", thresholds.rtol, "See --atol").not_negative();
}

std::shared_ptr<const ir::Model> load_for(const Globals& globals, const std::string& path, const InputOptions& inputs,
                                          const ExecFlags& exec) {
  const Timed timed(globals, "loading " + path);
  const ModelSource source(path);
  if (exec.mode == "cpu") return source.read();
  return compiled_for(source, inputs, exec.arch, notes_of(globals));
}

}  // namespace ttc
