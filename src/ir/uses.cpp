// Which nodes use a value, kept while arguments change. Invariant: Value::users_ and output_uses_ count exactly the
// uses in nodes and graph outputs, those in regions included; the verifier recounts them.
#include <algorithm>

#include "ir/graph.h"
#include "support/error.h"

namespace ttc::ir {
namespace {

// Replaces `from` in `arg`, lists included; true where it occurred.
bool replace_in(Arg& arg, Value* from, Value* to) {
  if (arg.value() == from) {
    arg = to;
    return true;
  }
  bool changed = false;
  if (Arg::List* items = arg.list())
    for (Arg& item : *items) changed = replace_in(item, from, to) || changed;
  return changed;
}

// A use's id: how many of the value's came before it, and the number of the operand in its node, so that the operand is
// found from the value's side, too.
constexpr int operand_bits = 32;
constexpr std::uint64_t operand_mask = (std::uint64_t{1} << operand_bits) - 1;

// The argument or item that is operand `number` where lists hold nothing but values; elsewhere another, or nullptr.
Arg* likely_place(std::vector<Arg>& args, std::size_t number) {
  for (Arg& arg : args) {
    Arg::List* items = arg.list();
    const std::size_t count = items != nullptr ? items->size() : arg.value() != nullptr;
    if (number < count) return items != nullptr ? &(*items)[number] : &arg;
    number -= count;
  }
  return nullptr;
}

}  // namespace

std::uint64_t Users::add(Node* node) {
  const std::uint64_t id = uses_.empty() ? 0 : (uses_.back().id | operand_mask) + 1;
  uses_.push_back({node, id});
  return id;
}

bool Users::remove(std::uint64_t id) {
  const auto it = std::ranges::lower_bound(uses_, id, {}, &Use::id);
  if (it == uses_.end() || it->id != id || it->node == nullptr) return false;
  it->node = nullptr;
  ++holes_;
  for (; !uses_.empty() && uses_.back().node == nullptr; --holes_) uses_.pop_back();
  if (uses_.empty())
    first_ = 0;
  else if (2 * holes_ > uses_.size())
    compact();
  else
    first_ = used_from(first_);
  return true;
}

void Users::compact() {
  std::erase_if(uses_, [](const Use& use) { return use.node == nullptr; });
  first_ = holes_ = 0;
}

void Value::replace_all_uses_with(Value* other) {
  if (other == this) return;
  const std::vector<Node*> users = users_;
  for (Node* user : users) user->replace_uses_of(this, other);
  const auto replace_outputs = [&](auto& self, Graph& graph) -> void {
    for (GraphOutput& output : graph.outputs_) {
      graph.count_output(output.arg, -1);
      replace_in(output.arg, this, other);
      graph.count_output(output.arg, 1);
    }
    for (const auto& node : graph.nodes_) {
      if (output_uses_ == 0) return;
      for (const auto& region : node->regions_) self(self, *region);
    }
  };
  if (output_uses_ > 0) replace_outputs(replace_outputs, *graph_);
}

void Node::add_arg_uses() {
  for (const Arg& arg : args_)
    arg.for_each_value([&](Value* value) {
      value->users_.add(this);
      const std::uint64_t id = value->users_.uses_.back().id |= use_ids_.size();
      use_ids_.push_back(id);
    });
}

void Node::drop_arg_uses() {
  std::size_t i = 0;
  for (const Arg& arg : args_)
    arg.for_each_value([&](Value* value) {
      TTC_CHECK(i < use_ids_.size() && value->users_.remove(use_ids_[i]),
                "use list of %" + value->name + " lost a use");
      ++i;
    });
  use_ids_.clear();
}

// The uses are found through the shorter of two lists: the value's, and the node's operands.
void Node::replace_uses_of(Value* from, Value* to) {
  if (from == to) return;
  std::vector<std::size_t> numbers;
  if (from->users_.uses_.size() < use_ids_.size()) {
    for (const Users::Use& use : from->users_.uses_)
      if (use.node == this) numbers.push_back(static_cast<std::size_t>(use.id & operand_mask));
    std::ranges::sort(numbers);
  } else {
    std::size_t number = 0;
    for (const Arg& arg : args_)
      arg.for_each_value([&](const Value* value) {
        if (value == from) numbers.push_back(number);
        ++number;
      });
  }
  // Different numbers have different places: as many that are the value are all.
  std::vector<Arg*> places;
  for (const std::size_t number : numbers)
    if (Arg* place = likely_place(args_, number); place != nullptr && place->value() == from) places.push_back(place);
  if (places.size() == numbers.size())
    for (Arg* place : places) *place = to;
  else
    for (Arg& arg : args_) replace_in(arg, from, to);
  for (const std::size_t number : numbers) {
    from->users_.remove(use_ids_[number]);
    to->users_.add(this);
    use_ids_[number] = to->users_.uses_.back().id |= number;
  }
}

}  // namespace ttc::ir
