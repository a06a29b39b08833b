// Parts of a tensor: tt.slice, tt.select, tt.split, tt.flip. Positions follow Python's rules; a position outside the
// tensor is clamped where ATen clamps (slice) and an error where ATen has one (select).
#include <algorithm>

#include "device/move.h"
#include "ops/emit.h"
#include "ops/literals.h"
#include "ops/rules.h"
#include "ops/tiles.h"

namespace ttrt::ops::slice_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

const TensorSpec& input(const OpCall& call) { return spec_of(call, "x"); }

std::size_t dim_of(const OpCall& call) {
  if (input(call).logical.empty()) bad_call(call, "a scalar");
  return static_cast<std::size_t>(wrap_dim(call, call.integer("dim"), input(call).logical.size()));
}

// The whole of x but for dim `dim`.
Move plan_part(const TensorSpec& x, std::size_t dim, std::int64_t start, std::int64_t count, std::int64_t step) {
  Shape starts(x.logical.size(), 0), counts = x.logical, steps(x.logical.size(), 1);
  starts[dim] = start;
  counts[dim] = count;
  steps[dim] = step;
  return plan_slice(x, starts, counts, steps);
}

TensorSpec with_size(const TensorSpec& x, std::size_t dim, std::int64_t size) {
  Shape out = x.logical;
  out[dim] = size;
  return tiled(std::move(out), x.dtype);
}

// ---- tt.slice

struct Range {
  std::int64_t start, count, step;
};

Range range_of(const OpCall& call) {
  const std::int64_t size = input(call).logical[dim_of(call)], step = call.integer("step");
  if (step < 1) bad_call(call, "step " + std::to_string(step));
  const auto position = [&](std::string_view name, std::int64_t absent) {
    const std::int64_t p = call.has(name) ? call.integer(name) : absent;
    return std::clamp<std::int64_t>(p < 0 ? p + size : p, 0, size);
  };
  const std::int64_t start = position("start", 0), end = std::max(position("end", size), start);
  return {start, (end - start + step - 1) / step, step};
}

LowerResult lower_slice(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  if (!args.integer("dim")) return unsupported("dim is computed at run time");
  return Lowered{.args = {context.node.arg(0), args["dim"], args["start"], args["end"], args["step"]}};
}

LowerResult lower_narrow(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  const auto dim = args.integer("dim"), start = args.integer("start"), length = args.integer("length");
  if (!dim || !start || !length) return unsupported("a position computed at run time");
  // -length before the end would wrap around to the front: leave such a call to ATen.
  if (*start < 0 && *start + *length >= 0) return unsupported("a negative start that reaches the end");
  return Lowered{.args = {context.node.arg(0), *dim, *start, *start + *length, 1}};
}

std::vector<TensorSpec> infer_slice(const OpCall& call) {
  return {with_size(input(call), dim_of(call), range_of(call).count)};
}

Kernel prepare_slice(const OpCall& call, const PrepareContext&) {
  const Range r = range_of(call);
  const Move move = plan_part(input(call), dim_of(call), r.start, r.count, r.step);
  return [move](const KernelArgs& args) { move.run(args.in[0]->data(), args.out[0]->data()); };
}

std::vector<RtValue> reference_slice(Reference& aten, const OpCall&, std::span<const RtValue> args) {
  const RtValue part = aten.call("aten.slice.Tensor", {as_float(args[0]), args[1], args[2], args[3], args[4]})[0];
  return aten.call("aten.contiguous.default", {part});
}

// ---- tt.select

LowerResult lower_select(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  if (!AtenArgs(context).integer("dim")) return unsupported("dim is computed at run time");
  return Lowered{.args = context.node.args()};
}

std::vector<TensorSpec> infer_select(const OpCall& call) {
  const std::size_t dim = dim_of(call);
  Shape out = input(call).logical;
  const std::int64_t index = call.integer("index"), size = out[dim];
  if (index < -size || index >= size)
    bad_call(call, "index " + std::to_string(index) + " in a dim of " + std::to_string(size));
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(dim));
  return {tiled(std::move(out), input(call).dtype)};
}

Kernel prepare_select(const OpCall& call, const PrepareContext&) {
  const std::size_t dim = dim_of(call);
  const std::int64_t index = call.integer("index");
  const TensorSpec out = infer_select(call)[0];
  const Move part = plan_part(input(call), dim, index < 0 ? index + input(call).logical[dim] : index, 1, 1);
  // Without one of the outer dims the tiles are the same ones.
  if (dim + 2 < input(call).logical.size()) {
    return [part](const KernelArgs& args) { part.run(args.in[0]->data(), args.out[0]->data()); };
  }
  const Move shape = plan_reshape(part.output(), out.logical);
  const auto floats = static_cast<std::size_t>(part.output().nbytes() / 4);
  return [=](const KernelArgs& args) {
    auto* between = reinterpret_cast<std::byte*>(scratch(3, floats));
    part.run(args.in[0]->data(), between);
    shape.run(between, args.out[0]->data());
  };
}

