// Linear layers with the activation behind them in one device operator.
#include "modules/module.h"

namespace ttrt::modules {
namespace {

const ModuleRecord linear_gelu{.name = "TTNNLinearGelu",
                               .summary = "A linear layer and the gelu behind it",
                               .classes = {"torch.nn.Linear"},
                               .computes = {"aten.linear.default"},
                               .activation = "aten.gelu.default"};
TTRT_REGISTER_MODULE(linear_gelu);

const ModuleRecord linear_silu{.name = "TTNNLinearSilu",
                               .summary = "A linear layer and the silu behind it",
                               .classes = {"torch.nn.Linear"},
                               .computes = {"aten.linear.default"},
                               .activation = "aten.silu.default"};
TTRT_REGISTER_MODULE(linear_silu);

const ModuleRecord linear_relu{.name = "TTNNLinearActivation",
                               .summary = "A linear layer and the relu behind it",
                               .classes = {"torch.nn.Linear"},
                               .computes = {"aten.linear.default"},
                               .activation = "aten.relu.default"};
TTRT_REGISTER_MODULE(linear_relu);

const ModuleRecord intermediate{.name = "TTNNViTIntermediate",
                                .summary = "The first layer of a transformer's MLP with its activation",
                                .classes = {"ViTIntermediate", "BertIntermediate"},
                                .computes = {},
                                .whole = true};
TTRT_REGISTER_MODULE(intermediate);

}  // namespace
}  // namespace ttrt::modules
