// The IR: a Graph of Nodes in order, SSA Values, nested Graphs as regions.
//
// Node owns its results and regions; Graph owns its inputs and nodes. Use lists are kept by set_arg and friends, so
// arguments change only through them. Passes carry provenance and origins onto every node they make.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/arg.h"
#include "ir/op_schema.h"
#include "ir/type.h"

namespace ttc::ir {

class Graph;
class GraphCopier;
class Node;

// Where in the user's model a node comes from.
struct Provenance {
  std::string module_path;   // "encoder.layer.0.attention.self.query"; "" is the root
  std::string module_class;  // "torch.nn.modules.linear.Linear"
  std::string source;        // "bert.py:212"
  // The nn.Module stack from the root inwards, (path, class) pairs; the last equals module_path/module_class.
  std::vector<std::pair<std::string, std::string>> stack;
  // By entry of the stack, which of a run's calls of that module it is, from 0; entries beyond the end are 0.
  std::vector<int> calls;
  // Modules whose work a node does all at once, where these are several: it stands in the module around them.
  std::vector<std::pair<std::string, std::string>> merged;
  // Other paths of the module, where the model holds it under several names.
  std::vector<std::string> aliases;
  bool operator==(const Provenance&) const = default;
};

// The nodes that use a value, in the order in which they began to: one entry per use. A use goes in the time of a
// binary search, however many there are: its place stays empty until half of the places are.
class Users {
 public:
  class iterator {
   public:
    using value_type = Node*;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    Node* operator*() const { return users_->uses_[at_].node; }
    iterator& operator++() {
      at_ = users_->used_from(at_ + 1);
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const iterator& other) const { return at_ == other.at_; }

   private:
    friend class Users;
    iterator(const Users* users, std::size_t at) : users_(users), at_(at) {}
    const Users* users_ = nullptr;
    std::size_t at_ = 0;
  };

  iterator begin() const { return {this, first_}; }
  iterator end() const { return {this, uses_.size()}; }
  std::size_t size() const { return uses_.size() - holes_; }
  bool empty() const { return size() == 0; }
  Node* front() const { return uses_[first_].node; }
  operator std::vector<Node*>() const { return {begin(), end()}; }  // NOLINT: for loops that change uses
  bool operator==(const std::vector<Node*>& other) const { return std::vector<Node*>(*this) == other; }

 private:
  friend class Node;
  struct Use {
    Node* node;  // nullptr: gone
    std::uint64_t id;
  };
  std::uint64_t add(Node* node);
  bool remove(std::uint64_t id);  // false where there is none
  void compact();
  std::size_t used_from(std::size_t at) const {
    while (at < uses_.size() && uses_[at].node == nullptr) ++at;
    return at;
  }
  std::vector<Use> uses_;  // by rising id
  std::size_t first_ = 0;  // that is not gone
  std::size_t holes_ = 0;
};

class Value {
 public:
  Type type;
  std::string name;                     // unique within the outermost graph, without "%" or "$"
  Node* def() const { return def_; }    // nullptr for graph inputs
  int index() const { return index_; }  // among the node's results or the graph's inputs
  Graph* graph() const { return graph_; }
  // One entry per use: a node that uses the value twice is listed twice. Graph outputs are not listed: see output_uses.
  const Users& users() const { return users_; }
  int output_uses() const { return output_uses_; }
  bool has_uses() const { return !users_.empty() || output_uses_ > 0; }
  // Uses, by nodes and graph outputs.
  int use_count() const { return static_cast<int>(users_.size()) + output_uses_; }
  // Every use, in nodes, nested regions and graph outputs, becomes `other`.
  void replace_all_uses_with(Value* other);

 private:
  friend class Graph;
  friend class GraphCopier;
  friend class Node;
  Node* def_ = nullptr;
  Graph* graph_ = nullptr;
  int index_ = 0;
  int output_uses_ = 0;
  Users users_;
};

class Node {
 public:
  const std::string& op() const { return op_; }
  void set_op(std::string op);                        // also looks the schema up again
  const OpSchema* schema() const { return schema_; }  // nullptr for operators nobody knows
  Graph* graph() const { return graph_; }

  const std::vector<Arg>& args() const { return args_; }
  const Arg& arg(std::size_t i) const { return args_.at(i); }
  const Arg* arg(std::string_view name) const;  // by schema name; nullptr where there is none
  Value* operand(std::size_t i) const { return i < args_.size() ? args_[i].value() : nullptr; }
  void set_arg(std::size_t i, Arg arg);
  void set_args(std::vector<Arg> args);
  void replace_uses_of(Value* from, Value* to);
  // Every value used, lists included, in order, with repeats. Values captured by regions are not listed.
  std::vector<Value*> operands() const;

  const std::vector<std::unique_ptr<Value>>& results() const { return results_; }
  Value* result(std::size_t i = 0) const { return results_.at(i).get(); }
  Value* add_result(Type type, std::string name = {});  // made unique where taken; "" gives a number
  Value* take_result(Value& old);  // of the same type, with the uses and the name of a value that is about to go

  std::vector<std::unique_ptr<Graph>>& regions() { return regions_; }
  const std::vector<std::unique_ptr<Graph>>& regions() const { return regions_; }
  Graph* add_region();

