// tt.pad_border: the last one to three dims continued by their own elements: mirrored at the border ("reflect"), the
// outermost repeated ("replicate"), or from the other end ("circular"). Elements are copied.
#include <array>

#include "ops/emit.h"
#include "ops/dense.h"
#include "ops/rules.h"
#include "ops/simd.h"

namespace ttrt::ops::pad_border_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

struct Axis {
  std::int64_t in = 1;
  std::vector<std::int64_t> from{0};  // for each output position
};
using Axes = std::array<Axis, 3>;

std::int64_t source(const std::string& mode, std::int64_t i, std::int64_t n) {
  if (mode == "replicate") return std::clamp<std::int64_t>(i, 0, n - 1);
  if (mode == "circular") return (i % n + n) % n;
  return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
}

Axes axes_of(const OpCall& call) {
  const auto pad = call.integers("padding");  // before and after, the last dim first
  const std::string& mode = call.string("mode");
  const Shape& x = spec_of(call, "x").logical;
  const std::size_t dims = pad.size() / 2;
  if (pad.size() % 2 != 0 || dims < 1 || dims > 3 || dims > x.size())
    bad_call(call, "a padding list of " + std::to_string(pad.size()));
  Axes axes;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t n = x[x.size() - 1 - i], before = pad[2 * i], after = pad[2 * i + 1];
    const std::int64_t most = mode == "reflect" ? n - 1 : mode == "circular" ? n : std::int64_t{1} << 30;
    if (n < 1 || before > most || after > most || n + before + after < 1)
      bad_call(call, "padding " + std::to_string(before) + ", " + std::to_string(after) + " of a dim of " +
                         std::to_string(n));
    axes[2 - i] = {n, {}};
    for (std::int64_t o = -before; o < n + after; ++o) axes[2 - i].from.push_back(source(mode, o, n));
  }
  return axes;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const auto pad = call.integers("padding");
  const Axes axes = axes_of(call);
  Shape out = spec_of(call, "x").logical;
  for (std::size_t i = 0; i < pad.size() / 2; ++i)
    out[out.size() - 1 - i] = static_cast<std::int64_t>(axes[2 - i].from.size());
  return {tiled(std::move(out), spec_of(call, "x").dtype)};
}

ttc::Refusal supports(const OpCall& call) {
  if (volume(spec_of(call, "x").logical) == 0) return unsupported("an empty input");
  return plain_tiles(call);
}

Kernel prepare(const OpCall& call, const PrepareContext&) {
  const Axes axes = axes_of(call);
  const auto size = [&](std::size_t d) { return static_cast<std::int64_t>(axes[d].from.size()); };
  const std::int64_t heights = size(1), rows = size(0) * heights, width = size(2);
  const std::int64_t in = axes[0].in * axes[1].in * axes[2].in, images = volume(spec_of(call, "x").logical) / in;
  return [=](const KernelArgs& args) {
    const std::uint32_t* x = load_dense(*args.in[0], 0);
    std::uint32_t* y = dense_scratch(1, static_cast<std::size_t>(images * rows * width));
    parallel_for(images * rows, 64, [&](std::int64_t i) {
      const auto d = static_cast<std::size_t>(i % rows / heights), h = static_cast<std::size_t>(i % heights);
      const std::uint32_t* from = x + i / rows * in + (axes[0].from[d] * axes[1].in + axes[1].from[h]) * axes[2].in;
      for (std::int64_t w = 0; w < width; ++w) y[i * width + w] = from[axes[2].from[static_cast<std::size_t>(w)]];
    });
    store_dense(y, *args.out[0]);
  };
}

// ---- lowering

LowerResult lower_with(const LowerContext& context, const ir::Arg& padding, std::string mode) {
  if (auto no = check_alike(context)) return *no;
  if (!padding.integers()) return Reason{ReasonCode::DynamicShape, "sizes computed at run time"};
  const auto rank = AtenArgs(context).rank(context.node.schema()->args.at(0).name);
  if (rank && static_cast<std::size_t>(*rank) < padding.integers()->size() / 2)
    return Reason{ReasonCode::RankUnsupported, "more padding than dims"};
  return Lowered{.args = {context.node.arg(0), padding, std::move(mode)}};
}

LowerResult lower_named(const LowerContext& context) {
  const AtenArgs args(context);
  const auto* mode = args["mode"].get_if<std::string>();
  if (mode == nullptr || *mode == "constant") return unsupported("a constant around: tt.pad");
  return lower_with(context, args["pad"], *mode);
}

LowerResult lower_one(const LowerContext& context) {
  const std::string& op = context.node.op();
  const char* mode = op.find("reflect") != std::string::npos    ? "reflect"
                     : op.find("circular") != std::string::npos ? "circular"
                                                                : "replicate";
  return lower_with(context, context.node.arg(1), mode);
}