std::vector<RtValue> reference_select(Reference& aten, const OpCall&, std::span<const RtValue> args) {
  const RtValue part = aten.call("aten.select.int", {as_float(args[0]), args[1], args[2]})[0];
  return aten.call("aten.contiguous.default", {part});
}

// ---- tt.split

LowerResult split_into(const LowerContext& context, const std::function<std::int64_t(std::int64_t size)>& piece) {
  if (auto no = check_values(context)) return *no;
  const auto dim = AtenArgs(context).integer("dim");
  if (!dim) return unsupported("dim is computed at run time");
  const auto size = context.node.operand(0)->type.dim(static_cast<int>(*dim));
  if (!size) return Reason{ReasonCode::DynamicShape, "the size of the dim that is split"};
  const std::int64_t each = piece(*size);
  if (each < 1 || *size < 1) return unsupported("an empty part");
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < *size; at += each) sizes.push_back(std::min(each, *size - at));
  return Lowered{.args = {context.node.arg(0), ir::Arg::ints(sizes), *dim}};
}

LowerResult lower_split(const LowerContext& context) {
  const auto each = AtenArgs(context).integer("split_size");
  return split_into(context, [&](std::int64_t) { return each.value_or(0); });
}

// ATen's chunk: pieces of ceil(size / chunks), which may be fewer than asked for (6 in 4 are 2, 2, 2).
LowerResult lower_chunk(const LowerContext& context) {
  const auto chunks = AtenArgs(context).integer("chunks");
  if (!chunks || *chunks < 1) return unsupported("chunks is computed at run time");
  return split_into(context, [&](std::int64_t size) { return (size + *chunks - 1) / *chunks; });
}

LowerResult lower_split_sizes(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  if (!args.integer("dim")) return unsupported("dim is computed at run time");
  return Lowered{.args = {context.node.arg(0), args["split_sizes"], args["dim"]}};
}

std::vector<TensorSpec> infer_split(const OpCall& call) {
  const std::size_t dim = dim_of(call);
  std::int64_t total = 0;
  std::vector<TensorSpec> out;
  for (const std::int64_t size : call.integers("sizes")) {
    if (size < 0) bad_call(call, "size " + std::to_string(size));
    total += size;
    out.push_back(with_size(input(call), dim, size));
  }
  if (total != input(call).logical[dim]) bad_call(call, "the sizes add up to " + std::to_string(total));
  return out;
}

Kernel prepare_split(const OpCall& call, const PrepareContext&) {
  const std::size_t dim = dim_of(call);
  std::vector<Move> moves;
  std::int64_t at = 0;
  for (const std::int64_t size : call.integers("sizes")) {
    moves.push_back(plan_part(input(call), dim, at, size, 1));
    at += size;
  }
  return [moves](const KernelArgs& args) {
    for (std::size_t i = 0; i < moves.size(); ++i) moves[i].run(args.in[0]->data(), args.out[i]->data());
  };
}

std::vector<RtValue> reference_split(Reference& aten, const OpCall&, std::span<const RtValue> args) {
  const RtValue parts = aten.call("aten.split_with_sizes.default", {as_float(args[0]), args[1], args[2]})[0];
  std::vector<RtValue> out;
  for (const RtValue& part : *parts.get_if<RtValue::List>())
    out.push_back(aten.call("aten.contiguous.default", {part})[0]);
  return out;
}

// ---- tt.flip

LowerResult lower_flip(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  return Lowered{.args = context.node.args()};
}

Kernel prepare_flip(const OpCall& call, const PrepareContext&) {
  const TensorSpec& x = input(call);
  Shape start(x.logical.size(), 0), step(x.logical.size(), 1);
  const auto dims = call.integers("dims");
  if (!dims.empty()) {
    for (const std::int64_t dim : wrap_dims(call, dims, x.logical.size())) {
      const auto d = static_cast<std::size_t>(dim);
      start.at(d) = x.logical.at(d) - 1;
      step.at(d) = -1;
    }
  }
  const Move move = plan_slice(x, start, x.logical, step);
  return [move](const KernelArgs& args) { move.run(args.in[0]->data(), args.out[0]->data()); };
}

