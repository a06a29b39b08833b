// The kernel call, and the transposition of attention operands as strided views.
#include "dispatch/execute.h"

#include <array>

namespace ttrt::dispatch {

std::string_view to_string(BackendState state) {
  constexpr std::array<std::string_view, 4> names{"healthy", "degraded", "unhealthy", "cooldown"};
  return names[static_cast<std::size_t>(state)];
}

void BackendHealth::add(const std::string& source) {
  const std::lock_guard lock(mutex_);
  records_.try_emplace(source);
}

void BackendHealth::record_success(const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(source);
  if (found == records_.end()) return;
  ++found->second.entry.successes;
  found->second.entry.consecutive_failures = 0;
}

void BackendHealth::record_failure(const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(source);
  if (found == records_.end()) return;
  ++found->second.entry.failures;
  ++found->second.entry.consecutive_failures;
  found->second.last_failure_ns = clock_.now_ns();
}

std::map<std::string, BackendHealth::Entry> BackendHealth::entries() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Entry> out;
  for (const auto& [source, record] : records_) {
    Entry entry = record.entry;
    if (entry.consecutive_failures == 0)
      entry.state = BackendState::healthy;
    else if (entry.consecutive_failures < threshold_)
      entry.state = BackendState::degraded;
    else if (static_cast<double>(clock_.now_ns() - record.last_failure_ns) < cooldown_seconds_ * 1e9)
      entry.state = BackendState::cooldown;
    else
      entry.state = BackendState::unhealthy;
    out.emplace(source, entry);
  }
  return out;
}

void execute(const KernelSpec& kernel, Symbol operation, CallArgs& args, BackendHealth* health) {
  if (!kernel.impl) {
    if (health) health->record_failure(kernel.source);
    throw KernelExecutionError("kernel '" + kernel.id.str() + "' has no implementation", operation.text(),
                               kernel.id.text());
  }
  try {
    kernel.impl(args);
  } catch (const KernelExecutionError&) {
    if (health) health->record_failure(kernel.source);
    throw;
  } catch (...) {
    if (health) health->record_failure(kernel.source);
    const std::exception_ptr original = std::current_exception();
    throw KernelExecutionError("kernel '" + kernel.id.str() + "' failed: " + error_text(original), operation.text(),
                               kernel.id.text(), original);
  }
  if (health) health->record_success(kernel.source);
}

bool needs_transform(const KernelSpec& kernel, const SelectionContext& context) {
  if (kernel.layouts.contains(context.layout) || !context.operation.text().starts_with("attention")) return false;
  return (context.layout == AxisOrder::BSHD && kernel.layouts.contains(AxisOrder::BHSD)) ||
         (context.layout == AxisOrder::BHSD && kernel.layouts.contains(AxisOrder::BSHD));
}

namespace {

bool is_operand(Symbol name) {
  const std::string_view text = name.text();
  return text == "query" || text == "q" || text == "key" || text == "k" || text == "value" || text == "v";
}

HostTensor transposed(HostTensor tensor) {
  std::swap(tensor.sizes[1], tensor.sizes[2]);
  std::swap(tensor.strides[1], tensor.strides[2]);
  return tensor;
}

}  // namespace

void execute_transformed(const KernelSpec& kernel, Symbol operation, CallArgs& args, BackendHealth* health,
                         const Clock& clock, Timing& timing) {
  const std::int64_t start = clock.ticks();
  std::vector<RtValue> values;
  values.reserve(args.inputs.size());  // the inputs point into it
  std::vector<Input> inputs(args.inputs.begin(), args.inputs.end());
  for (Input& input : inputs) {
    if (!is_operand(input.name)) continue;
    const auto* tensor = input.value ? input.value->get_if<HostTensor>() : nullptr;
    if (!tensor || tensor->sizes.size() != 4)
      throw TransformError("'" + input.name.str() + "' must be a 4-D host tensor to change its order of axes",
                           operation.text(), kernel.id.text(), "axis order");
    HostTensor view = transposed(*tensor);
    values.emplace_back(kernel.requires_contiguous ? contiguous(view) : std::move(view));
    input.value = &values.back();
  }
  CallArgs inner = args;
  inner.inputs = inputs;
  const std::int64_t before = clock.ticks();
  execute(kernel, operation, inner, health);
  const std::int64_t after = clock.ticks();
  if (args.output)
    if (auto* out = args.output->get_if<HostTensor>(); out && out->sizes.size() == 4)
      *out = transposed(std::move(*out));
  timing.pre_transform_ns += clock.to_ns(before - start);
  timing.execution_ns += clock.to_ns(after - before);
  timing.post_transform_ns += clock.to_ns(clock.ticks() - after);
}

}  // namespace ttrt::dispatch
