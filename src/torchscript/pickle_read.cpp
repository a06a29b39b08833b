// Reads the tensors of a torch.save blob with LibTorch's unpickler, which builds tensors and containers and refuses
// every other class. .pt2 files of torch 2.6 to 2.8 keep their weights so.
#include <torch/csrc/jit/serialization/pickle.h>

#include "formats/pt2_weights.h"
#include "support/error.h"
#include "torchscript/tensor_weight.h"

namespace ttc {
namespace {

// The blob is a dictionary from names to tensors (or parameters). Tensors that share a storage share an ir::Storage.
std::map<std::string, ir::Weight> read_pickled_tensors(std::string blob) {
  std::map<std::string, ir::Weight> weights;
  if (blob.empty()) return weights;
  try {
    const c10::IValue value = torch::jit::pickle_load(std::vector<char>(blob.begin(), blob.end()));
    if (!value.isGenericDict()) throw bad_file("", "the pickle holds no dictionary of tensors");
    ts::Storages storages;
    for (const auto& item : value.toGenericDict()) {
      if (!item.key().isString() || !item.value().isTensor())
        throw bad_file("", "the pickle holds something else than tensors by name");
      const std::string& name = item.key().toStringRef();
      const at::Tensor tensor = item.value().toTensor();
      auto weight = ts::weight_of(tensor, storages);
      if (!weight) throw bad_file("", "weight '" + name + "' of type " + std::string(tensor.toString()));
      weights.emplace(name, std::move(*weight));
    }
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw bad_file("", "the pickle cannot be read: " + text.substr(0, text.find('\n')));
  }
  return weights;
}

[[maybe_unused]] const bool is_registered = [] {
  pickle_reader() = read_pickled_tensors;
  return true;
}();

}  // namespace
}  // namespace ttc
