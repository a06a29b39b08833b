// Replay of conversions between formats: on the host (host_pack_unpack) and on the device (typecast).
#include <algorithm>
#include <cmath>

#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

ttc::Reason dtype_refusal(const std::string& what) { return {ttc::ReasonCode::DtypeUnsupported, what}; }

Outcome host_pack_unpack(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"format"})) return *refusal;
  const auto format = c.format_param("format");
  if (!format || !is_float_format(*format)) return dtype_refusal("host packing goes to a float format");
  const Tensor& in = c.inputs.at(0);
  return Outputs{from_tiles(to_tiles(in, *format), *format, in.shape)};
}

// Floats to 16-bit integers go to the nearest, ties away; integers saturate; to floats they go through a 32-bit Dest,
// which the packer rounds.
Outcome cast_integers(const Tensor& in, DataType to, const Tensor& expected) {
  Tensor out = in;
  if (is_float_format(to)) {
    out.dtype = DataType::float32;
    if (is_block_format(to)) {
      RecordCall call("tt.convert");
      return Outputs{call.stored("x", out).set("format", std::string(to_string(to))).result(Numerics::exact).values};
    }
    return Outputs{packed_as(std::move(out), expected)};
  }
  const bool small = to == DataType::uint16;
  if (is_float_format(in.dtype) && !small) return dtype_refusal("casts of floats to 32-bit integers");
  for (float& v : out.values) {
    v = std::round(v);
    if (small) v = std::clamp(v, 0.0F, 65535.0F);
    if (to == DataType::uint32) v = std::max(v, 0.0F);
  }
  return Outputs{std::move(out.values)};
}

Outcome typecast(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"to"})) return *refusal;
  const auto to = c.format_param("to");
  const Tensor& in = c.inputs.at(0);
  if (!to) return dtype_refusal("a cast to no format");
  if (!is_float_format(*to) || !is_float_format(in.dtype)) return cast_integers(in, *to, c.expected.at(0));
  RecordCall call("tt.convert");
  auto result = call.stored("x", in).set("format", std::string(to_string(*to))).run(numerics);
  if (auto* reason = std::get_if<ttc::Reason>(&result)) return std::move(*reason);
  return Outputs{std::move(std::get<Tensor>(result).values)};
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(host_pack_unpack, "host_pack_unpack", ttrt::replay::host_pack_unpack)
TTRT_REGISTER_REPLAY(typecast, "typecast", ttrt::replay::typecast)