  // Names of arguments passed by keyword to operators without a schema (higher-order); parallel to args, "" =
  // positional.
  std::vector<std::string> arg_names;
  std::shared_ptr<const Provenance> provenance = empty_provenance();
  // Which nodes of the canonical graph this one computes, by number; several after a fusion, none for helpers.
  std::vector<int> origins;
  // What place decided: "" before, then "device" or "cpu".
  std::string place;

  static std::shared_ptr<const Provenance> empty_provenance();

 private:
  friend class Graph;
  friend class GraphCopier;
  friend class Value;
  Value* unnamed_result(Type type);
  void add_arg_uses();
  void drop_arg_uses();
  bool mutates() const { return schema_ != nullptr && schema_->mutates(); }
  std::string op_;
  const OpSchema* schema_ = nullptr;
  std::vector<Arg> args_;
  std::vector<std::uint64_t> use_ids_;  // among their users, of the values in args_
  std::vector<std::unique_ptr<Value>> results_;
  std::vector<std::unique_ptr<Graph>> regions_;
  Graph* graph_ = nullptr;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

enum class InputKind : std::uint8_t { user, parameter, buffer, constant, custom_obj, token };
enum class OutputKind : std::uint8_t { user, buffer_mutation, user_input_mutation, parameter_mutation, token, other };

struct GraphInput {
  std::unique_ptr<Value> value;
  InputKind kind = InputKind::user;
  std::string target;          // fully qualified name of the parameter, buffer or constant
  bool persistent = true;      // buffers
  std::optional<Arg> literal;  // a user input that export specialised to a constant
};

struct GraphOutput {
  Arg arg;
  OutputKind kind = OutputKind::user;
  std::string target;  // the buffer or user input that is mutated
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  std::string name = "main";
  bool returns_single = false;  // a region of one output whose caller gets it bare, not as a tuple of one (.pt2)
  Node* parent() const { return parent_; }  // the node this graph is a region of

  const std::vector<GraphInput>& inputs() const { return inputs_; }
  GraphInput& input(std::size_t i) { return inputs_.at(i); }
  Value* add_input(Type type, std::string name, InputKind kind = InputKind::user, std::string target = {});
  void remove_input(std::size_t i);  // must have no uses
  void remove_inputs(const std::vector<std::size_t>& rising);
  Value* find_input_by_target(std::string_view target) const;

  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  void add_output(Arg arg, OutputKind kind = OutputKind::user, std::string target = {});
  void set_output(std::size_t i, Arg arg);
  void remove_output(std::size_t i);

  // False where no node of the graph or of its regions writes to its operands.
  bool may_mutate() const { return mutating_ > 0; }

  // In execution order.
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  // New nodes get the trailing defaults that their schema has and `args` leaves out.
  Node* append(std::string op, std::vector<Arg> args);
  Node* insert_before(Node* position, std::string op, std::vector<Arg> args);
  Node* insert_after(Node* position, std::string op, std::vector<Arg> args);
  void move_before(Node* node, Node* position);  // both in this graph
  // Whether `a` stands before `b`, both in this graph; in the time of the nodes between them.
  bool is_before(const Node* a, const Node* b) const;
  void erase(Node* node);  // its results must have no uses
  // Calls f on each node; f may erase any nodes or insert around the one it is given. Nodes inserted after it are not
  // visited. Regions are not entered.
  void for_each(const std::function<void(Node*)>& f);

  // A name not yet used in the outermost graph, built from `stem`.
  std::string unique_name(std::string_view stem);
  Graph* outermost();

 private:
  friend class GraphCopier;
  friend class Node;
  friend class Value;
  Node* insert(std::list<std::unique_ptr<Node>>::iterator position, std::string op, std::vector<Arg> args);
  void count_output(const Arg& arg, int delta);
  void count_mutating(std::ptrdiff_t delta);
  void claim_name(Value& value, std::string name);
  void drop_references();

  std::vector<GraphInput> inputs_;
  std::vector<GraphOutput> outputs_;
  std::list<std::unique_ptr<Node>> nodes_;
  Node* parent_ = nullptr;
  std::ptrdiff_t mutating_ = 0;  // nodes here and in regions; too many where somebody cleared a node's regions
  std::map<std::string, int, std::less<>> name_counts_;               // of the outermost graph: every name ever given
  std::vector<std::list<std::unique_ptr<Node>>::iterator*> cursors_;  // of running for_each calls
};

// Draws random numbers or returns uninitialised memory: two equal nodes need not give equal results, and none may be
// computed once and kept. Operators that only drop out at training do not, where their arguments say so.
bool is_random(const Node& node);
// True for values that parameters, buffers and constants bring in ("$name" in the text form).
bool is_weight(const Value* value);
// The graph input a weight value stands for; nullptr for other values.
const GraphInput* weight_input(const Value* value);
// Computes what `region` computes, before `position`: its nodes are copied with the region's inputs standing for
// `args`. Returns the region's outputs. `region` may be of another graph; it is not changed.
std::vector<Arg> inline_region(const Graph& region, const std::vector<Arg>& args, Node* position);
// Calls f on every node of the graph and of the regions within, outer nodes before their regions' nodes.
void walk(const Graph& graph, const std::function<void(Node*)>& f);
// A deep copy; values from outside stay as they are. `map`, if given, receives old value -> new value.
std::unique_ptr<Graph> clone(const Graph& graph, std::map<const Value*, Value*>* map = nullptr);

}  // namespace ttc::ir
