// Text-IR models run as they are in LibTorch and rewritten on the device: what tests of whole rewrites share.
#pragma once

#include <cstring>
#include <random>

#include "torch/cpu_op.h"
#include "executor/executor.h"
#include "pass/compile.h"
#include "tests/outputs.h"

namespace rewrites {

using namespace ttrt;
using test::expect_close;
using test::tensor;
using ttc::DType;

inline HostTensor random_floats(const Shape& sizes, unsigned seed, float scale = 1) {
  HostTensor out = empty_host(DType::f32, sizes);
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, scale);
  for (std::int64_t i = 0; i < out.numel(); ++i) out.as<float>()[i] = normal(engine);
  return out;
}

inline HostTensor integers(DType dtype, const Shape& sizes, std::initializer_list<std::int64_t> values) {
  HostTensor out = empty_host(DType::i64, sizes);
  std::copy(values.begin(), values.end(), out.as<std::int64_t>());
  return convert(out, dtype);
}

// Parameters without bytes get random ones.
inline std::unique_ptr<ttc::ir::Model> parse(const std::string& text) {
  install_torch_schemas();
  auto model = ttc::ir::parse(text);
  unsigned seed = 100;
  for (auto& [name, weight] : model->weights) {
    if (weight.storage != nullptr && !weight.storage->absent()) continue;
    const HostTensor values = random_floats({weight.sizes.begin(), weight.sizes.end()}, ++seed, 0.1F);
    weight = ttc::ir::make_weight(DType::f32, weight.sizes,
                                  std::vector<std::byte>(values.data, values.data + values.nbytes()));
  }
  return model;
}

inline ExecutorOptions in_mode(Mode mode) {
  ExecutorOptions options;
  options.mode = mode;
  return options;
}

inline std::unique_ptr<Executor> plain(const std::string& text) {
  return std::make_unique<Executor>(std::shared_ptr<const ttc::ir::Model>(parse(text)), in_mode(Mode::cpu));
}

inline std::unique_ptr<Executor> after_passes(const std::string& text, std::vector<std::string> passes) {
  auto model = parse(text);
  ttc::PassManagerOptions options;
  options.passes = std::move(passes);
  options.verify_each = true;
  ttc::CompileOptions compile;
  ttc::PassContext context(*model, compile);
  ttc::run_passes(context, options);
  return std::make_unique<Executor>(std::shared_ptr<const ttc::ir::Model>(std::move(model)), in_mode(Mode::cpu));
}

struct Compiled {
  std::unique_ptr<Executor> executor;
  ttc::CompileResult result;
};

inline Compiled compiled(const std::string& text, Mode mode = Mode::device, DataType activation = DataType::bfloat16) {
  auto model = parse(text);
  ttc::CompileOptions options;
  options.activation = activation;
  Compiled out;
  ttc::PassManagerOptions passes;
  passes.verify_each = true;
  out.result = ttc::compile(*model, options, passes);
  out.executor = std::make_unique<Executor>(std::shared_ptr<const ttc::ir::Model>(std::move(model)), in_mode(mode));
  return out;
}

// Inputs are copied: a model may write them.
inline std::vector<RtValue> copies(const std::vector<RtValue>& inputs) {
  std::vector<RtValue> out;
  for (const RtValue& input : inputs) {
    const auto* host = input.get_if<HostTensor>();
    if (host == nullptr) {
      out.push_back(input);
      continue;
    }
    HostTensor copy = empty_host(host->dtype, host->sizes);
    std::memcpy(copy.data, host->data, static_cast<std::size_t>(host->nbytes()));
    out.emplace_back(std::move(copy));
  }
  return out;
}

inline constexpr double float_noise = 2e-6, bfloat16_noise = 0.05;

// The same outputs in LibTorch, after `passes` in LibTorch, and compiled for the device with nothing left on the host.
inline void expect_rewrite(const std::string& text, const std::vector<std::string>& passes,
                           const std::vector<RtValue>& inputs) {
  const auto expected = plain(text)->run(inputs);
  expect_close(after_passes(text, passes)->run(inputs), expected, float_noise);
  Compiled on_device = compiled(text);
  for (int run = 0; run < 2; ++run) expect_close(on_device.executor->run(inputs), expected, bfloat16_noise);
  INFO(on_device.result.summary());
  CHECK(on_device.result.nodes.device == on_device.result.nodes.total);
}

}  // namespace rewrites
