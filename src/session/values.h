// Values that go into a model and come out of it, as the host sees them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/host_tensor.h"
#include "ir/model.h"
#include "ops/value.h"

namespace ttc {

// A copy of the tensor's bytes: a model may write its inputs, and files are mapped read-only.
ttrt::HostTensor own_tensor(const ir::Weight& weight);
// The same the other way: a contiguous weight, for files.
ir::Weight own_weight(const ttrt::HostTensor& tensor);
// A tensor on the host: as it is, or fetched from the device; nullopt for everything else.
std::optional<ttrt::HostTensor> host_tensor_of(const ttrt::RtValue& value);
// The same, and numbers and bools as the tensors that an --io file holds for them.
std::optional<ttrt::HostTensor> as_tensor(const ttrt::RtValue& value);
// Lists among the outputs give way to their items, as an --io file counts them.
std::vector<ttrt::RtValue> flat_outputs(const std::vector<ttrt::RtValue>& outputs);
// "f32[2, 10]", "7", "True"
std::string value_text(const ttrt::RtValue& value);

}  // namespace ttc
