// What dispatchers of ATen operators get wrong without a word: arguments that are dropped, sizes that are rounded,
// masks that are read as numbers. Each case is compiled by the whole pipeline and run on the device, and gives what
// LibTorch gives; or it says why it stays on the host, and gives the same there.
#include "hazards.h"

using namespace ttrt;
using namespace ttrt::test;

TEST_CASE("arguments of arithmetic are not dropped", "[hazards]") {
  const Hazard hazards[] = {
      {"alpha of add", R"(graph main(%a: f32[3, 40] user, %b: f32[40] user) {
  %y: f32[3, 40] = aten.add.Tensor(%a, %b, alpha=-2.5)
  return %y
})"},
      {"alpha of sub", R"(graph main(%a: f32[3, 40] user, %b: f32[3, 1] user) {
  %y: f32[3, 40] = aten.sub.Tensor(%a, %b, alpha=3)
  return %y
})"},
      {"alpha of rsub", R"(graph main(%a: f32[3, 40] user, %b: f32[3, 40] user) {
  %y: f32[3, 40] = aten.rsub.Tensor(%a, %b, alpha=3)
  return %y
})"},
      {"alpha and a number", R"(graph main(%a: f32[3, 40] user) {
  %y: f32[3, 40] = aten.add.Scalar(%a, 1.5, alpha=-2)
  %z: f32[3, 40] = aten.sub.Scalar(%a, 1.5, alpha=4)
  return %y, %z
})"},
      {"alpha of integers", R"(graph main(%a: i64[3, 40] user, %b: i64[3, 40] user) {
  %y: i64[3, 40] = aten.sub.Tensor(%a, %b, alpha=-7)
  return %y
})"},
      {"alpha of an operator in place", R"(graph main(%a: f32[3, 40] user, %b: f32[40] user) {
  %c: f32[3, 40] = aten.mul.Tensor(%a, 2)
  %y: f32[3, 40] = aten.add_.Tensor(%c, %b, alpha=0.5)
  return %y
})"},
      {"alpha and beta of addmm", R"(graph main(%c: f32[40] user, %a: f32[33, 64] user, %b: f32[64, 40] user) {
  %y: f32[33, 40] = aten.addmm.default(%c, %a, %b, beta=0.5, alpha=-2)
  return %y
})"},
      {"alpha and beta of baddbmm",
       R"(graph main(%c: f32[1, 40] user, %a: f32[2, 33, 64] user, %b: f32[2, 64, 40] user) {
  %y: f32[2, 33, 40] = aten.baddbmm.default(%c, %a, %b, beta=3, alpha=0.25)
  return %y
})"},
      {"rounding_mode of negative quotients", R"(graph main(%a: f32[3, 40] user) {
  %s: f32[3, 40] = aten.mul.Tensor(%a, 8)
  %x: f32[3, 40] = aten.round.default(%s)
  %f: f32[3, 40] = aten.div.Tensor_mode(%x, 4, rounding_mode="floor")
  %t: f32[3, 40] = aten.div.Tensor_mode(%x, 4, rounding_mode="trunc")
  %n: f32[3, 40] = aten.div.Tensor_mode(%x, 4, rounding_mode=none)
  return %f, %t, %n
})"},
      {"rounding_mode of integers", R"(graph main(%a: i64[3, 40] user) {
  %f: i64[3, 40] = aten.div.Tensor_mode(%a, 4, rounding_mode="floor")
  %t: i64[3, 40] = aten.div.Tensor_mode(%a, 4, rounding_mode="trunc")
  return %f, %t
})",
       "", -50, 50},
      {"the sign of a remainder", R"(graph main(%a: i64[3, 40] user) {
  %r: i64[3, 40] = aten.remainder.Scalar(%a, -7)
  %f: i64[3, 40] = aten.fmod.Scalar(%a, -7)
  return %r, %f
})",
       "", -50, 50},
      {"powers of negative numbers", R"(graph main(%a: f32[3, 40] user) {
  %x: f32[3, 40] = aten.pow.Tensor_Scalar(%a, 3)
  %y: f32[3, 40] = aten.pow.Tensor_Scalar(%a, 0)
  %z: f32[3, 40] = aten.pow.Tensor_Scalar(%a, 1)
  return %x, %y, %z
})"},
      {"clamp with one bound, and with crossed ones", R"(graph main(%a: f32[3, 40] user) {
  %x: f32[3, 40] = aten.clamp.default(%a, min=0.5)
  %y: f32[3, 40] = aten.clamp.default(%a, max=-0.5)
  %z: f32[3, 40] = aten.clamp.default(%a, min=0.5, max=-0.5)
  return %x, %y, %z
})"},
      {"integer quotients are floats", R"(graph main(%a: i64[3, 40] user) {
  %x: f32[3, 40] = aten.div.Tensor(%a, 4)
  return %x
})",
       ""},
      {"reduction of mse_loss", R"(graph main(%a: f32[3, 40] user, %b: f32[3, 40] user) {
  %x: f32[3, 40] = aten.mse_loss.default(%a, %b, reduction=0)
  %y: f32[] = aten.mse_loss.default(%a, %b, reduction=1)
  %z: f32[] = aten.mse_loss.default(%a, %b, reduction=2)
  return %x, %y, %z
})"},
  };
  check(hazards);
}

