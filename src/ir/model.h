// A model: the main graph, its weights, the ranges of its symbols, and what its file said about it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace ttc::ir {

// Bytes that somebody keeps alive: a mapped file or an allocation. Weights that alias share one Storage.
// A compile that packs a big model does not hold all its packed weights: `produce` makes the bytes when a writer or the
// runtime asks for them.
struct Storage {
  std::shared_ptr<const void> owner;
  const std::byte* data = nullptr;  // nullptr and no `produce`: the file carries no weights
  std::size_t bytes = 0;
  std::function<std::vector<std::byte>()> produce;

  bool absent() const { return data == nullptr && !produce && bytes > 0; }
  // The bytes and what keeps them alive; calls `produce` where they are not at hand (the result is not kept here).
  std::pair<std::shared_ptr<const void>, const std::byte*> load() const;
};

// A parameter, buffer or constant: a view into a Storage.
struct Weight {
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  // in elements
  std::int64_t storage_offset = 0;    // in elements
  bool requires_grad = false;
  std::shared_ptr<const Storage> storage;

  std::int64_t numel() const;
  std::size_t nbytes() const;     // numel * element size
  const std::byte* data() const;  // the first element; nullptr where the bytes are absent or not yet produced
  bool is_contiguous() const;
  // Sizes, strides and offset are not negative and every element lies within the storage.
  bool fits_storage() const;
};

// Strides in elements of a contiguous tensor; saturating, so that hostile sizes are harmless.
std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& sizes);
// A contiguous weight that owns `bytes`.
Weight make_weight(DType dtype, std::vector<std::int64_t> sizes, std::vector<std::byte> bytes);

// What an extra file says. The manifest names the hash of the file that was compiled, which takes as long as writing
// the result does: `make` gives it where it is asked for first, once for all copies and from any thread.
class ExtraText {
 public:
  ExtraText() = default;
  ExtraText(std::string text) : text_(std::move(text)) {}
  ExtraText(const char* text) : text_(text) {}
  explicit ExtraText(std::function<std::string()> make);

  const std::string& str() const;
  operator const std::string&() const { return str(); }
  bool operator==(const ExtraText& other) const { return str() == other.str(); }

 private:
  struct Late;
  std::string text_;
  std::shared_ptr<Late> late_;
};

struct ModelInfo {
  std::string path;
  std::string format;  // "pt2", "torchscript", "text"
  std::string torch_version;
  int schema_major = 0, schema_minor = 0;
  std::string dialect;              // "TRAINING", "ATEN", "" for TorchScript
  std::vector<std::string> guards;  // Python expressions over inputs (.pt2 guards_code)
  SymBinding hints;                 // the value each symbol had while the model was exported
  std::string module_call_graph;    // JSON text, kept for writing back
  std::string other_json;  // members of a .pt2's JSON the IR does not model, as one object, kept for writing back
  std::vector<std::string> user_input_names;  // flattened, for --input NAME
};

struct Model {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::map<std::string, Weight, std::less<>> weights;  // by target of the graph input
  SymRanges ranges;
  ModelInfo info;
  std::map<std::string, ExtraText, std::less<>> extra;  // extra/ files: manifest, journal, the user's own

  const Weight* weight_of(const Value* value) const;  // nullptr where value is no weight
  // Adds a constant input with these bytes; `name` is made unique. Returns its value.
  Value* add_constant(std::string name, Weight weight);
  // Takes a constant out again that nothing uses.
  void remove_constant(Value* value);
  // Of all storages, shared ones once.
  std::uint64_t weight_bytes() const;
  // Targets of the weight inputs that nobody reads and no run changes.
  std::vector<std::string> unread_weights() const;
  // Drops these inputs, and weights no input names.
  void drop_unused_weights();
};

// Text form. print(parse(t)) == t for every t that print produced.
//
//   model {range s0 in [2, 1024] hint s0 = 8}
//   graph main(%ids: i64[s0, 128] user, $fc.weight: f32[64, 64] parameter "fc.weight") {
//     %4: f32[s0, 64] = aten.linear.default(%2, $fc.weight)  @encoder.fc : Linear  at bert.py:212
//     %5: f32[s0, 64] = prim.if(%c) {
//       return %4
//     } { ^else(%x: int):
//       return %2
//     } place="cpu" origins=[3, 4]
//     return %5, mutation buffer "k_cache" = %4
//   }
//
// Literal arguments are printed as name=value where a schema is known, and left out where they equal the default:
// none, true, 3, 1.0, inf, "text", f32, contiguous_format, strided, device("cpu"), complex(1.0, 2.0), region(0), [..].
// Names that are not of letters, digits, '_' and '.' are quoted: %"a b". Comments run from // to the end of the line.
std::string print(const Model& model);
std::string print(const Graph& graph);
std::string print(const Node& node);
// Throws ttc::Error naming line and column. Weights without bytes stay absent; `= [..]` gives small ones (in row-major
// order), `= rand(7)` seeded, nearly normal values, `= splat(x)` one value everywhere. Weights that share a storage, or
// are views of one, say so: `storage(ID or new, BYTES) strides(8, 1) offset(4)`. What only files carry (path, module
// call graph, extra files, all but the last entry of a provenance stack) has no text.
std::unique_ptr<Model> parse(std::string_view text, const std::string& file = "<text>");

// Empty where the model is well-formed: definitions precede uses (regions see outer values), types present, argument
// count and kinds fit the schema, outputs and mutation targets exist, weights match their inputs' types.
std::vector<std::string> verify(const Model& model);

}  // namespace ttc::ir
