// Calls of device operators just inside and just outside of what they mean: the first are taken, the others refused
// with words that name what is wrong. Rows come in pairs, so that a limit that moves by one shows.
#include <string>

#include "harness.h"
#include "ir/model.h"
#include "pass/call.h"
#include "support/error.h"
#include "tests/catch.h"

using namespace ttrt;

namespace {

struct Row {
  const char* inputs;
  const char* call;
  const char* refused;  // part of the reason; "" where the call is one
};

constexpr const char *matrix = "%a: f32[3, 40] user", *cube = "%a: f32[2, 3, 4] user",
                     *image = "%a: f32[2, 6, 8, 9] user", *vector = "%a: f32[40] user", *scalar = "%a: f32[] user",
                     *numbers = "%a: i64[3, 40] user";

std::string reason(const Row& row) {
  const std::string text =
      "graph main(" + std::string(row.inputs) + ") {\n  %y: f32[1] = " + row.call + "\n  return %y\n}\n";
  const auto model = ttc::ir::parse(text, "call");
  const ttc::ir::Node& node = *model->graph->nodes().front();
  const OpRecord* record = find_op(node.op());
  REQUIRE(record != nullptr);
  const auto bound = ttc::concrete_call(*record, node.args(), {}, {});
  if (const auto* none = std::get_if<ttc::Reason>(&bound)) return none->text();
  const auto& call = std::get<BoundCall>(bound);
  if (const ttc::Refusal refusal = call.refusal()) return refusal->text();
  try {
    (void)call.results();
    const std::vector<const DeviceTensor*> constants(call.call.tensors.size(), nullptr);
    (void)call.prepare({.numerics = Numerics::fast, .constants = constants});
  } catch (const ttc::Error& error) {
    return error.what();
  }
  return "";
}

void check(std::span<const Row> rows) {
  for (const Row& row : rows) {
    INFO(row.call << " of " << row.inputs);
    const std::string said = reason(row);
    if (*row.refused == '\0')
      CHECK(said == "");
    else
      CHECK_THAT(said, ContainsSubstring(row.refused));
  }
}

}  // namespace

