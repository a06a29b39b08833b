// tt.linear: x times a packed weight, plus bias, through an activation: torch.nn.Linear and what is fused behind it.
// The weight lies on the device as [K, N] (torch's is [N, K]), or with transpose_b as [N, K]; with leading dims it has
// a matrix for each of x, or for as many in a row as there are more of these (torch's bmm, with one for each expert).
// The bias is one row, the result as wide as x, where bias_format and format say nothing else. in_dest: the activation
// acts in Dest, before the packer. k_block: the tiles of K between two additions to Dest, as a program configuration
// says; 0: the kernel's own.
#include <algorithm>
#include <memory>

#include "device/arch.h"
#include "device/matmul.h"
#include "ops/activation.h"
#include "ops/emit.h"
#include "ops/library.h"
#include "ops/matmul_variants.h"
#include "ops/rules.h"
#include "ops/tiles.h"

namespace ttrt::ops::linear_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

LowerResult lower(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  const AtenArgs args(context);
  const ir::Value* weight = args["weight"].value();
  if (weight == nullptr || !ir::is_weight(weight))
    return Reason{ReasonCode::NonConstantWeight, "the weight is computed at run time"};
  if (weight->type.rank() != 2 || !weight->type.is_static())
    return Reason{ReasonCode::RankUnsupported, "the weight is no matrix"};
  if (weight->type.dim(0) == 0 || weight->type.dim(1) == 0) return unsupported("a weight without elements");
  if (args.given("bias") && !ir::is_weight(args["bias"].value())) {
    return Reason{ReasonCode::NonConstantWeight, "the bias is computed at run time"};
  }
  if (args.given("bias") && args.rank("bias") != 1) return Reason{ReasonCode::RankUnsupported, "the bias is no vector"};
  if (args.rank("input").value_or(0) < 1) return Reason{ReasonCode::RankUnsupported, "a scalar input"};
  const DataType format = context.options.weight;
  return Lowered{.args = {args["input"], args["weight"], args["bias"],
                          ir::Arg::ints({*weight->type.dim(1), *weight->type.dim(0)}), std::string(to_string(format))}};
}

// A product with as many constant matrices [.., K, N] as x has.
LowerResult lower_stack(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  const ir::Value *x = context.node.operand(0), *weight = context.node.operand(1);
  if (weight == nullptr || !ir::is_weight(weight) || !weight->type.is_static())
    return Reason{ReasonCode::NonConstantWeight, "the weight is computed at run time"};
  const std::vector<ir::SymExpr>& sizes = weight->type.sizes;
  if (sizes.size() < 3 || x == nullptr || !x->type.has_shape || x->type.sizes.size() != sizes.size() ||
      !std::equal(sizes.begin(), sizes.end() - 2, x->type.sizes.begin()))
    return Reason{ReasonCode::RankUnsupported, "the weight is no matrix for each of the left side"};
  const std::vector<std::int64_t> shape = weight->type.static_sizes();
  if (volume(Shape(shape.begin(), shape.end())) == 0) return unsupported("a weight without elements");
  return Lowered{.args = {context.node.arg(0),
                          context.node.arg(1),
                          {},
                          ir::Arg::ints(shape),
                          std::string(to_string(context.options.weight))}};
}

struct Weight {
  std::int64_t k = 0, n = 0, batch = 1;
};

Weight weight_of(const OpCall& call) {
  const auto shape = call.integers("weight_shape");
  if (shape.size() < 2 || std::ranges::any_of(shape, [](std::int64_t size) { return size < 1; }))
    bad_call(call, "weight_shape must be [K, N], or [.., K, N]");
  return {*(shape.end() - 2), shape.back(), volume(Shape(shape.begin(), shape.end() - 2))};
}

TensorSpec weight_spec(const OpCall& call) {
  Shape shape = call.integers("weight_shape");
  weight_of(call);
  if (call.boolean("transpose_b")) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return tiled(std::move(shape), product_format(call, "weight_format", DataType::bfloat16));
}

TensorSpec bias_spec(const OpCall& call) {
  const TensorSpec* x = call.tensor("x");
  const bool wide = x != nullptr && x->dtype == DataType::float32;
  return tiled({1, weight_of(call).n},
               product_format(call, "bias_format", wide ? DataType::float32 : DataType::bfloat16));
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  const Weight weight = weight_of(call);
  if (x.logical.empty() || x.logical.back() != weight.k) {
    bad_call(call, "the input's last dim is " + std::to_string(x.logical.empty() ? 1 : x.logical.back()) +
                       ", the weight wants " + std::to_string(weight.k));
  }
  check_k_block(call, weight.k);
  if (x.batch() % weight.batch != 0)
    bad_call(call, std::to_string(weight.batch) + " weights for " + std::to_string(x.batch()) + " matrices");
  Shape out = x.logical;
  out.back() = weight.n;
  return {tiled(std::move(out), product_format(call, "format", x.dtype))};
}

