// Devices and values of single operators, for the files that implement tt_lib.h, dispatch.h and sessions.
#pragma once

#include <memory>

#include "api/value.h"
#include "device/device.h"
#include "ops/value.h"

namespace ttrt {

// A tensor on it finds its device from now on, as long as somebody holds it.
void remember_device(const std::shared_ptr<Device>& device);
// The runtime's device of a handle. Throws Error (usage) for nullptr.
const std::shared_ptr<Device>& inner_device(const std::shared_ptr<tt_lib::device::Device>& device);
// nullptr where nobody holds it any more.
std::shared_ptr<Device> device_of(const DeviceTensor& tensor);

RtValue to_rt_value(const Value& value);
Value from_rt_value(const RtValue& value);

}  // namespace ttrt