TEST_CASE("calls that move values mean something, or say what does not fit", "[calls]") {
  constexpr Row rows[] = {
      {cube, "tt.permute(%a, [2, 0, 1])", ""},
      {cube, "tt.permute(%a, [-1, 0, 1])", ""},
      {cube, "tt.permute(%a, [0, 1])", "dims are not as many as the tensor has"},
      {cube, "tt.permute(%a, [0, 1, 1])", "not a permutation"},
      {cube, "tt.permute(%a, [0, 1, 3])", "dim 3"},
      {cube, "tt.transpose(%a, 0, 2)", ""},
      {cube, "tt.transpose(%a, 0, -3)", ""},
      {cube, "tt.transpose(%a, 0, 3)", "dim 3 of a tensor of rank 3"},
      {cube, "tt.transpose(%a, -4, 0)", "dim -4 of a tensor of rank 3"},
      {cube, "tt.reshape(%a, [4, 6])", ""},
      {cube, "tt.reshape(%a, [-1, 6])", ""},
      {cube, "tt.reshape(%a, [5, 5])", "elements"},
      {cube, "tt.reshape(%a, [-1, 5])", "the sizes do not hold 24 elements"},
      {cube, "tt.expand(%a, [2, 3, 4])", ""},
      {cube, "tt.expand(%a, [5, 2, 3, -1])", ""},
      {cube, "tt.expand(%a, [3, 4])", "fewer dims than the tensor has"},
      {cube, "tt.expand(%a, [2, 3, 5])", "cannot become 5"},
      {cube, "tt.repeat(%a, [1, 2, 1])", ""},
      {cube, "tt.repeat(%a, [0, 2, 1])", ""},
      {cube, "tt.repeat(%a, [2, 1])", "fewer repeats than dims"},
      {cube, "tt.repeat(%a, [1, -1, 1])", "a negative repeat"},
      {cube, "tt.flatten(%a, 0, 1)", ""},
      {cube, "tt.flatten(%a, 1, 1)", ""},
      {cube, "tt.flatten(%a, 2, 1)", "start_dim comes after end_dim"},
      {cube, "tt.pad(%a, [1, 0, 0, 2], 0.0)", ""},
      {cube, "tt.pad(%a, [-4, 0], 0.0)", ""},
      {cube, "tt.pad(%a, [1, 1, 1], 0.0)", "a padding list of 3"},
      {cube, "tt.pad(%a, [0, 0, 0, 0, 0, 0, 1, 1], 0.0)", "a padding list of 8"},
      {cube, "tt.pad(%a, [-5, 0], 0.0)", "more is cut than there is"},
      {cube, "tt.pad_border(%a, [3, 3], \"reflect\")", ""},
      {cube, "tt.pad_border(%a, [4, 0], \"reflect\")", "padding 4, 0"},
      {cube, "tt.pad_border(%a, [4, 0], \"circular\")", ""},
      {cube, "tt.pad_border(%a, [5, 0], \"circular\")", "padding 5, 0"},
      {cube, "tt.pad_border(%a, [9, 9], \"replicate\")", ""},
      {cube, "tt.pad_border(%a, [1], \"reflect\")", "a padding list of 1"},
      {cube, "tt.slice(%a, 1, 0, 2, 1)", ""},
      {cube, "tt.slice(%a, 1, 0, 2, 0)", "step 0"},
      {scalar, "tt.slice(%a, 0, 0, 2, 1)", "a scalar"},
      {cube, "tt.select(%a, 2, 3)", ""},
      {cube, "tt.select(%a, 2, -4)", ""},
      {cube, "tt.select(%a, 2, 4)", "index 4 in a dim of 4"},
      {cube, "tt.select(%a, 2, -5)", "index -5 in a dim of 4"},
      {cube, "tt.split(%a, [1, 3], 2)", ""},
      {cube, "tt.split(%a, [0, 4], 2)", ""},
      {cube, "tt.split(%a, [1, 2], 2)", "the sizes add up to 3"},
      {cube, "tt.split(%a, [5, -1], 2)", "size -1"},
      {cube, "tt.unflatten(%a, 2, [2, 2])", ""},
      {cube, "tt.unflatten(%a, 2, [3, 2])", "elements"},
      {scalar, "tt.unflatten(%a, 0, [1])", "a scalar"},
      {cube, "tt.flip(%a, [0, 2])", ""},
      {cube, "tt.flip(%a, [0, -3])", "a dim is named twice"},
      {cube, "tt.squeeze(%a, [3])", "dim 3 of a tensor of rank 3"},
      {cube, "tt.unsqueeze(%a, 3)", ""},
      {cube, "tt.unsqueeze(%a, -4)", ""},
      {cube, "tt.unsqueeze(%a, 4)", "dim 4"},
      {"%a: f32[2, 3] user, %b: f32[2, 5] user", "tt.concat([%a, %b], 1)", ""},
      {"%a: f32[2, 3] user, %b: f32[2, 5] user", "tt.concat([%a, %b], 0)", "tensor 1 has another shape"},
      {"%a: f32[2, 3] user, %b: f32[2, 3, 1] user", "tt.concat([%a, %b], 0)", "tensor 1 has another shape"},
      {scalar, "tt.concat([%a, %a], 0)", "scalars"},
      {"%a: f32[2, 3] user, %b: f32[2, 3] user", "tt.stack([%a, %b], 2)", ""},
      {"%a: f32[2, 3] user, %b: f32[3, 2] user", "tt.stack([%a, %b], 0)", "tensor 1 has another shape"},
  };
  check(rows);
}

