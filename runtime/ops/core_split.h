// How a call's work is spread over the cores, for its time and for what reports say of it.
#pragma once

#include "ops/op.h"

namespace ttrt {

// By one of the record's variants; nullptr: the work's pieces one by one to each core in turn.
CoreSplit core_split(const Work& work, const ArchProfile& profile, const KernelVariant* variant,
                     const VariantQuery& sizes);

}  // namespace ttrt