TEST_CASE("the two forms of gelu are two functions", "[hazards]") {
  // Their difference is below bfloat16's steps: only float32 tells them apart.
  const char* text = R"(graph main(%a: f32[3, 40] user) {
  %x: f32[3, 40] = aten.gelu.default(%a)
  %y: f32[3, 40] = aten.gelu.default(%a, approximate="tanh")
  %d: f32[3, 40] = aten.sub.Tensor(%x, %y)
  return %d
})";
  const std::vector<RtValue> inputs = inputs_of(*parse_text(text), {.scale = 2.0F});
  const OnDevice device = on_device(text, DataType::float32);
  CHECK(device.result.nodes.device == device.result.nodes.total);
  const auto actual = device.executor->run(inputs), expected = in_torch(text)->run(inputs);
  const Metrics metrics = compare(tensor(actual[0]), tensor(expected[0]));
  INFO("max_rel " << metrics.max_rel);
  CHECK(metrics.max_rel < 0.05);
}

TEST_CASE("softmax and norms keep their arguments and all their results", "[hazards]") {
  const Hazard hazards[] = {
      {"a wider dtype for the result", R"(graph main(%a: f16[3, 40] user) {
  %y: f32[3, 40] = aten.softmax.int(%a, dim=-1, dtype=f32)
  return %y
})"},
      {"log_softmax of logits whose exponentials underflow", R"(graph main(%a: f32[3, 40] user) {
  %y: f32[3, 40] = aten.log_softmax.int(%a, dim=1)
  %z: f32[3, 40] = aten._log_softmax.default(%a, 0, false)
  return %y, %z
})",
       "", 0, 1, 300.0F},
      {"softmax of logits whose exponentials overflow", R"(graph main(%a: f32[3, 40] user) {
  %y: f32[3, 40] = aten.softmax.int(%a, dim=1)
  return %y
})",
       "", 0, 1, 300.0F},
      {"safe softmax of a masked row", R"(graph main(%a: f32[3, 40] user, %m: bool[3, 1] user) {
  %x: f32[3, 40] = aten.masked_fill.Scalar(%a, %m, -inf)
  %y: f32[3, 40] = aten._safe_softmax.default(%x, -1)
  return %y
})"},
      {"the three results of native_layer_norm",
       R"(graph main(%a: f32[3, 40] user, $w: f32[40] parameter "w" = rand(1), $b: f32[40] parameter "b" = rand(2)) {
  %y: f32[3, 40], %m: f32[3, 1], %r: f32[3, 1] = aten.native_layer_norm.default(%a, [40], $w, $b, 0.001)
  return %y, %m, %r
})",
       "result 1 is used"},
      {"normalized_shape of two dims", R"(graph main(%a: f32[3, 5, 40] user) {
  %y: f32[3, 5, 40] = aten.layer_norm.default(%a, [5, 40])
  return %y
})"},
      {"epsilon of layer_norm", R"(graph main(%a: f32[3, 40] user, $w: f32[40] parameter "w" = rand(1)) {
  %y: f32[3, 40] = aten.layer_norm.default(%a, [40], $w, none, 0.5)
  return %y
})"},
      {"dtype of sum", R"(graph main(%a: f32[3, 40] user) {
  %y: f64[3] = aten.sum.dim_IntList(%a, [1], dtype=f64)
  return %y
})"},
      {"counts of booleans", R"(graph main(%m: bool[70, 333] user) {
  %y: i64[70] = aten.sum.dim_IntList(%m, [1])
  %z: i64[] = aten.sum.default(%m)
  return %y, %z
})"},
      {"largest elements and their indices, of equal ones too", R"(graph main(%a: f32[3, 40] user) {
  %s: f32[3, 40] = aten.round.default(%a)
  %v: f32[3], %i: i64[3] = aten.max.dim(%s, 1)
  %w: f32[40], %j: i64[40] = aten.min.dim(%s, 0)
  return %v, %i, %w, %j
})"},
      {"topk of the smallest along another dim", R"(graph main(%a: f32[9, 5] user) {
  %v: f32[4, 5], %i: i64[4, 5] = aten.topk.default(%a, 4, dim=0, largest=false, sorted=true)
  return %v, %i
})"},
      {"population and sample variance", R"(graph main(%a: f32[3, 40] user) {
  %x: f32[3] = aten.var.correction(%a, [1], correction=0)
  %y: f32[3, 1] = aten.var.correction(%a, [1], correction=1, keepdim=true)
  return %x, %y
})"},
      {"scale, mask and causality of attention",
       R"(graph main(%q: f32[1, 2, 33, 32] user, %k: f32[1, 2, 33, 32] user, %m: f32[33, 33] user) {
  %x: f32[1, 2, 33, 32] = aten.scaled_dot_product_attention.default(%q, %k, %k, attn_mask=%m, scale=0.1)
  %y: f32[1, 2, 33, 32] = aten.scaled_dot_product_attention.default(%q, %k, %k, is_causal=true)
  return %x, %y
})"},
  };
  check(hazards);
}

