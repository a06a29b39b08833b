// More of the same elements: tt.expand (broadcast), tt.repeat (tiling), tt.pad (a constant around).
#include "device/move.h"
#include "ops/emit.h"
#include "ops/rules.h"

namespace ttrt::ops::expand_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

const TensorSpec& input(const OpCall& call) { return spec_of(call, "x"); }

LowerResult lower_two(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  return Lowered{.args = {context.node.arg(0), context.node.arg(1)}};
}

Kernel run_move(const Move& move) {
  return [move](const KernelArgs& args) { move.run(args.in[0]->data(), args.out[0]->data()); };
}

// ---- tt.expand

std::vector<TensorSpec> infer_expand(const OpCall& call) {
  Shape out = call.integers("size");
  const Shape& in = input(call).logical;
  if (out.size() < in.size()) bad_call(call, "fewer dims than the tensor has");
  const std::size_t added = out.size() - in.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == -1 && i >= added) out[i] = in[i - added];
    if (out[i] < 0 || (i >= added && in[i - added] != 1 && in[i - added] != out[i])) {
      bad_call(call, "dim " + std::to_string(i) + " cannot become " + std::to_string(out[i]));
    }
  }
  return {tiled(std::move(out), input(call).dtype)};
}

Kernel prepare_expand(const OpCall& call, const PrepareContext&) {
  return run_move(plan_expand(input(call), infer_expand(call)[0].logical));
}

std::vector<RtValue> reference_expand(Reference& aten, const OpCall&, std::span<const RtValue> args) {
  const RtValue wide = aten.call("aten.expand.default", {as_float(args[0]), args[1]})[0];
  return aten.call("aten.contiguous.default", {wide});
}

// ---- tt.repeat

std::vector<TensorSpec> infer_repeat(const OpCall& call) {
  Shape out = call.integers("repeats");
  const Shape& in = input(call).logical;
  if (out.size() < in.size()) bad_call(call, "fewer repeats than dims");
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] < 0) bad_call(call, "a negative repeat");
    if (i >= out.size() - in.size()) out[i] *= in[i - (out.size() - in.size())];
  }
  return {tiled(std::move(out), input(call).dtype)};
}

Kernel prepare_repeat(const OpCall& call, const PrepareContext&) {
  return run_move(plan_repeat(input(call), call.integers("repeats")));
}

std::vector<RtValue> reference_repeat(Reference& aten, const OpCall&, std::span<const RtValue> args) {
  return aten.call("aten.repeat.default", {as_float(args[0]), args[1]});
}

// ---- tt.pad

LowerResult lower_pad(const LowerContext& context) {
  if (auto no = check_values(context)) return *no;
  const AtenArgs args(context);
  const std::string* mode = args["mode"].get_if<std::string>();
  if (mode != nullptr && *mode != "constant") return unsupported("mode='" + *mode + "'");
  if (args.given("value") && !args.number("value")) return unsupported("a value computed at run time");
  return Lowered{.args = {context.node.arg(0), args["pad"], args.number("value").value_or(0.0)}};
}

// ATen's list: before and after the last dim, then the one before it, ...
std::pair<Shape, Shape> padding(const OpCall& call) {
  const auto pad = call.integers("pad");
  const std::size_t rank = input(call).logical.size();
  if (pad.size() % 2 != 0 || pad.size() > 2 * rank) bad_call(call, "a padding list of " + std::to_string(pad.size()));
  Shape before(rank, 0), after(rank, 0);
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    before[rank - 1 - i] = pad[2 * i];
    after[rank - 1 - i] = pad[2 * i + 1];
  }
  return {before, after};
}

std::vector<TensorSpec> infer_pad(const OpCall& call) {
  const auto [before, after] = padding(call);
  Shape out = input(call).logical;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] += before[i] + after[i];
    if (out[i] < 0) bad_call(call, "more is cut than there is");
  }
  return {tiled(std::move(out), input(call).dtype)};
}

Kernel prepare_pad(const OpCall& call, const PrepareContext&) {
  const auto [before, after] = padding(call);
  return run_move(plan_pad(input(call), before, after, call.number("value")));
}

std::vector<RtValue> reference_pad(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  return padded(aten, as_float(args[0]), args[1], call.number("value"));
}

// With leading dims of size 1, as many as the result has: the library adds none.
std::string with_leading_dims(PythonCall& to) {
  std::vector<std::string> sizes = to.sizes("x");
  const std::size_t rank = to.sizes().size();
  if (sizes.size() >= rank) return to.operand("x");
  sizes.insert(sizes.begin(), rank - sizes.size(), "1");
  return to.let("wide", Python("ttnn.reshape").arg(to.operand("x")).arg(python_list(sizes)));
}

