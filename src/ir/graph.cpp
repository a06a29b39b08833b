// See graph.h; uses are kept in uses.cpp.
#include "ir/graph.h"

#include "ir/copy.h"

#include <algorithm>
#include <cctype>
#include <tuple>
#include <utility>
#include <unordered_map>

#include "support/error.h"

namespace ttc::ir {
namespace {

void fill_defaults(const OpSchema* schema, std::vector<Arg>& args) {
  if (schema == nullptr || schema->varargs) return;
  while (args.size() < schema->args.size() && schema->args[args.size()].default_value)
    args.push_back(*schema->args[args.size()].default_value);
}

}  // namespace

// ---- nodes --------------------------------------------------------------------------------------------------------

std::shared_ptr<const Provenance> Node::empty_provenance() {
  static const auto empty = std::make_shared<const Provenance>();
  return empty;
}

void Node::set_op(std::string op) {
  const bool before = mutates();
  op_ = std::move(op);
  schema_ = find_schema(op_);
  graph_->count_mutating(mutates() - before);
}

const Arg* Node::arg(std::string_view name) const {
  if (schema_ != nullptr && !schema_->varargs) {
    const int i = schema_->index_of(name);
    return i >= 0 && static_cast<std::size_t>(i) < args_.size() ? &args_[static_cast<std::size_t>(i)] : nullptr;
  }
  for (std::size_t i = 0; i < std::min(arg_names.size(), args_.size()); ++i)
    if (arg_names[i] == name) return &args_[i];
  return nullptr;
}

void Node::set_args(std::vector<Arg> args) {
  drop_arg_uses();
  args_ = std::move(args);
  fill_defaults(schema_, args_);
  add_arg_uses();
}

void Node::set_arg(std::size_t i, Arg arg) {
  TTC_CHECK(i < args_.size(), "set_arg beyond the arguments of " + op_);
  drop_arg_uses();
  args_[i] = std::move(arg);
  fill_defaults(schema_, args_);
  add_arg_uses();
}

std::vector<Value*> Node::operands() const {
  std::vector<Value*> out;
  for (const Arg& arg : args_) arg.for_each_value([&](Value* value) { out.push_back(value); });
  return out;
}

Value* Node::unnamed_result(Type type) {
  auto value = std::make_unique<Value>();
  value->type = std::move(type);
  value->def_ = this;
  value->graph_ = graph_;
  value->index_ = static_cast<int>(results_.size());
  results_.push_back(std::move(value));
  return results_.back().get();
}

Value* Node::add_result(Type type, std::string name) {
  Value* value = unnamed_result(std::move(type));
  graph_->claim_name(*value, std::move(name));
  return value;
}

Value* Node::take_result(Value& old) {
  TTC_CHECK(!old.name.empty() && old.graph_->outermost() == graph_->outermost(), "a name that is there to be taken");
  Value* value = unnamed_result(old.type);
  old.replace_all_uses_with(value);
  value->name = std::exchange(old.name, {});
  return value;
}

Graph* Node::add_region() {
  regions_.push_back(std::make_unique<Graph>());
  Graph* region = regions_.back().get();
  region->name.clear();
  region->parent_ = this;
  return region;
}

// ---- graphs -------------------------------------------------------------------------------------------------------

Graph::~Graph() { drop_references(); }

// Takes every use this graph makes off the values it uses, last first, so that values may die in any order.
void Graph::drop_references() {
  for (const GraphOutput& output : outputs_) count_output(output.arg, -1);
  outputs_.clear();
  for (auto it = nodes_.rbegin(); it != nodes_.rend(); ++it) {
    for (const auto& region : (*it)->regions_) region->drop_references();
    (*it)->drop_arg_uses();
    (*it)->args_.clear();
  }
}

Graph* Graph::outermost() {
  Graph* graph = this;
  while (graph->parent_ != nullptr && graph->parent_->graph_ != nullptr) graph = graph->parent_->graph_;
  return graph;
}

namespace {

// The next free name of a stem whose own place is `at`, and its place.
using NameCounts = std::map<std::string, int, std::less<>>;
std::pair<std::string, NameCounts::iterator> numbered_name(NameCounts& counts, std::string_view stem,
                                                           NameCounts::iterator at) {
  const auto digits = stem.find_last_not_of("0123456789");
  const bool numbered =
      digits != std::string_view::npos && digits > 0 && digits + 1 < stem.size() && stem[digits] == '_';
  if (numbered) stem = stem.substr(0, digits);
  int& next = numbered || stem.empty() ? counts[std::string(stem)] : at->second;
  while (true) {
    std::string name = stem.empty() ? std::to_string(next) : std::string(stem) + "_" + std::to_string(next + 1);
    const auto place = counts.lower_bound(name);
    if (place == counts.end() || place->first != name) return {std::move(name), place};
    ++next;
  }
}

}  // namespace

std::string Graph::unique_name(std::string_view stem) {
  auto& counts = outermost()->name_counts_;
  const auto at = counts.lower_bound(stem);
  if (!stem.empty() && (at == counts.end() || at->first != stem)) return std::string(stem);
  return numbered_name(counts, stem, at).first;
}

void Graph::claim_name(Value& value, std::string name) {
  auto& counts = outermost()->name_counts_;
  auto at = counts.lower_bound(name);
  if (name.empty() || (at != counts.end() && at->first == name)) std::tie(name, at) = numbered_name(counts, name, at);
  counts.emplace_hint(at, name, 0);
  value.name = std::move(name);
}

Value* Graph::add_input(Type type, std::string name, InputKind kind, std::string target) {
  GraphInput input;
  input.value = std::make_unique<Value>();
  input.kind = kind;
  input.target = std::move(target);
  input.value->type = std::move(type);
  input.value->graph_ = this;
  input.value->index_ = static_cast<int>(inputs_.size());
  claim_name(*input.value, std::move(name));
  inputs_.push_back(std::move(input));
  return inputs_.back().value.get();
}

void Graph::remove_input(std::size_t i) {
  TTC_CHECK(i < inputs_.size() && !inputs_[i].value->has_uses(), "remove_input of an input in use");
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(i));
  for (; i < inputs_.size(); ++i) inputs_[i].value->index_ = static_cast<int>(i);
}