void zero_last_columns(DeviceTensor& out) {
  const TileGrid g(out.spec);
  std::byte* bytes = out.data();
  alignas(64) float v[tile_elements];
  for (std::int64_t t = g.across - 1; t < g.tiles(); t += g.across) {
    load_tile(g.dtype, bytes + t * g.bytes, v);
    zero_outside(v, g.rows_in(t), g.cols_in(t));
    store_tile(g.dtype, Rounding::away, v, bytes + t * g.bytes);
  }
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  const TensorSpec& x = spec_of(call, "x");
  const Weight weight = weight_of(call);
  const std::string& activation = call.string("activation");
  MatmulSpec spec{.batch = x.batch(), .b_batch = weight.batch, .m = x.rows(), .k = weight.k, .n = weight.n};
  spec.transpose_b = call.boolean("transpose_b");
  spec.a = x.dtype;
  spec.b = weight_spec(call).dtype;
  spec.out = infer(call)[0].dtype;
  spec.config = call.compute_config();
  spec.numerics = context.numerics;
  spec.device = MatmulDevice(context.profile);
  spec.k_block = product_k_block(call, context, spec);
  const int w = call.tensor_index("weight"), b = call.tensor_index("bias");
  if (b >= 0) spec.bias = call.tensors.at(static_cast<std::size_t>(b)).dtype;
  spec.activation = call.boolean("in_dest") ? activation_in_dest(activation, context.numerics, dest_of(spec.config))
                                            : fused_activation(activation, context.numerics, spec.out);
  const auto matmul = std::make_shared<Matmul>(std::move(spec));
  const auto constant = [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    return i >= 0 && at < context.constants.size() ? context.constants[at] : nullptr;
  };
  const DeviceTensor *fixed_w = constant(w), *fixed_b = constant(b);
  if (fixed_w != nullptr) matmul->set_b(fixed_w->data());
  if (fixed_b != nullptr) matmul->set_bias(fixed_b->data());
  const bool b_fixed = b < 0 || fixed_b != nullptr;
  const bool clean = activation == "sigmoid" && weight.n % tile_dim != 0;  // the one with f(0) != 0
  const auto run = [=](const KernelArgs& args, const TilePlace* place) {
    matmul->run(args.in[0]->data(), args.in[static_cast<std::size_t>(w)]->data(),
                b_fixed ? nullptr : args.in[static_cast<std::size_t>(b)]->data(), args.out[0]->data(), place,
                args.out[0]->padding_is_zero);
    if (clean) zero_last_columns(*args.out[0]);
  };
  Kernel kernel = [=](const KernelArgs& args) { run(args, nullptr); };
  if (context.numerics == Numerics::fast && !clean)
    kernel.placed = [=](const KernelArgs& args, const TilePlace& place) { run(args, &place); };
  return kernel;
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::vector<RtValue> f = as_floats(args);
  RtValue weight = f[1];
  if (call.boolean("transpose_b"))
    weight = aten.call("aten.transpose.int", {weight, std::int64_t{-1}, std::int64_t{-2}})[0];
  std::vector<RtValue> y = aten.call("aten.matmul.default", {f[0], weight});
  if (!f[2].is_none()) {
    const RtValue bias = aten.call("aten.reshape.default", {f[2], int_list({-1})})[0];
    y = aten.call("aten.add.Tensor", {y[0], bias});
  }
  return {reference_activation(aten, call.string("activation"), y[0])};
}

Work work(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  const TensorSpec weight = weight_spec(call);
  Work work =
      product_work(call, static_cast<double>(x.batch() * x.tile_rows() * weight.tile_rows() * weight.tile_cols()),
                   x.dtype, weight.dtype);
  work.flops = 2 * static_cast<double>(volume(x.logical)) * static_cast<double>(weight_of(call).n);
  work.l1_bytes = 2 * (4 * tile_bytes(x.dtype) + 4 * tile_bytes(weight.dtype)) + 4 * tile_bytes(DataType::float32);
  return work;
}

void describe(const OpCall& call, VariantQuery& to) {
  const TensorSpec& x = spec_of(call, "x");
  to.batch = x.batch();
  to.m = x.rows();
  to.k = weight_of(call).k;
  to.n = weight_of(call).n;
  to.constant_b = true;
}

// Passes write them out as a product and a sum; the second operand is the left matrix.
const OpFamily sums{.names = "addmm baddbmm",
                    .reason = "the device multiplies matrices of floats",
                    .flops = [](const ttc::ir::Node& node, const ttc::ir::SymBinding& shapes) {
                      return product_flops(node, node.operand(1), shapes);
                    }};
