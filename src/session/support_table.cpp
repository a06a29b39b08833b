// Which recorded calls serve a model, what to expect where none is recorded, and how a row ends.
#include "session/support_table.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "formats/file_format.h"
#include "executor/signature.h"
#include "formats/safetensors.h"
#include "session/baseline.h"
#include "session/checks.h"
#include "session/compile.h"
#include "session/index_notes.h"
#include "session/steps.h"
#include "support/error.h"

namespace ttc {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view io_ending = ".io.safetensors";

// The recorded calls for a model: bert_small.io.safetensors serves bert_small.pt and bert_small_dyn.pt2.
std::string io_of(const fs::path& model) {
  const std::string name = model.filename().string();
  std::string best;
  std::size_t length = 0;
  for (const auto& entry : fs::directory_iterator(model.parent_path())) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(io_ending)) continue;
    const std::string stem = file.substr(0, file.size() - io_ending.size());
    const bool serves =
        name.starts_with(stem) && name.size() > stem.size() && (name[stem.size()] == '.' || name[stem.size()] == '_');
    if (serves && stem.size() > length) best = entry.path().string(), length = stem.size();
  }
  return best;
}

constexpr std::string_view own_result = "; LibTorch gives something else too";

class RowMaker {
 public:
  RowMaker(const fs::path& path, const CompileSettings& settings, double pcc, bool baseline, const Notes& notes)
      : path_(path), settings_(settings), baseline_(baseline), notes_(notes) {
    thresholds_.pcc = pcc;
    if (settings_.io.empty()) settings_.io = io_of(path);
    row_.file = path.filename().string();
  }

  SupportRow make() {
    try {
      source_ = std::make_unique<ModelSource>(path_.string());
      plain_ = source_->read();
    } catch (const Error& error) {
      return ended("refused", error.what());
    }
    try {
      compiled_ = compile_it(settings_, true);
      if (settings_.io.empty())
        call({});
      else
        for (InputOptions way : ways_to_call(read_safetensors(settings_.io))) {
          way.io = settings_.io;
          call(way);
        }
      if (row_.runs == 0) return ended("failed", "no recorded call fits the model");
      if (!compared_) return ended("failed", "there is no tensor among the outputs to compare");
    } catch (const Error& error) {
      return ended("failed", error.what());
    }
    if (row_.status.empty()) row_.status = "ok";
    return row_;
  }

 private:
  SupportRow ended(const std::string& status, const std::string& detail) {
    row_.status = status;
    row_.detail = detail.substr(0, detail.find('\n'));
    return row_;
  }

  std::shared_ptr<const ir::Model> compile_it(const CompileSettings& settings, bool record) {
    Compiled compiled = compile_source(*source_, settings, notes_);
    if (!record) return std::move(compiled.model);
    const CompileResult& result = compiled.result;
    row_.nodes = result.nodes.total;
    row_.device = result.nodes.device;
    row_.flops = result.flops.total;
    row_.device_flops = result.flops.device;
    for (const Fallback& f : result.fallbacks) ++row_.refusals[std::string(to_string(f.reason.code))][f.op];
    return std::move(compiled.model);
  }

  // A TorchScript file has no shapes: it is compiled for those of the call.
  std::shared_ptr<const ir::Model> compile_for(const Case& one) {
    CompileSettings settings = settings_;
    settings.io.clear();
    const auto formal = ttrt::user_inputs(*plain_);
    for (std::size_t i = 0; i < formal.size(); ++i) {
      const auto* tensor = one.inputs[i].get_if<ttrt::HostTensor>();
      if (tensor == nullptr) continue;
      std::string sizes;
      for (const std::int64_t size : tensor->sizes) sizes += (sizes.empty() ? "" : "x") + std::to_string(size);
      settings.shapes.push_back(formal[i].name + "=" + std::string(to_string(tensor->dtype)) + ":" + sizes);
    }
    return compile_it(settings, false);
  }

