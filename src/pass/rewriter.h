// Rewriting is a transaction: what a rule emits stands before the node tentatively; a commit asks the budget, puts it
// in the node's place, merges provenance and origins, writes the journal and marks the model as changed. A Rewriter
// that goes without a commit takes back all that it emitted: the graph prints as before.
//
// One rewrite, as --rewrite-limit and the journal count it, is one commit:
//   raise, decompose, fold-batch-norm, replace, place    a pattern, or a node, that became others
//   canonicalize, simplify-masks, bound-branches         a node that was respelled, merged or dropped
//   fold-constants, fold-scalars                         a node that became constants; a branch or loop that was
//   decided;
//                                                        an input that the model is compiled for
//   cse, dce                                             a node that went; all weights that nobody reads, together
//   functionalize                                        a tensor, with every write to it (all are replaced or none)
//   promote                                              a cast that was written out, for all its readers
//   inline-wraps, open-regions                           a node whose regions went or opened
// What makes the result a program is no rewrite, has no limit and no entry in the journal: node numbers, transfers,
// packed weights, closed regions (PassContext::changed is set by hand there). After any number of rewrites the model
// runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pass/pass.h"

namespace ttc {

// What a commit says and does besides.
struct Commit {
  std::string rule = {};                // for the journal; "": the node's operator
  std::vector<ir::Node*> matched = {};  // nodes that served the node: those nothing else uses go as well
  std::vector<int> results = {};        // commit_as: the node's results, one for each of the new one's; empty: all
  bool keep_strides = false;            // commit_as: in the types of results
};

class Rewriter {
 public:
  using Arg = ir::Arg;
  using Value = ir::Value;

  // `node` is what is rewritten; nullptr for what is no node's (inputs, weights), with commit_edit and names for
  // `gone`. `pass` is the name for the journal and for refusals.
  Rewriter(PassContext& context, std::string_view pass, ir::Node* node)
      : context_(context), pass_(pass), node_(node), position_(node) {}
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;
  ~Rewriter() { take_back(); }

  PassContext& context() const { return context_; }
  ir::Model& model() const { return context_.model; }
  ir::Node* node() const { return node_; }

  // ---- emitting: before the node, with its provenance

  // From now on before `position`, with the provenance of that node.
  void emit_before(ir::Node* position) { position_ = position; }
  // A node without results as yet.
  ir::Node* insert(std::string op, std::vector<Arg> args);
  // A node with one result, named after its operator. Strides are left out.
  Value* emit(std::string op, std::vector<Arg> args, ir::Type type);
  Value* emit_like(std::string op, std::vector<Arg> args, const Value* like) {
    return emit(std::move(op), std::move(args), like->type);
  }
  // With a result for each of those of `like`, of their types.
  std::vector<Value*> emit_all(std::string op, std::vector<Arg> args, const ir::Node& like);
  // A constant of the model; `name` is made unique.
  Value* constant(std::string name, ir::Weight weight);
  // An integer equal to `size`: a number, one the graph has already, the size of an input, or sums, products, quotients
  // and remainders of these, for which nodes are emitted. None where nothing gives it.
  Arg size(const ir::SymExpr& size);
  // The same for each of `sizes`; nullopt where one is not to be had.
  std::optional<Arg::List> sizes(const std::vector<ir::SymExpr>& sizes);

  // ---- moves and products (rewriter_math.cpp)

  Value* linear(Value* x, Value* weight, const Arg& bias);          // x w^T + b over the last dim; `bias` may be none
  Value* matmul(Value* a, Value* b);                                // of rank 2 and more; batches broadcast
  Value* reshape(Value* x, const std::vector<ir::SymExpr>& sizes);  // impossible where the graph lacks a size
  Value* permute(Value* x, const std::vector<std::int64_t>& order);
  Value* transpose(Value* x, int a, int b);
  Value* slice(Value* x, int dim, std::int64_t begin, std::int64_t end);  // x[..., begin:end, ...]
  std::vector<Value*> split(Value* x, int dim, std::int64_t parts);
  Value* squeeze(Value* x, const std::vector<std::int64_t>& dims);  // dims of size 1
  Value* unsqueeze(Value* x, int dim);

  // ---- formulas over tensors that broadcast

  // f(x, numbers...), of the type of x.
  Value* unary(const std::string& op, Value* x, const std::vector<double>& numbers = {});
  // f(a, b), which broadcast; one of them may be a number. Of the dtype of the tensor.
  Value* binary(const std::string& op, const Arg& a, const Arg& b);
  // The same with a mask as the result.
  Value* compare(const std::string& op, const Arg& a, const Arg& b);
  // aten.where of this overload; of the dtype of the tensor among the two, float32 where there is none.
  Value* choose(const std::string& op, Value* mask, const Arg& yes, const Arg& no);
  Value* cast(Value* x, DType dtype);
  Value* reduce(const std::string& op, Value* x, const std::vector<std::int64_t>& dims, bool keep);
  // False where what was emitted is impossible (sizes met that do not broadcast, or a size is not to be had), or the
  // value is not of the type asked for.
  bool fits(const Value* made, const Value* wanted) const;

  // ---- ending

  // Each of these is the one commit of a Rewriter. False or nullptr where what was emitted is impossible or the budget
  // is used up: then nothing changed.

  // `values` take the place of the node's results and the node goes; nullptr for results that nobody uses. Where the
  // node had origins, what was emitted for its results takes them.
  bool commit(const std::vector<Value*>& values, Commit how = {});
  // One new node before `node` with the names and types of its results.
  ir::Node* commit_as(std::string op, std::vector<Arg> args, Commit how = {});
  // `edit` changes nodes that stay, or does what the other forms cannot; it may erase the node. `result`: as in
  // MatchRecord; `gone`: its nodes, the node where empty.
  bool commit_edit(std::string rule, const std::function<void()>& edit, std::string result = {},
                   std::vector<std::string> gone = {});
  bool committed() const { return committed_; }

  // Records why the node is left as it is. False, so that rules can return it.
  bool refuse(Reason reason);

 private:
  bool take(std::string rule, std::vector<std::string> gone, std::string result);
  void take_back();
  Arg size_at_hand(const ir::SymExpr& size);
  std::vector<ir::SymExpr> common_sizes(std::initializer_list<const Arg*> args);

  PassContext& context_;
  std::string pass_;
  ir::Node* node_;
  ir::Node* position_;
  std::vector<ir::Node*> emitted_;
  std::vector<Value*> constants_;
  bool committed_ = false;
  bool possible_ = true;
};

// Erases the nodes of `candidates` whose results nobody uses, repeatedly; returns the origins of those that went.
std::vector<int> erase_unused(const std::vector<ir::Node*>& candidates);
void merge_origins(ir::Node& into, const std::vector<int>& origins);

}  // namespace ttc
