// Replay of conversions between formats: on the host (host_pack_unpack) and on the device (typecast:
// device/typecast.h).
#include <algorithm>
#include <cmath>

#include "device/tensor.h"
#include "device/typecast.h"
#include "replay/records.h"
#include "replay/replay.h"
#include "replay/tiles.h"

namespace ttrt::replay {
namespace {

ttc::Reason dtype_refusal(const std::string& what) { return {ttc::ReasonCode::DtypeUnsupported, what}; }

bool is_whole(float value) { return std::trunc(value) == value && std::fabs(value) < 0x1p31F; }

Outcome host_pack_unpack(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"format"})) return *refusal;
  const auto format = c.format_param("format");
  if (!format || !is_float_format(*format)) return dtype_refusal("host packing goes to a float format");
  const Tensor& in = c.inputs.at(0);
  return Outputs{from_tiles(to_tiles(in, *format), *format, in.shape)};
}

Outcome typecast(const Case& c, Numerics) {
  if (auto refusal = c.unknown_params({"to"})) return *refusal;
  const auto to = c.format_param("to");
  const Tensor& in = c.inputs.at(0);
  if (!to) return dtype_refusal("a cast to no format");
  // How it rounds fractions was not recorded.
  const bool wide = *to == DataType::int32 || *to == DataType::uint32;
  if (is_float_format(in.dtype) && wide && !std::ranges::all_of(in.values, is_whole))
    return dtype_refusal("casts of fractions to 32-bit integers");
  const TensorSpec from{in.shape, in.dtype, Layout::tile, {}};
  TensorSpec cast = from;
  cast.dtype = *to;
  std::vector<std::byte> bytes(static_cast<std::size_t>(from.nbytes())),
      result(static_cast<std::size_t>(cast.nbytes()));
  tilize_from_host(host_values(in), from, bytes.data());
  ttrt::typecast(from, bytes.data(), *to, result.data());
  return Outputs{host_tensor(cast, result.data()).values};
}

}  // namespace
}  // namespace ttrt::replay

TTRT_REGISTER_REPLAY(host_pack_unpack, "host_pack_unpack", ttrt::replay::host_pack_unpack)
TTRT_REGISTER_REPLAY(typecast, "typecast", ttrt::replay::typecast)
