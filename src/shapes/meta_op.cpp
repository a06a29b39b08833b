// Operators run on the Meta device; one without a Meta kernel runs on zeros; small constants run as they are.
#include "shapes/meta_op.h"

#include <ATen/Functions.h>
#include <ATen/core/enum_tag.h>
#include <c10/core/InferenceMode.h>

#include <set>
#include <string_view>

#include "support/error.h"
#include "torch/cpu_op.h"
#include "torch/torch_bridge.h"
#include "torch/unsound.h"

namespace ttc::shapes {

using ttrt::RtValue;

namespace {

constexpr std::int64_t max_zero_bytes = std::int64_t{1} << 30;

const c10::IValue* unwrap(const RtValue& value) {
  const auto* object = value.get_if<std::shared_ptr<void>>();
  return object ? static_cast<const c10::IValue*>(object->get()) : nullptr;
}

}  // namespace

RtValue wrap(c10::IValue value) {
  return RtValue(std::shared_ptr<void>(std::make_shared<c10::IValue>(std::move(value))));
}

const at::Tensor* as_tensor(const RtValue& value) {
  const c10::IValue* inner = unwrap(value);
  return inner && inner->isTensor() && inner->toTensor().defined() ? &inner->toTensor() : nullptr;
}

at::Tensor to_meta(const at::Tensor& tensor) {
  if (tensor.is_meta()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kMeta));
}

const at::Tensor& tensor_arg(const std::vector<RtValue>& args, std::size_t i) {
  const at::Tensor* tensor = i < args.size() ? as_tensor(args[i]) : nullptr;
  if (!tensor) throw Unknown("an operand is no tensor");
  return *tensor;
}

// ---- rules --------------------------------------------------------------------------------------------------------

namespace {

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups), one padding for both ends.
std::optional<at::Tensor> convolution(const std::vector<RtValue>& args) {
  const at::Tensor &input = tensor_arg(args, 0), &weight = tensor_arg(args, 1);
  const auto* transposed = args[6].get_if<bool>();
  const auto* groups = args[8].get_if<std::int64_t>();
  const std::int64_t spatial = weight.dim() - 2;
  if (!transposed || *transposed || !groups || input.dim() != weight.dim() || input.size(1) != weight.size(1) * *groups)
    return std::nullopt;
  const auto at = [&](std::size_t list, std::int64_t d) -> std::int64_t {
    const auto* items = args[list].get_if<RtValue::List>();
    if (!items || items->empty()) throw Unknown("a convolution without its windows");
    const auto* n = (*items)[items->size() == 1 ? 0 : static_cast<std::size_t>(d)].get_if<std::int64_t>();
    if (!n) throw Unknown("a convolution without its windows");
    return *n;
  };
  std::vector<std::int64_t> sizes = {input.size(0), weight.size(0)};
  for (std::int64_t d = 0; d < spatial; ++d) {
    const std::int64_t room = input.size(d + 2) + 2 * at(4, d) - at(5, d) * (weight.size(d + 2) - 1) - 1;
    if (room < 0 || at(3, d) < 1) return std::nullopt;
    sizes.push_back(room / at(3, d) + 1);
  }
  return at::empty(sizes, input.options().device(c10::kMeta));
}

}  // namespace

std::optional<at::Tensor> shape_by_rule(const ir::Node& node, const std::vector<RtValue>& args) {
  static const std::set<std::string_view> same = {"aten.layer_norm.default", "aten.batch_norm.default",
                                                  "aten.group_norm.default"};
  if (same.contains(node.op())) return at::empty_like(to_meta(tensor_arg(args, 0)));
  // A batch that is packed for encoder layers is followed in its padded form: see passes/rules/transformer.cpp.
  if (node.op() == "aten._nested_tensor_from_mask.default" || node.op() == "aten.to_padded_tensor.default")
    return to_meta(tensor_arg(args, 0));
  if (node.op() == "aten.embedding.default") {
    const at::Tensor &weight = tensor_arg(args, 0), &index = tensor_arg(args, 1);
    auto sizes = index.sizes().vec();
    sizes.push_back(weight.size(1));
    return at::empty(sizes, weight.options().device(c10::kMeta));
  }
  if (node.op() == "aten.scaled_dot_product_attention.default") {
    const at::Tensor &query = tensor_arg(args, 0), &value = tensor_arg(args, 2);
    auto sizes = query.sizes().vec();
    if (sizes.size() < 2 || query.size(-1) != tensor_arg(args, 1).size(-1)) return std::nullopt;
    sizes.back() = value.size(-1);
    return at::empty(sizes, query.options().device(c10::kMeta));
  }
  if (node.op() == "aten.convolution.default" && args.size() == 9) return convolution(args);
  return std::nullopt;
}

// ---- LibTorch's operators -----------------------------------------------------------------------------------------

namespace {

template <typename F>
void for_each_tensor(const RtValue& value, F&& f) {
  if (const at::Tensor* tensor = as_tensor(value)) f(*tensor);
  if (const auto* list = value.get_if<RtValue::List>())
    for (const RtValue& item : *list) for_each_tensor(item, f);
}

template <typename F>
RtValue map_tensors(const RtValue& value, F&& f) {
  if (const at::Tensor* tensor = as_tensor(value)) return wrap(f(*tensor));
  if (const auto* list = value.get_if<RtValue::List>()) {
    RtValue::List out;
    for (const RtValue& item : *list) out.push_back(map_tensors(item, f));
    return out;
  }
  return value;
}

// Indexing depends on data only where an index is a mask.
bool depends_on_data(const ir::Node& node, const c10::OperatorHandle& op, const std::vector<RtValue>& args) {
  if (node.op() == "aten.index.Tensor") {
    bool mask = false;
    for_each_tensor(args.at(1), [&](const at::Tensor& t) {
      mask = mask || t.scalar_type() == at::kBool || t.scalar_type() == at::kByte;
    });
    return mask;
  }
  if (node.op() == "aten.one_hot.default" && args.size() > 1)
    if (const auto* classes = args[1].get_if<std::int64_t>(); classes && *classes > 0) return false;
  return op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape);
}

