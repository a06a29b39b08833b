// Counting by the numbers that nodes carry.
#include "ir/node_counts.h"

#include <algorithm>
#include <charconv>

#include "support/error.h"

namespace ttc::ir {
namespace {

bool holds_tensor(const Type& type) {
  if (type.is_tensor()) return true;
  for (const Type& element : type.elements)
    if (holds_tensor(element)) return true;
  return false;
}

bool is_transfer(const Node& node) { return node.schema() != nullptr && node.schema()->transfer; }

}  // namespace

bool computes_tensors(const Node& node) {
  const std::string& op = node.op();
  if (!node.regions().empty() || is_transfer(node) || op.starts_with("prim.") || op.starts_with("_operator.") ||
      op.starts_with("aten._assert"))
    return false;
  return std::any_of(node.results().begin(), node.results().end(),
                     [](const auto& result) { return holds_tensor(result->type); });
}

std::string origins_text(const std::vector<int>& origins) {
  std::string out;
  for (const int origin : origins) out += (out.empty() ? "" : ",") + std::to_string(origin);
  return out;
}

std::vector<int> parse_origins(std::string_view text) {
  constexpr int most = 1 << 26;
  std::vector<int> out;
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    const auto [next, error] = std::from_chars(at, end, out.emplace_back());
    if (error != std::errc() || out.back() < 0 || out.back() > most || (next != end && *next != ','))
      throw bad_file("", "malformed ttc_origins");
    at = next == end ? end : next + 1;
  }
  return out;
}

void NodeCounter::add(const Node& node, bool on_device) {
  if (is_transfer(node)) return;
  for (const int number : node.origins) {
    const auto i = static_cast<std::size_t>(number);
    if (i >= seen_.size()) seen_.resize(i + 1, Seen::nowhere);
    if (seen_[i] != Seen::cpu) seen_[i] = on_device ? Seen::device : Seen::cpu;
  }
  if (!seen_.empty() || !computes_tensors(node)) return;
  ++unnumbered_.total;
  ++(on_device ? unnumbered_.device : unnumbered_.cpu);
}

NodeCounts NodeCounter::counts() const {
  if (seen_.empty()) return unnumbered_;
  NodeCounts out;
  for (const Seen seen : seen_) {
    out.total += seen != Seen::nowhere;
    out.device += seen == Seen::device;
    out.cpu += seen == Seen::cpu;
  }
  return out;
}

}  // namespace ttc::ir
