// See pickle_read.h.
#include "torchscript/pickle_read.h"

#include <torch/csrc/jit/serialization/pickle.h>

#include "support/error.h"

namespace ttc {
namespace {

using Storages = std::map<const void*, std::shared_ptr<const ir::Storage>>;

ir::Weight to_weight(const std::string& name, const at::Tensor& tensor, Storages& storages) {
  const auto dtype = dtype_from_c10(static_cast<int>(tensor.scalar_type()));
  if (!dtype || tensor.layout() != c10::kStrided || !tensor.device().is_cpu())
    throw bad_file("", "weight '" + name + "' of type " + std::string(tensor.toString()));
  const c10::Storage& bytes = tensor.storage();
  auto& storage = storages[bytes.unsafeGetStorageImpl()];
  if (!storage)
    storage = std::make_shared<ir::Storage>(ir::Storage{.owner = std::make_shared<c10::Storage>(bytes),
                                                        .data = static_cast<const std::byte*>(bytes.data()),
                                                        .bytes = bytes.nbytes(),
                                                        .produce = {}});
  return {.dtype = *dtype,
          .sizes = tensor.sizes().vec(),
          .strides = tensor.strides().vec(),
          .storage_offset = tensor.storage_offset(),
          .requires_grad = tensor.requires_grad(),
          .storage = storage};
}

}  // namespace

std::map<std::string, ir::Weight> read_pickled_tensors(std::string blob) {
  std::map<std::string, ir::Weight> weights;
  if (blob.empty()) return weights;
  try {
    const c10::IValue value = torch::jit::pickle_load(std::vector<char>(blob.begin(), blob.end()));
    if (!value.isGenericDict()) throw bad_file("", "the pickle holds no dictionary of tensors");
    Storages storages;
    for (const auto& item : value.toGenericDict()) {
      if (!item.key().isString() || !item.value().isTensor())
        throw bad_file("", "the pickle holds something else than tensors by name");
      const std::string& name = item.key().toStringRef();
      weights.emplace(name, to_weight(name, item.value().toTensor(), storages));
    }
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw bad_file("", "the pickle cannot be read: " + text.substr(0, text.find('\n')));
  }
  return weights;
}

}  // namespace ttc
