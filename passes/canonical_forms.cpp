// See canonical_forms.h. Each rule gives the spelling that the exporters of PyTorch use most:
//   view, _unsafe_view, flatten, unflatten ... -> reshape       t, mT, swapaxes, permute of two dims -> transpose
//   to.*, _to_copy, type_as, float ...         -> to.dtype      chunk, split -> split_with_sizes
//   zeros, ones, empty, *_like, new_*, scalar_tensor -> full    arange.* -> arange.start_step
//   _softmax -> softmax    x.Scalar -> x.Tensor    __and__ -> bitwise_and    narrow -> slice    expand_as -> expand
#include "canonical_forms.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "match/kinds.h"

namespace ttc {
namespace {

using ir::Arg;
using ir::Node;
using ir::Type;
using Result = std::optional<Spelling>;

// Sizes as literals; one symbolic size may be -1 where the elements are counted, as for reshape.
std::optional<Arg> literal_sizes(const Type& type, bool one_unknown) {
  if (!type.is_tensor() || !type.has_shape) return std::nullopt;
  Arg::List sizes;
  int unknown = 0;
  bool empty = false;
  for (const ir::SymExpr& size : type.sizes) {
    if (size.is_number())
      sizes.emplace_back(size.number());
    else
      sizes.emplace_back(-1), ++unknown;
    empty = empty || size == ir::SymExpr(0);
  }
  if (unknown > (one_unknown && !empty ? 1 : 0)) return std::nullopt;
  return Arg(std::move(sizes));
}

Result reshape(const Node& node) {
  static constexpr std::array<std::string_view, 4> with_size{"aten.view.default", "aten._unsafe_view.default",
                                                             "aten.view_copy.default", "aten._reshape_alias.default"};
  static constexpr std::array<std::string_view, 5> by_result{"aten.flatten.using_ints", "aten.ravel.default",
                                                             "aten.view_as.default", "aten.reshape_as.default",
                                                             "aten.unflatten.int"};
  const bool sized = std::find(with_size.begin(), with_size.end(), node.op()) != with_size.end();
  const bool known = std::find(by_result.begin(), by_result.end(), node.op()) != by_result.end();
  if (!sized && !known && node.op() != "aten.reshape.default") return {};
  if (const auto sizes = literal_sizes(node.result()->type, true))
    return Spelling{"aten.reshape.default", {node.arg(0), *sizes}};
  if (sized) return Spelling{"aten.reshape.default", {node.arg(0), node.arg(1)}};
  return {};
}

Result canonical_cast(const Node& node, bool keep_copies) {
  if (keep_copies || !match::is_cast(node) || !node.result()->type.has_dtype) return {};
  return Spelling{"aten.to.dtype", {node.arg(0), node.result()->type.dtype}};
}

Result transpose(const Node& node) {
  const auto order = match::permutation(node);
  if (!order) return {};
  std::vector<std::int64_t> moved, dims(order->begin(), order->end());
  for (std::size_t i = 0; i < order->size(); ++i)
    if ((*order)[i] != static_cast<int>(i)) moved.push_back(static_cast<std::int64_t>(i));
  if (moved.size() == 2) return Spelling{"aten.transpose.int", {node.arg(0), moved[0], moved[1]}};
  return Spelling{"aten.permute.default", {node.arg(0), Arg::ints(dims)}};
}

Result canonical_expand(const Node& node) {
  const std::string& op = node.op();
  const bool sized = op == "aten.broadcast_to.default" || op == "aten.expand_copy.default";
  if (op == "aten.fill.Tensor") {
    const auto sizes = literal_sizes(node.result()->type, false);
    const ir::Value* value = node.operand(1);
    const bool same = value && value->type.is_tensor() && value->type.has_dtype && node.result()->type.has_dtype &&
                      value->type.dtype == node.result()->type.dtype;
    return sizes && same ? Result(Spelling{"aten.expand.default", {node.arg(1), *sizes}}) : Result();
  }
  if (!sized && op != "aten.expand_as.default" && op != "aten.expand.default") return {};
  if (const auto sizes = literal_sizes(node.result()->type, false))
    return Spelling{"aten.expand.default", {node.arg(0), *sizes}};
  if (sized) return Spelling{"aten.expand.default", {node.arg(0), node.arg(1)}};
  return {};
}

// A number as the dtype holds it, so that equal fills are spelled equally.
std::optional<Arg> fill_value(const Arg& value, DType dtype) {
  if (value.has_values()) return value;
  const auto number = value.number();
  if (!number) return std::nullopt;
  if (dtype == DType::boolean) return Arg(*number != 0);
  if (is_integral(dtype)) return value.integer() ? std::optional<Arg>(*value.integer()) : std::nullopt;
  return is_floating(dtype) ? std::optional<Arg>(*number) : std::nullopt;
}

struct FillSource {
  int size, value;
  double constant;
};  // argument numbers; -1: the result's sizes, the constant

const std::map<std::string, FillSource, std::less<>>& fill_sources() {
  static const std::map<std::string, FillSource, std::less<>> sources = {
      {"aten.full.default", {0, 1, 0}},         {"aten.zeros.default", {0, -1, 0}},
      {"aten.ones.default", {0, -1, 1}},        {"aten.full_like.default", {-1, 1, 0}},
      {"aten.zeros_like.default", {-1, -1, 0}}, {"aten.ones_like.default", {-1, -1, 1}},
      {"aten.new_full.default", {1, 2, 0}},     {"aten.new_zeros.default", {1, -1, 0}},
      {"aten.new_ones.default", {1, -1, 1}},    {"aten.scalar_tensor.default", {-1, 0, 0}},
      {"aten.empty.memory_format", {0, -1, 0}}, {"aten.empty_permuted.default", {0, -1, 0}},
      {"aten.new_empty.default", {1, -1, 0}},  // what nobody has written is 0, the same in every run
      {"aten.fill.Scalar", {-1, 1, 0}},         {"aten.zero.default", {-1, -1, 0}}};
  return sources;
}

Result fill(const Node& node) {
  const auto found = fill_sources().find(node.op());
  const Type& type = node.result()->type;
  if (found == fill_sources().end() || !type.has_dtype) return {};
  if (const Arg* layout = node.arg("physical_layout"))
    if (const auto dims = layout->integers(); !dims || !std::is_sorted(dims->begin(), dims->end())) return {};
  const auto [size, value, constant] = found->second;
  std::optional<Arg> sizes = literal_sizes(type, false);
  if (!sizes && size >= 0) sizes = node.arg(static_cast<std::size_t>(size));
  const Arg given = value >= 0 ? node.arg(static_cast<std::size_t>(value)) : Arg(static_cast<std::int64_t>(constant));
  const auto filled = fill_value(given, type.dtype);
  if (!sizes || !filled) return {};
  return Spelling{"aten.full.default", {*sizes, *filled, type.dtype}};
}

// A draw whose outcome is certain: dropout that is always on, exported with a rate of 0.
Result certain_draw(const Node& node) {
  if (node.op() != "aten.bernoulli.p") return {};
  const auto p = node.arg(1).number();
  if (p != 0.0 && p != 1.0) return {};
  if (const auto sizes = literal_sizes(node.result()->type, false); sizes && node.result()->type.has_dtype)
    return Spelling{"aten.full.default", {*sizes, *p, node.result()->type.dtype}};
  return Spelling{"aten.full_like.default", {node.arg(0), *p}};
}

Result arange(const Node& node) {
  if (!node.op().starts_with("aten.arange.") || node.op().ends_with("out") || !node.result()->type.has_dtype) return {};
  const DType dtype = node.result()->type.dtype;
  if (node.op() == "aten.arange.default") return Spelling{"aten.arange.start_step", {0, node.arg(0), 1, dtype}};
  if (node.op() == "aten.arange.start") return Spelling{"aten.arange.start_step", {node.arg(0), node.arg(1), 1, dtype}};
  return Spelling{"aten.arange.start_step", {node.arg(0), node.arg(1), node.arg(2), dtype}};
}

Result softmax(const Node& node) {
  const bool log = node.op() == "aten._log_softmax.default";
  if (!log && node.op() != "aten._softmax.default") return {};
  return Spelling{log ? "aten.log_softmax.int" : "aten.softmax.int",
                  {node.arg(0), node.arg(1), node.arg(2).boolean() == true ? Arg(DType::f32) : Arg()}};
}

Result slice(const Node& node) {
  const bool narrow = node.op() == "aten.narrow.default";
  if ((!narrow && node.op() != "aten.slice.Tensor") || !node.operand(0)) return {};
  const Type& type = node.operand(0)->type;
  const auto dim = type.has_shape ? match::dim_argument(&node.arg(1), type.rank()) : std::nullopt;
  if (!dim) return {};
  const auto size = type.dim(*dim);
  Arg start = node.arg(2), end = node.arg(3);
  if (narrow) {
    if (!start.integer() || !end.integer() || *start.integer() < 0) return {};
    end = *start.integer() + *end.integer();
  }
  if (start.is_none()) start = 0;
  if (end.is_none()) end = std::numeric_limits<std::int64_t>::max();
  const auto clip = [&](Arg& bound) {
    if (!size || !bound.integer()) return;
    const std::int64_t from_front = *bound.integer() < 0 ? *bound.integer() + *size : *bound.integer();
    bound = std::clamp<std::int64_t>(from_front, 0, *size);
  };
  clip(start);
  clip(end);
  return Spelling{"aten.slice.Tensor", {node.arg(0), *dim, start, end, narrow ? Arg(1) : node.arg(4)}};
}

Result split(const Node& node) {
  static constexpr std::array<std::string_view, 6> names{
      "aten.split.Tensor",        "aten.chunk.default",        "aten.split.sizes",
      "aten.unsafe_split.Tensor", "aten.unsafe_chunk.default", "aten.unsafe_split_with_sizes.default"};
  if (std::find(names.begin(), names.end(), node.op()) == names.end() || node.args().size() < 3 || !node.operand(0))
    return {};
  const auto dim = match::dim_argument(&node.arg(2), node.operand(0)->type.rank());
  if (!dim) return {};
  Arg::List sizes;
  for (const auto& result : node.results()) {
    const auto size = result->type.dim(*dim);
    if (!size) return {};
    sizes.emplace_back(*size);
  }
  return Spelling{"aten.split_with_sizes.default", {node.arg(0), std::move(sizes), *dim}};
}

// The same arguments under another name.
Result renamed(const Node& node) {
  static const std::map<std::string, std::string, std::less<>> names = {
      {"aten.add.Scalar", "aten.add.Tensor"},
      {"aten.sub.Scalar", "aten.sub.Tensor"},
      {"aten.mul.Scalar", "aten.mul.Tensor"},
      {"aten.div.Scalar", "aten.div.Tensor"},
      {"aten.__and__.Tensor", "aten.bitwise_and.Tensor"},
      {"aten.__and__.Scalar", "aten.bitwise_and.Scalar"},
      {"aten.__or__.Tensor", "aten.bitwise_or.Tensor"},
      {"aten.__or__.Scalar", "aten.bitwise_or.Scalar"},
      {"aten.__xor__.Tensor", "aten.bitwise_xor.Tensor"},
      {"aten.__xor__.Scalar", "aten.bitwise_xor.Scalar"},
      {"aten.concat.default", "aten.cat.default"},
      {"aten.concatenate.default", "aten.cat.default"},
      {"aten.multiply.Tensor", "aten.mul.Tensor"},
      {"aten.subtract.Tensor", "aten.sub.Tensor"},
      {"aten.divide.Tensor", "aten.div.Tensor"},
      {"aten.true_divide.Tensor", "aten.div.Tensor"},
      {"aten.absolute.default", "aten.abs.default"},
      {"aten.negative.default", "aten.neg.default"},
      {"aten.min.other", "aten.minimum.default"},
      {"aten.max.other", "aten.maximum.default"},
      {"aten.greater.Tensor", "aten.gt.Tensor"},
      {"aten.greater.Scalar", "aten.gt.Scalar"},
      {"aten.greater_equal.Tensor", "aten.ge.Tensor"},
      {"aten.greater_equal.Scalar", "aten.ge.Scalar"},
      {"aten.less.Tensor", "aten.lt.Tensor"},
      {"aten.less.Scalar", "aten.lt.Scalar"},
      {"aten.less_equal.Tensor", "aten.le.Tensor"},
      {"aten.less_equal.Scalar", "aten.le.Scalar"},
      {"aten.not_equal.Tensor", "aten.ne.Tensor"},
      {"aten.not_equal.Scalar", "aten.ne.Scalar"},
      {"aten.clip.default", "aten.clamp.default"},
      {"aten.clip.Tensor", "aten.clamp.Tensor"},
      {"aten.arctan2.default", "aten.atan2.default"},
      {"aten.arctan.default", "aten.atan.default"},
      {"aten.arcsin.default", "aten.asin.default"},
      {"aten.arccos.default", "aten.acos.default"},
      {"aten.arcsinh.default", "aten.asinh.default"},
      {"aten.arccosh.default", "aten.acosh.default"},
      {"aten.arctanh.default", "aten.atanh.default"},
      {"aten.fix.default", "aten.trunc.default"},
      {"aten.floor_divide.Scalar", "aten.floor_divide.default"},
      {"aten.special_erf.default", "aten.erf.default"},
      {"aten.special_erfc.default", "aten.erfc.default"},
      {"aten.special_erfinv.default", "aten.erfinv.default"},
      {"aten.special_expit.default", "aten.sigmoid.default"},
      {"aten.special_exp2.default", "aten.exp2.default"},
      {"aten.special_expm1.default", "aten.expm1.default"},
      {"aten.special_log1p.default", "aten.log1p.default"},
      {"aten.special_gammaln.default", "aten.lgamma.default"},
      {"aten.special_logsumexp.default", "aten.logsumexp.default"},
      {"aten.special_xlogy.default", "aten.xlogy.Tensor"},
      {"aten.special_xlogy.other_scalar", "aten.xlogy.Scalar_Other"},
      {"aten.special_xlogy.self_scalar", "aten.xlogy.Scalar_Self"},
      {"aten.special_psi.default", "aten.digamma.default"},
      {"aten.special_polygamma.default", "aten.polygamma.default"},
      {"aten.special_multigammaln.default", "aten.mvlgamma.default"},
      {"aten.special_gammainc.default", "aten.igamma.default"},
      {"aten.special_gammaincc.default", "aten.igammac.default"},
      {"aten.special_i0.default", "aten.i0.default"},
      {"aten.special_modified_bessel_i0.default", "aten.i0.default"},
      {"aten.special_modified_bessel_i1.default", "aten.special_i1.default"},
      {"aten.special_logit.default", "aten.logit.default"},
      {"aten.special_round.default", "aten.round.decimals"},
      {"aten.special_sinc.default", "aten.sinc.default"}};
  const auto found = names.find(node.op());
  if (found == names.end()) return {};
  return Spelling{found->second, node.args()};
}

bool same(const Node& node, const Spelling& spelling) {
  if (node.op() != spelling.op || spelling.args.size() > node.args().size()) return false;
  if (!std::equal(spelling.args.begin(), spelling.args.end(), node.args().begin())) return false;
  // What the spelling leaves out is its default.
  for (std::size_t i = spelling.args.size(); i < node.args().size(); ++i) {
    const auto& expected = node.schema() ? node.schema()->args.at(i).default_value : std::nullopt;
    if (!expected || !(node.arg(i) == *expected)) return false;
  }
  return true;
}

}  // namespace

bool is_fill(std::string_view op) { return fill_sources().contains(op); }

std::optional<Spelling> canonical_spelling(const Node& node, bool keep_copies) {
  if (node.results().empty() || node.args().empty() || !node.schema() || node.schema()->varargs) return {};
  for (Result (*rule)(const Node&) :
       {reshape, transpose, canonical_expand, fill, certain_draw, arange, softmax, slice, split, renamed}) {
    const Result found = rule(node);
    if (found) return same(node, *found) ? Result() : found;
  }
  const Result found = canonical_cast(node, keep_copies);
  return found && !same(node, *found) ? found : Result();
}

}  // namespace ttc
