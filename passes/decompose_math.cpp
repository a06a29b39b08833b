// See decompose_math.h.
#include "decompose_math.h"

#include <algorithm>

namespace ttc {
namespace {

using ir::Arg;
using ir::SymExpr;
using ir::Type;
using ir::Value;

Value* tensor_of(const Arg& arg) { return arg.value() && arg.value()->type.is_tensor() ? arg.value() : nullptr; }

// [0, rank), each once.
std::vector<int> wrapped(const std::vector<std::int64_t>& dims, int rank) {
  std::vector<int> out;
  for (const std::int64_t dim : dims) out.push_back(static_cast<int>(dim < 0 ? dim + rank : dim));
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

bool known_tensors(const ir::Node& node) {
  if (node.results().size() != 1) return false;
  const Type& result = node.result()->type;
  if (!result.is_tensor() || !result.has_shape || !result.has_dtype) return false;
  for (const Value* operand : node.operands())
    if (operand->type.is_tensor() && (!operand->type.has_shape || !operand->type.has_dtype)) return false;
  return true;
}

bool same_floats(const ir::Node& node) {
  const DType dtype = node.result()->type.dtype;
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16) return false;
  const auto operands = node.operands();
  return std::all_of(operands.begin(), operands.end(),
                     [&](const Value* operand) { return !operand->type.is_tensor() || operand->type.dtype == dtype; });
}

std::vector<SymExpr> Math::common_sizes(std::initializer_list<const Arg*> args) {
  std::vector<SymExpr> out;
  for (const Arg* arg : args) {
    const Value* x = tensor_of(*arg);
    if (x == nullptr) continue;
    const auto& sizes = x->type.sizes;
    if (sizes.size() > out.size()) out.insert(out.begin(), sizes.size() - out.size(), SymExpr(1));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      SymExpr& have = out[out.size() - sizes.size() + i];
      if (have == SymExpr(1))
        have = sizes[i];
      else if (!(sizes[i] == SymExpr(1)) && !(sizes[i] == have))
        good_ = false;
    }
  }
  return out;
}

Value* Math::unary(const std::string& op, Value* x, const std::vector<double>& numbers) {
  std::vector<Arg> args{x};
  for (const double number : numbers) args.emplace_back(number);
  return emit_like(op, std::move(args), x);
}

Value* Math::binary(const std::string& op, const Arg& a, const Arg& b) {
  const Value* first = tensor_of(a) ? tensor_of(a) : tensor_of(b);
  Type type = first->type;
  type.sizes = common_sizes({&a, &b});
  return emit(op, {a, b}, std::move(type));
}

Value* Math::compare(const std::string& op, const Arg& a, const Arg& b) {
  const Value* first = tensor_of(a) ? tensor_of(a) : tensor_of(b);
  Type type = first->type;
  type.sizes = common_sizes({&a, &b});
  type.dtype = DType::boolean;
  return emit(op, {a, b}, std::move(type));
}

Value* Math::choose(const std::string& op, Value* mask, const Arg& yes, const Arg& no) {
  const Arg condition(mask);
  const Value* first = tensor_of(yes) ? tensor_of(yes) : tensor_of(no);
  Type type = mask->type;
  type.dtype = first ? first->type.dtype : DType::f32;
  type.sizes = common_sizes({&condition, &yes, &no});
  return emit(op, {mask, yes, no}, std::move(type));
}

Value* Math::reduce(const std::string& op, Value* x, const std::vector<std::int64_t>& dims, bool keep) {
  Type type = x->type;
  const std::vector<int> at = wrapped(dims, type.rank());
  for (auto dim = at.rbegin(); dim != at.rend(); ++dim) {
    if (keep)
      type.sizes.at(static_cast<std::size_t>(*dim)) = SymExpr(1);
    else
      type.sizes.erase(type.sizes.begin() + *dim);
  }
  return emit(op, {x, Arg::ints(dims), keep}, std::move(type));
}

Value* Math::squeeze(Value* x, const std::vector<std::int64_t>& dims) {
  Type type = x->type;
  const std::vector<int> at = wrapped(dims, type.rank());
  for (auto dim = at.rbegin(); dim != at.rend(); ++dim) type.sizes.erase(type.sizes.begin() + *dim);
  return emit("aten.squeeze.dims", {x, Arg::ints(dims)}, std::move(type));
}

Value* Math::unsqueeze(Value* x, int dim) {
  Type type = x->type;
  type.sizes.insert(type.sizes.begin() + dim, SymExpr(1));
  return emit("aten.unsqueeze.default", {x, dim}, std::move(type));
}

bool Math::fits(const Value* made, const Value* wanted) const {
  return good_ && made->type.dtype == wanted->type.dtype && made->type.sizes == wanted->type.sizes;
}

}  // namespace ttc