Value* Graph::find_input_by_target(std::string_view target) const {
  for (const GraphInput& input : inputs_)
    if (input.kind != InputKind::user && input.target == target) return input.value.get();
  return nullptr;
}

void Graph::remove_inputs(const std::vector<std::size_t>& rising) {
  auto next = rising.begin();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (next != rising.end() && *next == i) {
      TTC_CHECK(!inputs_[i].value->has_uses(), "remove_inputs of an input in use");
      ++next;
      continue;
    }
    if (kept != i) inputs_[kept] = std::move(inputs_[i]);
    inputs_[kept].value->index_ = static_cast<int>(kept);
    ++kept;
  }
  inputs_.resize(kept);
}

void Graph::count_mutating(std::ptrdiff_t delta) {
  if (delta == 0) return;
  for (Graph* graph = this; graph != nullptr; graph = graph->parent_ ? graph->parent_->graph_ : nullptr)
    graph->mutating_ += delta;
}

void Graph::count_output(const Arg& arg, int delta) {
  arg.for_each_value([&](Value* value) { value->output_uses_ += delta; });
}

void Graph::add_output(Arg arg, OutputKind kind, std::string target) {
  count_output(arg, 1);
  outputs_.push_back({std::move(arg), kind, std::move(target)});
}

void Graph::set_output(std::size_t i, Arg arg) {
  count_output(outputs_.at(i).arg, -1);
  count_output(arg, 1);
  outputs_[i].arg = std::move(arg);
}

void Graph::remove_output(std::size_t i) {
  count_output(outputs_.at(i).arg, -1);
  outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(i));
}

Node* Graph::insert(std::list<std::unique_ptr<Node>>::iterator position, std::string op, std::vector<Arg> args) {
  auto node = std::make_unique<Node>();
  node->graph_ = this;
  node->set_op(std::move(op));
  node->set_args(std::move(args));
  Node* out = node.get();
  out->position_ = nodes_.insert(position, std::move(node));
  return out;
}

Node* Graph::append(std::string op, std::vector<Arg> args) {
  return insert(nodes_.end(), std::move(op), std::move(args));
}

Node* Graph::insert_before(Node* position, std::string op, std::vector<Arg> args) {
  TTC_CHECK(position->graph_ == this, "insert_before a node of another graph");
  return insert(position->position_, std::move(op), std::move(args));
}

