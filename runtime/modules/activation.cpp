// Activations as modules of their own. Behind a linear layer that the map replaces too, they become a part of it.
#include "modules/module.h"

namespace ttrt::modules {
namespace {

const ModuleRecord silu_module{.name = "TTNNSilu",
                               .summary = "silu",
                               .classes = {"torch.nn.SiLU", "SiLUActivation"},
                               .computes = {"aten.silu.default"},
                               .calls = {{.klass = "torch.nn.SiLU",
                                          .op = "aten.silu.default",
                                          .args = {"x"},
                                          .sample = {"2", "32"}}}};
TTRT_REGISTER_MODULE(silu_module);

const ModuleRecord gelu_module{
    .name = "TTNNGelu",
    .summary = "gelu, exact or by tanh as the model has it",
    .classes = {"torch.nn.GELU", "GELUActivation", "NewGELUActivation", "PytorchGELUTanh", "GELUTanh"},
    .computes = {"aten.gelu.default"},
    .calls = {{.klass = "torch.nn.GELU",
               .op = "aten.gelu.default",
               .args = {"x", "approximate"},
               .sample = {"2", "32"}}}};
TTRT_REGISTER_MODULE(gelu_module);

const ModuleRecord relu_module{
    .name = "TTNNReLU",
    .summary = "relu",
    .classes = {"torch.nn.ReLU"},
    .computes = {"aten.relu.default"},
    .calls = {{.klass = "torch.nn.ReLU", .op = "aten.relu.default", .args = {"x"}, .sample = {"2", "32"}}}};
TTRT_REGISTER_MODULE(relu_module);

}  // namespace
}  // namespace ttrt::modules