TTRT_REGISTER_FAMILY(sums);

const OpFamily recurrences{
    .names =
        "lstm gru rnn_tanh rnn_relu _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell "
        "mkldnn_rnn_layer",
    .reason = "a recurrence is written out for the device only where its length is known"};
TTRT_REGISTER_FAMILY(recurrences);

ttc::Refusal emit(PythonCall& to) {
  if (to.call.boolean("in_dest")) return unsupported("an activation in Dest, which no model asks for");
  const bool vector = spec_of(to.call, "x").logical.size() < 2;  // the library takes a row
  std::string x = to.operand("x");
  if (vector) x = to.let("row", Python("ttnn.reshape").arg(x).arg(python_list({"1", to.sizes("x").at(0)})));
  const std::string activation = python_activation(to.call.string("activation"));
  const std::string program = python_program(to);
  Python made("ttnn.linear");
  made.arg(x).arg(to.operand("weight")).key("bias", to.operand("bias"));
  if (to.call.boolean("transpose_b")) made.key("transpose_b", "True");
  made.key("memory_config", to.memory_config()).key("dtype", python_dtype(to.results[0].dtype));
  if (!program.empty()) made.key("program_config", program);
  // Without a grid of cores it acts on the packed result, as here, and not on sums in Dest.
  if (!activation.empty()) made.key("activation", activation);
  made.key("compute_kernel_config", to.compute_kernel_config());
  if (!vector) {
    to.result(made);
    return std::nullopt;
  }
  const std::string row = to.let("row", made);
  to.result(Python("ttnn.reshape").arg(row).arg(python_list(to.sizes())).key("memory_config", to.memory_config()));
  return std::nullopt;
}

const OpRecord record{
    .name = "tt.linear",
    .summary = "x times a packed weight, plus bias, through an optional activation",
    .schema =
        "(Tensor x, Tensor weight, Tensor? bias=None, *, int[] weight_shape, str weight_format=\"bfloat16\", "
        "str? fidelity=\"HiFi4\", bool? fp32_acc=True, str? activation=None, bool? packer_l1_acc=False, "
        "bool transpose_b=False, str? bias_format=None, str? format=None, bool in_dest=False, int k_block=0) -> Tensor",
    .lowers = {{"aten.linear.default", lower, matmul_flops},
               {"aten.bmm.default", lower_stack, matmul_flops},
               {"aten.matmul.default", lower_stack, matmul_flops}},
    .packed = {{"weight", Packed::Form::transposed, weight_spec, nullptr, nullptr, true},
               {"bias", Packed::Form::row, bias_spec}},
    .infer = infer,
    .supports = any_tiles,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.9995},
    .cases =
        {{"bias",
          R"(graph main(%x: f32[2, 5, 64] user, $w: f32[96, 64] parameter "w" = rand(1), $b: f32[96] parameter "b" = rand(2)) {
  %y: f32[2, 5, 96] = aten.linear.default(%x, $w, $b)
  return %y
})"},
         {"no bias, ragged", R"(graph main(%x: f32[1, 7, 33] user, $w: f32[45, 33] parameter "w" = rand(3)) {
  %y: f32[1, 7, 45] = aten.linear.default(%x, $w)
  return %y
})"},
         {"matrix",
          R"(graph main(%x: f32[3, 40] user, $w: f32[10, 40] parameter "w" = rand(4), $b: f32[10] parameter "b" = rand(5)) {
  %y: f32[3, 10] = aten.linear.default(%x, $w, $b)
  return %y
})"},
         {"vector",
          R"(graph main(%x: f32[40] user, $w: f32[10, 40] parameter "w" = rand(4), $b: f32[10] parameter "b" = rand(5)) {
  %y: f32[10] = aten.linear.default(%x, $w, $b)
  return %y
})"},
         {"a matrix for each of x",
          R"(graph main(%x: f32[3, 5, 40] user, $w: f32[3, 40, 45] parameter "w" = rand(6)) {
  %y: f32[3, 5, 45] = aten.bmm.default(%x, $w)
  return %y
})"}},
    .variants = matmul_variants(true),
    .describe = describe,
    .multiplies = true,
    .family = "linear",
    .words = {{.literal = "activation", .permits = is_activation}},
    .emit = emit,
};
TTRT_REGISTER_OP(record);
TTRT_LIBRARY_OP(linear, {.record = "tt.linear",
                         .choose =
                             [](const OpCall& call) {
                               return library_matmul_config(spec_of(call, "x").dtype, weight_spec(call).dtype,
                                                            infer(call)[0].dtype);
                             },
                         .program = "Matmul"});

}  // namespace
}  // namespace ttrt::ops::linear_op
