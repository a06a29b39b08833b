// Tensors with some elements replaced: tt.index_put (whole rows of any dims, as x[i, j] = v), tt.scatter (one element
// of a dim at a time) and tt.slice_scatter (a range of a dim). The result is a new tensor; in place of a buffer that
// the model writes it becomes its next value. Elements that are replaced keep the bits of the new ones; others are
// joined in the order of the indices, rounded each time, integers exactly.
#include <algorithm>
#include <cmath>

#include "ops/dense.h"
#include "ops/emit.h"
#include "ops/index_plan.h"
#include "ops/integers.h"
#include "ops/rules.h"

namespace ttrt::ops::scatter_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// How an element and a new one become one: the new one, their sum or product, the larger or smaller.
enum class Join : std::uint8_t { replace, sum, prod, amax, amin };

Join join_of(std::string_view word) {
  constexpr std::string_view words[]{"", "sum", "prod", "amax", "amin"};
  return static_cast<Join>(std::ranges::find(words, word) - std::begin(words));
}

double joined(Join join, double a, double b) {
  if (join == Join::sum) return a + b;
  if (join == Join::prod) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return join == Join::amax ? std::max(a, b) : std::min(a, b);
}

// All are bits of `format`.
std::uint32_t joined_bits(Join join, DataType format, std::uint32_t old, std::uint32_t value) {
  if (join == Join::replace) return value;
  const double made = joined(join, number_of(format, old), number_of(format, value));
  if (format == DataType::int32 && (made > 2147483647.0 || made < -2147483648.0)) does_not_fit();
  return bits_in(format, made);
}

ttc::Refusal supports(const OpCall& call) {
  for (const char* name : {"values", "src"}) {
    if (schema_of(*call.op).index_of(name) < 0) continue;
    const TensorSpec* values = call.tensor(name);
    if (values != nullptr && values->dtype != spec_of(call, "x").dtype)
      return Reason{ReasonCode::DtypeUnsupported, "the tensors have several formats"};
  }
  return plain_tiles(call);
}

// ---- tt.index_put

LowerResult lower_put(const LowerContext& context) {
  auto parts = index_arguments(context, context.node.arg(1));
  if (const auto* reason = std::get_if<Reason>(&parts)) return *reason;
  auto& [dims, indices] = std::get<IndexArguments>(parts);
  const AtenArgs args(context);
  return Lowered{.args = {context.node.arg(0), ir::Arg::ints(dims), indices, args["values"],
                          args["accumulate"].boolean().value_or(false)}};
}

// index_copy(x, dim, index, source) and index_add.
LowerResult lower_along(const LowerContext& context, bool accumulate) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  if (!args.integer("dim")) return unsupported("dim is computed at run time");
  if (!args.is("alpha", 1.0)) return unsupported("alpha");
  if (context.node.operand(0)->type.rank() == 0) return unsupported("a tensor without dims has no rows");
  return Lowered{.args = {context.node.arg(0), ir::Arg::ints({*args.integer("dim")}), ir::Arg::List{args["index"]},
                          args["source"], accumulate}};
}
LowerResult lower_copy(const LowerContext& context) { return lower_along(context, false); }
LowerResult lower_add(const LowerContext& context) { return lower_along(context, true); }

Kernel prepare_put(const OpCall& call, const PrepareContext&) {
  const IndexPlan plan(call);
  const DataType format = spec_of(call, "x").dtype;
  const Join join = call.boolean("accumulate") ? Join::sum : Join::replace;
  const auto values_at = static_cast<std::size_t>(call.tensor_index("values"));
  // Where an element of the result shape takes its value from: the values broadcast to it.
  Shape own = spec_of(call, "values").logical;
  if (broadcast(call, own, plan.result()) != plan.result()) bad_call(call, "the values do not fit the indices");
  own.insert(own.begin(), plan.result().size() - own.size(), 1);
  const bool whole = own == plan.result();
  const Shape result = plan.result(), steps = strides_of(own), strides = strides_of(result);
  const auto value_of = [=](std::int64_t at) {
    if (whole) return at;
    std::int64_t from = 0;
    for (std::size_t d = 0; d < own.size(); ++d) from += own[d] == 1 ? 0 : at / strides[d] % result[d] * steps[d];
    return from;
  };
  return [=](const KernelArgs& args) {
    const DenseElements out = copied_elements(args);
    const std::uint32_t* values = load_dense(*args.in[values_at], 1);
    plan.for_each(plan.positions(args, 1), [&](std::int64_t at, std::int64_t to, std::int64_t n) {
      out.replace(to, n, [&](std::uint32_t old) { return joined_bits(join, format, old, values[value_of(at++)]); });
    });
  };
}

