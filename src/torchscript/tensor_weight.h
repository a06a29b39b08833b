// Tensors of LibTorch as the IR's weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>

#include "ir/model.h"

namespace ttc::ts {

using Storages = std::map<const void*, std::shared_ptr<const ir::Storage>>;

// The weight shares the tensor's bytes; tensors of one storage share an ir::Storage through `storages`. nullopt for
// what is not strided, not on the CPU, or of a dtype the IR does not know.
std::optional<ir::Weight> weight_of(const at::Tensor& tensor, Storages& storages);

}  // namespace ttc::ts
