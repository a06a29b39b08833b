// A batch norm with running statistics that alone reads a convolution or linear layer goes into its weights:
//   w' = w * s, b' = (b - mean) * s + beta, s = gamma / sqrt(var + eps), per output channel.
// The new weights are made when somebody asks for them, one tensor at a time, in double precision.
#include <algorithm>
#include <cmath>

#include "device/host_tensor.h"
#include "replacement.h"

namespace ttc::fold_batch_norm_pass {
namespace {

constexpr std::string_view pass = "fold-batch-norm", formula = "batch_norm(layer(x)) as one layer";

using ttrt::HostTensor;

bool is_batch_norm(const ir::Node& node) {
  return node.op() == "aten.batch_norm.default" || node.op() == "aten._native_batch_norm_legit_no_training.default" ||
         node.op() == "aten.native_batch_norm.default" || node.op() == "aten.cudnn_batch_norm.default";
}

bool is_transposed(const ir::Node& node) {
  const ir::Arg* flag = node.arg("transposed");
  return node.op().starts_with("aten.conv_transpose") || (flag && flag->boolean().value_or(false));
}

bool is_layer(const ir::Node* node) {
  return node && (node->op().starts_with("aten.conv") || node->op().starts_with("aten._convolution") ||
                  node->op() == "aten.linear.default");
}

// A norm and the layer before it, their constants as the file has them.
struct Fold {
  ir::Weight kernel;
  std::optional<ir::Weight> bias, gamma, beta;
  ir::Weight mean, var;
  double eps = 1e-5;
  std::int64_t channels = 0;
  std::int64_t inner = 1;  // elements of the kernel between one channel and the next
  std::int64_t group = 0;  // transposed: channels of a group, which the kernel's first dim repeats; 0: plain
  std::int64_t block = 0;  // transposed: elements of the kernel that belong to a group
};

std::vector<double> numbers(const ir::Weight& weight) {
  const HostTensor dense = ttrt::contiguous(ttrt::convert(view_of(weight), DType::f64));
  return {dense.as<double>(), dense.as<double>() + dense.numel()};
}

std::vector<std::byte> bytes_of(const std::vector<double>& values, DType dtype) {
  HostTensor host = ttrt::empty_host(DType::f64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), host.as<double>());
  const HostTensor out = ttrt::convert(host, dtype);
  return {out.data, out.data + out.nbytes()};
}

std::vector<double> scales(const Fold& fold) {
  const std::vector<double> var = numbers(fold.var);
  const std::vector<double> gamma = fold.gamma ? numbers(*fold.gamma) : std::vector<double>(var.size(), 1.0);
  std::vector<double> out;
  for (std::size_t i = 0; i < var.size(); ++i) out.push_back(gamma[i] / std::sqrt(var[i] + fold.eps));
  return out;
}

std::vector<std::byte> folded_kernel(const Fold& fold) {
  const std::vector<double> scale = scales(fold);
  std::vector<double> kernel = numbers(fold.kernel);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t channel =
        fold.group > 0 ? at / fold.block * fold.group + at / fold.inner % fold.group : at / fold.inner;
    kernel[i] *= scale[static_cast<std::size_t>(channel)];
  }
  return bytes_of(kernel, fold.kernel.dtype);
}

std::vector<std::byte> folded_bias(const Fold& fold) {
  const std::vector<double> scale = scales(fold), mean = numbers(fold.mean);
  const std::vector<double> bias = fold.bias ? numbers(*fold.bias) : std::vector<double>(scale.size(), 0.0);
  const std::vector<double> beta = fold.beta ? numbers(*fold.beta) : std::vector<double>(scale.size(), 0.0);
  std::vector<double> out;
  for (std::size_t i = 0; i < scale.size(); ++i) out.push_back((bias[i] - mean[i]) * scale[i] + beta[i]);
  return bytes_of(out, fold.kernel.dtype);
}

using Miss = std::optional<match::NearMiss>;

Miss miss(const ir::Node& at, ReasonCode code, std::string expected, std::string found) {
  return match::NearMiss{
      .matched = 2, .node = &at, .code = code, .expected = std::move(expected), .found = std::move(found)};
}

std::string type_of(const ir::Value* value) { return value ? value->type.str() : "none"; }

class Finder {
 public:
  Finder(const PassContext& context, const ir::Node& norm, const ir::Node& layer)
      : context_(context), norm_(norm), layer_(layer) {}

  Miss find(Fold& out) {
    for (std::size_t i = 1; i < norm_.results().size(); ++i)
      if (norm_.result(i)->has_uses())
        return miss(norm_, ReasonCode::MultiUse, "a norm whose statistics nobody reads", "uses of them");
    if (const ir::Arg* training = norm_.arg("training"); training && training->boolean() != false)
      return miss(norm_, ReasonCode::PatternNearMiss, "running statistics", "the batch's, as in training");
    if (layer_.result()->use_count() != 1)
      return miss(layer_, ReasonCode::MultiUse, "no other reader of the layer's result",
                  std::to_string(layer_.result()->use_count()) + " uses");
    const auto kernel = constant(layer_.operand(1)), mean = named("running_mean"), var = named("running_var");
    if (!kernel || !mean || !var)
      return miss(
          kernel ? norm_ : layer_, ReasonCode::NonConstantWeight, "constants whose bytes are known",
          kernel ? "running statistics that are not" : "a weight that is not: " + match::describe(layer_.arg(1)));
    out.kernel = *kernel;
    out.mean = *mean;
    out.var = *var;
    const std::pair<const ir::Value*, std::optional<ir::Weight>*> optional[] = {
        {layer_.operand(2), &out.bias}, {value("weight"), &out.gamma}, {value("bias"), &out.beta}};
    for (const auto& [operand, weight] : optional) {
      if (!operand) continue;
      *weight = constant(operand);
      if (!*weight)
        return miss(norm_, ReasonCode::NonConstantWeight, "constants whose bytes are known",
                    "a weight or bias that is not: $" + operand->name);
    }
    const ir::Arg* eps = norm_.arg("eps") ? norm_.arg("eps") : norm_.arg("epsilon");
    if (!eps || !eps->number())
      return miss(norm_, ReasonCode::PatternNearMiss, "a constant eps", eps ? match::describe(*eps) : "none");
    out.eps = *eps->number();
    return lay_out(out);
  }