std::vector<RtValue> reference_put(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call("aten.index_put.default", {as_wide(as_float(args[0])), index_list(call, args[2]),
                                              as_wide(as_float(args[3])), call.boolean("accumulate")});
}

// ---- tt.scatter

LowerResult lower_scatter(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  if (!args.integer("dim")) return unsupported("dim is computed at run time");
  std::string join = context.node.op() == "aten.scatter_add.default" ? "sum" : "";
  if (const auto* word = args["reduce"].get_if<std::string>()) join = *word;
  if (join_of(join) > Join::amin || !args.is("include_self", true)) return unsupported("reduce='" + join + "'");
  if (!args.given("value"))
    return Lowered{.args = {context.node.arg(0), *args.integer("dim"), args["index"], args["src"], 0.0, join}};
  std::optional<double> value = args.number("value");
  if (const auto* set = args["value"].get_if<bool>()) value = *set ? 1.0 : 0.0;
  if (!value) return unsupported("a number computed at run time");
  return Lowered{.args = {context.node.arg(0), *args.integer("dim"), args["index"], {}, *value}};
}

Kernel prepare_scatter(const OpCall& call, const PrepareContext&) {
  const ElementPlan plan(call);
  const DataType format = spec_of(call, "x").dtype;
  const TensorSpec* src = call.tensor("src");
  const Shape index = spec_of(call, "index").logical;
  if (index.size() != spec_of(call, "x").logical.size() || (src != nullptr && src->logical.size() != index.size()))
    bad_call(call, "the index or the values have another rank");
  if (src != nullptr) {
    for (std::size_t d = 0; d < index.size(); ++d)
      if (index[d] > src->logical.at(d)) bad_call(call, "the index is larger than the values");
  }
  const Shape strides = strides_of(index), steps = src != nullptr ? strides_of(src->logical) : Shape{};
  const std::uint32_t number = bits_in(format, call.number("value"));
  const Join join = join_of(call.string("reduce"));
  const bool given = src != nullptr;
  return [=](const KernelArgs& args) {
    const DenseElements out = copied_elements(args);
    const std::uint32_t* at_index = load_dense(*args.in[1], 1);
    const std::uint32_t* values = given ? load_dense(*args.in[2], 2) : nullptr;
    plan.for_each(at_index, [&](std::int64_t at, std::int64_t to) {
      std::int64_t from = 0;
      for (std::size_t d = 0; given && d < index.size(); ++d) from += at / strides[d] % index[d] * steps[d];
      out.replace(to, 1,
                  [&](std::uint32_t old) { return joined_bits(join, format, old, given ? values[from] : number); });
    });
  };
}

std::vector<RtValue> reference_scatter(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const RtValue x = as_wide(as_float(args[0])), index = as_wide(args[2]);
  if (args[3].is_none()) return aten.call("aten.scatter.value", {x, call.integer("dim"), index, call.number("value")});
  const RtValue src = as_wide(as_float(args[3]));
  if (call.string("reduce").empty()) return aten.call("aten.scatter.src", {x, call.integer("dim"), index, src});
  return aten.call("aten.scatter_reduce.two", {x, call.integer("dim"), index, src, call.string("reduce")});
}

// ---- tt.slice_scatter

LowerResult lower_slice_scatter(const LowerContext& context) {
  if (auto no = check_alike(context)) return *no;
  const AtenArgs args(context);
  if (!args.integer("dim")) return unsupported("dim is computed at run time");
  return Lowered{.args = {context.node.arg(0), args["src"], args["dim"], args["start"], args["end"], args["step"]}};
}

// The place of a dim that src lacks: one position.
LowerResult lower_select_scatter(const LowerContext& context) {
  if (auto no = check_alike(context)) return *no;
  const AtenArgs args(context);
  const auto dim = args.integer("dim"), index = args.integer("index");
  if (!dim || !index) return unsupported("a position computed at run time");
  const ir::Arg end = *index == -1 ? ir::Arg() : ir::Arg(*index + 1);
  return Lowered{.args = {context.node.arg(0), args["src"], *dim, *index, end}};
}

