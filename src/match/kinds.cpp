// The spellings of each kind of node, and numbers read out of constants.
#include "match/kinds.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

namespace ttc::match {
namespace {

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

constexpr std::array<std::string_view, 12> cast_ops{"aten._to_copy.default",
                                                    "aten.to.dtype",
                                                    "aten.to.dtype_layout",
                                                    "aten.to.device",
                                                    "aten.to.other",
                                                    "aten.type_as.default",
                                                    "aten.float.default",
                                                    "aten.half.default",
                                                    "aten.bfloat16.default",
                                                    "prims.convert_element_type.default",
                                                    "aten._cast_Float.default",
                                                    "aten.to.prim_dtype"};
constexpr std::array<std::string_view, 14> reshape_ops{
    "aten.view.default",       "aten.reshape.default",   "aten._unsafe_view.default",   "aten.flatten.using_ints",
    "aten.unflatten.int",      "aten.squeeze.dim",       "aten.squeeze.dims",           "aten.squeeze.default",
    "aten.unsqueeze.default",  "aten.view_copy.default", "aten._reshape_alias.default", "aten.view_as.default",
    "aten.reshape_as.default", "aten.ravel.default"};
constexpr std::array<std::string_view, 8> copy_ops{
    "aten.clone.default",           "aten.contiguous.default", "aten.alias.default",      "aten.detach.default",
    "aten.lift_fresh_copy.default", "aten.lift.default",       "aten.lift_fresh.default", "aten.alias_copy.default"};
constexpr std::array<std::string_view, 5> view_or_copy_ops{"aten.reshape.default", "aten.reshape_as.default",
                                                           "aten.flatten.using_ints", "aten.ravel.default",
                                                           "aten.contiguous.default"};
constexpr std::array<std::string_view, 4> expand_ops{"aten.expand.default", "aten.expand_as.default",
                                                     "aten.broadcast_to.default", "aten.expand_copy.default"};
constexpr std::array<std::string_view, 4> dropout_ops{"aten.dropout.default", "aten.feature_dropout.default",
                                                      "aten.alpha_dropout.default",
                                                      "aten.feature_alpha_dropout.default"};

bool tensor_operand(const ir::Node& node) {
  return node.results().size() == 1 && node.operand(0) && node.operand(0)->type.is_tensor();
}

bool slice_of_everything(const ir::Node& node) {
  if (node.op() != "aten.slice.Tensor" || node.args().size() < 4) return false;
  const bool from_start = node.arg(2).is_none() || node.arg(2).integer() == 0;
  const bool step_one = node.args().size() < 5 || node.arg(4).integer() == 1;
  const bool to_end = node.arg(3).is_none() || node.arg(3).integer() == std::numeric_limits<std::int64_t>::max();
  return from_start && step_one && (to_end || same_shape(node.operand(0)->type, node.result()->type));
}

double half_number(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

}  // namespace

std::optional<double> weight_element(const ir::Weight& weight, std::int64_t index) {
  const std::byte* bytes = weight.data() + index * size_of(weight.dtype);
  const auto read = [bytes]<typename T>(T) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (weight.dtype) {
    case DType::f32:
      return read(float{});
    case DType::f64:
      return read(double{});
    case DType::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(read(std::uint16_t{})) << 16);
    case DType::f16:
      return half_number(read(std::uint16_t{}));
    case DType::i64:
      return static_cast<double>(read(std::int64_t{}));
    case DType::i32:
      return read(std::int32_t{});
    case DType::boolean:
      return read(std::uint8_t{}) != 0 ? 1 : 0;
    default:
      return std::nullopt;
  }
}

bool same_shape(const ir::Type& a, const ir::Type& b) {
  return a.is_tensor() && b.is_tensor() && a.has_shape && b.has_shape && a.sizes == b.sizes;
}

bool is_cast(const ir::Node& node) { return among(cast_ops, node.op()) && tensor_operand(node); }

bool is_float_cast(const ir::Node& node) {
  return is_cast(node) && is_floating(node.operand(0)->type.dtype) && is_floating(node.result()->type.dtype);
}

bool is_reshape(const ir::Node& node) { return among(reshape_ops, node.op()) && tensor_operand(node); }

bool is_copy(const ir::Node& node) { return among(copy_ops, node.op()) && tensor_operand(node); }

bool may_copy(const ir::Node& node) {
  return is_cast(node) || (among(view_or_copy_ops, node.op()) && tensor_operand(node));
}

bool is_identity(const ir::Node& node) {
  if (!tensor_operand(node)) return false;
  const ir::Type &from = node.operand(0)->type, &to = node.result()->type;
  if (among(copy_ops, node.op())) return true;
  if (among(dropout_ops, node.op())) return node.args().size() > 2 && node.arg(2).boolean() == false;
  if (among(cast_ops, node.op())) return from.has_dtype && to.has_dtype && from.dtype == to.dtype;
  if (among(reshape_ops, node.op()) || among(expand_ops, node.op())) return same_shape(from, to);
  return slice_of_everything(node);
}

bool reduces_last_dim(const ir::Node& node) {
  const ir::Arg *dims = node.arg("dim"), *keep = node.arg("keepdim");
  const auto list = dims ? dims->integers() : std::nullopt;
  const int rank = node.operand(0)->type.rank();
  return list && list->size() == 1 && (list->front() == -1 || list->front() == rank - 1) && keep &&
         keep->boolean() == true;
}

std::optional<int> dim_argument(const ir::Arg* arg, int rank) {
  const auto dim = arg ? arg->integer() : std::nullopt;
  if (!dim || *dim < -rank || *dim >= rank) return std::nullopt;
  return static_cast<int>(*dim < 0 ? *dim + rank : *dim);
}

std::optional<std::vector<int>> permutation(const ir::Node& node) {
  if (!tensor_operand(node) || !node.operand(0)->type.has_shape) return std::nullopt;
  const int rank = node.operand(0)->type.rank();
  std::vector<int> order(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = i;
  const std::string_view op = node.op();
  if (op == "aten.permute.default" || op == "aten.permute_copy.default") {
    const auto dims = node.arg(1).integers();
    if (!dims || static_cast<int>(dims->size()) != rank) return std::nullopt;
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<int>((*dims)[i] < 0 ? (*dims)[i] + rank : (*dims)[i]);
    return order;
  }
  std::optional<int> a, b;
  if (op == "aten.transpose.int" || op == "aten.swapaxes.default" || op == "aten.swapdims.default" ||
      op == "aten.transpose_copy.int") {
    a = dim_argument(&node.arg(1), rank);
    b = dim_argument(&node.arg(2), rank);
  } else if (((op == "aten.t.default" || op == "aten.numpy_T.default") && rank == 2) ||
             (op == "aten.mT.default" && rank >= 2)) {
    a = rank - 2;
    b = rank - 1;
  }
  if (!a || !b) return std::nullopt;
  std::swap(order[static_cast<std::size_t>(*a)], order[static_cast<std::size_t>(*b)]);
  return order;
}

bool swaps_last_dims(const ir::Node& node) {
  const auto order = permutation(node);
  if (!order || order->size() < 2) return false;
  const int rank = static_cast<int>(order->size());
  for (int i = 0; i < rank - 2; ++i)
    if ((*order)[static_cast<std::size_t>(i)] != i) return false;
  return (*order)[static_cast<std::size_t>(rank) - 2] == rank - 1;
}

ir::Value* strip(ir::Value* value, bool casts) {
  while (value && value->def()) {
    ir::Node& node = *value->def();
    if (!is_identity(node) && !(casts && is_float_cast(node))) break;
    value = node.operand(0);
  }
  return value;
}

std::optional<double> number_of(const ir::Model& model, const ir::Arg& arg) {
  if (const auto literal = arg.number()) return literal;
  if (const auto flag = arg.boolean()) return *flag ? 1 : 0;
  const ir::Value* value = arg.value();
  for (int depth = 0; value && depth < 16; ++depth) {
    if (const ir::Weight* weight = model.weight_of(value))
      return weight->numel() == 1 && weight->data() ? weight_element(*weight, 0) : std::nullopt;
    const ir::Node* node = value->def();
    if (!node) return std::nullopt;
    const std::string& op = node->op();
    if (op == "aten.full.default" || op == "aten.full_like.default") return node->arg(1).number();
    if (op == "aten.scalar_tensor.default") return node->arg(0).number();
    if (op.starts_with("aten.zeros")) return 0;
    if (op.starts_with("aten.ones")) return 1;
    if (!is_identity(*node) && !is_cast(*node) && !is_reshape(*node) && !among(expand_ops, op)) return std::nullopt;
    value = node->operand(0);
  }
  return std::nullopt;
}

}  // namespace ttc::match
