// Elements by index: tt.index (whole rows of any dims, as x[i, j]) and tt.gather (one element of a dim at a time).
// Elements move, so values are exact. An index outside its dim is an error, never clamped; negative ones count from the
// end. A bool mask as index gives as many elements as it has ones, which only a run tells: it stays on the host.
#include <algorithm>

#include "ops/dense.h"
#include "ops/emit.h"
#include "ops/index_plan.h"
#include "ops/rules.h"

namespace ttrt::ops::indexing_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// ---- tt.index

LowerResult lower_index(const LowerContext& context) {
  auto parts = index_arguments(context, context.node.arg(1));
  if (const auto* reason = std::get_if<Reason>(&parts)) return *reason;
  auto& [dims, indices] = std::get<IndexArguments>(parts);
  return Lowered{.args = {context.node.arg(0), ir::Arg::ints(dims), indices}};
}

// index_select(x, dim, index) and embedding(table, indices) of a table that is computed.
LowerResult lower_select(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  if (!args.integer("dim")) return unsupported("dim is computed at run time");
  if (context.node.operand(0)->type.rank() == 0) return Reason{ReasonCode::RankUnsupported, "a scalar"};
  return Lowered{.args = {context.node.arg(0), ir::Arg::ints({*args.integer("dim")}), ir::Arg::List{args["index"]}}};
}

LowerResult lower_embedding(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  return Lowered{.args = {args["weight"], ir::Arg::ints({0}), ir::Arg::List{args["indices"]}}};
}

std::vector<TensorSpec> infer_index(const OpCall& call) {
  const IndexPlan plan(call);
  return {tiled(plan.result(), spec_of(call, "x").dtype)};
}

ttc::Refusal supports_index(const OpCall& call) {
  for (std::size_t i = 1; i < call.tensors.size(); ++i) {
    if (call.tensors[i].dtype != DataType::int32)
      return Reason{ReasonCode::DtypeUnsupported, "an index is " + std::string(to_string(call.tensors[i].dtype))};
  }
  return plain_tiles(call);
}

Kernel prepare_index(const OpCall& call, const PrepareContext&) {
  const IndexPlan plan(call);
  const std::size_t first = 1;
  return [plan, first](const KernelArgs& args) {
    const std::uint32_t* x = load_dense(*args.in[0], 0);
    const std::vector<std::int64_t>& positions = plan.positions(args, first);
    std::uint32_t* out = dense_scratch(1, positions.size() * static_cast<std::size_t>(plan.inner()));
    plan.for_each(positions,
                  [&](std::int64_t at, std::int64_t from, std::int64_t n) { std::copy_n(x + from, n, out + at); });
    store_dense(out, *args.out[0]);
  };
}

std::vector<RtValue> reference_index(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call("aten.index.Tensor", {as_float(args[0]), index_list(call, args[2])});
}

// ---- tt.gather

LowerResult lower_gather(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  if (!args.integer("dim")) return unsupported("dim is computed at run time");
  const ir::Arg& index = args.given("index") ? args["index"] : args["indices"];
  if (context.node.op() == "aten.take_along_dim.default") {
    const ir::Type &x = context.node.operand(0)->type, &i = index.value()->type;
    for (int d = 0; d < x.rank(); ++d) {
      const bool along = d == *args.integer("dim") || d == *args.integer("dim") + x.rank();
      if (i.rank() != x.rank() ||
          (!along && !(x.sizes[static_cast<std::size_t>(d)] == i.sizes[static_cast<std::size_t>(d)])))
        return unsupported("indices that broadcast");
    }
  }
  return Lowered{.args = {context.node.arg(0), *args.integer("dim"), index}};
}

std::vector<TensorSpec> infer_gather(const OpCall& call) {
  const TensorSpec &x = spec_of(call, "x"), &index = spec_of(call, "index");
  const auto dim = static_cast<std::size_t>(wrap_dim(call, call.integer("dim"), x.logical.size()));
  if (index.logical.size() != x.logical.size()) bad_call(call, "the index has another rank");
  for (std::size_t d = 0; d < x.logical.size(); ++d) {
    if (d != dim && index.logical[d] > x.logical[d]) bad_call(call, "the index is larger than the tensor");
  }
  return {tiled(index.logical, x.dtype)};
}

Kernel prepare_gather(const OpCall& call, const PrepareContext&) {
  const ElementPlan plan(call);
  return [plan](const KernelArgs& args) {
    const std::uint32_t *x = load_dense(*args.in[0], 0), *index = load_dense(*args.in[1], 1);
    std::uint32_t* out = dense_scratch(2, static_cast<std::size_t>(plan.count()));
    plan.for_each(index, [&](std::int64_t at, std::int64_t position) { out[at] = x[position]; });
    store_dense(out, *args.out[0]);
  };
}

std::vector<RtValue> reference_gather(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call("aten.gather.default", {as_float(args[0]), call.integer("dim"), as_wide(args[2])});
}

const OpFamily by_value{
    .names =
        "nonzero nonzero_numpy argwhere masked_select _unique _unique2 unique_dim unique_consecutive "
        "unique_dim_consecutive bincount one_hot where repeat_interleave masked_scatter",
    .reason = "the size of its result, or the place of each element, depends on values"};
TTRT_REGISTER_FAMILY(by_value);

