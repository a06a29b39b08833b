// Replay of what the device computes row by row beside the records: softmax behind a scale and a mask, variances,
// attention of one query.
#include <algorithm>
#include <cmath>

#include "device/exact_attention.h"
#include "device/sfpu.h"
#include "ops/library.h"
#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

// x scale + mask in the matrix unit, the product through a bfloat16 buffer whatever the Dest; then the stable softmax.
// The scale is cut to bfloat16. Of a mask only the first row counts, for every row of x, of a causal one the row of the
// same number; each batch item may have its own.
Outcome masked_softmax(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"scale", "head_size", "attention_mask", "causal"})) return *refusal;
  if (numerics == Numerics::fast) return ttc::Reason{ttc::ReasonCode::Unimplemented, c.op + " in fast numerics"};
  const Tensor& x = c.input("x");
  const Tensor* mask = c.find("mask");
  const Extent e = extent_of(x.shape);
  const Extent of_mask = mask != nullptr ? extent_of(mask->shape) : Extent{};
  const bool of_items = of_mask.batch == 1 || (x.shape.size() == 4 && of_mask.batch == x.shape[0]);
  const ttc::Json* rows = ttc::find_member(c.params, "causal");
  const bool causal = mask != nullptr && rows != nullptr && ttc::as_bool(*rows);
  if (mask != nullptr && (of_mask.cols != e.cols || !of_items || (causal && of_mask.rows != e.rows)))
    return ttc::Reason{ttc::ReasonCode::Unsupported, "a mask of another shape"};
  const ttc::Json* given = ttc::find_member(c.params, "scale");
  const float wanted = given != nullptr
                           ? static_cast<float>(ttc::as_double(*given))
                           : 1.0F / std::sqrt(static_cast<float>(ttc::as_double(ttc::member(c.params, "head_size"))));
  const exact::RowConfig config =
      exact::row_config(c.config ? *c.config : *ops::library_config("tt.softmax", DataType::bfloat16, c.arch), c.arch);
  const float scale = cut_bf16(wanted);
  const std::vector<float> scales(static_cast<std::size_t>(e.cols), scale);
  Tensor out = x;
  out.dtype = config.dest == Dest::bits32 ? DataType::float32 : DataType::bfloat16;
  std::vector<float>& values = out.values.changed();
  for (std::int64_t r = 0; r < e.batch * e.rows; ++r) {
    float* row = values.data() + r * e.cols;
    fpu::mul(row, scales.data(), row, e.cols, config.dest, config.fidelity);
    std::transform(row, row + e.cols, row, round_bf16_away);
    if (mask != nullptr) {
      const std::int64_t item = r / (e.batch / of_mask.batch * e.rows);
      const std::int64_t at = item * of_mask.rows + (causal ? r % e.rows : 0);
      fpu::add(row, mask->values.data() + at * e.cols, row, e.cols, config.dest);
    }
    if (config.dest == Dest::bits16) std::transform(row, row + e.cols, row, round_bf16_away);
    exact::softmax_row(row, e.cols, config, true);
  }
  return Outputs{packed_as(std::move(out), c.expected.at(0))};
}

// One query of each of q's heads [1, N, heads, d] over the keys up to cur_pos of its batch item. A chunk is the largest
// power of 2, up to 512, that divides the number of keys there is room for; only one chunk is recorded.
Outcome decode(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"cur_pos", "scale"})) return *refusal;
  const Tensor &q = c.input("q"), &k = c.input("k"), &v = c.input("v");
  const ttc::Json& positions = ttc::as_array(ttc::member(c.params, "cur_pos"));
  const bool fits = q.shape.size() == 4 && k.shape.size() == 4 && v.shape == k.shape && q.shape[0] == 1 &&
                    q.shape[1] == k.shape[0] && k.shape[1] > 0 && q.shape[2] % k.shape[1] == 0 &&
                    q.shape[3] == k.shape[3] && k.shape[3] % tile_dim == 0 &&
                    static_cast<std::int64_t>(positions.size()) == q.shape[1];
  if (!fits) return ttc::Reason{ttc::ReasonCode::Unsupported, "the operands' shapes do not fit"};
  const std::int64_t heads = q.shape[2], width = q.shape[3], kv_heads = k.shape[1], keys = k.shape[2];
  const ttc::Json* scale = ttc::find_member(c.params, "scale");
  exact::AttentionCall call{.shape = {.queries = tile_dim, .keys = 0, .width = width, .value_width = width}};
  call.scale = scale != nullptr ? static_cast<float>(ttc::as_double(*scale)) : 1 / std::sqrt(static_cast<float>(width));
  call.config = exact::row_config(
      c.config ? *c.config : *ops::library_config("tt.attention", DataType::bfloat16, c.arch), c.arch);
  call.approx_exp = true;
  call.key_chunk = call.shape.keys = std::min<std::int64_t>(keys & -keys, 512);
  if (call.key_chunk < tile_dim) return ttc::Reason{ttc::ReasonCode::Unsupported, "chunks of less than a tile"};
  Tensor out = q;
  std::vector<float>& values = out.values.changed();
  std::vector<float> rows(static_cast<std::size_t>(tile_dim * width)), result(rows.size());
  for (std::int64_t i = 0; i < q.shape[1] * heads; ++i) {
    call.shape.keys_used = ttc::as_int(positions[static_cast<std::size_t>(i / heads)]) + 1;
    if (call.shape.keys_used < 1 || call.shape.keys_used > call.key_chunk)
      return ttc::Reason{ttc::ReasonCode::Unimplemented, "more than one chunk of keys"};
    const std::int64_t at = (i / heads * kv_heads + i % heads / (heads / kv_heads)) * keys * width;
    std::copy_n(q.values.data() + i * width, width, rows.begin());
    exact::attention_rows(rows.data(), k.values.data() + at, v.values.data() + at, call, 0, result.data());
    std::copy_n(result.begin(), width, values.data() + i * width);
  }
  return Outputs{packed_as(std::move(out), c.expected.at(0))};
}

