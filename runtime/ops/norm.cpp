// See norm.h.
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

// Three passes of the matrix unit's element-wise path over every tile, and two reductions.
Cost norm_cost(const OpCall& call) {
  Cost cost = per_tile_cost(call, 3 * 32.0 + 2 * 16.0);
  const TileGrid g(spec_of(call, "x"));
  // Whole rows of tiles, read once; longer ones in blocks of 32 tiles, once per pass.
  constexpr std::int64_t longest = 1 << 20, block = 32;
  const bool whole = 3 * g.across * g.bytes <= longest;
  cost.l1_bytes = 3 * (whole ? g.across : block) * g.bytes;
  if (!whole) cost.dram_bytes += 2 * spec_of(call, "x").nbytes();
  return cost;
}

}  // namespace ttrt::ops