Node* Graph::insert_after(Node* position, std::string op, std::vector<Arg> args) {
  TTC_CHECK(position->graph_ == this, "insert_after a node of another graph");
  return insert(std::next(position->position_), std::move(op), std::move(args));
}

void Graph::move_before(Node* node, Node* position) {
  TTC_CHECK(node->graph_ == this && position->graph_ == this, "move_before between graphs");
  if (node == position) return;
  for (auto* cursor : cursors_)
    if (*cursor == node->position_) ++*cursor;
  nodes_.splice(position->position_, nodes_, node->position_);
}

bool Graph::is_before(const Node* a, const Node* b) const {
  TTC_CHECK(a->graph_ == this && b->graph_ == this, "is_before of nodes of another graph");
  if (a == b) return false;
  auto after_a = std::next(std::list<std::unique_ptr<Node>>::const_iterator(a->position_));
  auto after_b = std::next(std::list<std::unique_ptr<Node>>::const_iterator(b->position_));
  while (true) {
    if (after_a == nodes_.end()) return false;
    if (after_b == nodes_.end()) return true;
    if ((after_a++)->get() == b) return true;
    if ((after_b++)->get() == a) return false;
  }
}

void Graph::erase(Node* node) {
  TTC_CHECK(node->graph_ == this, "erase of a node of another graph");
  for (const auto& result : node->results_)
    TTC_CHECK(!result->has_uses(), "erase of " + node->op_ + ", whose result %" + result->name + " is in use");
  for (auto* cursor : cursors_)
    if (*cursor == node->position_) ++*cursor;
  std::ptrdiff_t mutating = node->mutates();
  for (const auto& region : node->regions_) {
    region->drop_references();
    mutating += region->mutating_;
  }
  count_mutating(-mutating);
  node->drop_arg_uses();
  node->args_.clear();
  nodes_.erase(node->position_);
}

namespace {

using Nodes = std::list<std::unique_ptr<Node>>;

// What a walk comes to next: a graph of many nodes is not in the caches, and each would be waited for. The one after it
// is known when that is there.
void bring(const Nodes& nodes, Nodes::const_iterator next) {
  if (next == nodes.end()) return;
  const auto* node = reinterpret_cast<const std::byte*>(next->get());
  for (std::size_t line = 0; line < sizeof(Node); line += 64) __builtin_prefetch(node + line);
  if (++next != nodes.end()) __builtin_prefetch(&*next);
}

}  // namespace

void Graph::for_each(const std::function<void(Node*)>& f) {
  auto next = nodes_.begin();
  cursors_.push_back(&next);
  struct Pop {
    std::vector<std::list<std::unique_ptr<Node>>::iterator*>& cursors;
    ~Pop() { cursors.pop_back(); }
  } pop{cursors_};
  while (next != nodes_.end()) {
    Node* node = next->get();
    ++next;
    bring(nodes_, next);
    f(node);
  }
}

bool is_random(const Node& node) {
  if (!node.schema() || !node.schema()->random) return false;
  for (const std::string_view name : {"train", "training"})
    if (const Arg* arg = node.arg(name); arg && arg->boolean() == false) return false;
  for (const std::string_view name : {"dropout", "dropout_p"})
    if (const Arg* arg = node.arg(name); arg && arg->number() == 0.0) return false;
  return true;
}

bool is_weight(const Value* value) { return weight_input(value) != nullptr; }

const GraphInput* weight_input(const Value* value) {
  if (value == nullptr || value->def() != nullptr || value->graph() == nullptr) return nullptr;
  const GraphInput& input = value->graph()->inputs()[static_cast<std::size_t>(value->index())];
  const bool weight =
      input.kind == InputKind::parameter || input.kind == InputKind::buffer || input.kind == InputKind::constant;
  return weight ? &input : nullptr;
}

void walk(const Graph& graph, const std::function<void(Node*)>& f) {
  for (auto next = graph.nodes().begin(); next != graph.nodes().end(); ++next) {
    bring(graph.nodes(), std::next(next));
    f(next->get());
    for (const auto& region : (*next)->regions()) walk(*region, f);
  }
}

// ---- copies -------------------------------------------------------------------------------------------------------

class GraphCopier {
 public:
  std::unordered_map<const Value*, Arg> mapped;  // values of the source that have a counterpart

