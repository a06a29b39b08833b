// Convolutions and poolings. The device's layout is channels last; the model's own order of dims stays.
#include "modules/module.h"

namespace ttrt::modules {
namespace {

const std::vector<std::string_view> convolutions{"aten.conv?d.*", "aten.convolution.default"};

const ModuleRecord conv2d{.name = "TTNNConv2dNHWC",
                          .summary = "A convolution of one, two or three dims",
                          .classes = {"torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"},
                          .computes = convolutions,
                          .calls = {{.klass = "torch.nn.Conv2d",
                                     .op = "aten.conv2d.default",
                                     .args = {"x", "weight", "bias", "stride", "padding", "dilation", "groups"},
                                     .sample = {"2", "weight.1*groups", "64", "64"}}}};
TTRT_REGISTER_MODULE(conv2d);

const ModuleRecord conv2d_bn{.name = "TTNNConv2dBNNHWC",
                             .summary = "A convolution and the batch norm behind it",
                             .classes = {"torch.nn.Conv1d", "torch.nn.Conv2d"},
                             .computes = convolutions,
                             .folds_batch_norm = true};
TTRT_REGISTER_MODULE(conv2d_bn);

const ModuleRecord conv2d_bn_relu{.name = "TTNNConv2dBNActivationNHWC",
                                  .summary = "A convolution, the batch norm behind it and the relu behind that",
                                  .classes = {"torch.nn.Conv1d", "torch.nn.Conv2d"},
                                  .computes = convolutions,
                                  .activation = "aten.relu.default",
                                  .folds_batch_norm = true};
TTRT_REGISTER_MODULE(conv2d_bn_relu);

const ModuleRecord max_pool{.name = "TTNNMaxPool2dNHWC",
                            .summary = "The largest of each window",
                            .classes = {"torch.nn.MaxPool1d", "torch.nn.MaxPool2d", "torch.nn.MaxPool3d"},
                            .computes = {"aten.max_pool?d.*", "aten.max_pool?d_with_indices.*"},
                            .calls = {{.klass = "torch.nn.MaxPool2d",
                                       .op = "aten.max_pool2d.default",
                                       .args = {"x", "kernel_size", "stride", "padding", "dilation", "ceil_mode"},
                                       .sample = {"2", "4", "64", "64"}}}};
TTRT_REGISTER_MODULE(max_pool);

const ModuleRecord patches{.name = "TTNNPatchEmbedding",
                           .summary = "An image cut into patches, each through one linear layer",
                           .classes = {"*PatchEmbeddings"},
                           .computes = {},
                           .whole = true};
TTRT_REGISTER_MODULE(patches);

}  // namespace
}  // namespace ttrt::modules
