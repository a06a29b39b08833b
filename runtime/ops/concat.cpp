// tt.concat and tt.stack: tensors behind one another along a dim, an old or a new one. Sizes of the other dims must
// agree; nothing is padded to make them.
#include "device/move.h"
#include "ops/emit.h"
#include "ops/rules.h"
#include "ops/tiles.h"

namespace ttrt::ops::concat_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

LowerResult lower(const LowerContext& context) {
  if (auto no = check_alike(context)) return *no;
  const AtenArgs args(context);
  const ir::Arg::List* list = args["tensors"].list();
  if (list == nullptr || list->empty()) return unsupported("a list of tensors computed at run time");
  if (!args.integer("dim")) return unsupported("dim is computed at run time");
  for (const ir::Arg& item : *list) {
    if (item.value() == nullptr || item.value()->type.rank() != list->front().value()->type.rank()) {
      return Reason{ReasonCode::RankUnsupported, "tensors of several ranks"};  // ATen skips empty vectors
    }
  }
  return Lowered{.args = {args["tensors"], args["dim"]}};
}

const std::vector<TensorSpec>& inputs(const OpCall& call) {
  if (call.tensors.empty()) bad_call(call, "no tensors");
  return call.tensors;
}

ttc::Refusal supports(const OpCall& call) {
  for (const TensorSpec& spec : call.tensors) {
    if (spec.dtype != call.tensors[0].dtype) return Reason{ReasonCode::DtypeUnsupported, "operands of several formats"};
  }
  return any_tiles(call);
}

std::vector<TensorSpec> infer_concat(const OpCall& call) {
  const auto& in = inputs(call);
  Shape out = in[0].logical;
  if (out.empty()) bad_call(call, "scalars");
  const auto dim = static_cast<std::size_t>(wrap_dim(call, call.integer("dim"), out.size()));
  for (std::size_t i = 1; i < in.size(); ++i) {
    const Shape& shape = in[i].logical;
    for (std::size_t d = 0; d < out.size(); ++d) {
      if (shape.size() != out.size() || (d != dim && shape[d] != out[d]))
        bad_call(call, "tensor " + std::to_string(i) + " has another shape");
    }
    out[dim] += shape[dim];
  }
  return {tiled(std::move(out), in[0].dtype)};
}

Kernel kernel_of(const Move& move) {
  return [move](const KernelArgs& args) {
    constexpr std::size_t few = 8;
    if (args.in.size() <= few) {
      const std::byte* bytes[few];
      for (std::size_t i = 0; i < args.in.size(); ++i) bytes[i] = args.in[i]->data();
      move.run(std::span(bytes, args.in.size()), args.out[0]->data());
      return;
    }
    thread_local std::vector<const std::byte*> bytes;
    bytes.clear();
    for (const DeviceTensor* tensor : args.in) bytes.push_back(tensor->data());
    move.run(bytes, args.out[0]->data());
  };
}

Kernel prepare_concat(const OpCall& call, const PrepareContext&) {
  return kernel_of(plan_concat(inputs(call), call.integer("dim")));
}

std::vector<RtValue> reference_with(Reference& aten, std::string_view op, const OpCall& call,
                                    std::span<const RtValue> args) {
  return aten.call(op, {RtValue(as_floats(args)[0]), call.integer("dim")});
}

std::vector<RtValue> reference_concat(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return reference_with(aten, "aten.cat.default", call, args);
}

// ---- tt.stack: concatenation of the tensors with the new dim of size 1

std::vector<TensorSpec> with_new_dim(const OpCall& call) {
  std::vector<TensorSpec> out = inputs(call);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].logical != inputs(call)[0].logical) bad_call(call, "tensor " + std::to_string(i) + " has another shape");
  }
  const std::int64_t dim = wrap_dim(call, call.integer("dim"), out[0].logical.size() + 1);
  for (TensorSpec& spec : out) spec.logical.insert(spec.logical.begin() + dim, 1);
  return out;
}

std::vector<TensorSpec> infer_stack(const OpCall& call) {
  Shape shape = with_new_dim(call)[0].logical;
  shape[static_cast<std::size_t>(wrap_dim(call, call.integer("dim"), shape.size()))] =
      static_cast<std::int64_t>(inputs(call).size());
  return {tiled(std::move(shape), inputs(call)[0].dtype)};
}