struct Range {
  std::size_t dim;
  std::int64_t start, count, step;
};

Range range_of(const OpCall& call) {
  const Shape& x = spec_of(call, "x").logical;
  if (x.empty()) bad_call(call, "a scalar");
  const auto dim = static_cast<std::size_t>(wrap_dim(call, call.integer("dim"), x.size()));
  const std::int64_t size = x[dim], step = call.integer("step");
  if (step < 1) bad_call(call, "step " + std::to_string(step));
  const auto position = [&](std::string_view name, std::int64_t absent) {
    const std::int64_t p = call.has(name) ? call.integer(name) : absent;
    return std::clamp<std::int64_t>(p < 0 ? p + size : p, 0, size);
  };
  const std::int64_t start = position("start", 0), end = std::max(position("end", size), start);
  const Range range{dim, start, (end - start + step - 1) / step, step};
  if (volume(spec_of(call, "src").logical) * size != volume(x) * range.count)
    bad_call(call, "the values do not fill the range");
  return range;
}

std::vector<TensorSpec> infer_slice_scatter(const OpCall& call) {
  range_of(call);
  return same_as_x(call);
}

Kernel prepare_slice_scatter(const OpCall& call, const PrepareContext&) {
  const Range range = range_of(call);
  const Shape x = spec_of(call, "x").logical;
  std::int64_t outer = 1, inner = 1;
  for (std::size_t d = 0; d < x.size(); ++d) (d < range.dim ? outer : inner) *= d == range.dim ? 1 : x[d];
  const std::int64_t size = x[range.dim];
  return [=](const KernelArgs& args) {
    const DenseElements out = copied_elements(args);
    const std::uint32_t* src = load_dense(*args.in[1], 1);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < range.count; ++i)
        out.replace((o * size + range.start + i * range.step) * inner, inner, [&](std::uint32_t) { return *src++; });
  };
}

std::vector<RtValue> reference_slice_scatter(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  if (!has_elements(args[0])) return {args[0]};
  const Range range = range_of(call);
  Shape shape = spec_of(call, "x").logical;
  shape[range.dim] = range.count;
  const RtValue src = aten.call("aten.reshape.default", {as_float(args[1]), int_list(shape)})[0];
  return aten.call("aten.slice_scatter.default", {as_float(args[0]), src, call.integer("dim"), range.start,
                                                  range.start + range.count * range.step, range.step});
}

const OpFamily bins{.names = "histc histogram histogramdd _histogramdd_bin_edges",
                    .reason = "counting is by integers with a bin of their own only"};
TTRT_REGISTER_FAMILY(bins);

const OpFamily repeated{
    .names = "scatter_reduce scatter index_reduce index_put _index_put_impl _unsafe_index_put put index_fill take",
    .reason =
        "indices that repeat are joined by sums, products and extremes only, and tensors are indexed by their dims"};
TTRT_REGISTER_FAMILY(repeated);

OpRecord writing(std::string_view name, std::string_view summary, std::string_view schema,
                 std::vector<Lowering> lowers) {
  OpRecord record;
  record.name = name;
  record.summary = summary;
  record.schema = schema;
  record.lowers = std::move(lowers);
  record.infer = same_as_x;
  record.supports = supports;
  record.work = moving_work;
  record.tolerance = {.pcc = 0.9999};
  return record;
}

