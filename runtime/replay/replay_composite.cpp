// Replay of what no single record computes: the fused rotary embedding (exact numerics: device/exact_rows.h; fast
// numerics: the records that a model's becomes), and argmax, whose index is the same with either numerics.
#include <algorithm>

#include "device/exact_rows.h"
#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

using exact::RowConfig;

ttc::Refusal refuse(const Case& c) {
  for (const Tensor& t : c.inputs) {
    if (!is_float_format(t.dtype)) return ttc::Reason{ttc::ReasonCode::DtypeUnsupported, c.op + " is of float formats"};
    if (volume(t.shape) == 0) return ttc::Reason{ttc::ReasonCode::Unsupported, "empty operands"};
  }
  return std::nullopt;
}

// What the op library takes where the caller gives no configuration.
constexpr ComputeConfig rotary_default{.math_fidelity = MathFidelity::HiFi4, .fp32_dest_acc_en = false};

// Dest's values as the packer leaves them in the expected format.
std::vector<float> packed(const std::vector<float>& values, const Tensor& expected, Dest dest) {
  const Extent e = extent_of(expected.shape);
  const auto tile = static_cast<std::size_t>(tile_bytes(expected.dtype));
  std::vector<std::byte> bytes(static_cast<std::size_t>(e.tiles()) * tile);
  std::vector<float> face_order(tile_elements);
  std::byte* to = bytes.data();
  for (std::int64_t b = 0; b < e.batch; ++b) {
    for (std::int64_t t = 0; t < e.tile_rows() * e.tile_cols(); ++t, to += tile) {
      const std::int64_t row0 = t / e.tile_cols() * tile_dim, col0 = t % e.tile_cols() * tile_dim;
      for (int i = 0; i < tile_elements; ++i) {
        const int face = i / face_elements;
        const std::int64_t row = row0 + face / 2 * 16 + i % face_elements / 16, col = col0 + face % 2 * 16 + i % 16;
        const bool inside = row < e.rows && col < e.cols;
        face_order[static_cast<std::size_t>(i)] =
            inside ? values[static_cast<std::size_t>((b * e.rows + row) * e.cols + col)] : 0.0F;
      }
      pack_dest(expected.dtype, dest, face_order.data(), to);
    }
  }
  return from_tiles(bytes, expected.dtype, expected.shape);
}

// An index is the same with either numerics.
Outcome argmax(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"dim"})) return *refusal;
  if (auto refusal = refuse(c)) return *refusal;
  if (auto refusal = c.empty_operands()) return *refusal;
  const Tensor& x = c.input("x");
  const ttc::Json* dim = ttc::find_member(c.params, "dim");
  if (dim == nullptr || (ttc::as_int(*dim) != -1 && ttc::as_int(*dim) + 1 != static_cast<std::int64_t>(x.shape.size())))
    return ttc::Reason{ttc::ReasonCode::Unimplemented, c.op + " over another dim than the last"};
  const Extent e = extent_of(x.shape);
  std::vector<float> out;
  for (std::int64_t r = 0; r < e.batch * e.rows; ++r) {
    out.push_back(static_cast<float>(exact::argmax(x.values.data() + r * e.cols, e.cols)));
  }
  return Outputs{out};
}

Tensor first_rows(const Tensor& t, std::int64_t rows) {
  RecordCall call("tt.slice");
  const auto dim = static_cast<std::int64_t>(t.shape.size()) - 2;
  return call.tensor("x", t).set("dim", dim).set("start", std::int64_t{0}).set("end", rows).result(Numerics::fast);
}

// The ops that a model's rotary embedding becomes: x cos + concat(-x2, x1) sin.
Outcome fast_rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& expected) {
  const auto fast = Numerics::fast;
  const auto half = [&](std::int64_t start, std::int64_t end) {
    RecordCall call("tt.slice");
    return call.tensor("x", x).set("dim", std::int64_t{-1}).set("start", start).set("end", end).result(fast);
  };
  const auto binary = [&](std::string_view op, const Tensor& a, const Tensor& b) {
    return RecordCall(op).tensor("a", a).tensor("b", b).result(fast);
  };
  const std::int64_t cols = x.shape.back(), rows = extent_of(x.shape).rows;
  const Tensor low = half(0, cols / 2), high = RecordCall("tt.neg").tensor("x", half(cols / 2, cols)).result(fast);
  const Tensor turned = RecordCall("tt.concat").tensors("xs", {&high, &low}).set("dim", std::int64_t{-1}).result(fast);
  const Tensor along = binary("tt.mul", x, first_rows(cos, rows));
  const Tensor across = binary("tt.mul", turned, first_rows(sin, rows));
  return record_outcome(RecordCall("tt.add").tensor("a", along).tensor("b", across), {expected}, fast);
}

Outcome rotary(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({})) return *refusal;
  if (auto refusal = refuse(c)) return *refusal;
  const Tensor &x = c.input("x"), &cos = c.input("cos"), &sin = c.input("sin");
  const Extent e = extent_of(x.shape), angles = extent_of(cos.shape);
  if (e.cols % 2 != 0 || angles.batch != 1 || angles.rows < e.rows || angles.cols != e.cols || sin.shape != cos.shape) {
    return ttc::Reason{ttc::ReasonCode::Unsupported, "the angles' shape does not fit"};
  }
  if (numerics == Numerics::fast) return fast_rotary(x, cos, sin, c.expected.at(0));
  const RowConfig config = exact::row_config(c.config.value_or(rotary_default), c.arch);
  std::vector<float> out(x.values.size());
  for (std::int64_t r = 0; r < e.batch * e.rows; ++r) {
    const std::int64_t at = r * e.cols, angle = r % e.rows * e.cols;
    exact::rotary_row(x.values.data() + at, cos.values.data() + angle, sin.values.data() + angle, e.cols,
                      out.data() + at, config);
  }
  return Outputs{packed(out, c.expected.at(0), config.dest)};
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(argmax, "argmax", ttrt::replay::argmax)
TTRT_REGISTER_REPLAY(rotary_embedding, "rotary_embedding", ttrt::replay::rotary, "x cos sin")
