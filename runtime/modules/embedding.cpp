// TTNNEmbedding: rows of a table.
#include "modules/module.h"

namespace ttrt::modules {
namespace {

const ModuleRecord embedding{.name = "TTNNEmbedding",
                             .summary = "Rows of a table, by integers",
                             .classes = {"torch.nn.Embedding"},
                             .computes = {"aten.embedding.default"}};
TTRT_REGISTER_MODULE(embedding);

}  // namespace
}  // namespace ttrt::modules
