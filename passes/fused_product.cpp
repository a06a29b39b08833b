// One product of several layers: its constants and its limits.
#include "fused_product.h"

#include <algorithm>

#include "device/tile_formats.h"
#include "ops/bind.h"

namespace ttc {
namespace {

const ir::Arg& argument(const ir::Node& node, std::string_view name) { return *node.arg(name); }

// Bytes of one constant after another along the first dim.
ir::Weight stacked(const std::vector<ir::Weight>& parts) {
  ir::Weight out = parts.front();
  out.sizes[0] = 0;
  auto storage = std::make_shared<ir::Storage>();
  bool absent = false;
  for (const ir::Weight& part : parts) {
    out.sizes[0] += part.sizes[0];
    storage->bytes += part.nbytes();
    absent = absent || part.storage->absent();
  }
  if (!absent)
    storage->produce = [parts] {
      std::vector<std::byte> bytes;
      for (const ir::Weight& part : parts) {
        const ttrt::HostTensor dense = contiguous(view_of(part));
        bytes.insert(bytes.end(), dense.data, dense.data + dense.nbytes());
      }
      return bytes;
    };
  out.strides = ir::contiguous_strides(out.sizes);
  out.storage_offset = 0;
  out.storage = std::move(storage);
  return out;
}

ir::Weight zeros(const ir::Weight& like, std::int64_t size) {
  const auto bytes = static_cast<std::size_t>(size * size_of(like.dtype));
  return ir::make_weight(like.dtype, {size}, std::vector<std::byte>(bytes));
}

}  // namespace

bool is_packed_linear(const ir::Node& node) {
  const ttrt::OpRecord* record = node.op().starts_with("tt.") ? ttrt::find_op(node.op()) : nullptr;
  const ttrt::Packed* rule = record ? ttrt::pack_rule(*record, "weight") : nullptr;
  if (!rule || rule->form != ttrt::Packed::Form::transposed) return false;
  const ir::Arg* shape = node.arg("weight_shape");
  return shape && shape->list() && shape->list()->size() == 2;
}

FusedProduct::FusedProduct(PassContext& context, std::vector<ir::Node*> linears, const ir::Provenance& around)
    : context_(context), linears_(std::move(linears)), around_(around) {}

Refusal FusedProduct::refusal(bool cuts_activation) const {
  const ir::Node& first = *linears_[0];
  for (const ir::Node* each : linears_) {
    const ir::Node& linear = *each;
    if (linear.op() != first.op()) return unlike(linear, "are different operators");
    for (const std::string_view name : {"weight_format", "fidelity", "fp32_acc", "packer_l1_acc"})
      if (!(argument(linear, name) == argument(first, name))) return unlike(linear, "differ in " + std::string(name));
    if (!argument(linear, "activation").is_none() && !(cuts_activation && each == linears_[0]))
      return unlike(linear, "have activations behind them");
    for (const std::string_view name : {"weight", "bias"})
      if (Refusal no = constant_refusal(linear, name)) return no;
  }
  return block_refusal();
}

ir::Value* FusedProduct::emit(Rewriter& r) const {
  const ir::Node& first = *linears_[0];
  std::vector<ir::Arg> args = first.args();
  const auto set = [&](std::string_view name, ir::Arg arg) {
    args[static_cast<std::size_t>(first.schema()->index_of(name))] = std::move(arg);
  };
  std::int64_t width = 0;
  bool biased = false;
  for (const ir::Node* linear : linears_) {
    width += columns(*linear);
    biased = biased || weight(*linear, "bias") != nullptr;
  }
  set("weight", constant(r, "weight"));
  if (biased) set("bias", constant(r, "bias"));
  if (!argument(first, "activation").is_none()) set("activation", {});
  set("weight_shape", ir::Arg::ints({argument(first, "weight_shape").list()->at(0).integer().value(), width}));
  if (call_refusal(context_, *ttrt::find_op(first.op()), args)) return nullptr;
  ir::Type type = first.result()->type;
  type.sizes.back() = ir::SymExpr(width);
  ir::Value* out = r.emit(first.op(), std::move(args), std::move(type));
  ir::Provenance where = around_;
  where.source = first.provenance->source;
  for (const ir::Node* linear : linears_)
    if (const ir::Provenance& own = *linear->provenance; !own.module_path.empty())
      where.merged.emplace_back(own.module_path, own.module_class);
  out->def()->provenance = std::make_shared<const ir::Provenance>(std::move(where));
  return out;
}

std::int64_t FusedProduct::columns(const ir::Node& linear) {
  return argument(linear, "weight_shape").list()->at(1).integer().value();
}

Reason FusedProduct::unlike(const ir::Node& linear, const std::string& what) const {
  return {ReasonCode::PatternNearMiss,
          linears_[0]->provenance->module_path + " and " + linear.provenance->module_path + " " + what};
}

const ir::Weight* FusedProduct::weight(const ir::Node& linear, std::string_view name) const {
  const ir::Value* value = argument(linear, name).value();
  return value ? context_.model.weight_of(value) : nullptr;
}

Refusal FusedProduct::constant_refusal(const ir::Node& linear, std::string_view name) const {
  const ir::Node& first = *linears_[0];
  const ir::Weight *own = weight(linear, name), *other = weight(first, name);
  if (name == "bias" && (!own || !other)) {
    // With a 32-bit Dest the sums lose bits on their way to a bias, be it of zeros.
    if (own != other && argument(linear, "fp32_acc").boolean().value_or(true))
      return unlike(linear, "differ in having a bias, and sums in a 32-bit Dest meet one rounded");
    return std::nullopt;
  }
  if (!own || !other || own->dtype != other->dtype) return unlike(linear, "have weights of different dtypes");
  if (argument(linear, name).value()->use_count() != 1)
    return Reason{ReasonCode::MultiUse, "other operators read the " + std::string(name) + " of " +
                                            linear.provenance->module_path + ", which would be there twice"};
  return std::nullopt;
}

Refusal FusedProduct::block_refusal() const {
  constexpr std::int64_t shared = 16;  // columns of a row that share an exponent
  const std::string& name = *argument(*linears_[0], "weight_format").get_if<std::string>();
  const auto format = ttrt::data_type_from_string(name);
  if (!format || !ttrt::is_block_format(*format)) return std::nullopt;
  for (const ir::Node* part : linears_)
    if (part != linears_.back() && columns(*part) % shared != 0)
      return Reason{ReasonCode::PatternNearMiss,
                    part->provenance->module_path + " has " + std::to_string(columns(*part)) +
                        " columns: behind them, blocks of 16 would hold columns of two layers"};
  return std::nullopt;
}

ir::Value* FusedProduct::constant(Rewriter& r, std::string_view name) const {
  std::vector<ir::Weight> all;
  std::string title;
  const ir::Weight* any = nullptr;
  for (const ir::Node* part : linears_)
    if (const ir::Weight* own = weight(*part, name)) any = own;
  for (const ir::Node* part : linears_) {
    const ir::Weight* own = weight(*part, name);
    all.push_back(own ? *own : zeros(*any, columns(*part)));
    const std::string& path = ir::weight_input(argument(*part, "weight").value())->target;
    const std::string module = path.substr(0, path.rfind('.'));
    const auto dot = module.rfind('.');
    title += title.empty() ? module : "_" + module.substr(dot == std::string::npos ? 0 : dot + 1);
  }
  return r.constant(title + "." + std::string(name), stacked(all));
}

}  // namespace ttc