 private:
  const ir::Value* value(std::string_view name) const {
    const ir::Arg* arg = norm_.arg(name);
    return arg ? arg->value() : nullptr;
  }
  std::optional<ir::Weight> named(std::string_view name) const { return constant(value(name)); }

  std::optional<ir::Weight> constant(const ir::Value* operand) const {
    const ir::Weight* weight = operand ? context_.model.weight_of(operand) : nullptr;
    if (!weight || !weight->storage || weight->storage->absent() || !is_floating(weight->dtype)) return std::nullopt;
    for (const ir::GraphOutput& output : context_.model.graph->outputs())
      if (output.target == ir::weight_input(operand)->target) return std::nullopt;  // state that a run changes
    return *weight;
  }

  // Where a channel's elements lie in the kernel.
  Miss lay_out(Fold& out) const {
    const auto& sizes = out.kernel.sizes;
    const ir::Type& type = layer_.result()->type;
    const bool linear = layer_.op() == "aten.linear.default";
    if (!type.has_shape || type.rank() != static_cast<int>(sizes.size()) || (linear && type.rank() != 2))
      return miss(layer_, ReasonCode::RankUnsupported, "a layer whose channels are the norm's",
                  type_of(layer_.result()));
    out.channels = sizes[0];
    if (is_transposed(layer_)) {
      const ir::Arg* groups = layer_.arg("groups");
      if (!groups || !groups->integer() || *groups->integer() < 1 || sizes[0] % *groups->integer() != 0)
        return miss(layer_, ReasonCode::PatternNearMiss, "a constant number of groups",
                    groups ? match::describe(*groups) : "none");
      out.group = sizes[1];
      out.channels = sizes[1] * *groups->integer();
      for (std::size_t i = 2; i < sizes.size(); ++i) out.inner *= sizes[i];
      out.block = out.inner * sizes[1] * (sizes[0] / *groups->integer());
    } else {
      for (std::size_t i = 1; i < sizes.size(); ++i) out.inner *= sizes[i];
    }
    if (out.kernel.numel() == 0)
      return miss(layer_, ReasonCode::PatternNearMiss, "a kernel with elements", type_of(layer_.operand(1)));
    const auto given = [](const std::optional<ir::Weight>& w) { return w ? &*w : nullptr; };
    const ir::Weight* all[] = {&out.mean, &out.var, given(out.bias), given(out.gamma), given(out.beta)};
    for (const ir::Weight* w : all)
      if (w && w->numel() != out.channels)
        return miss(norm_, ReasonCode::PatternNearMiss,
                    "numbers for each of the layer's " + std::to_string(out.channels) + " channels",
                    std::to_string(w->numel()) + " of them");
    return std::nullopt;
  }

  const PassContext& context_;
  const ir::Node& norm_;
  const ir::Node& layer_;
};

ir::Value* constant(Rewriter& r, const std::string& name, DType dtype, std::vector<std::int64_t> sizes,
                    std::function<std::vector<std::byte>()> produce) {
  ir::Weight weight;
  weight.dtype = dtype;
  weight.strides = ir::contiguous_strides(sizes);
  weight.sizes = std::move(sizes);
  auto storage = std::make_shared<ir::Storage>();
  storage->bytes = weight.nbytes();
  storage->produce = std::move(produce);
  weight.storage = std::move(storage);
  return r.constant(name, std::move(weight));
}

void rewrite(PassContext& context, ir::Node* node) {
  if (!is_batch_norm(*node)) return;
  ir::Node* layer = node->operand(0) ? node->operand(0)->def() : nullptr;
  if (!is_layer(layer) || layer->graph() != node->graph()) return;
  Fold fold;
  if (const Miss misfit = Finder(context, *node, *layer).find(fold)) {
    refuse_near_miss(context, pass, formula, *node, *misfit);
    return;
  }
  const auto lowerings = ttrt::lowerings_of(node->op());
  if (Refusal refusal = joining_refusal(context, *layer, *node, lowerings.empty() ? "" : lowerings.front().first->name))
    return context.refuse(pass, *node, *refusal);
  Rewriter r(context, pass, node);
  const std::string name = ir::weight_input(layer->operand(1))->target;
  std::vector<ir::Arg> args = layer->args();
  args.resize(std::max<std::size_t>(args.size(), 3));
  args[1] = constant(r, name + ".normed", fold.kernel.dtype, fold.kernel.sizes, [fold] { return folded_kernel(fold); });
  args[2] =
      constant(r, name + ".normed_bias", fold.kernel.dtype, {fold.channels}, [fold] { return folded_bias(fold); });
  // The weights' module names the node; the norm's other results have no readers.
  const auto provenance = layer->provenance;
  ir::Node* made =
      r.commit_as(layer->op(), std::move(args),
                  {.rule = "layer + batch norm", .matched = {layer}, .results = {0}, .keep_strides = true});
  if (made) made->provenance = provenance;
}

void run(PassContext& context) { rewrite_all(context, rewrite); }

}  // namespace
}  // namespace ttc::fold_batch_norm_pass

TTC_REGISTER_PASS({"fold-batch-norm", "Fold batch norms with running statistics into the layer before",
                   ttc::fold_batch_norm_pass::run});
