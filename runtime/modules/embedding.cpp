// TTNNEmbedding: rows of a table.
#include "modules/module.h"

namespace ttrt::modules {
namespace {

const ModuleRecord embedding{.name = "TTNNEmbedding",
                             .summary = "Rows of a table, by integers",
                             .classes = {"torch.nn.Embedding"},
                             .computes = {"aten.embedding.default"},
                             .calls = {{.klass = "torch.nn.Embedding",
                                        .op = "aten.embedding.default",
                                        .args = {"weight", "x"},
                                        .sample = {"4"},
                                        .indices = true}}};
TTRT_REGISTER_MODULE(embedding);

}  // namespace
}  // namespace ttrt::modules