// The dims that a reduction goes over, all where it names none; nullopt where the tensor has no such dims.
std::optional<std::vector<bool>> reduced_dims(const ttc::Json* dim, std::size_t rank) {
  std::vector<bool> out(rank, dim == nullptr || dim->is_null());
  const auto size = static_cast<std::int64_t>(rank);
  const auto mark = [&](std::int64_t d) {
    if (d >= -size && d < size) out[static_cast<std::size_t>((d + size) % size)] = true;
    return d >= -size && d < size;
  };
  if (dim == nullptr || dim->is_null()) return out;
  if (!dim->is_array()) return mark(ttc::as_int(*dim)) ? std::optional(out) : std::nullopt;
  for (const ttc::Json& d : *dim)
    if (!mark(ttc::as_int(d))) return std::nullopt;
  return out;
}

// The tensor's elements with the reduced dims last, in their order.
std::vector<float> rows_of(const Tensor& x, const std::vector<bool>& reduced) {
  std::vector<std::int64_t> sizes, steps;
  for (const bool which : {false, true})
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
      if (reduced[d] != which) continue;
      sizes.push_back(x.shape[d]);
      steps.push_back(volume(Shape(x.shape.begin() + static_cast<std::ptrdiff_t>(d) + 1, x.shape.end())));
    }
  std::vector<float> out(x.values.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), from = 0;
    for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) from += rest % sizes[d] * steps[d];
    out[i] = x.values[static_cast<std::size_t>(from)];
  }
  return out;
}

// In one pass on the vector unit with a 32-bit Dest; a root where it is a deviation. Recorded for one dim; several are
// one row after the other here.
Outcome spread(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"dim", "keepdim", "correction"})) return *refusal;
  const Tensor& x = c.input("x");
  const auto reduced = reduced_dims(ttc::find_member(c.params, "dim"), x.shape.size());
  if (!reduced || x.values.empty()) return ttc::Reason{ttc::ReasonCode::Unsupported, c.op + " over no such dims"};
  const std::vector<float> rows = rows_of(x, *reduced);
  std::int64_t n = 1;
  for (std::size_t d = 0; d < x.shape.size(); ++d) n *= (*reduced)[d] ? x.shape[d] : 1;
  const ttc::Json* given = ttc::find_member(c.params, "correction");  // a number, or whether it is 1
  float correction = 1.0F;
  if (given != nullptr && !given->is_null())
    correction =
        given->is_boolean() ? static_cast<float>(given->get<bool>()) : static_cast<float>(ttc::as_double(*given));
  Tensor out{.name = {}, .shape = c.expected.at(0).shape, .dtype = DataType::float32, .values = {}};
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(rows.size()); at += n) {
    const float variance = exact::variance(rows.data() + at, n, 1, correction);
    const auto bits = std::bit_cast<std::uint32_t>(variance);
    out.values.changed().push_back(
        c.op == "var" ? variance : std::bit_cast<float>(sfpu::apply(sfpu::Function::sqrt, {}, Dest::bits32, bits)));
  }
  return Outputs{packed_as(std::move(out), c.expected.at(0))};
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(attention_softmax, "attention_softmax", ttrt::replay::masked_softmax, "x mask")
TTRT_REGISTER_REPLAY(attention_softmax_inplace, "attention_softmax_", ttrt::replay::masked_softmax, "x mask")
TTRT_REGISTER_REPLAY(scale_mask_softmax, "scale_mask_softmax", ttrt::replay::masked_softmax, "x mask")
TTRT_REGISTER_REPLAY(var, "var", ttrt::replay::spread)
TTRT_REGISTER_REPLAY(std, "std", ttrt::replay::spread)
TTRT_REGISTER_REPLAY(attention_decode, "scaled_dot_product_attention_decode", ttrt::replay::decode, "q k v")
