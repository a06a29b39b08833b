// The same elements under another shape: tt.reshape, tt.flatten, tt.unflatten, tt.squeeze, tt.unsqueeze. One kernel;
// whole tiles move where the last two dims keep their places.
#include <algorithm>

#include "device/move.h"
#include "ops/emit.h"
#include "ops/rules.h"
#include "ops/untiled.h"

namespace ttrt::ops::view_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

// ---- lowering

// The node's arguments in ATen's order, which is ours.
LowerResult lower_same(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  return Lowered{.args = context.node.args()};
}

LowerResult lower_size(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  return Lowered{.args = {context.node.arg(0), context.node.arg(1)}};
}

LowerResult lower_unflatten(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  return Lowered{.args = {context.node.arg(0), args["dim"], args["sizes"]}};
}

LowerResult lower_squeeze_dim(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const auto dim = AtenArgs(context).integer("dim");
  if (!dim) return unsupported("dim is computed at run time");
  return Lowered{.args = {context.node.arg(0), ir::Arg::ints({*dim})}};
}

LowerResult lower_squeeze_all(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const ir::Type& type = context.node.operand(0)->type;
  if (!type.is_static()) return Reason{ReasonCode::DynamicShape, "which dims are 1 is known at run time only"};
  std::vector<std::int64_t> dims;
  for (int i = 0; i < type.rank(); ++i) {
    if (type.dim(i) == 1) dims.push_back(i);
  }
  return Lowered{.args = {context.node.arg(0), ir::Arg::ints(dims)}};
}

// ---- shape rules

const Shape& input(const OpCall& call) { return spec_of(call, "x").logical; }

std::vector<TensorSpec> result(const OpCall& call, Shape shape) {
  return {tiled(std::move(shape), spec_of(call, "x").dtype)};
}

std::vector<TensorSpec> infer_reshape(const OpCall& call) {
  return result(call, resolve_sizes(call, call.integers("size"), volume(input(call))));
}

std::vector<TensorSpec> infer_flatten(const OpCall& call) {
  const Shape& in = input(call);
  const std::int64_t first = wrap_dim(call, call.integer("start_dim"), in.size()),
                     last = wrap_dim(call, call.integer("end_dim"), in.size());
  if (first > last) bad_call(call, "start_dim comes after end_dim");
  if (in.empty()) return result(call, {1});
  Shape out(in.begin(), in.begin() + first);
  out.push_back(volume(Shape(in.begin() + first, in.begin() + last + 1)));
  out.insert(out.end(), in.begin() + last + 1, in.end());
  return result(call, std::move(out));
}

std::vector<TensorSpec> infer_unflatten(const OpCall& call) {
  const Shape& in = input(call);
  if (in.empty()) bad_call(call, "a scalar");
  const std::int64_t dim = wrap_dim(call, call.integer("dim"), in.size());
  const Shape sizes = resolve_sizes(call, call.integers("sizes"), in[static_cast<std::size_t>(dim)]);
  Shape out(in.begin(), in.begin() + dim);
  out.insert(out.end(), sizes.begin(), sizes.end());
  out.insert(out.end(), in.begin() + dim + 1, in.end());
  return result(call, std::move(out));
}

std::vector<TensorSpec> infer_squeeze(const OpCall& call) {
  const Shape& in = input(call);
  const auto listed = call.integers("dims");
  const auto dims = listed.empty() ? listed : wrap_dims(call, listed, in.size());
  Shape out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool named = std::binary_search(dims.begin(), dims.end(), static_cast<std::int64_t>(i));
    if (!named || in[i] != 1) out.push_back(in[i]);
  }
  return result(call, std::move(out));
}

std::vector<TensorSpec> infer_unsqueeze(const OpCall& call) {
  Shape out = input(call);
  out.insert(out.begin() + wrap_dim(call, call.integer("dim"), out.size() + 1), 1);
  return result(call, std::move(out));
}

// ---- kernel and reference

Kernel prepare(const OpCall& call, const PrepareContext&) {
  if (Kernel kernel = reshape_untiled(spec_of(call, "x"), call.op->infer(call)[0].logical)) return kernel;
  const Move move = plan_reshape(spec_of(call, "x"), call.op->infer(call)[0].logical);
  return [move](const KernelArgs& args) { move.run(args.in[0]->data(), args.out[0]->data()); };
}

// By the operator of the same name and arguments.
template <const char* op>
std::vector<RtValue> reference(Reference& aten, const OpCall&, std::span<const RtValue> args) {
  std::vector<RtValue> given(args.begin(), args.end());
  given[0] = as_float(given[0]);
  return aten.call("aten.contiguous.default", {aten.call(op, std::move(given))[0]});
}
constexpr char aten_reshape[] = "aten.reshape.default", aten_flatten[] = "aten.flatten.using_ints",
               aten_unflatten[] = "aten.unflatten.int", aten_squeeze[] = "aten.squeeze.dims",
               aten_unsqueeze[] = "aten.unsqueeze.default";

