// Rows of a band, one after the other, through the function of a norm.
#include "ops/norm.h"

namespace ttrt::ops {

using ttc::Reason;
using ttc::ReasonCode;
namespace ir = ttc::ir;

std::variant<std::int64_t, Reason> check_norm(const LowerContext& context) {
  if (auto no = check_floats(context)) return *no;
  const AtenArgs args(context);
  const auto shape = args["normalized_shape"].integers();
  if (!shape) return Reason{ReasonCode::DynamicShape, "normalized_shape is computed at run time"};
  if (shape->size() != 1)
    return Reason{ReasonCode::RankUnsupported, "a norm over " + std::to_string(shape->size()) + " dims"};
  for (const char* name : {"weight", "bias"}) {
    if (!args.given(name)) continue;
    if (!ir::is_weight(args[name].value()))
      return Reason{ReasonCode::NonConstantWeight, std::string("the ") + name + " is computed at run time"};
    if (args.rank(name) != 1) return Reason{ReasonCode::RankUnsupported, std::string("the ") + name + " is no vector"};
  }
  if (args.given("eps") && !args.number("eps")) return unsupported("eps is computed at run time");
  return shape->front();
}

TensorSpec norm_row_spec(const OpCall& call) {
  const TensorSpec* x = call.tensor("x");
  const bool wide = x != nullptr && x->dtype == DataType::float32;
  return tiled({1, call.integer("normalized_size")}, wide ? DataType::float32 : DataType::bfloat16);
}

std::vector<TensorSpec> infer_norm(const OpCall& call) {
  const TensorSpec& x = spec_of(call, "x");
  if (x.logical.empty() || x.logical.back() != call.integer("normalized_size")) {
    bad_call(call, "the last dim is not normalized_size " + std::to_string(call.integer("normalized_size")));
  }
  return {tiled(x.logical, x.dtype)};
}

// Three passes of the matrix unit's element-wise path over every tile, and two reductions, in four phases each; weight
// and bias are a pass each. What norms by the root of the mean square has no mean to find and to take away.
Work norm_work(const OpCall& call) {
  Work work = tile_work(call);
  const TileGrid g(spec_of(call, "x"));
  const double tiles = static_cast<double>(spec_of(call, "x").tiles());
  work.pieces = g.batch * g.down;
  work.eltwise_tiles = 3 * 4 * tiles;
  work.reduced_tiles = 2 * 4 * tiles;
  const bool mean = call.op->name == "tt.layer_norm";
  work.handovers = tiles * ((mean ? 5 : 3) + (call.tensor("weight") != nullptr ? 1 : 0) +
                            (mean && call.tensor("bias") != nullptr ? 1 : 0));
  work.unpacked_bytes = 5 * tiles * static_cast<double>(g.bytes);
  work.packed_bytes = 3 * tiles * static_cast<double>(g.bytes);
  // Whole rows of tiles, read once; longer ones in blocks of 32 tiles, once per pass.
  constexpr std::int64_t longest = 1 << 20, block = 32;
  const bool whole = 3 * g.across * g.bytes <= longest;
  work.l1_bytes = 3 * (whole ? g.across : block) * g.bytes;
  if (!whole) work.moved.insert(work.moved.end(), 2, pages_of(spec_of(call, "x"), false));
  return work;
}

}  // namespace ttrt::ops