TEST_CASE("masks are masks", "[hazards]") {
  const Hazard hazards[] = {
      {"not of a bool", R"(graph main(%m: bool[3, 40] user) {
  %x: bool[3, 40] = aten.bitwise_not.default(%m)
  %y: bool[3, 40] = aten.logical_not.default(%m)
  return %x, %y
})"},
      {"not of an integer", R"(graph main(%a: i64[3, 40] user) {
  %x: i64[3, 40] = aten.bitwise_not.default(%a)
  return %x
})",
       "", -50, 50},
      {"comparisons with numbers and tensors", R"(graph main(%a: f32[3, 40] user, %b: f32[40] user) {
  %x: f32[3, 40] = aten.round.default(%a)
  %z: f32[40] = aten.round.default(%b)
  %c: bool[3, 40] = aten.le.Scalar(%x, 1)
  %d: bool[3, 40] = aten.ne.Scalar(%x, 1)
  %e: bool[3, 40] = aten.lt.Scalar(%x, 1)
  %f: bool[3, 40] = aten.gt.Tensor(%x, %z)
  %g: bool[3, 40] = aten.eq.Tensor(%x, %z)
  return %c, %d, %e, %f, %g
})"},
      {"where with numbers", R"(graph main(%m: bool[3, 40] user, %a: f32[40] user, %i: i64[3, 1] user) {
  %x: f32[3, 40] = aten.where.ScalarOther(%m, %a, -1.5)
  %y: f32[3, 40] = aten.where.ScalarSelf(%m, -1.5, %a)
  %z: i64[3, 40] = aten.where.ScalarOther(%m, %i, 7)
  return %x, %y, %z
})"},
      {"filling with infinity", R"(graph main(%m: bool[3, 40] user, %a: f32[3, 40] user) {
  %x: f32[3, 40] = aten.masked_fill.Scalar(%a, %m, -inf)
  %y: f32[3, 40] = aten.exp.default(%x)
  return %y
})"},
      {"any and all", R"(graph main(%m: bool[70, 40] user) {
  %x: bool[70] = aten.any.dim(%m, 1)
  %y: bool[40] = aten.all.dim(%m, 0)
  %z: bool[] = aten.all.default(%m)
  return %x, %y, %z
})"},
  };
  check(hazards);
}

