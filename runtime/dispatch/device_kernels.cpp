// From op records to kernel records, from a call of an op to what selection knows of it.
#include "dispatch/device_kernels.h"

#include <algorithm>

namespace ttrt::dispatch {
namespace {

// The state of its implementation, through which a kernel's own record reaches it.
struct Registered {
  DeviceKernel kernel;
  Symbol id;
};

void run_registered(void* state, CallArgs& args) {
  const auto& registered = *static_cast<Registered*>(state);
  if (args.payload == nullptr)
    throw ttc::usage_error("kernel '" + registered.id.str() + "' is called by the executor",
                           "device kernels run tensors of a program");
  static_cast<StepCall*>(args.payload)->run_as(*global_kernels().find(registered.id), registered.kernel);
}

KernelSpec spec_of(const OpRecord& op, const DeviceKernel& kernel) {
  KernelSpec spec;
  spec.id = std::string(op.name) + "." + std::string(kernel.name());
  spec.operation = op.name;
  spec.source = kernel.host ? "torch" : "tt";
  spec.summary = kernel.host                 ? "in LibTorch, operands read back"
                 : kernel.variant != nullptr ? std::string(kernel.variant->summary)
                                             : "on the device";
  spec.platform = Platform::tt;
  spec.deterministic = true;
  const auto judge = [](ttc::Refusal (*of)(const VariantQuery&)) {
    return of == nullptr ? KernelSpec::Judge()
                         : [of](const SelectionContext& context) { return of(variant_query_of(context)); };
  };
  if (kernel.variant != nullptr) {
    spec.supports = judge(kernel.variant->supports);
    spec.out_of_place = judge(kernel.variant->out_of_place);
  }
  const auto registered = std::make_shared<Registered>(Registered{.kernel = kernel, .id = spec.id});
  spec.record = &registered->kernel;
  spec.impl = KernelImpl(run_registered, registered);
  return spec;
}

// Best first, the host last.
std::vector<DeviceKernel> kernels_of(const OpRecord& op) {
  std::vector<DeviceKernel> out;
  if (op.prepare == nullptr) return out;
  if (op.variants.empty()) out.push_back({.op = &op});
  for (const KernelVariant& variant : op.variants) out.push_back({.op = &op, .variant = &variant});
  if (op.reference != nullptr) out.push_back({.op = &op, .host = true});
  return out;
}

void register_op_kernels(const OpRecord& op) {
  std::vector<Registration> registrations;
  for (const DeviceKernel& kernel : kernels_of(op))
    registrations.push_back(
        {.kernel = spec_of(op, kernel),
         .covers = kernel.host ? TablePattern{} : TablePattern{.device = Platform::tt, .layout = TableLayout::tile}});
  if (!registrations.empty()) global_kernels().add(std::move(registrations));
}

std::uint8_t format_of(const TensorSpec* spec) {
  return spec != nullptr ? static_cast<std::uint8_t>(spec->dtype) : no_dtype;
}

std::uint8_t small(std::int64_t n) { return static_cast<std::uint8_t>(std::min<std::int64_t>(n, 255)); }

// Without operands, an op is known by what it makes.
void set_operands(SelectionContext& context, const OpCall& call) {
  const std::vector<TensorSpec> made = call.tensors.empty() ? call.op->infer(call) : std::vector<TensorSpec>();
  if (call.tensors.empty() && made.empty()) return;
  const TensorSpec& a = call.tensors.empty() ? made[0] : call.tensors[0];
  const TensorSpec* b = call.tensors.size() > 1 ? &call.tensors[1] : nullptr;
  context.dtype = torch_dtype(a.dtype);
  context.format_a = format_of(&a);
  context.format_b = format_of(b);
  context.batch_size = a.logical.size() > 1 ? a.logical[0] : 1;
  if (a.logical.size() > 2) context.seq_len_q = a.rows();
  context.quantized = std::any_of(call.tensors.begin(), call.tensors.end(),
                                  [](const TensorSpec& spec) { return is_block_format(spec.dtype); });
}

}  // namespace

DeviceRecord device_record_of(const ArchProfile& profile) {
  DeviceRecord device;
  device.platform = Platform::tt;
  device.name = profile.name;
  device.generation = to_string(profile.arch);
  device.l1_bytes = static_cast<std::int32_t>(profile.l1_bytes - profile.l1_reserved - profile.l1_kernel_bytes);
  device.grid_x = small(profile.grid_x);
  device.grid_y = small(profile.grid_y);
  device.dram_banks = small(profile.dram_banks);
  return device;
}

SelectionContext context_of_call(const OpCall& call, const OpCallSetting& setting) {
  SelectionContext context;
  context.operation = call.op->name;
  context.device = device_record_of(setting.profile);
  context.layout = AxisOrder::BHSD;
  set_operands(context, call);
  context.constant_b = setting.constant_b ? 1 : 0;
  context.exact_numerics = setting.numerics == Numerics::exact ? 1 : 0;
  context.fp32_acc = call.compute_config().fp32_dest_acc_en ? 1 : 0;
  if (call.op->describe == nullptr) return context;
  VariantQuery sizes;
  call.op->describe(call, sizes);
  context.m = sizes.m;
  context.k = sizes.k;
  context.n = sizes.n;
  if (sizes.m >= 0) context.batch_size = sizes.batch;
  if (sizes.queries >= 0) {
    context.batch_size = sizes.batch;
    context.seq_len_q = sizes.queries;
    context.seq_len_k = sizes.keys;
    context.num_heads = sizes.heads;
    context.num_kv_heads = sizes.kv_heads;
    context.head_dim = sizes.head_dim;
    context.enable_gqa = sizes.heads != sizes.kv_heads ? 1 : 0;
  }
  if (sizes.constant_b) context.constant_b = 1;
  return context;
}

VariantQuery variant_query_of(const SelectionContext& c) {
  VariantQuery out;
  out.batch = c.batch_size;
  out.m = c.m;
  out.k = c.k;
  out.n = c.n;
  out.queries = c.seq_len_q;
  out.keys = c.seq_len_k;
  out.heads = c.num_heads;
  out.kv_heads = c.num_kv_heads;
  out.head_dim = c.head_dim;
  if (c.format_a != no_dtype) out.a = static_cast<DataType>(c.format_a);
  if (c.format_b != no_dtype) out.b = static_cast<DataType>(c.format_b);
  out.constant_b = c.constant_b != 0;
  out.exact = c.exact_numerics != 0;
  out.fp32_acc = c.fp32_acc != 0;
  if (c.device.grid_x > 0) out.grid_x = c.device.grid_x;
  if (c.device.grid_y > 0) out.grid_y = c.device.grid_y;
  if (c.device.dram_banks > 0) out.dram_banks = c.device.dram_banks;
  out.l1_bytes = c.device.l1_bytes;
  return out;
}

const DeviceKernel* device_kernel(const KernelSpec& spec) {
  return spec.impl.function() == run_registered ? static_cast<const DeviceKernel*>(spec.record) : nullptr;
}

void register_device_kernels() {
  static const bool once = (watch_ops(register_op_kernels), true);
  static_cast<void>(once);
}

}  // namespace ttrt::dispatch