  void call(const InputOptions& way) {
    std::vector<Case> cases = load_cases(*plain_, way);
    if (!fits(*plain_, cases[0])) return;
    ttrt::ExecutorOptions options;
    options.profile = profile_for(*compiled_, settings_.arch);
    const bool other_shapes = !way.io_prefix.empty() && path_.extension() == ".pt";
    if (other_shapes && refuses(cases[0])) return;
    const std::shared_ptr<const ir::Model> executed = other_shapes ? compile_for(cases[0]) : compiled_;
    ttrt::Executor executor(executed, options);
    const auto untold = [](const Case& one) { return one.expected.empty(); };
    const bool recorded = std::ranges::none_of(cases, untold);
    if (!recorded) expect_cpu(plain_, cases);
    if (baseline_) find_baseline(cases);
    StepRunner steps(executor, cases);
    IndexNotes notes(executed, executor, cases);
    std::vector<Check> checks;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto& outputs = steps.run(i);
      for (Check& check : check_outputs(cases[i], outputs, thresholds_, true)) checks.push_back(std::move(check));
      notes.keep(i, outputs);
      ++row_.runs;
    }
    notes.add(checks);
    for (const Check& check : checks) judge(check);
    compared_ = compared_ || !checks.empty();
    const auto fell_back = executor.fallback_failures();
    if (!fell_back.empty() && row_.detail.empty())
      row_.detail = fell_back[0].node + " fell back to the CPU: " + fell_back[0].reason;
    if (recorded && row_.status == "inaccurate" && row_.detail.find(own_result) == std::string::npos &&
        differs_itself(cases))
      row_.detail += own_result;
  }

  void find_baseline(std::vector<Case>& cases) {
    try {
      add_baseline(*source_, cases);
    } catch (const Error& error) {
      notes_(row_.file + ": LibTorch does not run it in bfloat16: " + error.what());
      return;
    }
    for (const Case& one : cases)
      for (const auto& metrics : one.baseline)
        if (metrics) {
          if (!metrics->constant) row_.baseline = std::min(row_.baseline.value_or(1), metrics->pcc);
          row_.baseline_max_rel = std::max(row_.baseline_max_rel.value_or(0), metrics->max_rel);
        }
  }

  // Whether the model's own operators do not give what is recorded either: a trace that holds the branches and loops
  // of the call it was made with, a model that draws random numbers.
  bool differs_itself(const std::vector<Case>& cases) const {
    try {
      ttrt::Executor executor(plain_, {.mode = ttrt::Mode::cpu});
      StepRunner steps(executor, cases);
      for (std::size_t i = 0; i < cases.size(); ++i)
        for (const Check& check : check_outputs(cases[i], steps.run(i), thresholds_, true))
          if (!check.pass) return true;
    } catch (const Error&) {
    }
    return false;
  }

  // Whether the model itself does not take this call: a trace is bound to the sizes it was made with.
  bool refuses(const Case& one) const {
    try {
      ttrt::Executor(plain_, {.mode = ttrt::Mode::cpu}).run(one.inputs);
    } catch (const Error&) {
      return true;
    }
    return false;
  }

  void judge(const Check& check) {
    // An output of one value has no correlation; it passes by its distance.
    const bool no_correlation = check.pass && check.metrics.pcc < *thresholds_.pcc;
    if (check.problem.empty() && !no_correlation) row_.pcc = std::min(row_.pcc, check.metrics.pcc);
    row_.max_rel = std::max(row_.max_rel, check.metrics.max_rel);
    if (check.pass || row_.status == "inaccurate") return;
    row_.status = "inaccurate";
    const std::string& why = check.problem.empty() ? check.note : check.problem;
    row_.detail = check.output + (why.empty() ? "" : ": " + why);
  }

  fs::path path_;
  CompileSettings settings_;
  const bool baseline_;
  const Notes& notes_;
  Thresholds thresholds_;
  std::unique_ptr<const ModelSource> source_;
  std::shared_ptr<const ir::Model> plain_, compiled_;
  SupportRow row_;
  bool compared_ = false;  // any output
};

}  // namespace

std::vector<std::string> model_files(const std::string& folder) {
  std::error_code code;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, code))
    if (const FileFormat* format = format_of_name(entry.path().string()); format && format->holds_weights)
      files.push_back(entry.path().string());
  if (code) throw usage_error("--all " + folder + ": " + code.message());
  if (files.empty()) throw usage_error("--all " + folder + ": there is no " + model_extensions() + " file in it");
  std::sort(files.begin(), files.end());
  return files;
}

SupportRow support_row(const std::string& file, const CompileSettings& settings, double pcc, bool baseline,
                       const Notes& notes) {
  notes(fs::path(file).filename().string());
  return RowMaker(file, settings, pcc, baseline, notes).make();
}

}  // namespace ttc
