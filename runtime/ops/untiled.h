// Movement that regroups elements across tiles, by way of rows without tiles: fast where element after element would go
// to another tile (device/move.h is for what moves in rows or whole tiles).
#pragma once

#include "ops/op.h"

namespace ttrt::ops {

// Empty where device/move.h serves better: block formats, and orders or shapes that keep rows together.
Kernel permute_untiled(const TensorSpec& x, const Shape& order);
Kernel reshape_untiled(const TensorSpec& x, const Shape& shape);

}  // namespace ttrt::ops