std::vector<RtValue> reference_flip(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return aten.call("aten.flip.default", {as_float(args[0]), int_list(call.integers("dims"))});
}

const OpFamily composites{.names = "gradient trapezoid trapz rot90 msort isin im2col col2im cumulative_trapezoid",
                          .reason =
                              "PyTorch computes it from operators that this form of the graph does not spell out; "
                              "run_decompositions() does"};
TTRT_REGISTER_FAMILY(composites);

// Every dim is named; ends are those of the result where they are free.
Python sliced(PythonCall& to, std::size_t dim, const std::string& start, const std::string& end,
              const std::string& step) {
  const std::vector<std::string> sizes = to.sizes("x");
  std::vector<std::string> starts(sizes.size(), "0"), ends = sizes, steps(sizes.size(), "1");
  starts.at(dim) = start, ends.at(dim) = end, steps.at(dim) = step;
  Python made("ttnn.slice");
  made.arg(to.operand("x")).arg(python_list(starts)).arg(python_list(ends));
  if (step != "1") made.arg(python_list(steps));
  return made;
}

ttc::Refusal emit_slice(PythonCall& to) {
  const TensorSpec& x = input(to.call);
  const auto dim = static_cast<std::size_t>(wrap_dim(to.call, to.call.integer("dim"), x.logical.size()));
  const std::int64_t size = x.logical[dim], step = to.call.integer("step");
  const std::vector<std::string> sizes = to.sizes("x");
  const auto bound = [&](const char* name, const std::string& otherwise) {
    const std::string text = to.literal(name);
    if (text.empty()) return otherwise;
    const std::int64_t at = to.call.integer(name);
    if (at >= size) return otherwise;
    return at < 0 ? sizes[dim] + " - " + std::to_string(-at) : text;
  };
  const std::string start = bound("start", "0");
  to.result(
      sliced(to, dim, start, bound("end", sizes[dim]), std::to_string(step)).key("memory_config", to.memory_config()));
  return std::nullopt;
}

ttc::Refusal emit_select(PythonCall& to) {
  const TensorSpec& x = input(to.call);
  const auto dim = static_cast<std::size_t>(wrap_dim(to.call, to.call.integer("dim"), x.logical.size()));
  const std::int64_t index = to.call.integer("index");
  const std::string at = index < 0 ? to.sizes("x")[dim] + " - " + std::to_string(-index) : to.literal("index");
  const bool literal = at.find_first_not_of("0123456789") == std::string::npos;
  const std::string row = to.let("row", sliced(to, dim, at, literal ? std::to_string(index + 1) : at + " + 1", "1"));
  to.result(Python("ttnn.reshape").arg(row).arg(python_list(to.sizes())).key("memory_config", to.memory_config()));
  return std::nullopt;
}

ttc::Refusal emit_parts(PythonCall& to) {
  const auto dim = static_cast<std::size_t>(wrap_dim(to.call, to.call.integer("dim"), input(to.call).logical.size()));
  std::string from = "0";
  for (std::size_t i = 0; i < to.results.size(); ++i) {
    const std::string size = to.sizes(static_cast<int>(i)).at(dim);
    const bool literal = (from + size).find_first_not_of("0123456789") == std::string::npos;
    const std::string end = literal ? std::to_string(std::stoll(from) + std::stoll(size)) : from + " + " + size;
    to.result_is(to.let("part", sliced(to, dim, from, end, "1")));
    from = end;
  }
  return std::nullopt;
}

const OpRecord slice{
    .name = "tt.slice",
    .summary = "A range of one dim, with a step",
    .schema = "(Tensor x, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
    .lowers = {{"aten.slice.Tensor", lower_slice}, {"aten.narrow.default", lower_narrow}},
    .operands = {{"x", OperandKind::any}},
    .infer = infer_slice,
    .supports = any_tiles,
    .prepare = prepare_slice,
    .reference = reference_slice,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"columns", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[2, 5, 20] = aten.slice.Tensor(%x, dim=2, start=10, end=30)
  return %y
})"},
              {"booleans", R"(graph main(%x: bool[2, 5, 64] user) {
  %y: bool[2, 5, 20] = aten.slice.Tensor(%x, dim=2, start=10, end=30)
  return %y
})"},
              {"rows, no end", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 5, 33] = aten.slice.Tensor(%x, dim=1, start=2)
  return %y
})"},
              {"end beyond the tensor, step, negative start", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 4] = aten.slice.Tensor(%x, dim=-1, start=-12, end=9223372036854775807, step=3)
  return %y
})"},
              {"narrow", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[3, 8] = aten.narrow.default(%x, 1, 4, 8)
  return %y
})"}},
    .emit = emit_slice,
};
TTRT_REGISTER_OP(slice);