// One dim after the other, by index: ATen pads no more dims than its rank allows.
std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  RtValue x = as_wide(as_float(args[0]));
  if (!has_elements(x)) return padded(aten, x, args[1], 0);
  const Axes axes = axes_of(call);
  const auto rank = static_cast<std::int64_t>(spec_of(call, "x").logical.size());
  for (std::size_t i = 0; i < call.integers("padding").size() / 2; ++i) {
    const std::vector<std::int64_t>& from = axes[2 - i].from;
    HostTensor index = empty_host(DType::i64, {static_cast<std::int64_t>(from.size())});
    std::copy(from.begin(), from.end(), index.as<std::int64_t>());
    x = aten.call("aten.index_select.default", {x, rank - 1 - static_cast<std::int64_t>(i), RtValue(index)})[0];
  }
  return {x};
}

// The stretches of a dim whose size, `n`, only a run knows.
std::optional<std::vector<std::string>> free_stretches(const std::string& mode, const std::string& n,
                                                       std::int64_t before, std::int64_t after) {
  if (before < 0 || after < 0) return std::nullopt;
  const std::string first = std::to_string(before), last = std::to_string(after);
  std::vector<std::string> out;
  if (before > 0)
    out.push_back(mode == "reflect"     ? "*((i, i + 1) for i in range(" + first + ", 0, -1))"
                  : mode == "replicate" ? "*[(0, 1)] * " + first
                                        : "(" + n + " - " + first + ", " + n + ")");
  out.push_back("(0, " + n + ")");
  if (after > 0)
    out.push_back(mode == "reflect"
                      ? "*((i, i + 1) for i in range(" + n + " - 2, " + n + " - " + std::to_string(after + 2) + ", -1))"
                  : mode == "replicate" ? "*[(" + n + " - 1, " + n + ")] * " + last
                                        : "(0, " + last + ")");
  return out;
}

// Slices of the border around the tensor: ttnn.pad writes one number.
ttc::Refusal emit(PythonCall& to) {
  const auto pad = to.call.integers("padding");
  const Axes axes = axes_of(to.call);
  const std::size_t rank = spec_of(to.call, "x").logical.size();
  std::vector<std::string> sizes = to.sizes("x");
  std::string x = to.operand("x");
  std::optional<Python> made;
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    if (pad[2 * i] == 0 && pad[2 * i + 1] == 0) continue;
    if (made) x = to.let("padded", *made);
    std::string& size = sizes[rank - 1 - i];
    if (size == std::to_string(axes[2 - i].in)) {
      made = python_taken(to, x, sizes, rank - 1 - i, axes[2 - i].from);
      if (!made) return unsupported("ttnn.pad writes one number, and this border has too many slices");
      size = std::to_string(axes[2 - i].from.size());
      continue;
    }
    const auto stretches = free_stretches(to.call.string("mode"), size, pad[2 * i], pad[2 * i + 1]);
    if (!stretches) return unsupported("ttnn.pad writes one number, and cuts no dim of a free size");
    made = python_parts(to, x, *stretches, rank - 1 - i);
    size = "(" + size + " + " + std::to_string(pad[2 * i] + pad[2 * i + 1]) + ")";
  }
  if (!made) return unsupported("no border");
  to.result(*made);
  return std::nullopt;
}

const OpRecord pad_border{
    .name = "tt.pad_border",
    .summary = "The last dims continued by their own elements: mirrored, repeated or from the other end",
    .schema = "(Tensor x, SymInt[] padding, str mode) -> Tensor",
    .lowers = {{"aten.pad.default", lower_named},
               {"aten.reflection_pad1d.default", lower_one},
               {"aten.reflection_pad2d.default", lower_one},
               {"aten.reflection_pad3d.default", lower_one},
               {"aten.replication_pad1d.default", lower_one},
               {"aten.replication_pad2d.default", lower_one},
               {"aten.replication_pad3d.default", lower_one},
               {"aten._pad_circular.default", lower_one}},
    .operands = {{"x", OperandKind::any}},
    .infer = infer,
    .supports = supports,
    .prepare = prepare,
    .reference = reference,
    .work = moving_work,
    .tolerance = equal_results,
    .cases = {{"mirrored", R"(graph main(%x: f32[2, 3, 9, 11] user) {
  %y: f32[2, 3, 12, 17] = aten.reflection_pad2d.default(%x, [4, 2, 1, 2])
  return %y
})"},
              {"mirrored, by name", R"(graph main(%x: f32[2, 40] user) {
  %y: f32[2, 70] = aten.pad.default(%x, [0, 30], "reflect")
  return %y
})"},
              {"repeated, cut", R"(graph main(%x: f32[1, 4, 5, 6, 7] user) {
  %y: f32[1, 4, 8, 6, 7] = aten.replication_pad3d.default(%x, [1, -1, -2, 2, 0, 3])
  return %y
})"},
              {"integers", R"(graph main(%x: i64[3, 40] user) {
  %y: i64[3, 45] = aten.reflection_pad1d.default(%x, [2, 3])
  return %y
})"},
              {"from the other end", R"(graph main(%x: f32[2, 3, 33] user) {
  %y: f32[2, 3, 37] = aten.pad.default(%x, [3, 1], "circular")
  return %y
})"}},
    .words = {{"mode", "reflect replicate circular"}},
    .emit = emit,
};
TTRT_REGISTER_OP(pad_border);

}  // namespace
}  // namespace ttrt::ops::pad_border_op
