// Numbers the compute nodes of the canonical graph. Fusions keep the numbers of what they replace, so that the share of
// nodes on the device means the same whatever was fused.
#include "pass/numbering.h"

TTC_REGISTER_PASS({"number-nodes", "Number the compute nodes; counts of device and CPU nodes refer to these",
                   ttc::number_nodes});
