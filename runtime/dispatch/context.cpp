// Names of the context's enums, device strings, contexts from the operands of a call.
#include "dispatch/context.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "ops/op.h"

namespace ttrt::dispatch {

std::string DeviceRecord::text() const {
  std::string name_text(to_string(platform));
  return platform == Platform::cpu ? name_text : name_text + ":" + std::to_string(index);
}

DeviceRecord device_record(std::string_view device) {
  DeviceRecord out;
  const std::size_t colon = device.find(':');
  const auto* const platform = std::find(platform_names.begin(), platform_names.end(), device.substr(0, colon));
  if (platform == platform_names.end()) return out;
  out.platform = static_cast<Platform>(platform - platform_names.begin());
  if (colon != std::string_view::npos) {
    const char* const end = device.data() + device.size();
    const auto [rest, error] = std::from_chars(device.data() + colon + 1, end, out.index);
    if (error != std::errc() || rest != end || out.index < 0)
      throw ttc::usage_error("bad device '" + std::string(device) + "': expected a type and an index, as in cuda:0");
  }
  return out;
}

namespace {

// Sets what one tensor tells and returns its shape; nullptr where the value is none.
const Shape* describe(SelectionContext& context, const RtValue* value) {
  if (!value) return nullptr;
  if (const auto* host = value->get_if<HostTensor>()) {
    context.dtype = host->dtype;
    context.is_contiguous = host->is_contiguous();
    context.stride_last_dim = host->strides.empty() ? 1 : host->strides.back();
    return &host->sizes;
  }
  const auto* device = value->get_if<DeviceTensor>();
  if (!device) return nullptr;
  context.dtype = torch_dtype(device->spec.dtype);
  context.device.platform = Platform::tt;
  context.format_a = static_cast<std::uint8_t>(device->spec.dtype);
  return &device->spec.logical;
}

// The first of these that the call has.
const RtValue* find(const CallArgs& args, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const RtValue* value = args.find(Symbol::find(name))) return value;
  return nullptr;
}

std::optional<double> number(const RtValue* value) {
  if (!value) return std::nullopt;
  if (const auto* d = value->get_if<double>()) return *d;
  if (const auto* i = value->get_if<std::int64_t>()) return static_cast<double>(*i);
  if (const auto* b = value->get_if<bool>()) return *b ? 1 : 0;
  return std::nullopt;
}

// Batch, sequence, heads and head dim of one attention operand.
std::array<std::int64_t, 4> attention_shape(const Shape& shape, AxisOrder order) {
  const std::size_t rank = order == AxisOrder::BSHD || order == AxisOrder::BHSD ? 4 : 3;
  if (shape.size() != rank)
    throw ttc::usage_error("an operand of attention has rank " + std::to_string(shape.size()) + ", and layout " +
                           std::string(to_string(order)) + " needs " + std::to_string(rank));
  const std::int64_t batch = rank == 4 ? shape[0] : 1, a = shape[rank - 3], b = shape[rank - 2], dim = shape[rank - 1];
  if (order == AxisOrder::BSHD || order == AxisOrder::NHD) return {batch, a, b, dim};
  return {batch, b, a, dim};
}

void describe_attention(SelectionContext& context, const CallArgs& args, AxisOrder order) {
  SelectionContext of_others;
  const Shape* const query = describe(context, find(args, {"query", "q"}));
  if (!query) throw ttc::usage_error("a context for '" + context.operation.str() + "' needs an input named query or q");
  const Shape* const key = describe(of_others, find(args, {"key", "k"}));
  const auto q = attention_shape(*query, order), k = attention_shape(key ? *key : *query, order);
  context.batch_size = q[0], context.seq_len_q = q[1], context.num_heads = q[2], context.head_dim = q[3];
  context.seq_len_k = k[1], context.num_kv_heads = k[2];
  context.layout = order;
  context.enable_gqa = context.num_heads != context.num_kv_heads;
  if (describe(of_others, find(args, {"attn_mask", "mask"})))
    context.attn_mask_type = of_others.dtype == DType::boolean ? MaskType::boolean : MaskType::floating;
  context.is_causal = context.operation == Symbol::find("attention.causal") ||
                      number(find(args, {"is_causal", "causal"})).value_or(0) != 0;
  context.dropout_p = number(find(args, {"dropout_p"})).value_or(0);
  if (const auto scale = number(find(args, {"scale", "softmax_scale"}))) context.scale = *scale, context.has_scale = 1;
}

}  // namespace

SelectionContext context_from_inputs(Symbol operation, const CallArgs& args, AxisOrder order) {
  SelectionContext context;
  context.operation = operation;
  if (operation.text().starts_with("attention")) {
    describe_attention(context, args, order);
    return context;
  }
  for (const Input& input : args.inputs)
    if (const Shape* shape = describe(context, input.value)) {
      if (!shape->empty()) context.batch_size = shape->front();
      break;
    }
  return context;
}

SelectionContext context_or_operation(Symbol operation, const CallArgs& args) {
  try {
    return context_from_inputs(operation, args);
  } catch (const ttc::Error&) {  // rules by operation alone can still serve it
    SelectionContext context;
    context.operation = operation;
    return context;
  }
}

}  // namespace ttrt::dispatch