const OpFamily writes{
    .names = "copy_ set_ resize_ fill_ zero_ add_ mul_ sub_ div_ index_put_ scatter_ masked_fill_ copy set",
    .reason = "it writes into memory that others may see"};
TTRT_REGISTER_FAMILY(writes);

ttc::Refusal emit(PythonCall& to) {
  to.result(Python("ttnn.reshape")
                .arg(to.operand("x"))
                .arg(python_list(to.sizes()))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

OpRecord view(std::string_view name, std::string_view summary, std::string_view schema, std::vector<Lowering> lowers,
              std::vector<TensorSpec> (*infer)(const OpCall&), decltype(OpRecord::reference) reference,
              std::vector<OpCase> cases) {
  return {.name = name,
          .summary = summary,
          .schema = schema,
          .lowers = std::move(lowers),
          .operands = {{"x", OperandKind::any}},
          .infer = infer,
          .supports = any_tiles,
          .prepare = prepare,
          .reference = reference,
          .work = moving_work,
          .tolerance = equal_results,
          .cases = std::move(cases),
          .emit = emit};
}

const OpRecord reshape =
    view("tt.reshape", "The same elements under another shape", "(Tensor x, SymInt[] size) -> Tensor",
         {{"aten.view.default", lower_size},
          {"aten.reshape.default", lower_size},
          {"aten._unsafe_view.default", lower_size}},
         infer_reshape, reference<aten_reshape>,
         {{"heads", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[2, 5, 4, 16] = aten.view.default(%x, [2, 5, 4, 16])
  return %y
})"},
          {"merge, inferred size", R"(graph main(%x: f32[2, 5, 4, 16] user) {
  %y: f32[10, 64] = aten.reshape.default(%x, [-1, 64])
  return %y
})"},
          {"integers", R"(graph main(%x: i64[3, 40] user) {
  %y: i64[2, 60] = aten.view.default(%x, [2, 60])
  return %y
})"},
          {"ragged", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[2, 60] = aten._unsafe_view.default(%x, [2, 60])
  return %y
})"}});
TTRT_REGISTER_OP(reshape);

const OpRecord flatten =
    view("tt.flatten", "Neighbouring dims as one", "(Tensor x, int start_dim=0, int end_dim=-1) -> Tensor",
         {{"aten.flatten.using_ints", lower_same}}, infer_flatten, reference<aten_flatten>,
         {{"inner dims", R"(graph main(%x: f32[2, 5, 3, 7] user) {
  %y: f32[2, 105] = aten.flatten.using_ints(%x, start_dim=1)
  return %y
})"}});
TTRT_REGISTER_OP(flatten);

const OpRecord unflatten = view("tt.unflatten", "One dim as several", "(Tensor x, int dim, SymInt[] sizes) -> Tensor",
                                {{"aten.unflatten.int", lower_unflatten}}, infer_unflatten, reference<aten_unflatten>,
                                {{"last dim", R"(graph main(%x: f32[2, 5, 60] user) {
  %y: f32[2, 5, 3, 20] = aten.unflatten.int(%x, dim=-1, sizes=[3, -1])
  return %y
})"}});
TTRT_REGISTER_OP(unflatten);

const OpRecord squeeze = view("tt.squeeze", "Without the named dims of size 1", "(Tensor x, int[] dims) -> Tensor",
                              {{"aten.squeeze.dim", lower_squeeze_dim},
                               {"aten.squeeze.dims", lower_same},
                               {"aten.squeeze.default", lower_squeeze_all}},
                              infer_squeeze, reference<aten_squeeze>,
                              {{"one dim", R"(graph main(%x: f32[3, 1, 40] user) {
  %y: f32[3, 40] = aten.squeeze.dim(%x, 1)
  return %y
})"},
                               {"a dim that is not 1 stays", R"(graph main(%x: f32[3, 1, 40] user) {
  %y: f32[3, 1, 40] = aten.squeeze.dim(%x, 0)
  return %y
})"},
                               {"several", R"(graph main(%x: f32[1, 3, 1, 40] user) {
  %y: f32[3, 40] = aten.squeeze.dims(%x, [0, -2])
  return %y
})"},
                               {"all", R"(graph main(%x: f32[1, 3, 1, 40] user) {
  %y: f32[3, 40] = aten.squeeze.default(%x)
  return %y
})"}});
TTRT_REGISTER_OP(squeeze);

const OpRecord unsqueeze = view("tt.unsqueeze", "With a dim of size 1", "(Tensor x, int dim) -> Tensor",
                                {{"aten.unsqueeze.default", lower_same}}, infer_unsqueeze, reference<aten_unsqueeze>,
                                {{"first", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[1, 3, 40] = aten.unsqueeze.default(%x, 0)
  return %y
})"},
                                 {"last", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 40, 1] = aten.unsqueeze.default(%x, -1)
  return %y
})"}});
TTRT_REGISTER_OP(unsqueeze);

}  // namespace
}  // namespace ttrt::ops::view_op
