// Sessions: an executor behind a lock, and a snapshot of its counters that is taken while the lock is held, so that a
// report never waits for a run and never sees half of one.
#include <atomic>
#include <mutex>

#include "api/convert.h"
#include "api/devices.h"
#include "api/model_impl.h"
#include "api/session.h"
#include "executor/signature.h"
#include "session/timings.h"

namespace ttrt {
namespace {

dispatch::DispatchMode internal_mode(DispatchMode mode) {
  switch (mode) {
    case DispatchMode::STATIC:
      return dispatch::DispatchMode::STATIC;
    case DispatchMode::DYNAMIC:
      return dispatch::DispatchMode::DYNAMIC;
    case DispatchMode::HOT_RELOAD:
      return dispatch::DispatchMode::HOT_RELOAD;
    case DispatchMode::CONFIG:
      return dispatch::DispatchMode::CONFIG;
    case DispatchMode::AUTO:
      return dispatch::DispatchMode::AUTO;
  }
  throw Error(Error::Kind::usage, "a dispatch mode that does not exist");
}

dispatch::DispatchOptions dispatch_options(const SessionOptions& options) {
  const DispatchSettings& d = options.dispatch;
  return {.mode = internal_mode(options.dispatch_mode),
          .enable_cache = d.enable_cache,
          .cache_size = d.cache_size,
          .cache_ttl_seconds = d.cache_ttl_seconds,
          .enable_fallback = d.enable_fallback,
          .max_fallback_attempts = d.max_fallback_attempts,
          .fallback_timeout_ms = d.fallback_timeout_ms,
          .config_path = options.dispatch_config,
          .watch_interval_seconds = d.watch_interval_seconds,
          .validate_on_reload = d.validate_on_reload,
          .enable_telemetry = d.enable_telemetry,
          .record_timing = d.record_timing,
          .log_fallbacks = d.log_fallbacks,
          .circuit_breaker_enabled = d.circuit_breaker_enabled,
          .failure_threshold = d.failure_threshold,
          .recovery_timeout_seconds = d.recovery_timeout_seconds,
          .static_kernel_map = {options.static_kernels.begin(), options.static_kernels.end()}};
}

ExecutorOptions executor_options(const Model& model, const SessionOptions& options, const Session::Impl& impl) {
  ExecutorOptions out;
  out.mode = options.mode == RunMode::cpu ? Mode::cpu : Mode::device;
  out.numerics = options.numerics == NumericsMode::exact ? Numerics::exact : Numerics::fast;
  out.profile = ttc::profile_for(*model.impl().model, options.arch);
  out.chooser = impl.chooser;
  out.cancel = impl.cancel;
  out.stream_weights = options.stream_weights;
  return out;
}

// Lines of the debug dispatcher say what they are.
std::function<void(const std::string&, std::string_view)> report_to(
    const std::function<void(const std::string&)>& log) {
  if (!log) return {};
  return
      [log](const std::string& text, std::string_view severity) { log(severity == "debug" ? "debug: " + text : text); };
}

RunReport report_of(const Executor& executor, std::int64_t runs) {
  const ttc::ir::NodeCounts counts = executor.counts();
  const RunWork& work = executor.work();
  RunReport out{.runs = runs,
                .device_nodes = static_cast<std::int64_t>(counts.device),
                .cpu_nodes = static_cast<std::int64_t>(counts.cpu),
                .fallbacks = {},
                .device_cycles = work.device_cycles,
                .device_us = work.device_cycles / executor.options().profile.clock_mhz,
                .to_device = work.transfers.to_device,
                .to_device_bytes = work.transfers.to_device_bytes,
                .to_host = work.transfers.to_host,
                .to_host_bytes = work.transfers.to_host_bytes,
                .transfer_us = work.transfer_cycles() / executor.options().profile.clock_mhz,
                .weights = work.weights.weights,
                .streamed_weights = work.weights.streamed,
                .streamed_bytes = work.weights.bytes};
  for (const FallbackFailure& failure : executor.fallback_failures())
    out.fallbacks.push_back({.node = failure.node, .op = failure.op, .reason = failure.reason, .count = failure.count});
  return out;
}

// Of RunMode::normal.
void refuse_fallback(const Executor& executor) {
  for (const FallbackFailure& failure : executor.fallback_failures())
    throw Error(Error::Kind::failed,
                "node '" + failure.node + "' (" + failure.op + ") fell back to the CPU: " + failure.reason,
                "RunMode::device lets it");
}

std::vector<Tensor> run_locked(Session::Impl& impl, std::vector<RtValue> values, const std::vector<bool>& keep) {
  const std::lock_guard lock(impl.run_mutex);
  impl.cancel->store(false, std::memory_order_relaxed);
  impl.running.store(true);
  const auto done = [&] {
    impl.running.store(false);
    RunReport report = report_of(*impl.executor, impl.runs);
    if (impl.executor->device() != nullptr) remember_device(impl.executor->device());
    const std::lock_guard guard(impl.report_mutex);
    impl.report = std::move(report);
  };
  try {
    std::vector<Tensor> outputs;
    for (const RtValue& value : impl.executor->run(std::move(values), keep)) append_tensors(value, outputs);
    ++impl.runs;
    if (impl.options.profile) impl.ledger.observe(*impl.executor);
    if (impl.options.mode == RunMode::normal) refuse_fallback(*impl.executor);
    done();
    return outputs;
  } catch (...) {
    done();
    throw;
  }
}

}  // namespace

Session::Session(const Model& model, const SessionOptions& options) : impl_(std::make_shared<Impl>()) {
  guarded([&] {
    impl_->chooser = std::make_shared<KernelChooser>(KernelChoiceOptions{
        .dispatcher = options.dispatcher, .dispatch = dispatch_options(options), .report = report_to(options.log)});
    impl_->executor = std::make_unique<Executor>(model.impl().model, executor_options(model, options, *impl_));
    impl_->inputs = user_inputs(*model.impl().model);
    impl_->options = options;
    impl_->options.profile |= options.trace;
    if (impl_->options.profile) impl_->executor->set_profiling(true, options.trace);
    impl_->report = report_of(*impl_->executor, 0);
  });
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::vector<Tensor> Session::run(const std::vector<Tensor>& inputs) { return run_keeping(inputs, {}); }

std::vector<Tensor> Session::run_keeping(const std::vector<Tensor>& inputs, const std::vector<std::size_t>& keep) {
  return guarded([&] {
    std::vector<bool> stays(user_output_count(impl_->executor->model()), false);
    for (const std::size_t output : keep) {
      if (output >= stays.size())
        throw Error(Error::Kind::usage, "the model has no output " + std::to_string(output),
                    "it has " + std::to_string(stays.size()) + "; they are counted from 0");
      stays[output] = true;
    }
    std::vector<RtValue> values;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values.push_back(
          to_value(i < impl_->inputs.size() ? impl_->inputs[i].input->value->type : ttc::ir::Type{}, inputs[i]));
    return run_locked(*impl_, std::move(values), stays);
  });
}

std::vector<Tensor> Session::run(const std::map<std::string, Tensor>& inputs) {
  std::vector<Tensor> ordered(impl_->inputs.size());
  std::vector<bool> given(impl_->inputs.size(), false);
  for (const auto& [name, tensor] : inputs) {
    const int index = user_input_index(impl_->executor->model(), name);
    if (index < 0)
      throw Error(Error::Kind::usage, "the model has no input '" + name + "'", "Model::inputs() lists them");
    ordered[static_cast<std::size_t>(index)] = tensor;
    given[static_cast<std::size_t>(index)] = true;
  }
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!given[i]) throw Error(Error::Kind::usage, "input '" + impl_->inputs[i].name + "' is missing");
  return run(ordered);
}

void Session::cancel() {
  if (impl_->running.load()) impl_->cancel->store(true, std::memory_order_relaxed);
}

Tensor Session::place(std::size_t index, const Tensor& tensor) {
  return guarded([&] {
    if (tensor.is_resident()) return tensor;
    const std::lock_guard lock(impl_->run_mutex);
    std::vector<Tensor> out;
    append_tensors(impl_->executor->place_input(index, TensorAccess::host(tensor)), out);
    return out.at(0);
  });
}

Tensor Session::fetch(const Tensor& tensor) const {
  return guarded([&] {
    const ResidentTensor* kept = TensorAccess::resident_of(tensor);
    return kept != nullptr ? tensor_of(to_host(kept->tensor, kept->dtype)) : tensor;
  });
}

void Session::reset() {
  guarded([&] { impl_->executor->reset_state(); });
}

RunReport Session::report() const {
  const std::lock_guard lock(impl_->report_mutex);
  return impl_->report;
}

std::vector<OpProfile> Session::profile() const {
  const std::lock_guard lock(impl_->run_mutex);
  std::vector<OpProfile> out;
  for (const InstructionProfile& p : impl_->executor->profiler().profile()) {
    const ttc::ir::Node& node = *p.instruction->node;
    out.push_back({.node = node_name(node),
                   .op = node.op(),
                   .module = node.provenance->module_path,
                   .kind = p.place == OpPlace::transfer ? OpProfile::Kind::transfer
                           : p.place == OpPlace::device ? OpProfile::Kind::device
                                                        : OpProfile::Kind::cpu,
                   .kernel = p.kernel,
                   .calls = p.calls,
                   .wall_us = p.wall_us,
                   .cycles = p.cycles,
                   .bound = p.bound,
                   .bytes = p.bytes});
  }
  return out;
}

std::vector<Timing> Session::timings() const {
  const std::lock_guard lock(impl_->run_mutex);
  std::vector<Timing> out;
  for (const ttc::TimingSum& one : ttc::timing_sums(*impl_->executor))
    out.push_back({.func_name = one.func_name,
                   .module_name = one.module_name,
                   .ttnn = one.ttnn,
                   .torch = one.torch,
                   .min = one.min,
                   .max = one.max,
                   .rows = one.rows,
                   .device_cycles = one.device_cycles});
  return out;
}

void Session::save_timings(const std::string& path) const {
  guarded([&] {
    if (!impl_->options.trace)
      throw Error(Error::Kind::usage, "nothing is traced", "SessionOptions::trace asks for it");
    const std::lock_guard lock(impl_->run_mutex);
    ttc::write_timings(path, *impl_->executor);
  });
}

Compatibility Session::compatibility(const std::optional<std::vector<std::string>>& expected) const {
  return guarded([&] {
    if (!impl_->options.profile)
      throw Error(Error::Kind::usage, "runs are not observed", "SessionOptions::profile asks for it");
    const std::lock_guard lock(impl_->run_mutex);
    ttc::Compatibility found = impl_->ledger.report(*impl_->executor);
    if (expected) ttc::ExpectedFallbacks::of(*expected).judge(found);
    return ttc::api::public_compatibility(found);
  });
}

std::vector<Placement> Session::placement() const {
  const std::lock_guard lock(impl_->run_mutex);
  std::vector<Placement> out;
  if (impl_->runs == 0) return out;
  for (const ServedOp& node : impl_->executor->served()) {
    const ttc::ir::Node& n = *node.instruction->node;
    out.push_back({.node = node_name(n),
                   .op = n.op(),
                   .module = n.provenance->module_path,
                   .source = n.provenance->source,
                   .place = node.on_device ? Place::device : Place::cpu,
                   .kernel = node.kernel});
  }
  return out;
}

std::vector<MemoryUse> Session::memory() const {
  const std::lock_guard lock(impl_->run_mutex);
  const std::shared_ptr<Device>& device = impl_->executor->device();
  if (device == nullptr) return {};
  return memory_use(device->memory_report());
}

std::vector<MemoryUse> memory_use(const MemoryReport& report) {
  std::vector<MemoryUse> out;
  const auto holders = [](const std::vector<HeldBuffer>& held) {
    std::vector<MemoryUse::Holder> all;
    for (const HeldBuffer& one : held)
      all.push_back({.label = one.label, .bytes = one.bytes, .bytes_per_bank = one.bytes_per_bank});
    return all;
  };
  for (const MemoryUsage* usage : {&report.dram, &report.l1})
    out.push_back({.memory = std::string(to_string(usage->type)),
                   .banks = usage->banks,
                   .bank_bytes = usage->bank_bytes,
                   .allocated_per_bank = usage->allocated_per_bank,
                   .peak_per_bank = usage->peak_per_bank,
                   .largest_free_per_bank = usage->largest_free_per_bank,
                   .holders = holders(usage->live),
                   .holders_at_peak = holders(usage->at_peak)});
  return out;
}

}  // namespace ttrt
