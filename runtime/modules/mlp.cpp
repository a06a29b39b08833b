// Blocks of a transformer beside its attention.
#include "modules/module.h"

namespace ttrt::modules {
namespace {

const ModuleRecord mlp{.name = "TTNNMLP",
                       .summary = "Two linear layers and the activation between them",
                       .classes = {"ViTMLP", "CLIPMLP", "OwlViTMLP", "GPT2MLP", "*FeedForward"},
                       .computes = {},
                       .whole = true,
                       .as_one = {"tt.mlp"}};
TTRT_REGISTER_MODULE(mlp);

const ModuleRecord swiglu{.name = "TTNNSwiGLU",
                          .summary = "down(silu(gate(x)) * up(x))",
                          .classes = {"LlamaMLP", "Qwen*MLP", "MistralMLP", "Glm4MoeMLP"},
                          .computes = {},
                          .whole = true,
                          .as_one = {"tt.mlp"}};
TTRT_REGISTER_MODULE(swiglu);

const ModuleRecord fused_gate_up{.name = "TTNNSwiGLUFusedGateUp",
                                 .summary = "The same, gate and up as one product",
                                 .classes = {"LlamaMLP", "Qwen*MLP", "MistralMLP", "Glm4MoeMLP"},
                                 .computes = {},
                                 .whole = true,
                                 .as_one = {"tt.mlp"},
                                 .joins_gate = true};
TTRT_REGISTER_MODULE(fused_gate_up);

const ModuleRecord moe{.name = "TTNNMoE",
                       .summary = "Router and experts",
                       .classes = {"*SparseMoeBlock", "*MoE", "*Experts"},
                       .computes = {"aten._grouped_mm.default"},
                       .whole = true,
                       .as_one = {"tt.moe"}};
TTRT_REGISTER_MODULE(moe);

}  // namespace
}  // namespace ttrt::modules
