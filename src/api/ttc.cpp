// The public interface over src/session: plain structs in and out, errors as ttc::Error.
#include "api/model_impl.h"
#include "device/arch.h"
#include "formats/model_file.h"
#include "ops/op.h"
#include "pass/conversions.h"
#include "session/compare.h"
#include "session/compile.h"
#include "support/error.h"

namespace ttc::api {
namespace {

// "--weight-dtype" is the member weight_dtype here, and has its name.
std::string in_members(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool flag = text.compare(i, 2, "--") == 0 && i + 2 < text.size() && text[i + 2] >= 'a' && text[i + 2] <= 'z';
    if (!flag) {
      out += text[i++];
      continue;
    }
    for (i += 2; i < text.size() && ((text[i] >= 'a' && text[i] <= 'z') || text[i] == '-'); ++i)
      out += text[i] == '-' ? '_' : text[i];
  }
  return out;
}

Error::Kind kind_of(Exit code) {
  switch (code) {
    case Exit::usage:
      return Error::Kind::usage;
    case Exit::unsupported:
      return Error::Kind::unsupported;
    case Exit::bad_file:
      return Error::Kind::bad_file;
    case Exit::bug:
      return Error::Kind::bug;
    default:
      return Error::Kind::failed;
  }
}

// Runs f; what it throws leaves the library as api::Error.
template <typename F>
auto guarded(F&& f) {
  try {
    return f();
  } catch (const Error&) {
    throw;
  } catch (const ttc::Error& error) {
    throw Error(kind_of(error.code()), error.file(), in_members(error.what()), in_members(error.hint()));
  } catch (const std::exception& error) {
    throw Error(Error::Kind::failed, "", error.what(), "");
  }
}

CompileSettings settings_of(const CompileOptions& options) {
  CompileSettings out;
  out.arch = options.arch;
  out.activation_dtype = options.activation_dtype;
  out.replace = options.replace;
  out.replace_file = options.replace_file;
  out.exclude = options.exclude;
  out.weight_dtype = options.weight_dtype;
  out.fidelity = options.fidelity;
  out.fp32_acc = options.fp32_acc;
  out.fallback_op = options.fallback_op;
  out.fallback_module = options.fallback_module;
  out.fallback_node = options.fallback_node;
  out.require_full = options.require_full;
  out.shapes = options.shape;
  out.inputs = options.input;
  out.io = options.io;
  out.passes.passes = options.passes;
  out.passes.disable = options.disable;
  out.passes.stop_after = options.stop_after;
  out.passes.rewrite_limit = options.rewrite_limit;
  out.passes.verify_each = options.verify_each;
  return out;
}

void count(const CompileResult& result, CompileReport& out) {
  out.arch = result.arch;
  out.nodes = result.nodes.total;
  out.device_nodes = result.nodes.device;
  out.cpu_nodes = result.nodes.cpu;
  out.flops = result.flops.total;
  out.device_flops = result.flops.device;
  out.transfers = result.transfers.count;
  out.transfer_bytes = result.transfers.bytes;
  out.weight_bytes_in = result.weights.bytes_in;
  out.weight_bytes_out = result.weights.bytes_out;
  out.l1_peak = result.memory.l1_peak;
  out.dram_peak = result.memory.dram_peak;
  out.fits = result.memory.fits;
}

CompileReport report_of(const CompileResult& result, const ir::Model& model) {
  CompileReport out;
  count(result, out);
  for (const ttc::ModuleReport& m : result.modules)
    out.modules.push_back(
        {.path = m.path, .klass = m.klass, .op = m.op, .weight_format = m.weight_format, .fidelity = m.fidelity});
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
                          .nodes_before = p.nodes_before,
                          .nodes_after = p.nodes_after,
                          .matched = p.matched,
                          .refused = p.refused});
  out.summary = result.summary();
  out.json = report_json(result, model);
  return out;
}

const ModelSource& source_of(const Model& model) {
  if (model.impl().source == nullptr)
    throw usage_error("the model is what a compile made", "compile the model that was loaded");
  return *model.impl().source;
}

