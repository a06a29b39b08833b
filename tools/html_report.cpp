// The parts come from the same functions as the JSON of their commands.
#include "html_report.h"

#include "formats/safetensors.h"
#include "report/inspect.h"
#include "report/page.h"
#include "run_modes.h"
#include "session/compile.h"
#include "session/device_profile.h"
#include "session/what_if.h"
#include "support/error.h"
#include "support/mapped_file.h"

#ifndef TTC_VERSION
#define TTC_VERSION "unknown"
#endif

namespace ttc {
namespace {

Json read_json(const std::string& path, const char* wanted, const std::string& hint) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  Json json;
  try {
    json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error& error) {
    throw error.in_file(path);
  }
  if (!json.is_object() || !json.contains(wanted) || !json[wanted].is_array())
    throw bad_file(path, "has no list '" + std::string(wanted) + "'", hint);
  return json;
}

// What inspect says of a model, without its lists of ops and modules: the graph has these.
Json model_json(const ir::Model& model) {
  Json out = inspect(model);
  for (const char* name : {"ops", "modules", "extra", "guards", "rewritten"}) out.erase(name);
  return out;
}

// A rewritten file's manifest has the names of a compile's JSON.
Json manifest_json(const ir::Model& model) {
  Json out = parse_json(model.extra.at(std::string(manifest_name)).str());
  for (const char* name : {"earlier", "journal", "seal", "precision"}) out.erase(name);
  return out;
}

Json arch_json(const ttrt::ArchProfile& profile) {
  Json out = parse_json(ttrt::to_json(profile));
  out["peak_tflops"] = Json::object();
  for (const auto fidelity :
       {ttrt::MathFidelity::LoFi, ttrt::MathFidelity::HiFi2, ttrt::MathFidelity::HiFi3, ttrt::MathFidelity::HiFi4})
    out["peak_tflops"][std::string(to_string(fidelity))] = profile.peak_tflops(fidelity);
  return out;
}

// The calls of the file as `ttc compare` takes them, all of them.
Json compared(const Globals& globals, const CompileFlags& flags, const std::shared_ptr<const ir::Model>& model) {
  const Timed timed(globals, "comparing");
  InputOptions inputs = ways_to_call(read_safetensors(flags.io)).at(0);
  inputs.io = flags.io;
  inputs.shapes = flags.shapes;
  ExecFlags exec;
  exec.arch = flags.arch;
  const ttrt::ExecutorOptions subject = executor_options(globals, exec, *model);
  ttrt::ExecutorOptions reference = subject;
  reference.mode = ttrt::Mode::cpu;
  const CompareOptions options;
  const Comparison comparison = compare_runs(model, load_cases(*model, inputs), subject, reference, options);
  return Json::parse(comparison_json(comparison, to_string(options.mode)).dump());
}

}  // namespace

Json report_data(const Globals& globals, const CompileFlags& flags, const ReportParts& parts) {
  const ModelSource source(flags.model);
  Json out = {
      {"ttc", TTC_VERSION}, {"compare", nullptr}, {"search", nullptr}, {"dumps", nullptr}, {"what_if", nullptr}};
  // Read first: what is wrong with them shows before the long work.
  if (!parts.compare.empty())
    out["compare"] = read_json(parts.compare, "rows", "ttc compare MODEL --io F --json prints one that has");
  if (!parts.search.empty()) {
    out["search"] = read_json(parts.search, "trials",
                              "ttc compile MODEL -o OUT --min-pcc X --io F --pareto FILE writes one that has");
  }
  if (!parts.dumps.empty()) out["dumps"] = dumps_json(parts.dumps);

  std::shared_ptr<const ir::Model> model;
  ir::SymBinding shapes;
  if (std::unique_ptr<ir::Model> plain = source.read(); is_rewritten(*plain)) {
    const std::string why = flags.model + " is rewritten already, and is shown as it is";
    refuse_unchecked({"--require-full", "--verify-each"}, why);
    warn_of_idle(globals,
                 {"--replace",       "--replace-file", "--exclude",    "--fallback-op",    "--fallback-module",
                  "--fallback-node", "--passes",       "--disable",    "--stop-after",     "--rewrite-limit",
                  "--dump-dir",      "--dump-before",  "--dump-after", "--print-pipeline", "--time-passes",
                  "--stats",         "--reproducer",   "--input",      "--weight-dtype",   "--activation-dtype",
                  "--fidelity",      "--fp32-acc"},
                 why);
    out["compile"] = manifest_json(*plain);
    shapes = given_sizes(*plain, flags);
    model = std::move(plain);
  } else {
    Compiled done = compiled(globals, source, flags, false);
    out["compile"] = Json::parse(report_json(done.result, *done.model));
    model = std::move(done.model);
    shapes = std::move(done.shapes);
    if (parts.dumps.empty() && !flags.passes.dump_dir.empty()) out["dumps"] = dumps_json(flags.passes.dump_dir);
  }
  if (parts.compare.empty() && !flags.io.empty()) out["compare"] = compared(globals, flags, model);
  out["model"] = model_json(*model);
  out["model"]["file"] = flags.model;
  const ttrt::ArchProfile arch = profile_for(*model, flags.arch);
  out["arch"] = arch_json(arch);
  const DeviceProfile profile = profile_device(*model, arch, shapes);
  out["profile"] = Json::parse(to_json(profile).dump());
  if (parts.what_if) out["what_if"] = Json::parse(to_json(what_ifs(source, flags, {}, profile), profile).dump());
  out["graph"] = graph_json(*model);
  return out;
}

}  // namespace ttc
