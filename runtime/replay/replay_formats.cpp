// Replay of conversions between formats: on the host (host_pack_unpack) and on the device (typecast).
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

Outcome typecast(const Case& c, Numerics numerics) {
  if (auto refusal = c.unknown_params({"to"})) return *refusal;
  const auto to = c.format_param("to");
  const Tensor& in = c.inputs.at(0);
  if (!to || !is_float_format(*to) || !is_float_format(in.dtype))
    return dtype_refusal("casts are between float formats");
  RecordCall call("tt.convert");
  auto result = call.stored("x", in).set("format", std::string(to_string(*to))).run(numerics);
  if (auto* reason = std::get_if<ttc::Reason>(&result)) return std::move(*reason);
  return Outputs{std::move(std::get<Tensor>(result).values)};
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(host_pack_unpack, "host_pack_unpack", ttrt::replay::host_pack_unpack)
TTRT_REGISTER_REPLAY(typecast, "typecast", ttrt::replay::typecast)