// One index of whole rows, which take the place of others.
ttc::Refusal emit_put(PythonCall& to) {
  if (to.call.boolean("accumulate")) return unsupported("ttnn.scatter adds nothing up");
  if (to.operands("indices").size() != 1 || index_rank(to.call) != 1)
    return unsupported("ttnn.scatter takes one index");
  const TensorSpec &x = spec_of(to.call, "x"), &values = spec_of(to.call, "values");
  const std::int64_t dim = wrap_dim(to.call, to.call.integers("dims").at(0), x.logical.size());
  Shape rows = x.logical;
  const auto& indices = std::get<std::vector<TensorRef>>(to.call.arg("indices"));
  rows[static_cast<std::size_t>(dim)] = volume(to.call.tensors.at(static_cast<std::size_t>(indices[0].index)).logical);
  if (values.logical != rows) return unsupported("values of another shape than the rows");
  const std::string count = python_product(to.sizes_of(static_cast<std::size_t>(indices[0].index)));
  const std::string index =
      expanded_index(to, to.sizes("x"), static_cast<std::size_t>(dim), python_index(to, 0, dim), count);
  to.result(Python("ttnn.scatter")
                .arg(to.operand("x"))
                .arg(std::to_string(dim))
                .arg(index)
                .arg(to.operand("values"))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

ttc::Refusal emit_scatter(PythonCall& to) {
  if (!to.call.string("reduce").empty()) return unsupported("ttnn.scatter joins no elements");
  if (to.operand("src").empty()) return unsupported("ttnn.scatter wants a tensor of sources");
  const std::string index = to.let("index", Python("ttnn.typecast").arg(to.operand("index")).arg("ttnn.uint32"));
  to.result(Python("ttnn.scatter")
                .arg(to.operand("x"))
                .arg(to.literal("dim"))
                .arg(index)
                .arg(to.operand("src"))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

// What is before the range, the range, what is behind it.
ttc::Refusal emit_slice_scatter(PythonCall& to) {
  const Range range = range_of(to.call);
  if (range.step != 1 || !to.fixed_sizes()) return unsupported("ranges with steps or of free sizes");
  const Shape& x = spec_of(to.call, "x").logical;
  Shape part = x;
  part[range.dim] = range.count;
  const auto text = [](const Shape& sizes) {
    std::vector<std::string> out;
    for (const std::int64_t size : sizes) out.push_back(std::to_string(size));
    return python_list(out);
  };
  std::string middle = to.operand("src");
  if (spec_of(to.call, "src").logical != part)
    middle = to.let("part", Python("ttnn.reshape").arg(middle).arg(text(part)));
  std::vector<std::string> parts;
  const auto around = [&](std::int64_t from, std::int64_t until) {
    if (from >= until) return;
    Shape starts(x.size(), 0), ends = x;
    starts[range.dim] = from, ends[range.dim] = until;
    parts.push_back(to.let("part", Python("ttnn.slice").arg(to.operand("x")).arg(text(starts)).arg(text(ends))));
  };
  around(0, range.start);
  parts.push_back(middle);
  around(range.start + range.count, x[range.dim]);
  if (parts.size() == 1) {
    to.result(Python("ttnn.identity").arg(middle).key("memory_config", to.memory_config()));
    return std::nullopt;
  }
  to.result(Python("ttnn.concat")
                .arg(python_list(parts))
                .key("dim", std::to_string(range.dim))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpRecord index_put = [] {
  OpRecord r = writing("tt.index_put", "A tensor with other elements or rows at indices, or more added to them",
                       "(Tensor x, int[] dims, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
                       {{"aten.index_put.default", lower_put},
                        {"aten.index_copy.default", lower_copy},
                        {"aten.index_add.default", lower_add}});
  r.operands = {{"x", OperandKind::any}, {"indices", OperandKind::index}, {"values", OperandKind::any}};
  r.prepare = prepare_put;
  r.emit = emit_put;
  r.infer = [](const OpCall& call) {
    wrap_dims(call, call.integers("dims"), call.tensors.at(0).logical.size());
    return same_as_x(call);
  };
  r.reference = reference_put;
  r.cases = {{"a cache: one position of an inner dim",
              R"(graph main(%x: f32[2, 4, 50, 16] user, %i: i64[1] user, %v: f32[2, 4, 1, 16] user) {
  %y: f32[2, 4, 50, 16] = aten.index_copy.default(%x, 2, %i, %v)
  return %y
})"},
             {"two indices, values that broadcast",
              R"(graph main(%x: f32[50, 60, 7] user, %i: i64[4, 1] user, %v: f32[7] user) {
  %j: i64[3] = aten.arange.start_step(5, 11, 2, dtype=i64)
  %y: f32[50, 60, 7] = aten.index_put.default(%x, [%i, %j], %v)
  return %y
})"},
             {"integers, added", R"(graph main(%x: i64[50] user, %i: i64[9] user) {
  %o: i64[9] = aten.full.default([9], 3, dtype=i64)
  %y: i64[50] = aten.index_put.default(%x, [%i], %o, accumulate=true)
  return %y
})"},
             {"rows added", R"(graph main(%x: f32[50, 33] user, %i: i64[70] user, %v: f32[70, 33] user) {
  %y: f32[50, 33] = aten.index_add.default(%x, 0, %i, %v)
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(index_put);

const OpRecord scatter = [] {
  OpRecord r =
      writing("tt.scatter", "A tensor with another element at each index along a dim, or joined with more",
              "(Tensor x, int dim, Tensor index, Tensor? src=None, float value=0.0, str reduce=\"\") -> Tensor",
              {{"aten.scatter.src", lower_scatter},
               {"aten.scatter.value", lower_scatter},
               {"aten.scatter_add.default", lower_scatter},
               {"aten.scatter_reduce.two", lower_scatter}});
  r.operands = {{"x", OperandKind::any}, {"index", OperandKind::index}, {"src", OperandKind::any}};
  r.infer = [](const OpCall& call) {
    wrap_dim(call, call.integer("dim"), call.tensors.at(0).logical.size());
    return same_as_x(call);
  };
  r.prepare = prepare_scatter;
  r.emit = emit_scatter;
  r.reference = reference_scatter;
  r.cases = {
      {"a number", R"(graph main(%x: f32[3, 50] user, %i: i64[3, 4] user) {
  %y: f32[3, 50] = aten.scatter.value(%x, 1, %i, 1.0)
  return %y
})"},
      {"values, rows", R"(graph main(%x: f32[50, 7] user, %v: f32[1, 7] user) {
  %i: i64[1, 5] = aten.full.default([1, 5], 3, dtype=i64)
  %y: f32[50, 7] = aten.scatter.src(%x, 0, %i, %v)
  return %y
})"},
      {"added", R"(graph main(%x: f32[3, 50] user, %i: i64[3, 20] user, %v: f32[3, 20] user) {
  %y: f32[3, 50] = aten.scatter_add.default(%x, 1, %i, %v)
  return %y
})"},
      {"the largest and the smallest", R"(graph main(%x: f32[3, 50] user, %i: i64[3, 20] user, %v: f32[3, 20] user) {
  %y: f32[3, 50] = aten.scatter_reduce.two(%x, 1, %i, %v, "amax")
  %z: f32[3, 50] = aten.scatter_reduce.two(%x, 1, %i, %v, "amin")
  return %y, %z
})"},
      {"products", R"(graph main(%x: f32[3, 50] user, %i: i64[3, 20] user, %v: f32[3, 20] user) {
  %y: f32[3, 50] = aten.scatter_reduce.two(%x, 1, %i, %v, "prod")
  return %y
})"}};
  r.words = {{"reduce", "sum prod amax amin"}};
  return r;
}();
TTRT_REGISTER_OP(scatter);

const OpRecord slice_scatter = [] {
  OpRecord r = writing(
      "tt.slice_scatter", "A tensor with other elements in a range of a dim",
      "(Tensor x, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
      {{"aten.slice_scatter.default", lower_slice_scatter}, {"aten.select_scatter.default", lower_select_scatter}});
  r.operands = {{"x", OperandKind::any}, {"src", OperandKind::any}};
  r.infer = infer_slice_scatter;
  r.prepare = prepare_slice_scatter;
  r.emit = emit_slice_scatter;
  r.reference = reference_slice_scatter;
  r.cases = {{"rows", R"(graph main(%x: f32[2, 7, 33] user, %v: f32[2, 3, 33] user) {
  %y: f32[2, 7, 33] = aten.slice_scatter.default(%x, %v, 1, 2, 5)
  return %y
})"},
             {"columns, a step", R"(graph main(%x: f32[3, 40] user, %v: f32[3, 4] user) {
  %y: f32[3, 40] = aten.slice_scatter.default(%x, %v, -1, -12, 9223372036854775807, 3)
  return %y
})"},
             {"the last position", R"(graph main(%x: f32[3, 40] user, %v: f32[3] user) {
  %y: f32[3, 40] = aten.select_scatter.default(%x, %v, 1, -1)
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(slice_scatter);

}  // namespace
}  // namespace ttrt::ops::scatter_op
