// The vocabulary of rules: moves, matrix products and formulas, with the type that each result has.
#include <algorithm>

#include "pass/rewriter.h"

namespace ttc {

using ir::Arg;
using ir::SymExpr;
using ir::Type;
using ir::Value;

namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// [0, rank), sorted.
std::vector<std::int64_t> wrapped(std::vector<std::int64_t> dims, int rank) {
  if (rank == 0) return {};  // 0 and -1 name the one dim that is thought of
  for (std::int64_t& dim : dims) dim += dim < 0 ? rank : 0;
  std::sort(dims.begin(), dims.end());
  return dims;
}

Value* tensor_of(const Arg& arg) { return arg.value() && arg.value()->type.is_tensor() ? arg.value() : nullptr; }

}  // namespace

// ---- moves and products -------------------------------------------------------------------------------------------

Value* Rewriter::linear(Value* x, Value* weight, const Arg& bias) {
  Type type = x->type;
  type.sizes.back() = weight->type.sizes.at(0);
  return emit("aten.linear.default", {x, weight, bias}, std::move(type));
}

Value* Rewriter::matmul(Value* a, Value* b) {
  Type type = a->type;
  if (b->type.rank() > a->type.rank()) type.sizes = b->type.sizes;
  type.sizes[type.sizes.size() - 2] = a->type.sizes[index(a->type.rank() - 2)];
  type.sizes.back() = b->type.sizes.back();
  for (std::size_t i = 0; i + 2 < type.sizes.size(); ++i)
    for (const Value* x : {a, b}) {
      const std::size_t skip = type.sizes.size() - x->type.sizes.size();
      if (i >= skip && !(x->type.sizes[i - skip] == SymExpr(1))) type.sizes[i] = x->type.sizes[i - skip];
    }
  return emit("aten.matmul.default", {a, b}, std::move(type));
}

Value* Rewriter::reshape(Value* x, const std::vector<SymExpr>& to) {
  Arg::List list;
  for (const SymExpr& one : to) {
    list.push_back(size(one));
    possible_ = possible_ && !list.back().is_none();
  }
  Type type = x->type;
  type.sizes = to;
  return emit("aten.reshape.default", {x, std::move(list)}, std::move(type));
}

Value* Rewriter::permute(Value* x, const std::vector<std::int64_t>& order) {
  Type type = x->type;
  for (std::size_t i = 0; i < order.size(); ++i) type.sizes[i] = x->type.sizes.at(index(order[i]));
  return emit("aten.permute.default", {x, Arg::ints(order)}, std::move(type));
}

Value* Rewriter::transpose(Value* x, int a, int b) {
  Type type = x->type;
  std::swap(type.sizes.at(index(a)), type.sizes.at(index(b)));
  return emit("aten.transpose.int", {x, a, b}, std::move(type));
}

Value* Rewriter::slice(Value* x, int dim, std::int64_t begin, std::int64_t end) {
  Type type = x->type;
  type.sizes.at(index(dim)) = SymExpr(end - begin);
  return emit("aten.slice.Tensor", {x, dim, begin, end, 1}, std::move(type));
}

std::vector<Value*> Rewriter::split(Value* x, int dim, std::int64_t parts) {
  const std::int64_t size = x->type.sizes.at(index(dim)).number() / parts;
  Type type = x->type;
  type.sizes[index(dim)] = SymExpr(size);
  type.strides.clear();
  ir::Node* node =
      insert("aten.split_with_sizes.default", {x, Arg::ints(std::vector<std::int64_t>(index(parts), size)), dim});
  std::vector<Value*> out;
  for (std::int64_t i = 0; i < parts; ++i) out.push_back(node->add_result(type, "split"));
  return out;
}

Value* Rewriter::squeeze(Value* x, const std::vector<std::int64_t>& dims) {
  Type type = x->type;
  const std::vector<std::int64_t> gone = wrapped(dims, type.rank());
  for (auto dim = gone.rbegin(); dim != gone.rend(); ++dim) type.sizes.erase(type.sizes.begin() + *dim);
  return emit("aten.squeeze.dims", {x, Arg::ints(dims)}, std::move(type));
}

Value* Rewriter::unsqueeze(Value* x, int dim) {
  Type type = x->type;
  type.sizes.insert(dim < 0 ? type.sizes.end() + dim + 1 : type.sizes.begin() + dim, SymExpr(1));
  return emit("aten.unsqueeze.default", {x, dim}, std::move(type));
}

// ---- formulas -----------------------------------------------------------------------------------------------------

std::vector<SymExpr> Rewriter::common_sizes(std::initializer_list<const Arg*> args) {
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
        possible_ = false;
    }
  }
  return out;
}

Value* Rewriter::unary(const std::string& op, Value* x, const std::vector<double>& numbers) {
  std::vector<Arg> args{x};
  for (const double number : numbers) args.emplace_back(number);
  return emit_like(op, std::move(args), x);
}

Value* Rewriter::binary(const std::string& op, const Arg& a, const Arg& b) {
  Type type = (tensor_of(a) ? tensor_of(a) : tensor_of(b))->type;
  type.sizes = common_sizes({&a, &b});
  return emit(op, {a, b}, std::move(type));
}

Value* Rewriter::compare(const std::string& op, const Arg& a, const Arg& b) {
  Type type = (tensor_of(a) ? tensor_of(a) : tensor_of(b))->type;
  type.sizes = common_sizes({&a, &b});
  type.dtype = DType::boolean;
  return emit(op, {a, b}, std::move(type));
}

Value* Rewriter::choose(const std::string& op, Value* mask, const Arg& yes, const Arg& no) {
  const Arg condition(mask);
  const Value* first = tensor_of(yes) ? tensor_of(yes) : tensor_of(no);
  Type type = mask->type;
  type.dtype = first ? first->type.dtype : DType::f32;
  type.sizes = common_sizes({&condition, &yes, &no});
  return emit(op, {mask, yes, no}, std::move(type));
}

Value* Rewriter::cast(Value* x, DType dtype) {
  Type type = x->type;
  type.dtype = dtype;
  return emit("aten.to.dtype", {x, dtype}, std::move(type));
}

Value* Rewriter::reduce(const std::string& op, Value* x, const std::vector<std::int64_t>& dims, bool keep) {
  Type type = x->type;
  const std::vector<std::int64_t> over = wrapped(dims, type.rank());
  for (auto dim = over.rbegin(); dim != over.rend(); ++dim) {
    if (keep)
      type.sizes.at(index(*dim)) = SymExpr(1);
    else
      type.sizes.erase(type.sizes.begin() + *dim);
  }
  return emit(op, {x, Arg::ints(dims), keep}, std::move(type));
}

bool Rewriter::fits(const Value* made, const Value* wanted) const {
  return possible_ && made->type.dtype == wanted->type.dtype && made->type.sizes == wanted->type.sizes;
}

}  // namespace ttc