TEST_CASE("calls with indices mean something, or say what does not fit", "[calls]") {
  constexpr const char *picked = "%a: f32[3, 40] user, %i: i64[3, 40] user",
                       *few = "%a: f32[3, 40] user, %i: i64[2, 50] user",
                       *flat = "%a: f32[3, 40] user, %i: i64[5] user",
                       *put = "%a: f32[3, 40] user, %i: i64[5] user, %v: f32[5, 40] user",
                       *misput = "%a: f32[3, 40] user, %i: i64[5] user, %v: f32[4, 40] user",
                       *spread = "%a: f32[3, 40] user, %i: i64[3, 4] user, %v: f32[3, 4] user",
                       *narrow = "%a: f32[3, 40] user, %i: i64[3, 4] user, %v: f32[3, 3] user",
                       *strip = "%a: f32[3, 40] user, %v: f32[3, 2] user";
  constexpr Row rows[] = {
      {picked, "tt.gather(%a, 1, %i)", ""},
      {few, "tt.gather(%a, 1, %i)", ""},
      {few, "tt.gather(%a, 0, %i)", "the index is larger than the tensor"},
      {flat, "tt.gather(%a, 0, %i)", "the index has another rank"},
      {flat, "tt.index(%a, [0], [%i])", ""},
      {flat, "tt.index(%a, [0, 1], [%i])", "dims and indices do not go together"},
      {flat, "tt.index(%a, [1, 0], [%i, %i])", "dims and indices do not go together"},
      {put, "tt.index_put(%a, [0], [%i], %v)", ""},
      {misput, "tt.index_put(%a, [0], [%i], %v)", "sizes 4 and 5 do not broadcast"},
      {spread, "tt.scatter(%a, 1, %i, %v)", ""},
      {narrow, "tt.scatter(%a, 1, %i, %v)", "the index is larger than the values"},
      {strip, "tt.slice_scatter(%a, %v, 1, 0, 2, 1)", ""},
      {strip, "tt.slice_scatter(%a, %v, 1, 0, 4, 2)", ""},
      {strip, "tt.slice_scatter(%a, %v, 1, 0, 3, 1)", "the values do not fill the range"},
      {strip, "tt.slice_scatter(%a, %v, 1, 0, 2, 0)", "step 0"},
      {"%a: f32[] user, %v: f32[] user", "tt.slice_scatter(%a, %v, 0, 0, 1, 1)", "a scalar"},
      {matrix, "tt.topk(%a, 40, 1)", ""},
      {matrix, "tt.topk(%a, 0, 1)", ""},
      {matrix, "tt.topk(%a, 41, 1)", "41 elements of 40"},
      {matrix, "tt.topk(%a, -1, 1)", "-1 elements of 40"},
      {"%i: i64[2, 5] user, $w: f32[7, 32] parameter \"w\" = rand(1)", "tt.embedding(%i, $w, weight_shape=[7, 32])",
       ""},
      {"%i: i64[2, 5] user, $w: f32[7, 32] parameter \"w\" = rand(1)", "tt.embedding(%i, $w, weight_shape=[7, 32, 1])",
       "weight_shape must be [rows, width]"},
      {"%i: i64[2, 5] user, $w: f32[7, 32] parameter \"w\" = rand(1)", "tt.embedding(%i, $w, weight_shape=[0, 32])",
       "weight_shape must be [rows, width]"},
      {"%i: i64[2, 5] user, $w: f32[7, 32] parameter \"w\" = rand(1)",
       "tt.embedding(%i, $w, weight_shape=[7, 32], weight_format=\"bfloat\")", "weight_format 'bfloat'"},
      {"%i: i64[2, 5] user, $w: f32[7, 32] parameter \"w\" = rand(1)",
       "tt.embedding(%i, $w, weight_shape=[7, 32], format=\"int32\")", "format 'int32'"},
  };
  check(rows);
}

TEST_CASE("calls that make or convert tensors mean something, or say what does not fit", "[calls]") {
  constexpr Row rows[] = {
      {matrix, "tt.full([2, 0], 1.0, \"bfloat16\")", ""},
      {matrix, "tt.full([2, -1], 1.0, \"bfloat16\")", "size -1"},
      {matrix, "tt.full([2], 1.0, \"bfloat\")", "format 'bfloat'"},
      {matrix, "tt.arange(0, 5, 1, \"bfloat16\")", ""},
      {matrix, "tt.arange(0, 5, 0, \"bfloat16\")", "no such range"},
      {matrix, "tt.arange(5, 0, 1, \"bfloat16\")", "no such range"},
      {matrix, "tt.arange(5, 0, -1, \"bfloat16\")", ""},
      {matrix, "tt.arange(0, 3000000000, 1, \"bfloat16\")", "no such range"},
      {matrix, "tt.convert(%a, format=\"bfloat8_b\")", ""},
      {matrix, "tt.convert(%a, format=\"int32\")", "format 'int32'"},
      {matrix, "tt.convert(%a, format=\"bfloat\")", "format 'bfloat'"},
      {matrix, "tt.typecast(%a, none, \"float32\")", ""},
      {matrix, "tt.typecast(%a, none, \"float\")", "format 'float'"},
      {"%a: i64[3, 40] user", "tt.eq(%a, none, 2.0, \"bfloat16\")", ""},
      {"%a: i64[3, 40] user", "tt.eq(%a, none, 2.0, \"bfloat\")", "format 'bfloat'"},
      {"%a: f32[3, 40] user, %b: f32[1, 40] user", "tt.add(%a, %b)", ""},
      {"%a: f32[3, 40] user, %b: f32[2, 40] user", "tt.add(%a, %b)", "sizes 3 and 2 do not broadcast"},
  };
  check(rows);
}

