// TTNNLinear and its forms with other weights.
#include "modules/module.h"

namespace ttrt::modules {
namespace {

const ModuleRecord linear{.name = "TTNNLinear",
                          .summary = "A linear layer with weights in bfloat16",
                          .classes = {"torch.nn.Linear", "Conv1D"},
                          .computes = {"aten.linear.default"},
                          .preset = {.weight = DataType::bfloat16},
                          .calls = {{.klass = "torch.nn.Linear",
                                     .op = "aten.linear.default",
                                     .args = {"x", "weight", "bias"},
                                     .sample = {"2", "weight.1"}}}};
TTRT_REGISTER_MODULE(linear);

const ModuleRecord linear_llama{.name = "TTNNLinearLLama",
                                .summary = "A linear layer with weights in bfloat8_b",
                                .classes = {"torch.nn.Linear"},
                                .computes = {"aten.linear.default"},
                                .preset = {.weight = DataType::bfloat8_b}};
TTRT_REGISTER_MODULE(linear_llama);

const ModuleRecord linear_llama_bfloat16{.name = "TTNNLinearLLamaBFloat16",
                                         .summary = "LLaMA's linear layer where bfloat8_b is too coarse",
                                         .classes = {"torch.nn.Linear"},
                                         .computes = {"aten.linear.default"},
                                         .preset = {.weight = DataType::bfloat16}};
TTRT_REGISTER_MODULE(linear_llama_bfloat16);

}  // namespace
}  // namespace ttrt::modules