ttc::Refusal emit_expand(PythonCall& to) {
  const std::string x = with_leading_dims(to);
  to.result(Python("ttnn.expand").arg(x).arg(python_list(to.sizes())).key("memory_config", to.memory_config()));
  return std::nullopt;
}

ttc::Refusal emit_repeat(PythonCall& to) {
  const std::string x = with_leading_dims(to);
  to.result(Python("ttnn.repeat").arg(x).arg(to.literal("repeats")).key("memory_config", to.memory_config()));
  return std::nullopt;
}

// Before and after each dim.
ttc::Refusal emit_pad(PythonCall& to) {
  const auto [before, after] = padding(to.call);
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] < 0 || after[i] < 0) return unsupported("ttnn.pad cuts nothing");
    pairs.push_back("(" + std::to_string(before[i]) + ", " + std::to_string(after[i]) + ")");
  }
  to.result(Python("ttnn.pad")
                .arg(to.operand("x"))
                .arg(python_list(pairs))
                .key("value", python_number(to.call.number("value")))
                .key("memory_config", to.memory_config()));
  return std::nullopt;
}

OpRecord movement(std::string_view name, std::string_view summary, std::string_view schema,
                  std::vector<Lowering> lowers) {
  OpRecord record;
  record.name = name;
  record.summary = summary;
  record.schema = schema;
  record.lowers = std::move(lowers);
  record.operands = {{"x", OperandKind::any}};
  record.supports = any_tiles;
  record.work = moving_work;
  record.tolerance = equal_results;
  return record;
}

const OpRecord expand = [] {
  OpRecord r =
      movement("tt.expand", "Dims of size 1 repeated, leading dims added", "(Tensor x, SymInt[] size) -> Tensor",
               {{"aten.expand.default", lower_two}, {"aten.broadcast_to.default", lower_two}});
  r.infer = infer_expand;
  r.prepare = prepare_expand;
  r.emit = emit_expand;
  r.reference = reference_expand;
  r.cases = {{"rows", R"(graph main(%x: f32[2, 1, 33] user) {
  %y: f32[2, 7, 33] = aten.expand.default(%x, [-1, 7, -1])
  return %y
})"},
             {"columns, new dims", R"(graph main(%x: f32[5, 1] user) {
  %y: f32[3, 2, 5, 40] = aten.expand.default(%x, [3, 2, 5, 40])
  return %y
})"},
             {"heads that share keys", R"(graph main(%x: f32[2, 3, 1, 5, 64] user) {
  %y: f32[2, 3, 4, 5, 64] = aten.expand.default(%x, [2, 3, 4, 5, 64])
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(expand);

const OpRecord repeat = [] {
  OpRecord r = movement("tt.repeat", "The whole tensor several times along each dim",
                        "(Tensor x, SymInt[] repeats) -> Tensor", {{"aten.repeat.default", lower_two}});
  r.infer = infer_repeat;
  r.prepare = prepare_repeat;
  r.emit = emit_repeat;
  r.reference = reference_repeat;
  r.cases = {{"ragged", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[2, 6, 120] = aten.repeat.default(%x, [2, 2, 3])
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(repeat);

const OpRecord pad = [] {
  OpRecord r = movement("tt.pad", "A constant around a tensor; negative sizes cut",
                        "(Tensor x, SymInt[] pad, float value=0.0) -> Tensor",
                        {{"aten.constant_pad_nd.default", lower_pad}, {"aten.pad.default", lower_pad}});
  r.infer = infer_pad;
  r.prepare = prepare_pad;
  r.emit = emit_pad;
  r.reference = reference_pad;
  r.cases = {{"last dim, both sides", R"(graph main(%x: f32[2, 5, 64] user) {
  %y: f32[2, 5, 68] = aten.constant_pad_nd.default(%x, [3, 1])
  return %y
})"},
             {"last two dims, a value", R"(graph main(%x: f32[3, 40] user) {
  %y: f32[6, 41] = aten.pad.default(%x, [1, 0, 1, 2], mode="constant", value=1.5)
  return %y
})"},
             {"cut", R"(graph main(%x: f32[1, 7, 33] user) {
  %y: f32[1, 7, 30] = aten.constant_pad_nd.default(%x, [-2, -1])
  return %y
})"}};
  return r;
}();
TTRT_REGISTER_OP(pad);

}  // namespace
}  // namespace ttrt::ops::expand_op
