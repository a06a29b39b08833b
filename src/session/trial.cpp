// Noise is measured per output, so that the noises of several changes can be added up.
#include "session/trial.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/safetensors.h"
#include "pass/call.h"
#include "session/steps.h"
#include "session/values.h"
#include "support/error.h"

namespace ttc {
namespace {

// Rows of the last dim whose largest element is at the same place, and all rows.
void count_top1(const ttrt::HostTensor& actual, const ttrt::HostTensor& expected, std::int64_t& same,
                std::int64_t& all) {
  if (!is_floating(expected.dtype) || expected.sizes.empty() || expected.sizes.back() < 2 ||
      actual.sizes != expected.sizes)
    return;
  const ttrt::HostTensor a = ttrt::convert(actual, DType::f32), e = ttrt::convert(expected, DType::f32);
  const auto row = static_cast<std::size_t>(expected.sizes.back());
  for (std::int64_t r = 0; r < e.numel() / static_cast<std::int64_t>(row); ++r) {
    const float *x = a.as<float>() + static_cast<std::size_t>(r) * row,
                *y = e.as<float>() + static_cast<std::size_t>(r) * row;
    same += std::max_element(x, x + row) - x == std::max_element(y, y + row) - y;
    ++all;
  }
}

bool has_packed_weights(const ir::Node& node) { return is_device_node(node) && node.arg("weight_format") != nullptr; }

std::vector<std::string> paths_of(const ir::Provenance& where) {
  std::vector<std::string> out;
  for (const auto& [path, klass] : where.merged) out.push_back(path);
  if (out.empty()) out.push_back(where.module_path);
  return out;
}

// Bytes of the weights that the nodes of each module read, shared ones once.
void count_bytes(const ir::Model& model, Score& score) {
  std::map<const ir::Value*, bool> seen;
  ir::walk(*model.graph, [&](ir::Node* node) {
    if (!has_packed_weights(*node)) return;
    std::vector<std::string> paths = paths_of(*node->provenance);
    ModuleCost& cost = score.modules[paths.front()];
    if (paths.size() > cost.paths.size()) cost.paths = std::move(paths);
    cost.fidelity = cost.fidelity || node->arg("fidelity") != nullptr;
    cost.fp32_acc = cost.fp32_acc || node->arg("fp32_acc") != nullptr;
    for (const ir::Value* value : node->operands())
      if (const ir::Weight* weight = model.weight_of(value); weight && seen.emplace(value, true).second) {
        cost.bytes += static_cast<std::int64_t>(weight->nbytes());
        score.bytes += static_cast<std::int64_t>(weight->nbytes());
      }
  });
}

void count_cycles(const ttrt::Executor& executor, Score& score) {
  for (const ttrt::InstructionProfile& one : executor.profiler().profile()) {
    score.cycles += one.cycles;
    if (one.cycles > 0) score.bounds[one.bound] += one.cycles;
    const auto module = score.modules.find(paths_of(*one.instruction->node->provenance).front());
    if (module != score.modules.end()) module->second.cycles += one.cycles;
  }
}

}  // namespace

Calls calls_of(const ModelSource& source, const CompileSettings& settings) {
  const std::shared_ptr<const ir::Model> plain = source.read();
  const InputOptions given{.io = settings.io, .inputs = settings.inputs, .shapes = settings.shapes};
  std::vector<InputOptions> ways = {given};
  if (!settings.io.empty()) ways = ways_to_call(read_safetensors(settings.io));
  Calls out;
  for (InputOptions& way : ways) {
    way.io = given.io;
    std::vector<Case> cases = load_cases(*plain, way);
    if (!std::ranges::all_of(cases, [&](const Case& one) { return fits(*plain, one); })) continue;
    expect_cpu(plain, cases);
    out.push_back(std::move(cases));
  }
  if (out.empty()) throw usage_error(settings.io + " holds no call that fits the model");
  return out;
}

Score Trials::run(const CompileSettings& settings, const Calls& calls) {
  Compiled compiled = compile_source(source_, settings);
  result_ = std::move(compiled.result);
  model_ = std::move(compiled.model);
  Score score{.snr_db = std::numeric_limits<double>::infinity(), .noise = {}};
  count_bytes(*model_, score);
  std::int64_t same = 0, rows = 0;
  for (const std::vector<Case>& cases : calls) {
    ttrt::Executor executor(model_, {.profile = profile_for(*model_, settings.arch)});
    executor.set_profiling(true);
    StepRunner steps(executor, cases);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto& outputs = steps.run(i);
      for (const Check& check : check_outputs(cases[i], outputs, thresholds_, true)) {
        score.pass = score.pass && check.pass;
        const bool broken = !check.problem.empty() || check.metrics.nan > 0;
        score.pcc = std::min(score.pcc, broken ? 0.0 : check.metrics.pcc);
        score.snr_db = std::min(score.snr_db, broken ? 0.0 : check.metrics.snr_db);
        score.noise.push_back(broken ? std::numeric_limits<double>::infinity()
                                     : std::pow(10.0, -check.metrics.snr_db / 10));
      }
      const std::vector<ttrt::RtValue> flat = flat_outputs(outputs);
      for (std::size_t k = 0; k < flat.size() && k < cases[i].expected.size(); ++k)
        if (const auto actual = as_tensor(flat[k]); actual && cases[i].expected[k])
          count_top1(*actual, *cases[i].expected[k], same, rows);
    }
    count_cycles(executor, score);
  }
  if (rows > 0) score.top1 = static_cast<double>(same) / static_cast<double>(rows);
  return score;
}

}  // namespace ttc