const OpRecord select{
    .name = "tt.select",
    .summary = "One position of one dim, which goes",
    .schema = "(Tensor x, int dim, SymInt index) -> Tensor",
    .lowers = {{"aten.select.int", lower_select}},
    .operands = {{"x", OperandKind::any}},
    .infer = infer_select,
    .supports = any_tiles,
    .prepare = prepare_select,
    .reference = reference_select,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"first row", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[2, 64] = aten.select.int(%x, 1, 0)
  return %y
})"},
              {"last column", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 7] = aten.select.int(%x, -1, -1)
  return %y
})"},
              {"outer dim", R"(graph main(%x: f32[3, 2, 5, 40] user) {
  %y: f32[2, 5, 40] = aten.select.int(%x, 0, 2)
  return %y
})"}},
    .emit = emit_select,
};
TTRT_REGISTER_OP(select);

const OpRecord split{
    .name = "tt.split",
    .summary = "Neighbouring ranges of one dim, one result each",
    .schema = "(Tensor x, SymInt[] sizes, int dim=0) -> Tensor[]",
    .lowers = {{"aten.split.Tensor", lower_split},
               {"aten.split_with_sizes.default", lower_split_sizes},
               {"aten.split.sizes", lower_split_sizes},
               {"aten.chunk.default", lower_chunk}},
    .operands = {{"x", OperandKind::any}},
    .infer = infer_split,
    .supports = any_tiles,
    .prepare = prepare_split,
    .reference = reference_split,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"equal parts", R"(graph main(%x: f32[2, 5, 96] user) {
  %a: f32[2, 5, 32], %b: f32[2, 5, 32], %c: f32[2, 5, 32] = aten.split.Tensor(%x, 32, 2)
  return %a, %b, %c
})"},
              {"a smaller last part", R"(graph main(%x: f32[7, 40] user) {
  %a: f32[5, 40], %b: f32[2, 40] = aten.split.Tensor(%x, 5)
  return %a, %b
})"},
              {"sizes", R"(graph main(%x: f32[3, 40] user) {
  %a: f32[3, 10], %b: f32[3, 25], %c: f32[3, 5] = aten.split_with_sizes.default(%x, [10, 25, 5], -1)
  return %a, %b, %c
})"},
              {"fewer chunks than asked for", R"(graph main(%x: f32[6, 33] user) {
  %a: f32[2, 33], %b: f32[2, 33], %c: f32[2, 33] = aten.chunk.default(%x, 4)
  return %a, %b, %c
})"}},
    .emit = emit_parts,
};
TTRT_REGISTER_OP(split);

// Position by position: the library turns no dim round.
ttc::Refusal emit_flip(PythonCall& to) {
  const Shape& x = to.call.tensors.at(0).logical;
  const std::vector<std::int64_t> dims = wrap_dims(to.call, to.call.integers("dims"), x.size());
  std::string turned = to.operand("x");
  if (!to.fixed_sizes()) return unsupported("TT-NN turns no dim round, and its size is free");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto dim = static_cast<std::size_t>(dims[i]);
    std::vector<std::int64_t> back;
    for (std::int64_t at = x[dim]; at-- > 0;) back.push_back(at);
    const auto made = python_taken(to, turned, to.sizes("x"), dim, back);
    if (!made) return unsupported("TT-NN turns no dim round");
    if (i + 1 == dims.size())
      to.result(*made);
    else
      turned = to.let("turned", *made);
  }
  return dims.empty() ? unsupported("no dim") : ttc::Refusal();
}

const OpRecord flip{
    .name = "tt.flip",
    .summary = "Dims in reverse order of their positions",
    .schema = "(Tensor x, int[] dims) -> Tensor",
    .lowers = {{"aten.flip.default", lower_flip}},
    .operands = {{"x", OperandKind::any}},
    .infer =
        [](const OpCall& call) {
          wrap_dims(call, call.integers("dims"), call.tensors.at(0).logical.size());
          return same_as_x(call);
        },
    .supports = any_tiles,
    .prepare = prepare_flip,
    .reference = reference_flip,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"rows and columns", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 7, 33] = aten.flip.default(%x, [1, -1])
  return %y
})"}},
    .emit = emit_flip,
};
TTRT_REGISTER_OP(flip);

}  // namespace
}  // namespace ttrt::ops::slice_op
