// The seal of a rewritten file: hashes of the graph and of each weight as they were written, kept in the manifest, so
// that a reader can tell what was changed afterwards.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ir/model.h"

namespace ttc {

struct Seal {
  std::string graph = {};                           // SHA-256, in hex, of operators, arguments, inputs and outputs
  std::map<std::string, std::string> weights = {};  // by target: of the elements in row-major order; "": without bytes
  std::string manifest = {};                        // of its text without the seal
  bool operator==(const Seal&) const = default;
};

// Names of values, places, provenance and the types that follow from the inputs' have no part in it, so that it
// outlives other programs that save the file again. The graph is taken apart for it.
std::string graph_hash(ir::Graph& graph);
// `storage`: the bytes of weight.storage, nullptr where there are none.
std::string weight_hash(const ir::Weight& weight, const std::byte* storage);
// Reads every weight.
Seal seal_of(const ir::Model& model);

// A manifest whose hash is there before the seal's others are. The text is kept by reference.
class UnsealedManifest {
 public:
  explicit UnsealedManifest(std::string_view manifest);
  // With the seal, its hash of the manifest set, as member "seal".
  std::string sealed(const Seal& seal) &&;

 private:
  std::map<std::string, std::string_view> members_;
  std::string hash_;
};
// The seal that the model's manifest has; none where it has none. Throws ttc::Error (bad_file, without a file name).
std::optional<Seal> seal_in_manifest(const ir::Model& model);

}  // namespace ttc
