// Names of the context's enums, device strings.
#include "dispatch/context.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "dispatch/names.h"

namespace ttrt::dispatch {
namespace {

constexpr std::array<std::string_view, platform_count> platform_names{"cuda", "rocm", "cpu", "hpu", "xpu", "tt"};
constexpr std::array<std::string_view, 5> kind_names{"tensor", "tokenization", "sampling", "communication", "prepost"};
constexpr std::array<std::string_view, 4> order_names{"BSHD", "BHSD", "NHD", "HND"};
constexpr std::array<std::string_view, 3> mask_names{"none", "bool", "float"};
constexpr std::array<std::string_view, 5> kv_names{"none", "contiguous", "paged", "virtual", "unified"};
constexpr std::array<std::string_view, 10> quant_names{"none",     "int4",     "int8",      "nvfp4",     "mxfp4",
                                                       "fp8_e4m3", "fp8_e5m2", "bfloat8_b", "bfloat4_b", "bfloat2_b"};

}  // namespace

std::string_view to_string(Platform platform) { return platform_names[static_cast<std::size_t>(platform)]; }
std::string_view to_string(OpKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }
std::string_view to_string(AxisOrder order) { return order_names[static_cast<std::size_t>(order)]; }
std::string_view to_string(MaskType mask) { return mask_names[static_cast<std::size_t>(mask)]; }
std::string_view to_string(KvStrategy strategy) { return kv_names[static_cast<std::size_t>(strategy)]; }
std::string_view to_string(QuantFormat format) { return quant_names[static_cast<std::size_t>(format)]; }
std::optional<Platform> platform_from_string(std::string_view name) {
  return from_name<Platform>(platform_names, name);
}
std::optional<AxisOrder> axis_order_from_string(std::string_view name) {
  return from_name<AxisOrder>(order_names, name);
}

std::string DeviceRecord::text() const {
  std::string name_text(to_string(platform));
  return platform == Platform::cpu ? name_text : name_text + ":" + std::to_string(index);
}

DeviceRecord device_record(std::string_view device) {
  DeviceRecord out;
  const std::size_t colon = device.find(':');
  const auto platform = platform_from_string(device.substr(0, colon));
  out.platform = platform.value_or(Platform::cpu);
  if (platform && colon != std::string_view::npos) {
    const char* const end = device.data() + device.size();
    const auto [rest, error] = std::from_chars(device.data() + colon + 1, end, out.index);
    if (error != std::errc() || rest != end || out.index < 0)
      throw ValueError("bad device '" + std::string(device) + "': expected a type and an index, as in cuda:0");
  }
  return out;
}

}  // namespace ttrt::dispatch
