// Attention modules: projections, rotary embedding, scores and output with all that is between.
#include "modules/module.h"

namespace ttrt::modules {
namespace {

constexpr std::string_view sdpa = "aten.scaled_dot_product_attention.default";

const ModuleRecord scores{.name = "TTNNSDPAAttention",
                          .summary = "softmax(q k^T) v alone; projections stay where they are",
                          .classes = {"*Attention"},
                          .computes = {sdpa}};
TTRT_REGISTER_MODULE(scores);

const ModuleRecord vit{.name = "TTNNViTSelfAttention",
                       .summary = "Self-attention of vision transformers",
                       .classes = {"ViTSelfAttention", "ViTAttention", "CLIPAttention", "OwlViTAttention"},
                       .computes = {sdpa},
                       .whole = true,
                       .as_one = {"tt.self_attention"}};
TTRT_REGISTER_MODULE(vit);

const ModuleRecord bert{
    .name = "TTNNSelfAttention",
    .summary = "Self-attention of BERT and its kin, with a mask",
    .classes = {"BertSelfAttention", "BertSdpaSelfAttention", "*SelfAttention", "torch.nn.MultiheadAttention"},
    .computes = {sdpa},
    .whole = true,
    .as_one = {"tt.self_attention"}};
TTRT_REGISTER_MODULE(bert);

const ModuleRecord llama{
    .name = "LlamaAttention",
    .summary = "Self-attention of LLaMA and its kin: rotary embedding, grouped keys, a causal mask",
    .classes = {"LlamaAttention", "Qwen*Attention", "MistralAttention", "MixtralAttention"},
    .computes = {sdpa},
    .whole = true,
    .as_one = {"tt.self_attention"}};
TTRT_REGISTER_MODULE(llama);

const ModuleRecord whisper{.name = "TTNNWhisperAttention",
                           .summary = "Self- and cross-attention of encoders and decoders",
                           .classes = {"WhisperAttention", "SpeechT5Attention", "BartAttention"},
                           .computes = {sdpa},
                           .whole = true,
                           .as_one = {"tt.self_attention", "tt.cross_attention"}};
TTRT_REGISTER_MODULE(whisper);

const ModuleRecord cross{.name = "TTNNCrossAttention",
                         .summary = "Attention whose keys and values come from another sequence",
                         .classes = {"*CrossAttention"},
                         .computes = {sdpa},
                         .whole = true,
                         .as_one = {"tt.cross_attention"}};
TTRT_REGISTER_MODULE(cross);

}  // namespace
}  // namespace ttrt::modules