Kernel prepare_stack(const OpCall& call, const PrepareContext&) {
  const std::vector<TensorSpec> in = with_new_dim(call);
  const std::size_t rank = in[0].logical.size();
  const std::int64_t dim = wrap_dim(call, call.integer("dim"), rank);
  const Move concat = plan_concat(in, dim);
  // Before the last two dims a new dim leaves the tiles as they are.
  if (dim + 2 < static_cast<std::int64_t>(rank)) return kernel_of(concat);
  const Move shape = plan_reshape(inputs(call)[0], in[0].logical);
  const std::int64_t each = in[0].nbytes();
  return [=](const KernelArgs& args) {
    auto* between = reinterpret_cast<std::byte*>(scratch(3, static_cast<std::size_t>(each / 4) * args.in.size()));
    thread_local std::vector<const std::byte*> bytes;
    bytes.clear();
    for (std::size_t i = 0; i < args.in.size(); ++i) {
      std::byte* to = between + static_cast<std::int64_t>(i) * each;
      shape.run(args.in[i]->data(), to);
      bytes.push_back(to);
    }
    concat.run(bytes, args.out[0]->data());
  };
}

std::vector<RtValue> reference_stack(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return reference_with(aten, "aten.stack.default", call, args);
}

const OpFamily arrangements{
    .names =
        "hstack vstack dstack column_stack row_stack hsplit vsplit dsplit tensor_split channel_shuffle "
        "pixel_shuffle pixel_unshuffle broadcast_tensors movedim moveaxis adjoint aminmax",
    .reason = "only its forms over known sizes and equal ranks are written out for the device"};
TTRT_REGISTER_FAMILY(arrangements);

template <bool stacked>
ttc::Refusal emit(PythonCall& to) {
  to.result(Python(stacked ? "ttnn.stack" : "ttnn.concat")
                .arg(python_list(to.operands("xs")))
                .key("dim", to.literal("dim"))
                .key("memory_config", stacked ? "" : to.memory_config()));
  return std::nullopt;
}

const OpRecord concat{
    .name = "tt.concat",
    .summary = "Tensors behind one another along a dim",
    .schema = "(Tensor[] xs, int dim=0) -> Tensor",
    .lowers = {{"aten.cat.default", lower}},
    .operands = {{"xs", OperandKind::any}},
    .infer = infer_concat,
    .supports = supports,
    .prepare = prepare_concat,
    .reference = reference_concat,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"columns, ragged", R"(graph main(%a: f32[3, 40] user, %b: f32[3, 7] user) {
  %y: f32[3, 47] = aten.cat.default([%a, %b], -1)
  return %y
})"},
              {"integers", R"(graph main(%a: i64[3, 40] user, %b: i64[3, 7] user) {
  %y: i64[3, 47] = aten.cat.default([%a, %b], -1)
  return %y
})"},
              {"rows", R"(graph main(%a: f32[2, 1, 64] user, %b: f32[2, 5, 64] user) {
  %y: f32[2, 6, 64] = aten.cat.default([%a, %b], 1)
  return %y
})"},
              {"outer dim, three tensors",
               R"(graph main(%a: f32[2, 5, 33] user, %b: f32[1, 5, 33] user, %c: f32[3, 5, 33] user) {
  %y: f32[6, 5, 33] = aten.cat.default([%a, %b, %c])
  return %y
})"}},
    .emit = emit<false>,
};
TTRT_REGISTER_OP(concat);

const OpRecord stack{
    .name = "tt.stack",
    .summary = "Tensors behind one another along a new dim",
    .schema = "(Tensor[] xs, int dim=0) -> Tensor",
    .lowers = {{"aten.stack.default", lower}},
    .operands = {{"xs", OperandKind::any}},
    .infer = infer_stack,
    .supports = supports,
    .prepare = prepare_stack,
    .reference = reference_stack,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"first", R"(graph main(%a: f32[3, 40] user, %b: f32[3, 40] user) {
  %y: f32[2, 3, 40] = aten.stack.default([%a, %b])
  return %y
})"},
              {"last", R"(graph main(%a: f32[3, 40] user, %b: f32[3, 40] user) {
  %y: f32[3, 40, 2] = aten.stack.default([%a, %b], -1)
  return %y
})"}},
    .emit = emit<true>,
};
TTRT_REGISTER_OP(stack);

}  // namespace
}  // namespace ttrt::ops::concat_op
