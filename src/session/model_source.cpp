// One mapping for the readers and the hash.
#include "session/model_source.h"

#include "formats/model_file.h"
#include "formats/pt2_read.h"
#include "support/sha256.h"
#include "torch_library/torch_ops.h"

namespace ttc {

ModelSource::ModelSource(const std::string& path) : file_(MappedFile::open(path)) {}

ModelSource::ModelSource(std::string name, std::vector<std::byte> content)
    : file_(MappedFile::hold(std::move(name), std::move(content))) {}

const std::string& ModelSource::sha256() const {
  std::call_once(hashed_, [&] { sha256_ = sha256_hex(file_->bytes()); });
  return sha256_;
}

std::unique_ptr<ir::Model> ModelSource::read(bool to_run) const {
  ttrt::register_torch_ops();  // rewritten TorchScript names tt operators
  std::unique_ptr<ir::Model> model = load_model(file_);
  if (to_run) check_known_ops(*model);
  return model;
}

std::unique_ptr<ir::Model> load(const std::string& path, bool to_run) { return ModelSource(path).read(to_run); }

bool is_rewritten(const ir::Model& model) {
  bool found = false;
  ir::walk(*model.graph, [&](ir::Node* node) { found = found || node->op().starts_with("tt."); });
  return found;
}

}  // namespace ttc
