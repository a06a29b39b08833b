// A convolution whose windows tile the image (stride = kernel, no padding: the patch embedding of vision transformers)
// is a linear layer over patches: the image cut into patches, one matrix product, and the channels moved back to dim 1.
#include <utility>

#include "replacement.h"

namespace ttc::raise_patch_conv_pass {
namespace {

constexpr std::string_view pass = "raise-patch-conv", formula = "convolution over patches as a linear layer";

bool all(const ir::Arg* arg, std::int64_t value) {
  const auto list = arg ? arg->integers() : std::nullopt;
  if (!list) return false;
  for (std::int64_t item : *list)
    if (item != value) return false;
  return true;
}

match::NearMiss miss(const ir::Node& node, ReasonCode code, std::string expected, std::string found) {
  return {.matched = 1, .node = &node, .code = code, .expected = std::move(expected), .found = std::move(found)};
}

std::string literal(const ir::Arg* arg) {
  const auto list = arg ? arg->integers() : std::nullopt;
  if (!list) return arg ? match::describe(*arg) : "none";
  std::string text;
  for (const std::int64_t item : *list) text += (text.empty() ? "[" : ", ") + std::to_string(item);
  return text + "]";
}

// Windows side by side: the stride is the kernel's size, and larger than 1.
bool tiles_the_image(const ir::Node& node) {
  const ir::Value *x = node.operand(0), *weight = node.operand(1);
  if (!x || !x->type.has_shape || x->type.rank() != 4 || !weight || !weight->type.has_shape || weight->type.rank() != 4)
    return false;
  const auto stride = node.arg("stride") ? node.arg("stride")->integers() : std::nullopt;
  const auto height = weight->type.dim(2), width = weight->type.dim(3);
  return stride && !stride->empty() && height && width && stride->front() == *height && stride->back() == *width &&
         *height * *width > 1;
}

// What else keeps such a convolution from being one over patches.
std::optional<match::NearMiss> unfit(const ir::Node& node) {
  const ir::Value *x = node.operand(0), *weight = node.operand(1);
  const auto differs = [&](std::string expected, std::string found) {
    return miss(node, ReasonCode::PatternNearMiss, std::move(expected), std::move(found));
  };
  if (const ir::Arg* transposed = node.arg("transposed"); transposed && transposed->boolean() != false)
    return differs("a convolution", "a transposed one");
  if (!ir::is_weight(weight) || !weight->type.is_static())
    return miss(node, ReasonCode::NonConstantWeight, "a constant kernel", match::describe(node.arg(1)));
  if (!all(node.arg("padding"), 0)) return differs("no padding", literal(node.arg("padding")));
  if (!all(node.arg("dilation"), 1)) return differs("no dilation", literal(node.arg("dilation")));
  const ir::Arg* groups = node.arg("groups");
  if (!groups || groups->integer() != 1)
    return differs("one group", groups ? match::describe(*groups) + " groups" : "none");
  const auto height = x->type.dim(2), width = x->type.dim(3);
  if (!height || !width) return differs("an image of fixed size", x->type.str());
  if (*height % *weight->type.dim(2) != 0 || *width % *weight->type.dim(3) != 0)
    return differs("windows of " + weight->type.str() + " that cover the image", x->type.str());
  return std::nullopt;
}

// The kernel as the matrix [out, in * height * width]: the same bytes. nullptr where they are not in order.
ir::Value* flat_kernel(Rewriter& r, ir::Value* kernel) {
  ir::Weight flat = *r.model().weight_of(kernel);
  if (!flat.is_contiguous()) return nullptr;
  flat.sizes = {flat.sizes[0], flat.sizes[1] * flat.sizes[2] * flat.sizes[3]};
  flat.strides = {flat.sizes[1], 1};
  return shared_constant(r, ir::weight_input(kernel)->target + ".flat", std::move(flat));
}

void rewrite(PassContext& context, ir::Node* node) {
  if (node->op() != "aten.conv2d.default" && node->op() != "aten.convolution.default") return;
  if (!tiles_the_image(*node)) return;  // a convolution like others
  if (const auto misfit = unfit(*node)) {
    refuse_near_miss(context, pass, formula, *node, *misfit);
    return;
  }
  // A map that names convolutions only wants to find them.
  if (Refusal refusal =
          context.options.replace.empty() ? std::nullopt : user_refusal_of(context, *node, "aten.linear.default"))
    return context.refuse(pass, *node, *refusal);
  Rewriter r(context, pass, node);
  ir::Value* kernel = flat_kernel(r, node->operand(1));
  if (!kernel) {
    refuse_near_miss(context, pass, formula, *node,
                     miss(*node, ReasonCode::PatternNearMiss, "a kernel whose bytes are in order", "strides"));
    return;
  }
  ir::Value *x = node->operand(0), *weight = node->operand(1);
  const ir::Type& out = node->result()->type;
  const ir::SymExpr batch = x->type.sizes[0], channels = x->type.sizes[1];
  const std::int64_t kh = *weight->type.dim(2), kw = *weight->type.dim(3);
  const std::int64_t rows = *x->type.dim(2) / kh, columns = *x->type.dim(3) / kw;
  const std::int64_t in = *weight->type.dim(1), depth = in * kh * kw, features = *weight->type.dim(0);
  const auto add = [&](std::string op, std::vector<ir::Arg> args, std::vector<ir::SymExpr> sizes) {
    return emit(r, std::move(op), std::move(args), ir::Type::tensor(out.dtype, std::move(sizes)));
  };
  ir::Value* cut = add("aten.reshape.default", {x, ir::Arg::ints({-1, in, rows, kh, columns, kw})},
                       {batch, in, rows, kh, columns, kw});
  ir::Value* turned =
      add("aten.permute.default", {cut, ir::Arg::ints({0, 2, 4, 1, 3, 5})}, {batch, rows, columns, in, kh, kw});
  ir::Value* patches =
      add("aten.reshape.default", {turned, ir::Arg::ints({-1, rows * columns, depth})}, {batch, rows * columns, depth});
  ir::Value* linear = add("aten.linear.default", {patches, kernel, node->arg(2)}, {batch, rows * columns, features});
  ir::Value* first = add("aten.transpose.int", {linear, 1, 2}, {batch, features, rows * columns});
  ir::Node* made = replace_matched(r, "convolution over patches", {}, "aten.reshape.default",
                                   {first, ir::Arg::ints({-1, features, rows, columns})});
  if (made) linear->def()->origins = std::exchange(made->origins, {});
}

void run(PassContext& context) { rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc::raise_patch_conv_pass

TTC_REGISTER_PASS({"raise-patch-conv", "Turn convolutions over patches into linear layers",
                   ttc::raise_patch_conv_pass::run});