// Meta kernels let any heads of keys meet those of the query; the operator does not.
void check_heads(const ir::Node& node, const std::vector<RtValue>& args) {
  if (node.op() != "aten.scaled_dot_product_attention.default" || args.size() < 2) return;
  const at::Tensor *query = as_tensor(args[0]), *key = as_tensor(args[1]);
  const auto* groups = args.size() > 7 ? args[7].get_if<bool>() : nullptr;
  if (!query || !key || query->dim() != 4 || key->dim() != 4 || (groups && *groups)) return;
  const std::int64_t heads = query->size(1), kv_heads = key->size(1);
  if (heads != kv_heads && heads != 1 && kv_heads != 1) throw Unknown("its heads do not broadcast");
}

torch::jit::Stack call(std::string_view name, const c10::OperatorHandle& op, const std::vector<RtValue>& args,
                       c10::DeviceType device) {
  c10::InferenceMode below_autograd;
  const auto& formal = op.schema().arguments();
  torch::jit::Stack stack;
  for (std::size_t i = 0; i < formal.size(); ++i) {
    const c10::TypePtr& type = formal[i].real_type();
    const auto optional = type->cast<c10::OptionalType>();
    if ((optional ? optional->getElementType() : type)->kind() == c10::TypeKind::DeviceObjType) {
      stack.emplace_back(c10::Device(device));
    } else if (i < args.size()) {
      const RtValue arg = device == c10::kMeta ? map_tensors(args[i], to_meta) : args[i];
      stack.push_back(ttrt::to_ivalue(arg, type, formal[i].N()));
    } else if (formal[i].default_value()) {
      stack.push_back(*formal[i].default_value());
    } else {
      throw Unknown("argument '" + formal[i].name() + "' is missing");
    }
  }
  ttrt::check_sound(name, stack);
  op.callBoxed(stack);
  return stack;
}

torch::jit::Stack call_on_zeros(std::string_view name, const c10::OperatorHandle& op,
                                const std::vector<RtValue>& args) {
  std::int64_t bytes = 0;
  std::vector<RtValue> zeros;
  for (const RtValue& arg : args)
    zeros.push_back(map_tensors(arg, [&](const at::Tensor& t) {
      if (!t.is_meta()) return t;
      bytes += t.numel() * static_cast<std::int64_t>(t.element_size());
      if (bytes > max_zero_bytes) throw Unknown("it has no Meta kernel, and its operands are too large to try");
      return at::zeros(t.sizes(), t.options().device(c10::kCPU));
    }));
  torch::jit::Stack results = call(name, op, zeros, c10::kCPU);
  for (c10::IValue& value : results) {
    if (value.isTensor() && value.toTensor().defined()) value = to_meta(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : value.toTensorVector()) list.push_back(to_meta(t));
      value = list;
    }
  }
  return results;
}

RtValue known(const c10::IValue& value) {
  if (value.isTensor()) return wrap(value);
  if (value.isTensorList()) {
    RtValue::List items;
    for (const at::Tensor& t : value.toTensorVector()) items.push_back(wrap(t));
    return items;
  }
  return ttrt::from_ivalue(value);
}

std::vector<RtValue> known(const torch::jit::Stack& stack) {
  std::vector<RtValue> results;
  for (const c10::IValue& value : stack) results.push_back(known(value));
  return results;
}

// TorchScript's own operators, on values that are known.
std::vector<RtValue> call_interpreter_op(const ir::Node& node, const std::vector<RtValue>& args, bool all_known) {
  const bool is = node.op() == "aten.__is__.default";
  if ((is || node.op() == "aten.__isnot__.default") && args.size() == 2) {
    const at::Tensor *a = as_tensor(args[0]), *b = as_tensor(args[1]);
    if (a && b) return {RtValue(a->is_same(*b) == is)};
  }
  const ttrt::CpuOp* op = all_known ? ttrt::CpuOp::find(node.op()) : nullptr;
  if (!op) throw Unknown("no shape function for " + node.op());
  std::vector<RtValue> results;
  op->call(args, results);
  for (RtValue& result : results)
    if (const auto* host = result.get_if<ttrt::HostTensor>()) result = wrap(ttrt::to_tensor(*host));
  return results;
}

}  // namespace

std::vector<RtValue> call_operator(const ir::Node& node, const std::vector<RtValue>& args) {
  check_heads(node, args);
  const auto [name, overload] = ir::torch_op_name(node.op());
  const auto op = c10::Dispatcher::singleton().findSchema({name, overload});
  bool concrete = true, any = false;
  for (const RtValue& arg : args)
    for_each_tensor(arg, [&](const at::Tensor& t) {
      any = true, concrete = concrete && !t.is_meta() && t.numel() <= max_followed;
    });
  concrete = concrete && (any || node.op() == "aten.scalar_tensor.default");
  if (!op) return call_interpreter_op(node, args, concrete || !any);
  if (concrete) return known(call(node.op(), *op, args, c10::kCPU));
  if (depends_on_data(node, *op, args)) throw Unknown("its result depends on data");
  try {
    return known(call(node.op(), *op, args, c10::kMeta));
  } catch (const std::exception&) {
    return known(call_on_zeros(node.op(), *op, args));
  }
}

}  // namespace ttc::shapes
