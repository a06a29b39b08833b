// Computes equal things once: nodes of one operator with the same arguments, and integers with the same symbolic value.
// The first occurrence stays. Regions of prim.if and prim.loop see what was computed before them; those of higher-order
// operators only what is within.
#include <array>
#include <bit>
#include <unordered_map>

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

// An integer that a symbolic expression describes is the same wherever it is computed.
std::string symbol_key(const ir::Node& node) {
  if (node.results().size() != 1 || node.result()->type.kind != ir::TypeKind::integer || !node.result()->type.sym)
    return {};
  return "int " + node.result()->type.sym->str();
}

class Merger {
  using Known = std::unordered_map<std::string, ir::Node*>;

 public:
  explicit Merger(PassContext& context) : context_(context) {}

  void graph(ir::Graph& g) {
    std::vector<const std::string*> added;
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
      std::array<std::string, 2> keys = {symbol_key(*node), key_of(*node)};
      for (const std::string& key : keys) {
        if (key.empty()) continue;
        if (const auto known = first_.find(key); known != first_.end()) return merge(node, known->second);
      }
      for (std::string& key : keys)
        if (!key.empty()) added.push_back(&first_.emplace(std::move(key), node).first->first);
    });
    if (added.size() == first_.size()) return first_.clear();
    for (const std::string* key : added) first_.erase(first_.find(*key));
  }

 private:
  void merge(ir::Node* node, ir::Node* first) {
    std::vector<ir::Value*> results;
    for (std::size_t i = 0; i < node->results().size(); ++i) results.push_back(first->result(i));
    Rewriter(context_, pass, node).commit(results, {.rule = "computed before"});
  }

  PassContext& context_;
  Known first_;
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
