// tt.matmul: products of batches of matrices, leading dims broadcast; b may be read transposed ([.., N, K]). The result
// is float32 where an operand is, else bfloat16, unless `format` names another. k_block: the tiles of K between two
// additions to Dest, as a program configuration says; 0: the kernel's own.
#include "device/matmul.h"

#include <algorithm>
#include <memory>

#include "device/arch.h"
#include "ops/emit.h"
#include "ops/library.h"
#include "ops/matmul_variants.h"
#include "ops/rules.h"
#include "ops/tiles.h"

namespace ttrt::ops::matmul_op {
namespace {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

LowerResult lower(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  const ir::Node& node = context.node;
  for (std::size_t i = 0; i < 2; ++i) {
    if (node.operand(i) == nullptr || node.operand(i)->type.rank() < 2)
      return Reason{ReasonCode::RankUnsupported, "a vector operand"};
  }
  return Lowered{.args = {node.arg(0), node.arg(1)}};
}

// A linear whose weight is computed at run time.
LowerResult lower_linear(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  const AtenArgs args(context);
  if (args.given("bias"))
    return Reason{ReasonCode::NonConstantWeight, "a linear with a bias whose weight is computed at run time"};
  if (args.rank("input").value_or(0) < 2 || args.rank("weight") != 2)
    return Reason{ReasonCode::RankUnsupported, "a vector operand"};
  if (ir::is_weight(args["weight"].value()))
    return Reason{ReasonCode::Unsupported, "a linear with a constant weight is tt.linear"};
  return Lowered{.args = {args["input"], args["weight"], true}};
}

Shape leading(const TensorSpec& spec) { return Shape(spec.logical.begin(), spec.logical.end() - 2); }

std::vector<TensorSpec> infer(const OpCall& call) {
  const TensorSpec &a = spec_of(call, "a"), &b = spec_of(call, "b");
  if (a.logical.size() < 2 || b.logical.size() < 2) bad_call(call, "operands must be matrices");
  const bool transposed = call.boolean("transpose_b");
  const std::int64_t k = transposed ? b.cols() : b.rows(), n = transposed ? b.rows() : b.cols();
  if (a.cols() != k) bad_call(call, "inner dims " + std::to_string(a.cols()) + " and " + std::to_string(k));
  check_k_block(call, k);
  Shape out = broadcast(call, leading(a), leading(b));
  out.push_back(a.rows());
  out.push_back(n);
  const DataType own = promoted(call.tensors) == DataType::float32 ? DataType::float32 : DataType::bfloat16;
  return {tiled(std::move(out), product_format(call, "format", own))};
}

// Products that one Matmul computes at a stretch, and where each stretch starts.
struct Stretches {
  std::int64_t batch = 1, b_batch = 1;                        // of one stretch
  std::vector<std::pair<std::int64_t, std::int64_t>> starts;  // matrix of a, matrix of b
};

// A stretch covers trailing leading-dims in which a is whole, and b first whole, then of size 1.
Stretches stretches(const Shape& out, Shape a, Shape b) {
  a.insert(a.begin(), out.size() - a.size(), 1);
  b.insert(b.begin(), out.size() - b.size(), 1);
  Stretches s;
  std::size_t d = out.size();
  for (bool shared = true; d > 0 && a[d - 1] == out[d - 1]; --d) {
    if (b[d - 1] != out[d - 1]) {
      if (!shared) break;
    } else if (out[d - 1] != 1) {
      shared = false;
    }
    s.batch *= out[d - 1];
    s.b_batch *= b[d - 1];
  }
  const std::int64_t outer = volume(Shape(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(d)));
  for (std::int64_t i = 0; i < outer; ++i) {
    std::int64_t rest = i, at_a = 0, at_b = 0, step_a = s.batch, step_b = s.b_batch;
    for (std::size_t j = d; j-- > 0;) {
      const std::int64_t x = rest % out[j];
      rest /= out[j];
      at_a += a[j] == 1 ? 0 : x * step_a;
      at_b += b[j] == 1 ? 0 : x * step_b;
      step_a *= a[j];
      step_b *= b[j];
    }
    s.starts.emplace_back(at_a, at_b);
  }
  return s;
}

ttc::Refusal supports(const OpCall& call) {
  if (spec_of(call, "a").cols() == 0) return no_terms();
  return any_tiles(call);
}

Kernel prepare(const OpCall& call, const PrepareContext& context) {
  const TensorSpec &a = spec_of(call, "a"), &b = spec_of(call, "b");
  const TensorSpec out = infer(call)[0];
  const Stretches s = stretches(leading(out), leading(a), leading(b));
  MatmulSpec spec{.batch = s.batch,
                  .b_batch = s.b_batch,
                  .m = a.rows(),
                  .k = a.cols(),
                  .n = out.cols(),
                  .transpose_b = call.boolean("transpose_b"),
                  .a = a.dtype,
                  .b = b.dtype,
                  .out = out.dtype};
  spec.config = call.compute_config();
  spec.numerics = context.numerics;
  spec.device = MatmulDevice(context.profile);
  spec.k_block = product_k_block(call, context, spec);
  const auto matmul = std::make_shared<Matmul>(std::move(spec));
  const DeviceTensor* constant = context.constants.size() > 1 ? context.constants[1] : nullptr;
  if (constant != nullptr && s.starts.size() == 1) matmul->set_b(constant->data());
  const std::int64_t a_bytes = a.tile_rows() * a.tile_cols() * tile_bytes(a.dtype);
  const std::int64_t b_bytes = b.tile_rows() * b.tile_cols() * tile_bytes(b.dtype);
  const std::int64_t out_bytes = s.batch * out.tile_rows() * out.tile_cols() * tile_bytes(out.dtype);
  return [=](const KernelArgs& args) {
    const std::byte *pa = args.in[0]->data(), *pb = args.in[1]->data();
    std::byte* po = args.out[0]->data();
    for (const auto& [at_a, at_b] : s.starts) {
      matmul->run(pa + at_a * a_bytes, pb + at_b * b_bytes, nullptr, po);
      po += out_bytes;
    }
  };
}

std::vector<RtValue> reference(Reference& aten, const OpCall& call, std::span<const RtValue> args) {
  const std::vector<RtValue> f = as_floats(args);
  RtValue b = f[1];
  if (call.boolean("transpose_b")) b = aten.call("aten.transpose.int", {b, std::int64_t{-1}, std::int64_t{-2}})[0];
  return aten.call("aten.matmul.default", {f[0], b});
}

Work work(const OpCall& call) {
  const TensorSpec &a = spec_of(call, "a"), &b = spec_of(call, "b");
  const TensorSpec out = infer(call)[0];
  Work work = product_work(call, static_cast<double>(out.tiles() * a.tile_cols()), a.dtype, b.dtype);
  work.flops = 2 * static_cast<double>(volume(out.logical)) * static_cast<double>(a.cols());
  work.l1_bytes = 2 * 8 * tile_bytes(a.dtype) + 4 * tile_bytes(DataType::float32);
  return work;
}

void describe(const OpCall& call, VariantQuery& to) {
  const TensorSpec &a = spec_of(call, "a"), &b = spec_of(call, "b");
  to.batch = a.batch();
  to.m = a.rows();
  to.k = a.cols();
  to.n = call.boolean("transpose_b") ? b.rows() : b.cols();
}

const OpFamily factorisations{
    .names =
        "linalg_inv linalg_inv_ex inverse linalg_det _linalg_det det slogdet linalg_slogdet _linalg_slogdet "
        "linalg_qr linalg_svd _linalg_svd linalg_svdvals svd linalg_cholesky linalg_cholesky_ex cholesky "
        "cholesky_solve cholesky_inverse linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh _linalg_eigh "
        "linalg_solve _linalg_solve_ex linalg_solve_ex linalg_solve_triangular triangular_solve linalg_lstsq "
        "linalg_pinv pinverse linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve "
        "linalg_matrix_exp matrix_exp linalg_matrix_rank linalg_cond linalg_householder_product ormqr geqrf "
        "logdet linalg_ldl_factor linalg_matrix_power matrix_power",
    .reason = "it takes a matrix apart one element after the other, in float32"};
TTRT_REGISTER_FAMILY(factorisations);

const OpFamily contractions{
    .names =
        "einsum bilinear _trilinear tensordot kron linalg_cross cross cdist _cdist_forward pdist "
        "_pdist_forward linalg_vander vander linalg_vector_norm cosine_similarity block_diag cartesian_prod "
        "combinations",
    .reason = "only forms of it that are one matrix product, or few enough elements, are written out for the device"};
TTRT_REGISTER_FAMILY(contractions);

ttc::Refusal emit(PythonCall& to) {
  if (spec_of(to.call, "a").logical.size() < 2 || spec_of(to.call, "b").logical.size() < 2)
    return unsupported("ttnn.matmul takes no vectors");
  Python made("ttnn.matmul");
  made.arg(to.operand("a")).arg(to.operand("b"));
  if (to.call.boolean("transpose_b")) made.key("transpose_b", "True");
  to.result(made.key("memory_config", to.memory_config())
                .key("dtype", python_dtype(to.results[0].dtype))
                .key("program_config", python_program(to))
                .key("compute_kernel_config", to.compute_kernel_config()));
  return std::nullopt;
}

const OpRecord record{
    .name = "tt.matmul",
    .summary = "Products of batches of matrices, leading dims broadcast",
    .schema =
        "(Tensor a, Tensor b, *, bool transpose_b=False, str? fidelity=\"HiFi4\", bool? fp32_acc=True, "
        "bool? packer_l1_acc=False, str? format=None, int k_block=0) -> Tensor",
    .lowers = {{"aten.mm.default", lower, matmul_flops},
               {"aten.bmm.default", lower, matmul_flops},
               {"aten.matmul.default", lower, matmul_flops},
               {"aten.linear.default", lower_linear, matmul_flops}},
    .infer = infer,
    .supports = supports,
    .prepare = prepare,
    .reference = reference,
    .work = work,
    .tolerance = {.pcc = 0.9995},
    .cases = {{"mm", R"(graph main(%a: f32[3, 40] user, %b: f32[40, 50] user) {
  %y: f32[3, 50] = aten.mm.default(%a, %b)
  return %y
})"},
              {"bmm", R"(graph main(%a: f32[4, 33, 40] user, %b: f32[4, 40, 20] user) {
  %y: f32[4, 33, 20] = aten.bmm.default(%a, %b)
  return %y
})"},
              {"heads", R"(graph main(%a: f32[2, 3, 33, 40] user, %b: f32[2, 3, 40, 64] user) {
  %y: f32[2, 3, 33, 64] = aten.matmul.default(%a, %b)
  return %y
})"},
              {"b without leading dims",
               R"(graph main(%a: f32[2, 5, 64] user, $b: f32[64, 32] parameter "b" = rand(1)) {
  %y: f32[2, 5, 32] = aten.matmul.default(%a, $b)
  return %y
})"},
              {"b repeated over the outer dim", R"(graph main(%a: f32[2, 3, 5, 8] user, %b: f32[3, 8, 4] user) {
  %y: f32[2, 3, 5, 4] = aten.matmul.default(%a, %b)
  return %y
})"},
              {"b repeated over the inner dim", R"(graph main(%a: f32[2, 3, 5, 8] user, %b: f32[2, 1, 8, 4] user) {
  %y: f32[2, 3, 5, 4] = aten.matmul.default(%a, %b)
  return %y
})"},
              {"a repeated", R"(graph main(%a: f32[5, 8] user, %b: f32[2, 3, 8, 4] user) {
  %y: f32[2, 3, 5, 4] = aten.matmul.default(%a, %b)
  return %y
})"},
              {"linear over a computed weight", R"(graph main(%x: f32[2, 5, 64] user, %w: f32[32, 64] user) {
  %y: f32[2, 5, 32] = aten.linear.default(%x, %w)
  return %y
})"}},
    .variants = matmul_variants(),
    .describe = describe,
    .multiplies = true,
    .special_values = "denormal operands are zeros, and zero times infinity is NaN",
    .emit = emit,
};
TTRT_REGISTER_OP(record);
TTRT_LIBRARY_OP(matmul, {.record = "tt.matmul",
                         .choose =
                             [](const OpCall& call) {
                               return library_matmul_config(spec_of(call, "a").dtype, spec_of(call, "b").dtype,
                                                            infer(call)[0].dtype);
                             },
                         .program = "Matmul"});

}  // namespace
}  // namespace ttrt::ops::matmul_op
