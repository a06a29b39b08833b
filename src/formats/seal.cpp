// The graph's hash is that of its text once its values are numbered and it has nothing else to tell.
#include "formats/seal.h"

#include <cstring>

#include "ir/body.h"
#include "ir/manifest_name.h"
#include "support/json_text.h"
#include "support/progress.h"
#include "support/sha256.h"

namespace ttc {
namespace {

void number_values(ir::Graph& graph, int& next) {
  const auto number = [&](ir::Value& value) { value.name = "v" + std::to_string(next++); };
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) number(*graph.input(i).value);
  for (const auto& node : graph.nodes()) {
    for (const auto& result : node->results()) {
      number(*result);
      result->type = ir::Type{};
    }
    node->place.clear();
    node->origins.clear();
    node->provenance = ir::Node::empty_provenance();
    for (const auto& region : node->regions()) {
      region->name.clear();
      number_values(*region, next);
    }
  }
}

// Copies the elements of dim `d` and those within, in row-major order.
void gather(const ir::Weight& weight, const std::byte* storage, std::size_t d, std::int64_t offset, std::byte*& to) {
  const auto size = static_cast<std::size_t>(size_of(weight.dtype));
  if (d == weight.sizes.size()) {
    std::memcpy(to, storage + static_cast<std::size_t>(offset) * size, size);
    to += size;
    return;
  }
  for (std::int64_t i = 0; i < weight.sizes[d]; ++i) gather(weight, storage, d + 1, offset + i * weight.strides[d], to);
}

// Members by name without the seal's; of names that are there twice the last counts. Their texts are the manifest's.
std::map<std::string, std::string_view> manifest_members(std::string_view manifest) {
  std::map<std::string, std::string_view> out;
  for (const auto& [name, text] : json_members(manifest)) out[name] = text;
  out.erase("seal");
  return out;
}

std::string manifest_hash(const std::map<std::string, std::string_view>& members) {
  std::string text;
  for (const auto& [name, value] : members)
    text += (text.empty() ? "{" : ",") + json_text(name) + ":" + compact_json(value);
  text += text.empty() ? "{}" : "}";
  return sha256_hex(std::as_bytes(std::span(text)));
}

}  // namespace

std::string graph_hash(ir::Graph& graph) {
  ir::open_bodies(graph);
  int next = 0;
  number_values(graph, next);
  const std::string text = ir::print(graph);
  return sha256_hex(std::as_bytes(std::span(text)));
}

std::string weight_hash(const ir::Weight& weight, const std::byte* storage) {
  if (weight.numel() == 0) return sha256_hex({});  // its storage may be nothing in memory and something in a file
  if (storage == nullptr) return {};
  if (weight.is_contiguous())
    return sha256_hex({storage + weight.storage_offset * size_of(weight.dtype), weight.nbytes()});
  std::vector<std::byte> dense(weight.nbytes());
  std::byte* to = dense.data();
  gather(weight, storage, 0, weight.storage_offset, to);
  return sha256_hex(dense);
}

Seal seal_of(const ir::Model& model) {
  Seal out{.graph = graph_hash(*ir::clone(*model.graph)), .weights = {}};
  if (const auto manifest = model.extra.find(manifest_name); manifest != model.extra.end())
    out.manifest = manifest_hash(manifest_members(manifest->second.str()));
  Phase phase("hashing weights", model.weight_bytes(), Phase::Unit::bytes);
  for (const auto& [target, weight] : model.weights) {
    phase.at(target);
    const auto [owner, data] = weight.storage->load();
    out.weights[target] = weight_hash(weight, weight.storage->absent() ? nullptr : data);
    phase.advance(weight.nbytes());
  }
  return out;
}

UnsealedManifest::UnsealedManifest(std::string_view manifest)
    : members_(manifest_members(manifest)), hash_(manifest_hash(members_)) {}

std::string UnsealedManifest::sealed(const Seal& seal) && {
  const std::string text = json_text({{"graph", seal.graph}, {"weights", seal.weights}, {"manifest", hash_}});
  members_["seal"] = text;
  return json_sorted_table(std::vector<JsonMember>(members_.begin(), members_.end()), "\n ");
}

std::optional<Seal> seal_in_manifest(const ir::Model& model) {
  const auto manifest = model.extra.find(manifest_name);
  if (manifest == model.extra.end()) return std::nullopt;
  for (const auto& [name, text] : json_members(manifest->second.str())) {
    if (name != "seal") continue;
    const Json seal = parse_json(text);
    Seal out{.graph = as_string(member(seal, "graph")), .weights = {}, .manifest = as_string(member(seal, "manifest"))};
    for (const auto& [target, hash] : as_object(member(seal, "weights"))) out.weights[target] = as_string(hash);
    return out;
  }
  return std::nullopt;
}

}  // namespace ttc