// The library gathers single elements along one dim: an index of whole rows is repeated for each of their elements, and
// several indices of neighbouring dims become one of these dims flat.
ttc::Refusal emit_index(PythonCall& to) {
  const std::size_t count = to.operands("indices").size();
  std::vector<std::int64_t> dims = to.call.integers("dims");
  std::vector<std::string> sizes = to.sizes("x");
  for (std::int64_t& dim : dims) dim = wrap_dim(to.call, dim, sizes.size());
  for (std::size_t i = 1; i < count; ++i)
    if (dims[i] != dims[i - 1] + 1) return unsupported("ttnn.gather takes one index, and of neighbouring dims only");
  std::string index = python_index(to, 0, dims[0]), table = to.operand("x");
  const auto at = static_cast<std::size_t>(dims[0]);
  for (std::size_t i = 1; i < count; ++i) {
    const std::string rows = to.let("index", Python("ttnn.multiply").arg(index).arg(sizes[at + i]));
    index = to.let("index", Python("ttnn.add").arg(rows).arg(python_index(to, i, dims[i])));
  }
  if (count > 1) {
    const auto first = sizes.begin() + dims[0];
    const std::string flat = python_product({first, first + static_cast<std::ptrdiff_t>(count)});
    sizes.erase(first, first + static_cast<std::ptrdiff_t>(count) - 1);
    sizes[at] = flat;
    table = to.let("table", Python("ttnn.reshape").arg(table).arg(python_list(sizes)));
  }
  const std::vector<std::string> out = to.sizes();
  const auto common = out.begin() + dims[0];
  const std::string chosen = python_product({common, common + static_cast<std::ptrdiff_t>(index_rank(to.call))});
  const std::string rows = expanded_index(to, sizes, at, index, chosen);
  Python made("ttnn.gather");
  made.arg(table).arg(std::to_string(at)).arg(rows).key("memory_config", to.memory_config());
  if (index_rank(to.call) == 1) {
    to.result(made);
    return std::nullopt;
  }
  const std::string flat = to.let("rows", made);
  to.result(Python("ttnn.reshape").arg(flat).arg(python_list(out)).key("memory_config", to.memory_config()));
  return std::nullopt;
}

// torch.gather takes no negative indices.
ttc::Refusal emit_gather(PythonCall& to) {
  const std::string index = to.let("index", Python("ttnn.typecast").arg(to.operand("index")).arg("ttnn.uint32"));
  to.result(Python("ttnn.gather")
                .arg(to.operand("x"))
                .arg(to.literal("dim"))
                .arg(index)
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpRecord index{
    .name = "tt.index",
    .summary = "Elements or whole rows by index, as x[i, j]",
    .schema = "(Tensor x, int[] dims, Tensor[] indices) -> Tensor",
    .lowers = {{"aten.index.Tensor", lower_index},
               {"aten.index_select.default", lower_select},
               {"aten.embedding.default", lower_embedding}},
    .operands = {{"x", OperandKind::any}, {"indices", OperandKind::index}},
    .infer = infer_index,
    .supports = supports_index,
    .prepare = prepare_index,
    .reference = reference_index,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"rows", R"(graph main(%x: f32[50, 40] user, %i: i64[2, 3] user) {
  %y: f32[2, 3, 40] = aten.index.Tensor(%x, [%i])
  return %y
})"},
              {"two indices that broadcast, negative ones too",
               R"(graph main(%x: f32[50, 60, 7] user, %i: i64[4, 1] user, %j: i64[3] user) {
  %n: i64[3] = aten.sub.Tensor(%j, 50)
  %y: f32[4, 3, 7] = aten.index.Tensor(%x, [%i, %n])
  return %y
})"},
              {"an inner dim", R"(graph main(%x: f32[2, 50, 33] user, %i: i64[5] user) {
  %y: f32[2, 5, 33] = aten.index.Tensor(%x, [none, %i])
  return %y
})"},
              {"indices apart: their dims come first",
               R"(graph main(%x: f32[50, 3, 50] user, %i: i64[5] user, %j: i64[5] user) {
  %y: f32[5, 3] = aten.index.Tensor(%x, [%i, none, %j])
  return %y
})"},
              {"integers, select", R"(graph main(%x: i64[3, 50] user, %i: i64[4] user) {
  %n: i64[3, 50] = aten.neg.default(%x)
  %y: i64[3, 4] = aten.index_select.default(%n, -1, %i)
  return %y
})"},
              {"a table that is computed", R"(graph main(%w: f32[50, 40] user, %i: i64[2, 3] user) {
  %y: f32[2, 3, 40] = aten.embedding.default(%w, %i)
  return %y
})"}},
    .emit = emit_index,
};
TTRT_REGISTER_OP(index);

const OpRecord gather{
    .name = "tt.gather",
    .summary = "For each index the element there along a dim",
    .schema = "(Tensor x, int dim, Tensor index) -> Tensor",
    .lowers = {{"aten.gather.default", lower_gather}, {"aten.take_along_dim.default", lower_gather}},
    .operands = {{"x", OperandKind::any}, {"index", OperandKind::index}},
    .infer = infer_gather,
    .supports = supports_index,
    .prepare = prepare_gather,
    .reference = reference_gather,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"columns", R"(graph main(%x: f32[3, 50] user, %i: i64[3, 7] user) {
  %y: f32[3, 7] = aten.gather.default(%x, 1, %i)
  return %y
})"},
              {"rows, fewer than there are", R"(graph main(%x: i64[50, 40] user, %i: i64[4, 33] user) {
  %y: i64[4, 33] = aten.gather.default(%x, 0, %i)
  return %y
})"}},
    .emit = emit_gather,
};
TTRT_REGISTER_OP(gather);

}  // namespace
}  // namespace ttrt::ops::indexing_op
