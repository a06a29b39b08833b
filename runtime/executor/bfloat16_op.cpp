// Arguments brought to bfloat16 before LibTorch sees them; it computes in that format by itself then.
#include "executor/bfloat16_op.h"

#include <algorithm>
#include <cmath>

#include "device/host_tensor.h"

namespace ttrt {
namespace {

using ttc::DType;

constexpr double greatest = 0x1.FEp127;  // of bfloat16

bool has_bfloat16(const RtValue& value) {
  if (const auto* tensor = value.get_if<HostTensor>()) return tensor->dtype == DType::bf16;
  const auto* list = value.get_if<RtValue::List>();
  return list != nullptr && std::any_of(list->begin(), list->end(), has_bfloat16);
}

// For an operator that computes in `dtype`, bfloat16 or float32.
RtValue brought_to(DType dtype, const RtValue& value) {
  if (const auto* tensor = value.get_if<HostTensor>()) {
    if (dtype == DType::bf16) return to_bfloat16(*tensor);
    return tensor->dtype == DType::bf16 ? convert(*tensor, dtype) : *tensor;
  }
  if (const auto* list = value.get_if<RtValue::List>()) {
    RtValue::List out;
    for (const RtValue& item : *list) out.push_back(brought_to(dtype, item));
    return out;
  }
  if (dtype != DType::bf16) return value;
  if (const auto* asked = value.get_if<DType>(); asked != nullptr && *asked == DType::f32) return dtype;
  if (const auto* number = value.get_if<double>(); number != nullptr && std::isfinite(*number))
    return std::clamp(*number, -greatest, greatest);
  return value;
}

class Bfloat16Op : public CpuOp {
 public:
  Bfloat16Op(std::shared_ptr<const CpuOp> op, const ttc::ir::OpSchema* schema) : op_(std::move(op)), schema_(schema) {}

 protected:
  void call_impl(std::span<const RtValue> args, std::vector<RtValue>& results) const override {
    if (std::none_of(args.begin(), args.end(), has_bfloat16)) return op_->call(args, results);
    DType dtype = DType::bf16;
    for (std::size_t i = 0; i < args.size(); ++i)
      if (const auto* tensor = args[i].get_if<HostTensor>(); tensor != nullptr && is_written(i)) dtype = tensor->dtype;
    if (dtype != DType::bf16 && dtype != DType::f32) return op_->call(args, results);
    std::vector<RtValue> actual;
    for (std::size_t i = 0; i < args.size(); ++i)
      actual.push_back(is_written(i) ? args[i] : brought_to(dtype, args[i]));
    op_->call(actual, results);
  }

 private:
  bool is_written(std::size_t i) const {
    return schema_ != nullptr && i < schema_->args.size() && schema_->args[i].mutated;
  }
  const std::shared_ptr<const CpuOp> op_;
  const ttc::ir::OpSchema* schema_;
};

}  // namespace

HostTensor to_bfloat16(const HostTensor& tensor) {
  if (tensor.dtype != DType::f32) return tensor;
  const HostTensor dense = contiguous(tensor);
  HostTensor out = convert(dense, DType::bf16);
  auto* const bits = out.as<std::uint16_t>();
  for (std::int64_t i = 0; i < out.numel(); ++i)
    if ((bits[i] & 0x7fff) == 0x7f80 && std::isfinite(dense.as<float>()[i])) --bits[i];  // infinity, to the greatest
  return out;
}

std::shared_ptr<const CpuOp> bfloat16_op(std::shared_ptr<const CpuOp> op, const ttc::ir::OpSchema* schema) {
  return std::make_shared<Bfloat16Op>(std::move(op), schema);
}

}  // namespace ttrt