TEST_CASE("sizes are the caller's, not the tiles'", "[hazards]") {
  const Hazard hazards[] = {
      {"six rows in four chunks are three", R"(graph main(%a: f32[6, 33] user) {
  %x: f32[2, 33], %y: f32[2, 33], %z: f32[2, 33] = aten.chunk.default(%a, 4)
  return %x, %y, %z
})"},
      {"chunks of which the last is smaller", R"(graph main(%a: f32[3, 70] user) {
  %x: f32[3, 24], %y: f32[3, 24], %z: f32[3, 22] = aten.chunk.default(%a, 3, 1)
  return %x, %y, %z
})"},
      {"splits of sizes that differ", R"(graph main(%a: f32[70, 33] user) {
  %x: f32[33, 33], %y: f32[1, 33], %z: f32[36, 33] = aten.split_with_sizes.default(%a, [33, 1, 36])
  %v: f32[40, 33], %w: f32[30, 33] = aten.split.Tensor(%a, 40)
  return %x, %y, %z, %v, %w
})"},
      {"every row by itself", R"(graph main(%a: f32[5, 3, 40] user) {
  %v: f32[3, 40], %w: f32[3, 40], %x: f32[3, 40], %y: f32[3, 40], %z: f32[3, 40] = aten.unbind.int(%a)
  return %z, %v
})"},
      {"padding on the right to a size that is no tile's", R"(graph main(%a: f32[2, 3, 5, 7] user) {
  %x: f32[2, 3, 8, 11] = aten.constant_pad_nd.default(%a, [0, 4, 0, 3], 2.5)
  return %x
})"},
      {"padding on the left, of one dim, and of rank 2", R"(graph main(%a: f32[5, 40] user) {
  %x: f32[5, 43] = aten.constant_pad_nd.default(%a, [3, 0])
  %y: f32[9, 40] = aten.constant_pad_nd.default(%a, [0, 0, 4, 0], -1)
  return %x, %y
})"},
      {"negative padding", R"(graph main(%a: f32[5, 40] user) {
  %x: f32[4, 41] = aten.constant_pad_nd.default(%a, [-1, 2, 1, -2], 0.5)
  return %x
})"},
      {"padding with what is there", R"(graph main(%a: f32[2, 3, 40] user) {
  %x: f32[2, 3, 45] = aten.pad.default(%a, [2, 3], "reflect")
  %y: f32[2, 3, 45] = aten.pad.default(%a, [2, 3], "replicate")
  %z: f32[2, 3, 45] = aten.pad.default(%a, [2, 3], "circular")
  return %x, %y, %z
})"},
      {"cat of sizes that differ along its dim",
       R"(graph main(%a: f32[3, 5] user, %b: f32[3, 40] user, %c: f32[3, 1] user) {
  %x: f32[3, 46] = aten.cat.default([%a, %b, %c], -1)
  return %x
})"},
      {"cat of dtypes that differ", R"(graph main(%a: f32[3, 5] user, %b: i64[3, 5] user) {
  %x: f32[6, 5] = aten.cat.default([%a, %b])
  return %x
})",
       ""},
      {"stack along the last dim", R"(graph main(%a: f32[3, 5] user, %b: f32[3, 5] user) {
  %x: f32[3, 5, 2] = aten.stack.default([%a, %b], -1)
  return %x
})"},
      {"slices beyond the end, from the end and with steps", R"(graph main(%a: f32[5, 40] user) {
  %x: f32[5, 7] = aten.slice.Tensor(%a, 1, 33, 9223372036854775807)
  %y: f32[5, 10] = aten.slice.Tensor(%a, 1, -12, -2)
  %z: f32[2, 40] = aten.slice.Tensor(%a, 0, 1, 5, 2)
  %w: f32[5, 40] = aten.slice.Tensor(%a, 1)
  return %x, %y, %z, %w
})"},
      {"the last element", R"(graph main(%a: f32[5, 40] user) {
  %x: f32[5] = aten.select.int(%a, -1, -1)
  return %x
})"},
      {"squeezing a dim that is not 1", R"(graph main(%a: f32[5, 1, 40] user) {
  %x: f32[5, 1, 40] = aten.squeeze.dim(%a, 0)
  %y: f32[5, 40] = aten.squeeze.dim(%x, 1)
  return %y
})"},
      {"repeats of more dims than there are", R"(graph main(%a: f32[5, 33] user) {
  %x: f32[2, 5, 99] = aten.repeat.default(%a, [2, 1, 3])
  return %x
})"},
      {"six dims and a scalar", R"(graph main(%a: f32[2, 1, 3, 2, 5, 7] user, %b: f32[] user) {
  %x: f32[2, 1, 3, 2, 5, 7] = aten.mul.Tensor(%a, %b)
  %y: f32[2, 3, 2, 5] = aten.sum.dim_IntList(%x, [1, 5])
  return %y
})"},
      {"reshapes across ragged tiles", R"(graph main(%a: f32[6, 35] user) {
  %x: f32[10, 21] = aten.view.default(%a, [10, 21])
  %y: f32[10, 21] = aten.relu.default(%x)
  %z: f32[210] = aten.flatten.using_ints(%y)
  return %z
})"},
      {"pixel_unshuffle", R"(graph main(%a: f32[2, 3, 8, 12] user) {
  %x: f32[2, 12, 4, 6] = aten.pixel_unshuffle.default(%a, 2)
  %y: f32[2, 3, 8, 12] = aten.pixel_shuffle.default(%x, 2)
  return %x, %y
})"},
  };
  check(hazards);
}