TEST_CASE("products and norms mean something, or say what does not fit", "[calls]") {
  constexpr const char *product = "%a: f32[3, 40] user, %b: f32[40, 5] user",
                       *turned = "%a: f32[3, 40] user, %b: f32[5, 40] user",
                       *weighted = "%a: f32[3, 40] user, $w: f32[5, 40] parameter \"w\" = rand(1)",
                       *heads = "%q: f32[1, 4, 6, 32] user, %k: f32[1, 2, 5, 32] user",
                       *odd = "%q: f32[1, 3, 6, 32] user, %k: f32[1, 2, 5, 32] user",
                       *wide = "%q: f32[1, 2, 6, 32] user, %k: f32[1, 2, 5, 64] user",
                       *masked = "%q: f32[1, 2, 6, 32] user, %k: f32[1, 2, 5, 32] user, %m: f32[6, 5] user",
                       *mismasked = "%q: f32[1, 2, 6, 32] user, %k: f32[1, 2, 5, 32] user, %m: f32[6, 4] user",
                       *none = "%q: f32[1, 2, 0, 32] user, %k: f32[1, 2, 5, 32] user",
                       *slopes = "%a: f32[2, 6, 8, 9] user, $w: f32[6] parameter \"w\" = rand(1)";
  constexpr Row rows[] = {
      {product, "tt.matmul(%a, %b)", ""},
      {turned, "tt.matmul(%a, %b)", "inner dims 40 and 5"},
      {turned, "tt.matmul(%a, %b, transpose_b=true)", ""},
      {"%a: f32[3, 40] user, %b: f32[40] user", "tt.matmul(%a, %b)", "operands must be matrices"},
      {"%a: f32[40] user, %b: f32[40, 3] user", "tt.matmul(%a, %b)", "operands must be matrices"},
      {weighted, "tt.linear(%a, $w, weight_shape=[40, 5])", ""},
      {weighted, "tt.linear(%a, $w, weight_shape=[41, 5])", "the input's last dim is 40"},
      {weighted, "tt.linear(%a, $w, weight_shape=[40])", "weight_shape must be [K, N]"},
      {weighted, "tt.linear(%a, $w, weight_shape=[40, 0])", "weight_shape must be [K, N]"},
      {weighted, "tt.linear(%a, $w, weight_shape=[40, 5], weight_format=\"int32\")", "weight_format 'int32'"},
      {matrix, "tt.layer_norm(%a, normalized_size=40)", ""},
      {matrix, "tt.layer_norm(%a, normalized_size=39)", "the last dim is not normalized_size 39"},
      {matrix, "tt.rms_norm(%a, normalized_size=41)", "the last dim is not normalized_size 41"},
      {image, "tt.group_norm(%a, channels=6, groups=1)", ""},
      {image, "tt.group_norm(%a, channels=6, groups=6)", ""},
      {image, "tt.group_norm(%a, channels=6, groups=4)", "do not divide into 4 groups"},
      {image, "tt.group_norm(%a, channels=6, groups=0)", "do not divide into 0 groups"},
      {image, "tt.group_norm(%a, channels=5, groups=1)", "channels"},
      {vector, "tt.group_norm(%a, channels=40, groups=1)", "the input has no channels"},
      {slopes, "tt.prelu(%a, $w, channels=6)", ""},
      {slopes, "tt.prelu(%a, $w, channels=5)", "slopes for 5 channels"},
      {heads, "tt.attention(%q, %k, %k)", ""},
      {odd, "tt.attention(%q, %k, %k)", "3 heads over 2"},
      {wide, "tt.attention(%q, %k, %k)", "the shapes of q, k and v do not fit together"},
      {masked, "tt.attention(%q, %k, %k, %m)", ""},
      {mismasked, "tt.attention(%q, %k, %k, %m)", "do not broadcast"},
      {masked, "tt.attention(%q, %k, %k, %m, mask_kind=\"other\")", "mask_kind 'other'"},
      {none, "tt.attention(%q, %k, %k)", "an empty operand"},
      {cube, "tt.split_heads(%a, 2)", ""},
      {cube, "tt.split_heads(%a, 3)", "4 columns in 3 heads"},
      {matrix, "tt.split_heads(%a, 2)", "the input is not [batch, sequence, width]"},
      {image, "tt.concat_heads(%a)", ""},
      {cube, "tt.concat_heads(%a)", "the input is not [batch, heads, sequence, size]"},
  };
  check(rows);
}

