// Numbers the compute nodes of the canonical graph. Fusions keep the numbers of what they replace, so that the share of
// nodes on the device means the same whatever was fused.
#include "pass/numbering.h"

namespace ttc {
namespace {

bool run(PassContext& context) {
  number_nodes(context);
  return false;
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"number-nodes", "Number the compute nodes; counts of device and CPU nodes refer to these",
                   ttc::run});
