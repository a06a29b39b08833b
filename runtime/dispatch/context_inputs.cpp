// Contexts from the operands of a call.
#include "dispatch/context.h"
#include "ops/op.h"

namespace ttrt::dispatch {
namespace {

// What selection reads of a tensor, on the host or the device.
struct TensorFacts {
  const Shape* shape = nullptr;
  DType dtype = DType::f32;
  bool contiguous = true;
  std::int64_t last_stride = 1;
  const DeviceTensor* device = nullptr;
};

std::optional<TensorFacts> facts_of(const RtValue* value) {
  if (!value) return std::nullopt;
  if (const auto* host = value->get_if<HostTensor>())
    return TensorFacts{&host->sizes, host->dtype, host->is_contiguous(),
                       host->strides.empty() ? 1 : host->strides.back(), nullptr};
  if (const auto* device = value->get_if<DeviceTensor>())
    return TensorFacts{&device->spec.logical, torch_dtype(device->spec.dtype), true, 1, device};
  return std::nullopt;
}

std::optional<TensorFacts> tensor(const CallArgs& args, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto facts = facts_of(args.find(Symbol::find(name)))) return facts;
  return std::nullopt;
}

std::optional<double> number(const CallArgs& args, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const RtValue* value = args.find(Symbol::find(name));
    if (!value) continue;
    if (const auto* d = value->get_if<double>()) return *d;
    if (const auto* i = value->get_if<std::int64_t>()) return static_cast<double>(*i);
    if (const auto* b = value->get_if<bool>()) return *b ? 1 : 0;
  }
  return std::nullopt;
}

void describe(SelectionContext& context, const TensorFacts& facts) {
  context.dtype = facts.dtype;
  context.is_contiguous = facts.contiguous;
  context.stride_last_dim = facts.last_stride;
  if (!facts.device) return;
  context.device.platform = Platform::tt;
  context.format_a = static_cast<std::uint8_t>(facts.device->spec.dtype);
  context.memory_a = static_cast<std::uint8_t>(facts.device->spec.memory.layout);
  context.l1_operands = facts.device->spec.memory.buffer_type == BufferType::l1 ? 1 : 0;
}

// Batch, sequence, heads and head dim of one attention operand.
struct AttentionShape {
  std::int64_t batch, seq, heads, dim;
};

AttentionShape attention_shape(const char* name, const Shape& shape, AxisOrder order) {
  const std::size_t rank = order == AxisOrder::BSHD || order == AxisOrder::BHSD ? 4 : 3;
  if (shape.size() != rank)
    throw ValueError(std::string(name) + " has rank " + std::to_string(shape.size()) + ", and layout " +
                     std::string(to_string(order)) + " needs " + std::to_string(rank));
  switch (order) {
    case AxisOrder::BSHD:
      return {shape[0], shape[1], shape[2], shape[3]};
    case AxisOrder::BHSD:
      return {shape[0], shape[2], shape[1], shape[3]};
    case AxisOrder::NHD:
      return {1, shape[0], shape[1], shape[2]};
    case AxisOrder::HND:
      return {1, shape[1], shape[0], shape[2]};
  }
  return {};
}

void describe_attention(SelectionContext& context, const CallArgs& args, AxisOrder order) {
  const auto query = tensor(args, {"query", "q"});
  if (!query) throw ValueError("a context for '" + context.operation.str() + "' needs an input named query or q");
  describe(context, *query);
  const AttentionShape q = attention_shape("query", *query->shape, order);
  context.batch_size = q.batch, context.seq_len_q = q.seq, context.num_heads = q.heads, context.head_dim = q.dim;
  context.seq_len_k = q.seq, context.num_kv_heads = q.heads;
  if (const auto key = tensor(args, {"key", "k"})) {
    const AttentionShape k = attention_shape("key", *key->shape, order);
    context.seq_len_k = k.seq, context.num_kv_heads = k.heads;
  }
  context.layout = order;
  context.enable_gqa = context.num_heads != context.num_kv_heads;
  if (const auto mask = tensor(args, {"attn_mask", "mask"}))
    context.attn_mask_type = mask->dtype == DType::boolean ? MaskType::boolean : MaskType::floating;
  context.is_causal =
      context.operation == Symbol::find("attention.causal") || number(args, {"is_causal", "causal"}).value_or(0) != 0;
  context.dropout_p = number(args, {"dropout_p"}).value_or(0);
  if (const auto scale = number(args, {"scale", "softmax_scale"})) context.scale = *scale, context.has_scale = 1;
}

}  // namespace

Symbol attention_operation(bool causal) { return causal ? "attention.causal" : "attention.full"; }

SelectionContext context_from_inputs(Symbol operation, const CallArgs& args, AxisOrder order) {
  SelectionContext context;
  context.operation = operation;
  if (operation.text().starts_with("attention")) {
    describe_attention(context, args, order);
    return context;
  }
  for (const Input& input : args.inputs)
    if (const auto facts = facts_of(input.value)) {
      describe(context, *facts);
      if (!facts->shape->empty()) context.batch_size = facts->shape->front();
      break;
    }
  return context;
}

}  // namespace ttrt::dispatch
