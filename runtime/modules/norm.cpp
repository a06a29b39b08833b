// Norms over the last dims.
#include "modules/module.h"

namespace ttrt::modules {
namespace {

const ModuleRecord layer_norm{.name = "TTNNLayerNorm",
                              .summary = "Layer norm",
                              .classes = {"torch.nn.LayerNorm"},
                              .computes = {"aten.layer_norm.default", "aten.native_layer_norm.default"},
                              .calls = {{.klass = "torch.nn.LayerNorm",
                                         .op = "aten.layer_norm.default",
                                         .args = {"x", "normalized_shape", "weight", "bias", "eps"},
                                         .sample = {"2", "weight.0"}}}};
TTRT_REGISTER_MODULE(layer_norm);

const ModuleRecord rms_norm{.name = "TTNNRMSNorm",
                            .summary = "RMS norm",
                            .classes = {"torch.nn.RMSNorm", "*RMSNorm", "T5LayerNorm"},
                            .computes = {"aten.rms_norm.default", "aten._fused_rms_norm.default"},
                            .calls = {{.klass = "torch.nn.RMSNorm",
                                       .op = "aten.rms_norm.default",
                                       .args = {"x", "normalized_shape", "weight", "eps"},
                                       .sample = {"2", "weight.0"}}}};
TTRT_REGISTER_MODULE(rms_norm);

}  // namespace
}  // namespace ttrt::modules
