// Layer norm and RMS norm become device operators.
#include "replace.h"

namespace ttc {
namespace {

bool run(PassContext& context) {
  return replace_ops(context, "replace-norm", {"aten.layer_norm.default", "aten.rms_norm.default"});
}

}  // namespace
}  // namespace ttc

TTC_REGISTER_PASS({"replace-norm", "Replace layer_norm and rms_norm by device operators", ttc::run});