  Arg arg(const Arg& from) const {
    if (const Value* value = from.value()) {
      const auto it = mapped.find(value);
      return it == mapped.end() ? from : it->second;
    }
    if (const Arg::List* items = from.list()) {
      Arg::List out;
      for (const Arg& item : *items) out.push_back(arg(item));
      return out;
    }
    return from;
  }

  Node* node(const Node& from, Graph& to, std::list<std::unique_ptr<Node>>::iterator position) {
    auto owned = std::make_unique<Node>();
    Node* out = owned.get();
    out->graph_ = &to;
    out->op_ = from.op_;
    out->schema_ = from.schema_;
    out->arg_names = from.arg_names;
    out->provenance = from.provenance;
    out->origins = from.origins;
    out->place = from.place;
    for (const Arg& a : from.args_) out->args_.push_back(arg(a));
    out->add_arg_uses();
    to.count_mutating(out->mutates());
    out->position_ = to.nodes_.insert(position, std::move(owned));
    for (const auto& region : from.regions_) graph(*region, *out->add_region());
    for (const auto& result : from.results_) mapped[result.get()] = out->add_result(result->type, result->name);
    return out;
  }

  void graph(const Graph& from, Graph& to) {
    to.name = from.name;
    to.returns_single = from.returns_single;
    for (const GraphInput& input : from.inputs_) {
      mapped[input.value.get()] = to.add_input(input.value->type, input.value->name, input.kind, input.target);
      to.inputs_.back().persistent = input.persistent;
      to.inputs_.back().literal = input.literal;
    }
    for (const auto& n : from.nodes_) node(*n, to, to.nodes_.end());
    for (const GraphOutput& output : from.outputs_) to.add_output(arg(output.arg), output.kind, output.target);
  }

  static void copy_names(const Graph& from, Graph& to) {
    to.name_counts_.insert(from.name_counts_.begin(), from.name_counts_.end());
  }
  static std::list<std::unique_ptr<Node>>::iterator position(Node* node) { return node->position_; }
  static std::list<std::unique_ptr<Node>>::iterator end(Graph& graph) { return graph.nodes_.end(); }
};

std::unique_ptr<Graph> clone(const Graph& graph, std::map<const Value*, Value*>* map) {
  auto out = std::make_unique<Graph>();
  GraphCopier copier;
  copier.graph(graph, *out);
  GraphCopier::copy_names(graph, *out);
  if (map != nullptr)
    for (const auto& [from, to] : copier.mapped) (*map)[from] = to.value();
  return out;
}

namespace {

void add_symbols(const Type& type, std::vector<std::string>& out) {
  for (const SymExpr& size : type.sizes) size.collect_symbols(out);
  if (type.sym) type.sym->collect_symbols(out);
  for (const Type& element : type.elements) add_symbols(element, out);
}

void add_symbols(const Graph& graph, std::vector<std::string>& out) {
  for (const GraphInput& input : graph.inputs()) add_symbols(input.value->type, out);
  for (const auto& node : graph.nodes()) {
    for (const auto& result : node->results()) add_symbols(result->type, out);
    for (const auto& region : node->regions()) add_symbols(*region, out);
  }
}

}  // namespace

std::set<std::string> symbols_of(const Graph& graph) {
  std::vector<std::string> out;
  add_symbols(graph, out);
  return {out.begin(), out.end()};
}

void copy_nodes(const std::vector<Node*>& nodes, Graph& to, std::unordered_map<const Value*, Arg>& mapped) {
  GraphCopier copier;
  std::swap(copier.mapped, mapped);
  for (const Node* node : nodes) copier.node(*node, to, GraphCopier::end(to));
  std::swap(copier.mapped, mapped);
}

std::vector<Arg> inline_region(const Graph& region, const std::vector<Arg>& args, Node* position) {
  TTC_CHECK(args.size() == region.inputs().size(),
            "inline_region with another number of arguments than the region has inputs");
  GraphCopier copier;
  for (std::size_t i = 0; i < args.size(); ++i) copier.mapped[region.inputs()[i].value.get()] = args[i];
  for (const auto& node : region.nodes()) copier.node(*node, *position->graph(), GraphCopier::position(position));
  std::vector<Arg> out;
  for (const GraphOutput& output : region.outputs()) out.push_back(copier.arg(output.arg));
  return out;
}

}  // namespace ttc::ir
