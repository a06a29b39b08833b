// A model's file in memory: mapped once, hashed once, read as often as a graph of its own is needed.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/arch.h"
#include "ir/model.h"
#include "support/mapped_file.h"

namespace ttc {

class ModelSource {
 public:
  // Throws ttc::Error (bad_file) where the file cannot be mapped.
  explicit ModelSource(const std::string& path);
  // The content of a file that is in memory already; `name` stands for it in messages.
  ModelSource(std::string name, std::vector<std::byte> content);
  // What a .pt2 file of the model would be: written into the folder of temporary files, whose names it leaves at once.
  // Throws ttc::Error (usage) where it cannot be written there.
  ModelSource(const ir::Model& model, std::string name);

  const std::string& path() const { return file_->path(); }
  // In hex, of the whole content. What begin_hash() gives is computed by a thread of its own from then on, and may be
  // asked after the source's end.
  const std::string& sha256() const { return begin_hash().get(); }
  const std::shared_future<std::string>& begin_hash() const;
  std::span<const std::byte> content() const { return file_->bytes(); }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  // .pt2, TorchScript or the text IR, by content. The caller may change the graph; weights stay in the mapping. Throws
  // ttc::Error: bad_file, and where it is to run, for operators that exist nowhere.
  std::unique_ptr<ir::Model> read(bool to_run = true) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  mutable std::once_flag hashed_;
  mutable std::shared_future<std::string> hash_;
};

// ModelSource(path).read(to_run)
std::unique_ptr<ir::Model> load(const std::string& path, bool to_run = true);
// Whether it has device ops.
bool is_rewritten(const ir::Model& model);

// What the model was rewritten for, by its manifest; none where it was not. Throws ttc::Error (bad_file).
std::optional<ttrt::ArchProfile> profile_of(const ir::Model& model);
// What runs it: the profile that --arch names, where that is given, else the model's own, else n150. Throws ttc::Error.
ttrt::ArchProfile profile_for(const ir::Model& model, const std::string& argument);

}  // namespace ttc