Model loaded(std::shared_ptr<const ModelSource> source) {
  auto impl = std::make_shared<Model::Impl>();
  impl->graph = source->read();
  impl->source = std::move(source);
  return Model(std::move(impl));
}

Compiled compile_from(const Model& model, const CompileOptions& options, bool to_save) {
  std::vector<std::string> said;
  const Notes notes{.say = [&](const std::string& line) { said.push_back(in_members(line)); }, .detail = {}};
  ttc::Compiled made = compile_source(source_of(model), settings_of(options), notes, to_save);
  CompileReport report = report_of(made.result, *made.model);
  report.notes = std::move(said);
  auto impl = std::make_shared<Model::Impl>();
  impl->graph = std::move(made.model);
  return {Model(std::move(impl)), std::move(report)};
}

CompareRow row_of(const ttc::CompareRow& row) {
  const ttrt::Metrics& m = row.metrics;
  return {.node = row.node,
          .op = row.op,
          .module = row.module,
          .pcc = m.pcc,
          .max_abs = m.max_abs,
          .max_rel = m.max_rel,
          .snr_db = m.snr_db,
          .nan = m.nan,
          .zero = m.zero,
          .pass = row.pass};
}

}  // namespace

Error::~Error() = default;

Model Model::load(const std::string& path) {
  return guarded([&] { return loaded(std::make_shared<const ModelSource>(path)); });
}

Model Model::from_memory(const std::string& name, const void* data, std::size_t size) {
  return guarded([&] {
    const auto* bytes = static_cast<const std::byte*>(data);
    return loaded(std::make_shared<const ModelSource>(name, std::vector<std::byte>(bytes, bytes + size)));
  });
}

const std::string& Model::path() const { return impl_->graph->info.path; }
bool Model::is_rewritten() const { return ttc::is_rewritten(*impl_->graph); }
std::string Model::sha256() const {
  return guarded([&] { return source_of(*this).sha256(); });
}
void Model::save(const std::string& path) const {
  guarded([&] { save_model(*impl_->graph, path); });
}

Compiled compile(const Model& model, const CompileOptions& options) {
  return guarded([&] { return compile_from(model, options, true); });
}

CompileReport check(const Model& model, const CompileOptions& options) {
  return guarded([&] { return compile_from(model, options, false).report; });
}

Comparison compare(const Model& model, const CompareOptions& options) {
  return guarded([&] {
    const InputOptions inputs{.io = options.io,
                              .io_prefix = options.io_prefix,
                              .io_steps = options.io_steps,
                              .inputs = options.input,
                              .shapes = options.shape,
                              .carry = options.carry,
                              .seed = options.seed};
    Comparison out;
    const Notes notes{.say = [&](const std::string& line) { out.notes.push_back(in_members(line)); }, .detail = {}};
    const auto graph = model.impl().source != nullptr ? compiled_for(*model.impl().source, inputs, options.arch, notes)
                                                      : model.impl().graph;
    const std::vector<Case> cases = load_cases(*graph, inputs);
    for (const std::string& line : cases.at(0).notes) notes(line);
    ttrt::ExecutorOptions subject;
    subject.profile = ttrt::profile_from_argument(options.arch);
    subject.numerics = options.numerics == Numerics::exact ? ttrt::Numerics::exact : ttrt::Numerics::fast;
    ttrt::ExecutorOptions reference = subject;
    if (options.against == Against::cpu)
      reference.mode = ttrt::Mode::cpu;
    else
      reference.numerics = options.against == Against::exact ? ttrt::Numerics::exact : ttrt::Numerics::fast;
    const ttc::Comparison compared =
        compare_runs(graph, cases, subject, reference,
                     {.by_module = options.by_module, .pcc = options.pcc, .max_rel = options.max_rel});
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

std::vector<Listed> archs() {
  std::vector<Listed> out;
  for (const ttrt::ArchProfile& profile : ttrt::arch_profiles())
    out.push_back({profile.name, std::to_string(profile.chips) + " x " + std::string(to_string(profile.arch)) + ", " +
                                     std::to_string(profile.grid_x) + "x" + std::to_string(profile.grid_y) + " cores"});
  return out;
}

const char* version() { return TTC_VERSION; }

}  // namespace ttc::api
