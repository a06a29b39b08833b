// Computes equal things once: nodes of one operator with the same arguments, and integers with the same symbolic value.
// The first occurrence stays. Regions of prim.if and prim.loop see what was computed before them; those of higher-order
// operators only what is within.
#include <algorithm>
#include <bit>
#include <functional>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "effects.h"
#include "pass/rewriter.h"

namespace ttc::cse_pass {
namespace {

constexpr std::string_view pass = "cse";

// A text that is equal for equal arguments only; values by identity.
struct Key {
  std::string text;

  void add(std::string_view part) { text += std::to_string(part.size()) + ":" + std::string(part) + ","; }
  void operator()(std::monostate) { text += "n,"; }
  void operator()(const ir::Value* value) {
    text += "v" + std::to_string(reinterpret_cast<std::uintptr_t>(value)) + ",";
  }
  void operator()(std::int64_t i) { text += "i" + std::to_string(i) + ","; }
  void operator()(double d) { text += "d" + std::to_string(std::bit_cast<std::uint64_t>(d)) + ","; }
  void operator()(bool b) { text += b ? "t," : "f,"; }
  void operator()(const std::string& s) { text += "s", add(s); }
  void operator()(DType dtype) { text += "y", add(to_string(dtype)); }
  void operator()(ir::MemoryFormatArg f) { text += "m" + std::to_string(f.code) + ","; }
  void operator()(ir::LayoutArg l) { text += "l" + std::to_string(l.code) + ","; }
  void operator()(const ir::DeviceArg& d) { text += "p" + std::to_string(d.index.value_or(-1)), add(d.type); }
  void operator()(std::complex<double> c) { (*this)(c.real()), (*this)(c.imag()); }
  void operator()(ir::RegionArg r) { text += "r" + std::to_string(r.index) + ","; }
  void operator()(const ir::Arg::List& list) {
    text += "[";
    for (const ir::Arg& item : list) std::visit(*this, item.v);
    text += "]";
  }
};

std::string key_of(const ir::Node& node) {
  Key key;
  key.add(node.op());
  for (const ir::Arg& arg : node.args()) std::visit(key, arg.v);
  for (const std::string& name : node.arg_names) key.add(name);
  for (const auto& result : node.results()) key.add(result->type.str());
  return key.text;
}

// Equal for equal keys. Most nodes are like no other, so that texts are made of few.
struct Hash {
  std::size_t of = 0;

  void add(std::size_t part) { of = (of ^ part) * 0x9E3779B97F4A7C15, of ^= of >> 32; }
  void add(std::string_view text) { add(std::hash<std::string_view>()(text)); }
  void operator()(std::monostate) { add(1); }
  void operator()(ir::Value* value) { add(reinterpret_cast<std::uintptr_t>(value)); }
  void operator()(std::int64_t i) { add(static_cast<std::size_t>(i)); }
  void operator()(double d) { add(std::bit_cast<std::uint64_t>(d)); }
  void operator()(const std::string& s) { add(s); }
  void operator()(const ir::Arg::List& list) {
    for (const ir::Arg& item : list) std::visit(*this, item.v);
    add(list.size());
  }
  // What seldom makes the difference.
  template <typename Other>
  void operator()(const Other&) {
    static_assert(!std::is_pointer_v<Other>);
    add(2);
  }
};

std::size_t hash_of(const ir::Node& node) {
  Hash hash;
  hash.add(node.op());
  for (const ir::Arg& arg : node.args()) std::visit(hash, arg.v);
  return hash.of;
}

// An integer that a symbolic expression describes is the same wherever it is computed.
std::string symbol_key(const ir::Node& node) {
  if (node.results().size() != 1 || node.result()->type.kind != ir::TypeKind::integer || !node.result()->type.sym)
    return {};
  return "int " + node.result()->type.sym->str();
}

class Merger {
 public:
  explicit Merger(PassContext& context) : context_(context) {}

  void graph(ir::Graph& g) {
    std::vector<std::pair<std::size_t, ir::Node*>> added;
    std::vector<const std::string*> symbols;
    nodes_.reserve(nodes_.size() + g.nodes().size());
    g.for_each([&](ir::Node* node) {
      if (!node->regions().empty()) {
        if (regions_capture(*node)) {
          for (const auto& region : node->regions()) graph(*region);
        } else {
          Merger inner(context_);
          for (const auto& region : node->regions()) inner.graph(*region);
        }
        return;
      }
      if (has_effects(*node)) return;
      std::string symbol = symbol_key(*node);
      if (const auto known = symbol.empty() ? symbols_.end() : symbols_.find(symbol); known != symbols_.end())
        return merge(node, known->second);
      const std::size_t hash = hash_of(*node);
      if (ir::Node* first = equal(*node, hash)) return merge(node, first);
      nodes_.emplace(hash, node);
      added.emplace_back(hash, node);
      if (!symbol.empty()) symbols.push_back(&symbols_.emplace(std::move(symbol), node).first->first);
    });
    if (added.size() == nodes_.size()) return nodes_.clear(), symbols_.clear();
    for (const auto& [hash, node] : added) {
      const auto [first, last] = nodes_.equal_range(hash);
      nodes_.erase(std::find_if(first, last, [&](const auto& known) { return known.second == node; }));
    }
    for (const std::string* symbol : symbols) symbols_.erase(symbols_.find(*symbol));
  }

 private:
  // The one before that computes the same.
  ir::Node* equal(const ir::Node& node, std::size_t hash) const {
    const auto [first, last] = nodes_.equal_range(hash);
    if (first == last) return nullptr;
    const std::string key = key_of(node);
    const auto same = std::find_if(first, last, [&](const auto& known) { return key_of(*known.second) == key; });
    return same != last ? same->second : nullptr;
  }

  void merge(ir::Node* node, ir::Node* first) {
    std::vector<ir::Value*> results;
    for (std::size_t i = 0; i < node->results().size(); ++i) results.push_back(first->result(i));
    Rewriter(context_, pass, node).commit(results, {.rule = "computed before"});
  }

  PassContext& context_;
  std::unordered_multimap<std::size_t, ir::Node*> nodes_;  // by their hash
  std::unordered_map<std::string, ir::Node*> symbols_;
};

void run(PassContext& context) {
  const ir::Node* writer = nullptr;
  ir::walk(*context.model.graph, [&](ir::Node* node) {
    if (!writer && mutates(*node)) writer = node;
  });
  if (writer)
    context.refuse(pass, *writer,
                   {ReasonCode::Unsupported, "tensors are written in place, so equal nodes may be different tensors"});
  else
    Merger(context).graph(*context.model.graph);
}

}  // namespace
}  // namespace ttc::cse_pass

TTC_REGISTER_PASS({"cse", "Compute equal things once", ttc::cse_pass::run});