TEST_CASE("windows mean something, or say what does not fit", "[calls]") {
  constexpr const char* kernel = "%a: f32[2, 6, 8, 9] user, $w: f32[4, 3, 3, 3] parameter \"w\" = rand(1)";
  const std::string start = "tt.conv2d(%a, $w, weight_shape=";
  const auto conv = [&](const std::string& rest, const char* refused) {
    const std::string call = start + rest + ")";
    const Row rows[] = {{kernel, call.c_str(), refused}};
    check(rows);
  };
  conv("[4, 3, 3, 3], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=2", "");
  conv("[4, 3, 3, 3], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1",
       "6 channels, the kernel wants 3");
  conv("[4, 3, 3, 3], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=3", "do not divide into");
  conv("[4, 3, 3, 3], stride=[0, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=2", "stride 0");
  conv("[4, 3, 3, 3], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 0], groups=2", "dilation 0");
  conv("[4, 3, 3, 3], stride=[1, 1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=2", "stride has 3 numbers");
  conv("[4, 3, 3, 3], stride=[1, 1], padding=[0, 0, 0], dilation=[1, 1], groups=2", "padding has 3 numbers");
  conv("[4, 3, 3, 3], stride=[1, 1], padding=[0, -1, 0, 0], dilation=[1, 1], groups=2", "negative padding");
  conv("[4, 3, 3, 3], stride=[1, 1], padding=[0, 0, 0, -1], dilation=[1, 1], groups=2", "negative padding");
  conv("[4, 3, 9, 3], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=2",
       "the kernel reaches over the padded input");
  conv("[4, 3, 9, 3], stride=[1, 1], padding=[1, 0, 0, 0], dilation=[1, 1], groups=2", "");
  conv("[4, 3, 3, 3], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[4, 1], groups=2",
       "the kernel reaches over the padded input");
  conv("[4, 3], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=2",
       "weight_shape must have three to five sizes");
  conv("[4, 3, 0, 3], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=2", "weight_shape has the size 0");
  conv("[4, 3, 3, 3], stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=2, weight_format=\"int32\"",
       "weight_format 'int32'");
  constexpr Row rows[] = {
      {image, "tt.max_pool2d(%a, [2, 2], [2, 2], [1, 1], [1, 1])", ""},
      {image, "tt.max_pool2d(%a, [2, 2], [2, 2], [2, 1], [1, 1])", "adding"},
      {image, "tt.max_pool2d(%a, [9, 2], [1, 1], [0, 0], [1, 1])", "the window reaches over the padded input"},
      {image, "tt.max_pool2d(%a, [8, 9], [1, 1], [0, 0], [1, 1])", ""},
      {image, "tt.max_pool2d(%a, [2, 2], [2, 2, 2], [0, 0], [1, 1])", "stride has 3 numbers for 2 dims"},
      {matrix, "tt.avg_pool2d(%a, [2, 2], [2, 2], [0, 0])", "windows over 2 dims of a tensor of rank 2"},
      {image, "tt.adaptive_avg_pool2d(%a, [3, 3])", ""},
      {image, "tt.adaptive_avg_pool2d(%a, [3, -2])", "size -2"},
      {image, "tt.adaptive_avg_pool2d(%a, [3, 0])", ""},
      {image, "tt.upsample(%a, \"nearest\", [16, 18])", ""},
      {image, "tt.upsample(%a, \"nearest\", [16, 0])", "an output of that size"},
      {image, "tt.upsample(%a, \"nearest\", [16])", "1 sizes for a tensor of rank 4"},
      {matrix, "tt.sum(%a, [0, 1])", ""},
      {matrix, "tt.sum(%a, [0, -2])", "a dim is named twice"},
      {matrix, "tt.softmax(%a, 2)", "dim 2 of a tensor of rank 2"},
      {matrix, "tt.softmax(%a, -2)", ""},
      {matrix, "tt.softmax(%a, -3)", "dim -3 of a tensor of rank 2"},
  };
  check(rows);
}
