// Compiling, checking and comparing over src/session: plain structs in and out, errors as api::Error.
#include "api/model_impl.h"
#include "api/bridge.h"
#include "device/arch.h"
#include "formats/model_file.h"
#include "ops/op.h"
#include "pass/conversions.h"
#include "session/compare.h"
#include "session/compile.h"
#include "session/kept.h"
#include "support/error.h"
#include "support/json_util.h"

namespace ttc::api {
namespace {

std::string text(Format format) { return std::string(to_string(device_format(format))); }

const char* text(Fidelity fidelity) {
  static constexpr const char* names[] = {"LoFi", "HiFi2", "HiFi3", "HiFi4", "library"};
  const auto i = static_cast<std::size_t>(fidelity);
  if (i >= std::size(names)) throw Error(Error::Kind::usage, "a fidelity that does not exist");
  return names[i];
}

const char* text(std::optional<bool> on) { return !on ? "library" : *on ? "on" : "off"; }

template <typename T>
std::vector<std::string> assignments(const std::vector<std::pair<std::string, T>>& entries) {
  std::vector<std::string> out;
  for (const auto& [glob, value] : entries) out.push_back(glob + "=" + text(value));
  return out;
}

// As --replace-file has it.
std::string maps_text(const std::vector<ReplacementMap>& maps) {
  OrderedJson out = OrderedJson::array();
  for (const ReplacementMap& map : maps) {
    OrderedJson& made = out.emplace_back(OrderedJson::object());
    for (const auto& [key, to] : map) {
      OrderedJson entry{{"op", to.to}, {"fallback", to.fallback}};
      if (to.weight_dtype) entry["weight_dtype"] = text(*to.weight_dtype);
      if (to.activation_dtype) entry["activation_dtype"] = text(*to.activation_dtype);
      if (to.fidelity) entry["fidelity"] = text(*to.fidelity);
      if (to.fp32_acc) entry["fp32_acc"] = *to.fp32_acc;
      made[key] = std::move(entry);
    }
  }
  return out.dump();
}

CompileReport report_of(const CompileResult& result, const ir::Model& model) {
  const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  CompileReport out{.arch = result.arch,
                    .nodes = count(result.nodes.total),
                    .device_nodes = count(result.nodes.device),
                    .cpu_nodes = count(result.nodes.cpu),
                    .flops = result.flops.total,
                    .device_flops = result.flops.device,
                    .transfers = count(result.transfers.count),
                    .transfer_bytes = result.transfers.bytes,
                    .weight_bytes_in = result.weights.bytes_in,
                    .weight_bytes_out = result.weights.bytes_out,
                    .l1_peak_bytes = result.memory.l1_peak,
                    .dram_peak_bytes = result.memory.dram_peak,
                    .fits = result.memory.fits(),
                    .streamed = result.memory.streamed(),
                    .summary = result.summary(),
                    .json = report_json(result, model)};
  for (const ttc::ModuleReport& m : result.modules)
    out.modules.push_back(
        {.path = m.path, .klass = m.klass, .op = m.op, .weight_format = m.weight_format, .fidelity = m.fidelity});
  for (const Swap& s : result.swaps)
    out.swapped.push_back({.path = s.path,
                           .klass = s.klass,
                           .op = s.op,
                           .map = static_cast<std::int64_t>(s.map),
                           .key = s.key,
                           .to = s.target});
  const auto refusal = [](std::string pass, const auto& r) {
    return Refusal{.pass = std::move(pass),
                   .node = r.node,
                   .op = r.op,
                   .module = r.module,
                   .reason = std::string(to_string(r.reason.code)),
                   .detail = r.reason.detail,
                   .source = r.source};
  };
  for (const ttc::Fallback& f : result.fallbacks) out.fallbacks.push_back(refusal("", f));
  for (const ttc::RefusalRecord& r : result.near_misses()) out.near_misses.push_back(refusal(r.pass, r));
  for (const ttc::Conversion& c : conversions(model))
    out.conversions.push_back(
        {.from = std::string(torch_name(c.from)), .to = std::string(torch_name(c.to)), .checked = c.checked});
  for (const ttc::PassReport& p : result.passes)
    out.passes.push_back({.name = p.name,
                          .changed = p.changed,
                          .ms = p.ms,
                          .nodes_before = count(p.nodes_before),
                          .nodes_after = count(p.nodes_after),
                          .matched = count(p.matched),
                          .refused = count(p.refused)});
  return out;
}

Compiled compile_from(const Model& model, const CompileOptions& options, bool to_save) {
  std::vector<std::string> said;
  const Notes notes{.say = [&](const std::string& line) { said.push_back(library_text(line)); }, .detail = {}};
  ttc::Compiled made = compile_source(plain_source(model), settings_of(options), notes, to_save);
  CompileReport report = report_of(made.result, *made.model);
  report.notes = std::move(said);
  const std::shared_ptr<ir::Model> result = std::move(made.model);
  if (to_save)
    carry_along(plain_source(model), result,
                {.original = options.keep_original, .tests = options.embed_tests, .pcc = options.test_pcc});
  return {model_of(result), std::move(report)};
}

CompareRow row_of(const ttc::CompareRow& row) {
  const ttrt::Metrics& m = row.metrics;
  return {.node = row.node,
          .op = row.op,
          .module = row.module,
          .source = row.source,
          .pcc = m.pcc,
          .max_abs = m.max_abs,
          .max_rel = m.max_rel,
          .snr_db = m.snr_db,
          .nan = m.nan,
          .zero = m.zero,
          .threshold = row.threshold,
          .pass = row.pass};
}

}  // namespace

// "x=i64:8x128"
std::vector<std::string> shape_texts(const std::map<std::string, InputShape>& shapes) {
  std::vector<std::string> out;
  for (const auto& [input, shape] : shapes) {
    std::string& text = out.emplace_back(input + "=");
    if (shape.type) text += std::string(to_string(dtype_of(*shape.type))) + ":";
    for (std::size_t i = 0; i < shape.sizes.size(); ++i) text += (i > 0 ? "x" : "") + std::to_string(shape.sizes[i]);
  }
  return out;
}

CompileSettings settings_of(const CompileOptions& options) {
  CompileSettings out;
  out.arch = options.arch;
  out.activation_dtype = text(options.activation_dtype);
  out.replace_text = options.replace.empty() ? options.replace_text : maps_text(options.replace);
  out.replace_file = options.replace_file;
  out.exclude = options.exclude;
  out.weight_dtype = assignments(options.weight_dtype);
  out.fidelity = assignments(options.fidelity);
  out.fp32_acc = assignments(options.fp32_acc);
  out.fallback_op = options.fallback_op;
  out.fallback_module = options.fallback_module;
  out.fallback_node = options.fallback_node;
  out.require_full = options.require_full;
  out.shapes = shape_texts(options.shape);
  out.inputs = options.input;
  out.io = options.io;
  out.passes.passes = options.passes;
  out.passes.disable = options.disable;
  out.passes.stop_after = options.stop_after;
  out.passes.rewrite_limit = static_cast<long>(options.rewrite_limit);
  out.passes.verify_each = options.verify_each;
  out.reproducer = options.reproducer;
  return out;
}

const ModelSource& plain_source(const Model& model) {
  if (model.impl().source == nullptr || model.is_rewritten())
    throw usage_error(model.path() + ": the model is rewritten already", "compile the file that was exported");
  return *model.impl().source;
}

Model model_of(std::shared_ptr<const ir::Model> made) {
  return Model(std::make_shared<const Model::Impl>(Model::Impl{.source = nullptr, .model = std::move(made)}));
}

Compiled compile(const Model& model, const CompileOptions& options) {
  return guarded([&] { return compile_from(model, options, true); });
}

CompileReport check(const Model& model, const CompileOptions& options) {
  return guarded([&] { return compile_from(model, options, false).report; });
}

Comparison compare(const Model& model, const CompareOptions& options) {
  return guarded([&] {
    const InputOptions inputs = inputs_of(options);
    Comparison out;
    const Notes notes{.say = [&](const std::string& line) { out.notes.push_back(library_text(line)); }, .detail = {}};
    const auto graph = model.impl().source != nullptr ? compiled_for(*model.impl().source, inputs, options.arch, notes)
                                                      : model.impl().model;
    const std::vector<Case> cases = load_cases(*graph, inputs);
    for (const std::string& line : cases.at(0).notes) notes(line);
    ttrt::ExecutorOptions subject;
    subject.profile = profile_for(*graph, options.arch);
    subject.numerics = options.numerics == NumericsMode::exact ? ttrt::Numerics::exact : ttrt::Numerics::fast;
    const auto mode = static_cast<ttc::CompareMode>(options.mode);
    if (mode != ttc::CompareMode::dpl && options.against != Against::cpu)
      throw usage_error("modes other than dpl compare with the cpu");
    ttrt::ExecutorOptions reference = subject;
    if (options.against == Against::cpu)
      reference.mode = ttrt::Mode::cpu;
    else
      reference.numerics = options.against == Against::exact ? ttrt::Numerics::exact : ttrt::Numerics::fast;
    const ttc::Comparison compared =
        compare_runs(graph, cases, subject, reference,
                     {.mode = mode, .by_module = options.by_module, .pcc = options.pcc, .max_rel = options.max_rel});
    for (const ttc::CompareRow& row : compared.rows) out.rows.push_back(row_of(row));
    out.first_failure = compared.first_failure;
    out.worst = compared.worst;
    out.pass = !compared.first_failure;
    return out;
  });
}

std::vector<Listed> passes() {
  std::vector<Listed> out;
  for (const PassInfo* pass : all_passes()) out.push_back({std::string(pass->name), std::string(pass->summary)});
  return out;
}

std::vector<std::string> default_pipeline() {
  std::vector<std::string> out;
  for (const PipelineStep& step : ttc::default_pipeline()) out.emplace_back(step.pass);
  return out;
}

std::vector<Listed> ops() {
  std::vector<Listed> out;
  for (const ttrt::OpRecord* op : ttrt::all_ops()) out.push_back({std::string(op->name), std::string(op->summary)});
  return out;
}

std::vector<Listed> modules() {
  std::vector<Listed> out;
  for (const ttrt::ModuleRecord* module : ttrt::all_modules())
    out.push_back({std::string(module->name), std::string(module->summary)});
  return out;
}

std::vector<Listed> archs() {
  std::vector<Listed> out;
  for (const ttrt::ArchProfile& profile : ttrt::arch_profiles())
    out.push_back({profile.name, std::to_string(profile.chips) + " x " + std::string(to_string(profile.arch)) + ", " +
                                     std::to_string(profile.grid_x) + "x" + std::to_string(profile.grid_y) + " cores"});
  return out;
}

const char* version() { return TTC_VERSION; }

}  // namespace ttc::api
